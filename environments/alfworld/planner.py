"""TextWorld's own planner, as an oracle: commands that win a game."""

from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.installed import installed
from langgraft.environments.alfworld.textworld_engine import libraries, load, one_call


def plan(game: Game) -> tuple[str, ...]:
    """Return commands that win the game from its start; none where it is won already.

    Raises:
        SettingsError: The planner finds no way to win it.
        MissingExtraError: alfworld, TextWorld or the planner is not installed.
    """
    packages = installed()
    with one_call(packages):
        library = libraries().borrow()
        try:
            env = load(game, packages, library).unwrapped
            state = env._pddl_state  # noqa: SLF001  (the planner has no other door)
            won = state.check_goal()
            commands = () if won else tuple(state.replan(env._entity_infos))  # noqa: SLF001
        finally:
            libraries().give_back(library)
    if not commands and not won:
        where = f" ({game.source})" if game.source else ""
        raise SettingsError(f"game {game.name!r}{where} cannot be won: the planner finds no plan")
    return commands
