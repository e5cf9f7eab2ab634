"""What MLAB's tools ask a model: to edit a script, to read a file, to shorten an observation.

Each ends with a text, or says why there is none; a failure of the model ends no run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraft.environments.sandboxes.telling import trimmed
from langgraft.memory.recall import strip_block
from langgraft.nodes.mlab.prompting import MLABPrompts
from langgraft.nodes.mlab.window import LONGEST_SHOWN
from langgraft.nodes.replies import encodable, in_turns
from langgraft.nodes.search.program_text import quotable, read_program
from langgraft.nodes.structured import REPLY_SHOWN
from langgraft.nodes.talking import Ask, Said, Talk

BLOCK: Final = 10_000
"""Characters of a file or an observation that a model reads at a time (MLAB's figure)."""
BLOCKS: Final = 10
"""Most parts of a file that are read (MLAB's figure)."""
LONGEST_ANSWER: Final = 20_000
"""Most characters kept of what a model says about a file."""
LONGEST_SCRIPT: Final = 100_000
"""Most characters of a script that a model is asked to edit."""
SHORTEST: Final = 1000
"""A part that is too long for a model's context is halved down to this."""
EDIT_TRIES: Final = 3
"""How often an edited script is asked for."""
_SILENT: Final = "the model said nothing"


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of asking."""

    text: str
    """Empty where there is no answer."""
    why: str
    """`ok`, or why there is none, or what is missing in it."""
    calls: int


def editing(name: str, code: str, instruction: str, prompts: MLABPrompts) -> Talk[Answered]:
    """Ask for a script after an edit, and again where no reply holds one.

    A script that does not compile counts where no later reply has a better one: the agent sees
    what is wrong with it when it runs it.
    """
    shown = prompts.edit.render(name=name, code=quotable(code.rstrip()), instruction=instruction)
    question = HumanMessage(encodable(shown))
    messages: list[BaseMessage] = [question]
    best, why = "", ""
    for call in range(1, EDIT_TRIES + 1):
        said = yield Ask(messages, "edit")
        if said.failure:
            return Answered(best, f"the model gave none: {said.failure}", call)
        found = read_program(said.text)
        if found.code and not found.problem:
            return Answered(found.code, "ok", call)
        why = f"{found.problem}, and the reply was cut off" if said.cut else found.problem
        best = found.code or best
        again = HumanMessage(prompts.edit_repair.render(problem=why))
        messages = in_turns([question, AIMessage(said.text[:REPLY_SHOWN]), again])
    return Answered(best, why, EDIT_TRIES)


def understanding(name: str, text: str, question: str, prompts: MLABPrompts) -> Talk[Answered]:
    """Ask what a file holds about a question: part by part, and then for all of it."""
    parts = _parts(text)[:BLOCKS]
    given = {"name": name, "question": question, "parts": str(len(parts))}
    found: list[str] = []
    calls = failed = 0
    for number, part in enumerate(parts, start=1):
        shown = _Shown(part, {**given, "part": str(number)})
        said, asked = yield from _reading(shown, prompts, "understand")
        calls += asked
        failed += _fails(said)
        found.append(_heard(said, f"part {number} could not be read"))
    if failed == len(parts):
        return Answered("", said.failure or _SILENT, calls)
    answer, why = found[0], "ok"
    if len(found) > 1:
        listed = "\n\n".join(f"Part {at}:\n{each}" for at, each in enumerate(found, start=1))
        answer = trimmed(listed, LONGEST_ANSWER)
        asked_all = prompts.understand_all.render(name=name, question=question, found=answer)
        said = yield Ask([HumanMessage(encodable(asked_all))], "understand")
        calls += 1
        answer = answer if _fails(said) else said.text.strip()
    if len(text) > BLOCK * BLOCKS:
        why = f"only the first {BLOCK * BLOCKS:,} of {len(text):,} characters were read"
        answer = f"{answer}\n\n[{why}]"
    return Answered(_kept(answer, LONGEST_ANSWER), why, calls)


def summarizing(action: str, text: str, prompts: MLABPrompts) -> Talk[Answered]:
    """Ask for an observation in short; where that fails, its beginning and end are shown."""
    parts = _parts(text)
    room = LONGEST_SHOWN // len(parts)
    given = {"action": action, "parts": str(len(parts)), "limit": str(room)}
    found: list[str] = []
    calls = 0
    for number, part in enumerate(parts, start=1):
        shown = _Shown(part, {**given, "part": str(number)})
        said, asked = yield from _reading(shown, prompts, "summarize")
        calls += asked
        if _fails(said):
            why = said.failure or _SILENT
            return Answered(trimmed(text, LONGEST_SHOWN), why, calls)
        found.append(trimmed(said.text.strip(), room))
    return Answered(_kept("\n\n".join(found), LONGEST_SHOWN), "ok", calls)


@dataclass(frozen=True, slots=True)
class _Shown:
    part: str
    given: dict[str, str]


def _reading(shown: _Shown, prompts: MLABPrompts, what: str) -> Talk[tuple[Said, int]]:
    """Have a part read; one that is too long for the model is cut until it is not."""
    prompt = prompts.understand if what == "understand" else prompts.summarize
    part, calls = shown.part, 0
    while True:
        asked = prompt.render(**shown.given, text=quotable(part))
        said = yield Ask([HumanMessage(encodable(asked))], what)
        calls += 1
        if not said.overflow or len(part) <= SHORTEST:
            return said, calls
        part = trimmed(part, len(part) // 2)


def _parts(text: str) -> Sequence[str]:
    return [text[at : at + BLOCK] for at in range(0, len(text), BLOCK)] or [""]


def _fails(said: Said) -> bool:
    return bool(said.failure) or not said.text.strip()


def _heard(said: Said, otherwise: str) -> str:
    why = said.failure or _SILENT
    return f"[{otherwise}: {why}]" if _fails(said) else said.text.strip()


def _kept(text: str, room: int) -> str:
    return trimmed(strip_block(encodable(text)), room)
