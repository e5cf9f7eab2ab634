"""Programs as text: read from a model's reply with a plan, and what came of those that ran.

AIDE joins all fenced blocks that compile, and where none does, runs the reply itself if that
compiles: a lone word of prose is a program to it. Here:

1. Blocks fenced as Python go first; without any, those fenced as nothing in particular that hold
   more than a bare expression. Blocks of other languages (`bash`, `json` …) never count.
2. Blocks that do not compile are left out while there are others.
3. Of several, the longest counts alone where it is at least twice as long as the rest together:
   the rest are excerpts. Otherwise they are the parts of one program, and are joined.
4. A reply without fences is a program only if it compiles as a whole and imports something.
5. The plan is what stands before the first block, or else after it; quoted memory is taken out.

Only text is read here; nothing runs. A reply without a program is asked for again. What came of a program that ran is put into words below:
without memory that it printed, and how it ended by name.
"""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraft._core.texts import Prompt
from langgraft._core.untrusted import parse_program, unreadable_as
from langgraft.environments.sandboxes.result_text import span
from langgraft.environments.sandboxes.sandbox import ExecutionResult
from langgraft.memory.model import strip_block
from langgraft.nodes.dialogue import CUT_SHORT, Dialogue, Request
from langgraft.nodes.replies import encodable, in_turns
from langgraft.nodes.structured import REPLY_SHOWN

TRIES: Final = 3
"""How often a program is asked for (AIDE's figure)."""
LONGEST_PROGRAM: Final = 100_000
"""Most characters of a program; those of competitions have a few thousand."""
LONGEST_PLAN: Final = 4_000
"""Most characters kept of a plan that was to be a few sentences."""

_PYTHON: Final = frozenset({"python", "py", "python3", "py3", "ipython"})
_FENCE: Final = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})[ \t]*+(?P<info>[^`\n]*)$")
_FENCED: Final = re.compile(r"^(?=[ \t]*(?:```|~~~))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a reply."""

    language: str
    code: str
    ended: bool
    """Whether its fence is closed."""


@dataclass(frozen=True, slots=True)
class ProgramText:
    """What a reply holds."""

    plan: str
    code: str
    """Empty where there is no program."""
    problem: str
    """What is wrong with the reply; empty where it can be used as it is."""


@unreadable_as(lambda _: ProgramText("", "", "it cannot be read"))
def read_program(reply: str) -> ProgramText:
    """Read a plan and a program from a reply, whatever else it holds.

    A block fenced as Python that does not compile is still returned, with the problem: it may
    compile where it is to run, and if not, its error is worth more than none.
    """
    blocks, prose = _split(reply)
    plan = _plan(prose)
    if not blocks:
        return _unfenced(reply, plan)
    python = [block for block in blocks if block.language in _PYTHON and block.code.strip()]
    unnamed = [block for block in blocks if not block.language and _has_statements(block.code)]
    found = python or unnamed
    if not found:
        return ProgramText(plan, "", "it holds no fenced block of Python")
    codes = [block.code for block in found if _why_not(block.code) == ""]
    code = _one_program(codes or [block.code for block in found])
    problem = _why_not(code)
    if problem and not found[-1].ended:
        problem = f"its block of Python is not ended, and {problem}"
    if len(code) > LONGEST_PROGRAM:
        return ProgramText(plan, "", _too_long(code))
    return ProgramText(plan, code, problem)


@dataclass(frozen=True, slots=True)
class ProgramReply:
    """What came of asking a model for a program."""

    found: ProgramText
    """The last program of a reply that had one; empty where none had."""
    why: str
    """`ok`, or what was wrong with the last reply, or why there was none."""
    calls: int
    """How often the model was asked."""
    failed: bool = False
    """The model gave no reply in the end."""


def asking_for_program(
    question: Sequence[BaseMessage], what: str, repair: Prompt
) -> Dialogue[ProgramReply]:
    """Ask for a program, and again with what was wrong, `TRIES` times in all.

    A program that does not compile counts where no later reply has a better one: the error that
    it ends with tells more than nothing. A model that refuses, or that has no room for the
    prompt, is not asked again: it would say the same.
    """
    best, why, asked = ProgramText("", "", ""), "", list(question)
    for call in range(1, TRIES + 1):
        response = yield Request(asked, what)
        if response.failure:
            return ProgramReply(best, f"the model gave none: {response.failure}", call, failed=True)
        found = read_program(response.text)
        if found.code and not found.problem:
            return ProgramReply(found, "ok", call)
        why = f"{found.problem}, and {CUT_SHORT}" if response.cut else found.problem
        best = found if found.code or not best.code else best
        shown = AIMessage(response.text[:REPLY_SHOWN])
        asked = in_turns([*question, shown, HumanMessage(repair.render(problem=why))])
    return ProgramReply(best, why, TRIES)


def quotable(text: str) -> str:
    """Return a text that cannot end the fenced block it is quoted in: a bar goes before its fences."""
    return _FENCED.sub("| ", text)


def _unfenced(text: str, plan: str) -> ProgramText:
    if len(text) <= LONGEST_PROGRAM and _imports(text):
        return ProgramText("", text.strip() + "\n", "")
    problem = "it holds no fenced block of Python" if text.strip() else "it is empty"
    return ProgramText(plan, "", problem)


def _too_long(code: str) -> str:
    return f"its program has {len(code):,} characters, and at most {LONGEST_PROGRAM:,} are run"


def _split(text: str) -> tuple[list[Block], list[str]]:
    """Split a reply into its fenced blocks and the prose around them."""
    blocks: list[Block] = []
    prose: list[list[str]] = [[]]
    fence, language = "", ""
    held: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        found = _FENCE.match(line)
        if not fence and found:
            info = found["info"].strip().split()
            fence, language = found["fence"], info[0].lower().strip("{}.") if info else ""
            held = []
        elif fence and found and not found["info"].strip() and _closes(found["fence"], fence):
            blocks.append(Block(language, _code(held), ended=True))
            prose.append([])
            fence = ""
        elif fence:
            held.append(line)
        else:
            prose[-1].append(line)
    if fence:
        blocks.append(Block(language, _code(held), ended=False))
    return blocks, ["\n".join(lines).strip() for lines in prose]


def _closes(fence: str, opening: str) -> bool:
    return fence[0] == opening[0] and len(fence) >= len(opening)


def _code(lines: Sequence[str]) -> str:
    return "\n".join(lines).strip("\n") + "\n"


def _plan(prose: Sequence[str]) -> str:
    plan = next((part for part in map(_without_memory, prose) if part), "")
    return plan if len(plan) <= LONGEST_PLAN else plan[: LONGEST_PLAN - 1].rstrip() + "…"


def _without_memory(text: str) -> str:
    return strip_block(text).strip()


def _one_program(codes: Sequence[str]) -> str:
    longest = max(codes, key=len)
    rest = sum(map(len, codes)) - len(longest)
    return longest if len(longest) >= 2 * rest else "\n\n".join(codes)


def _why_not(code: str) -> str:
    """Say why a program does not compile here; nothing where it does."""
    if len(code) > LONGEST_PROGRAM:
        return _too_long(code)
    try:
        _tree(code)
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        return f"its program does not compile: {error.msg}{where}"
    return ""


def _has_statements(code: str) -> bool:
    """Whether a text is more than a word or an expression, or no Python at all."""
    tree = _parsed(code)
    return tree is not None and any(not _bare(node) for node in tree.body)


def _bare(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call)


def _imports(code: str) -> bool:
    tree = _parsed(code)
    return tree is not None and any(
        isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body
    )


def _parsed(code: str) -> ast.Module | None:
    return None if _why_not(code) else _tree(code)


def _tree(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes and comparisons in code that is not ours
        return parse_program(code)


# What came of a run --------------------------------------------------------------------------

LONGEST_MESSAGE: Final = 4_000
"""Most characters kept of an exception's message."""


