"""Where a scripted model is in an episode of the ReAct agent, which it reads from its prompt."""

import re
from collections.abc import Iterable, Sequence

from langchain_core.messages import AIMessage, BaseMessage

from langgraft._core.errors import ActionFormatError
from langgraft.nodes.replies import reply_text
from langgraft.nodes.text_world import parse_reply

_REFUSED = re.compile(r"in your last (\d+) replies\.")


def reply_due(script: Iterable[str], messages: Sequence[BaseMessage]) -> int:
    """Return which reply of a script comes next; a number beyond its end where it has no more.

    A prompt holds the turns that were taken. Replies that were refused are in none, but for what was
    said to the latest of them, which tells how many there were in a row.
    """
    turns = sum(isinstance(message, AIMessage) for message in messages)
    number = 0
    for reply in script:
        if not turns:
            break
        turns -= _holds_an_action(reply)
        number += 1
    latest = messages[-1].text
    if "Nothing was done. " not in latest:
        return number
    told = _REFUSED.search(latest)
    return number + (int(told[1]) if told else 1)


def _holds_an_action(reply: str) -> bool:
    try:
        parse_reply(reply_text(AIMessage(reply)))
    except ActionFormatError:
        return False
    return True
