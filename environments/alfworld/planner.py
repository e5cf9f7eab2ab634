"""TextWorld's own planner, as an oracle: commands that win a game."""

from langgraft._core.errors import GameError
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.installed import installed
from langgraft.environments.alfworld.rules import check_rules
from langgraft.environments.alfworld.textworld_engine import libraries, load, one_call


def plan(game: Game) -> tuple[str, ...]:
    """Return commands that win the game from its start; none where it is won already.

    Raises:
        GameError: The planner finds no way to win it, or its rules or grammar are not known.
        MissingExtraError: alfworld, TextWorld or the planner is not installed.
    """
    check_rules(game.domain, game.grammar, game.source or game.name)
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
        raise GameError(
            "it cannot be won: the planner finds no plan", source=game.source or game.name
        )
    return commands