def without_memory(result: ExecutionResult) -> ExecutionResult:
    """Take recalled blocks out of what was printed and raised.

    Each stream by itself and before anything is cut: a mark that begins a block and has no end
    must not take away how the program ended.
    """
    error = result.error
    if error is not None:
        error = replace(error, message=strip_block(error.message))
    stdout, stderr = strip_block(result.stdout), strip_block(result.stderr)
    return replace(result, stdout=stdout, stderr=stderr, error=error)


def ended(result: ExecutionResult, seconds: float) -> str:
    """Say how a program failed, in a clause; nothing where it ran to its end."""
    if result.timed_out:
        return f"it was stopped after {span(seconds)}"
    if result.stopped == "output":
        return "it was stopped for printing too much"
    if result.stopped == "disk":
        return "it was stopped for writing more than the workspace holds"
    if result.ok:
        return ""
    if result.oom:
        return "it ran out of memory"
    if result.error is not None:
        return encodable(f"it raised {result.error.type}")
    if result.signal is not None:
        return f"it was ended by {result.signal}"
    return f"it ended with exit code {result.exit_code}"


def with_limit(output: str, exc_type: str | None, exc_value: str | None, *, by_limit: bool) -> str:
    """Return what a program showed, and where a limit ended it, that as an error at the end.

    What it printed tells of no such error, and maybe of others that it went on after.
    """
    return f"{output}\n\n{exc_type}: {exc_value or ''}" if by_limit and exc_type else output


def raised_by(result: ExecutionResult, seconds: float) -> tuple[str | None, str | None]:
    """Name what ended a program as an exception: its class and message.

    A timeout is a `TimeoutError`, as in AIDE's journals, a program killed for its memory a
    `MemoryError`, and one stopped for what it wrote to disk the `OSError` of a full one: limits raise
    nothing, and memory files an error by its class.
    """
    if result.error is not None and not result.timed_out:
        message = encodable(result.error.message)
        return encodable(result.error.type), message[:LONGEST_MESSAGE]
    if result.timed_out:
        return "TimeoutError", f"the program was stopped after {span(seconds)}"
    if result.stopped == "disk":
        return "OSError", "[Errno 28] No space left on device"
    if result.oom and not result.ok:
        return "MemoryError", "the program was killed for using too much memory"
    return None, None
