"""TextWorld's own planner, as an oracle: commands that win a game."""

from typing import Any

from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.installed import installed
from langgraft.environments.alfworld.textworld_engine import one_call


def plan(game: Game) -> tuple[str, ...]:
    """Return commands that win the game from its start; none where it is won already.

    Raises:
        SettingsError: The planner finds no way to win it.
        MissingExtraError: alfworld, TextWorld or the planner is not installed.
    """
    packages = installed()
    with one_call():
        infos = packages.core.EnvInfos(won=True, admissible_commands=True)
        env: Any = packages.alfred.AlfredDemangler(packages.pddl.PddlEnv(infos))
        env.load(game.as_data())
        state = env.unwrapped._pddl_state  # noqa: SLF001  (the planner has no other door)
        if state.check_goal():
            return ()
        commands = tuple(state.replan(env.unwrapped._entity_infos))  # noqa: SLF001
    if not commands:
        where = f" ({game.source})" if game.source else ""
        raise SettingsError(f"game {game.name!r}{where} cannot be won: the planner finds no plan")
    return commands
