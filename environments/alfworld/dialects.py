"""Two ways to set a thing down: games know one of them, agents use either.

Games of release json_2.1.1 want `put mug 1 in/on desk 1`, those of json_2.1.2 `move mug 1 to
desk 1`; prompts, papers and memories of one are of no use in the other without an alias. It is
made from the game's side: each admissible command that sets something down is taken in all
spellings below, letter for letter, and anything else is passed on as it is.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

VERBS: Final = ("put", "place", "move")
PREPOSITIONS: Final = ("in/on", "in", "on", "to", "into")
SET_DOWN: Final = {
    "put": "put <object> in/on <receptacle>",
    "move": "move <object> to <receptacle>",
}
"""How a game of each dialect wants things set down."""

# Names are words and numbers, such as `mug 1`; of a game's own making, and so never long.
_COMMAND: Final = re.compile(r"(?:put (.+) in/on|move (.+) to) (.+)")


def in_words_of_the_game(action: str, commands: Sequence[str]) -> str:
    """Return the admissible command that an action says in other words, or the action itself."""
    if action in commands or action.partition(" ")[0] not in VERBS:
        return action
    spelled = (command for command in commands if action in spellings(command))
    return next(spelled, action)


def spellings(command: str) -> Iterator[str]:
    """Spell a command that sets something down in all ways, and no other command in any."""
    parts = _COMMAND.fullmatch(command)
    if parts is None:
        return
    thing = parts[1] or parts[2]
    for verb in VERBS:
        for preposition in PREPOSITIONS:
            yield f"{verb} {thing} {preposition} {parts[3]}"
