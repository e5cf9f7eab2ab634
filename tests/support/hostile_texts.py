"""Texts that are hard to read, readers of text, and what reading them costs.

A reader is any function that is given what a model, a tool or a foreign file says. `costs` reads
all shapes at two sizes in a process of its own, so that its memory can be told from others'.
"""

import signal
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeAlias, cast

from langchain_core.messages import AIMessage

from langgraft._core.confidential import without_secrets
from langgraft._core.errors import LanggraftError
from langgraft._core.texts import printable
from langgraft._core.untrusted import load_json, load_yaml
from langgraft.environments.competitions.attempts import find_leaks, reported_metric
from langgraft.environments.competitions.preview import data_preview, plain
from langgraft.environments.competitions.submissions import refuse_wide
from langgraft.environments.problems import answers, code_grading
from langgraft.environments.sandboxes.result_text import trimmed
from langgraft.environments.sandboxes.sandbox import ExecutionResult
from langgraft.environments.text_to_sql import SHOP, TextToSQL
from langgraft.memory.bank_format import parse_json
from langgraft.memory.bundle import read_bank_file
from langgraft.memory.converters.forms import Markdown, load_document
from langgraft.memory.model import MemoryItem, strip_block
from langgraft.memory.providers.coding import tracebacks as errors
from langgraft.memory.providers.coding.entries import fix_needs
from langgraft.memory.recall import looks_like, without_markers
from langgraft.memory.scanning import decoded, scan
from langgraft.memory.words import tokenize
from langgraft.nodes import judging, replies, text_world
from langgraft.nodes.chain import tools as chain_tools
from langgraft.nodes.chain.stuck import same_text
from langgraft.nodes.diagnose import Failure, diagnose_by_rules
from langgraft.nodes.dialogue import Model, read_response, run_dialogue
from langgraft.nodes.mlab import tools as mlab_tools
from langgraft.nodes.program_text import quotable, read_program
from langgraft.nodes.reflect import parse_lessons
from langgraft.nodes.screening import Stance
from langgraft.nodes.search import programs as search_programs
from langgraft.nodes.structured import asking, listed, read_reply, typed
from langgraft.nodes.tracebacks import api_symbol, code_names, error_kind, mentioned_error
from langgraft.nodes.workbench.performing import here_program, script_of

REPEATED: Final = (
    *("a", "0", " ", "\n", "\t", "\r\n", "\x00", ",", ".", "-", "_", "$", "\\", "/", "#", "*", "`"),
    *("'", '"', "(", ")", "[", "]", "{", "}", "<", ">", "|", "\u0301", "\u200b", "\ufdfa", "<\u200b"),
    *("a ", "a.", "a.a(", "a\n", "\n\n ", ". ", ", ", "1,", "1 ", "[1,", "[1],", '{"a":', '{"a":[', "{},"),
    *('[{"a":1},', '"a",', '\\"', "![", "](", "\\(", "\\[", "$$", "\\boxed{", "\\boxed{1} ", "\\a{", "\\frac"),
    *("{\\text{", "^(", "The answer is ", "#### ", "answer: ", "answer", "x = ", "```\n", "```python\n", "```json\n{"),
    *("~~~\n", "<think>", "</think>", "<|im_start|>", "<recalled_memory>", "</recalled_memory>", "</recalled"),
    *("Thought: a\nAction: b\n", "Action:", "Action: ", "Thought:\n", "**Action:** ", "Observation: ", "Action Input: {"),
    *("Reflection: ", "- ", "1. ", "- a\n\n", "# a\n", "<!--", "---\n", "&a ", "*a ", "a: &a\n", "- " * 20 + "a\n"),
    *("https://a@", "://a", "Bearer ", "sk-", "api_key=", "key=value ", "a@a.", "%41", "\\x41", "&#65;", "0x41 "),
    *("elif x:\n", "if x:\n elif y:\n", "x=[", "lambda:", "import a\n", "a if a else ", "not ", "f'{", "'''", "a;"),
    *("Traceback (most recent call last):\n", '  File "a", line 1, in a\n', "  a, line 1, in a", "ValueError: a\n"),
    *("Exception: KeyError: a\n", " in a(", "E Traceback (most recent call last)\n", "----> 1 a\n", "| + ", "\x1b["),
    *("\x1b]", "During handling of the above exception, another exception occurred:\n", "No module named ", "killed"),
    *("When whenever ", "install the ", "not ", "avoid installing ", "to fix ", "validation accuracy: ", "valid ", "SELECT (", "python <<E\n"),
    *("system:", "system\n", "please ", "all w ", "http ", "pid ", "\u00e9", "\u4e00", "\U0001f600"),
)  # fmt: skip
"""What a text repeats."""
BEGUN: Final = (
    *("<think>", "```python\n", "```", '{"a": "', "[{", "\\boxed{", "answer is", "Thought", "Action", "Action:", "#### "),
    *("Error: ", '  File "a', "No module named ", "# a", "- a", "1.", "a ^ ", "python", "python <<", "system", "killed"),
    *("Reflection", "Reflection:\nResearch Plan and Status:\nFact Check:\nThought:\nAction: Edit Script (AI)\nAction Input: "),
    *("![", "a@", "&#", "0x", "\\x1b[", "https://", "sk-", "accuracy: ", "not", "pin ", "x = ", "'", '"'),
)  # fmt: skip
FILLED: Final = ("a", "0", " ", "\n", "[", "'", '"', "*", "a ")
"""What a text consists of that begins otherwise, and never ends."""


NESTED: Final = (
    ("[", "]"),
    ("(", ")"),
    ("{", "}"),
    ("\\boxed{", "}"),
    ('{"a":', "}"),
    ("2^(", ")"),
)
"""What opens and closes."""
LONG: Final = (
    *("a", "0", " ", "\n", "\r\n", "\t", "\x00", "1,", "$", "'", '"', "\\", "[", "(", "\u0301", "{},", '{"a":'),
    *("\\boxed{", "The answer is ", "#### ", "```\n", "<think>", "Thought: a\nAction: b\n", "elif x:\n", "a: &a\n"),
    *("https://a@", "api_key=", '  File "a", line 1, in a\n', "ValueError: a\n", "<recalled_memory>"),
)  # fmt: skip
"""Of `REPEATED`, what is tried in texts of a million characters."""

Shapes: TypeAlias = Mapping[str, Callable[[int], str]]
"""Texts by name, made to have so many characters."""


def repeated(units: Iterable[str] = REPEATED) -> Shapes:
    """Return texts that say one thing again and again, and such as nest."""
    found = {repr(unit): partial(_filled, "", unit, "") for unit in units}
    return found | {f"{a!r} … {b!r}": partial(_nested, a, b) for a, b in NESTED}


def begun() -> Shapes:
    """Return texts that begin something and never end it."""
    return {f"{a!r} + {b!r}": partial(_filled, a, b, "x1") for a in BEGUN for b in FILLED}


def _filled(begin: str, unit: str, end: str, size: int) -> str:
    return begin + unit * ((size - len(begin)) // len(unit)) + end


def _nested(opening: str, closing: str, size: int) -> str:
    times = size // len(opening + closing)
    return opening * times + "1" + closing * times


def _item(text: str) -> MemoryItem:
    return MemoryItem(
        id="i", text=text, type="other", source_domain="d", episode_id="e", success=None, order_index=0
    )  # fmt: skip


def _printed(text: str) -> ExecutionResult:
    return ExecutionResult(0, text, text, 1.0)


_RECORD: Final = judging.Record(package="a", error="a", fix="a")
_FACT: Final = judging.KnownFact(subject="a", attribute="b", value="c")
_SHOWN: Final[Mapping[str, judging.Shown]] = {
    "votes": judging.Votes(rules={}, task="a", outcome="a", trajectory="a", limit=3),
    "novelty": judging.Novelty(record=_RECORD, neighbours={"a": _RECORD}),
    "contradiction": judging.Contradiction(task="a", draft="a", candidates={"a": "b"}),
    "facts": judging.Relations(facts={"f": _FACT}, kept={"a": _FACT}),
    "merging": judging.Merging(subject="a", attribute="b", facts={"a": _FACT}),
}
_FILE: Final = Path("a")
_SHOP: Final = TextToSQL(SHOP)


def _judged(shown: judging.Shown, text: str) -> Any:
    return read_reply(text, shown.reader())


@dataclass
class _Filling:
    """A model that fills in a schema, and says nothing."""

    arguments: dict[str, str]

    def invoke(self, _: object) -> AIMessage:
        return AIMessage("", tool_calls=[_CALL | {"args": self.arguments}])

    async def ainvoke(self, messages: object) -> AIMessage:
        return self.invoke(messages)


def _refusing(read: Callable[[Any], Any], data: Any) -> None:
    """Read what is refused by a `ValueError`, which callers put into words."""
    with suppress(ValueError):
        read(data)


def _of_file(name: str, text: str, read: Callable[[Path], Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(text.encode())
        read(path)


_CALL: Final[Any] = {"name": "bash", "id": "1"}


def _request(text: str, **arguments: Any) -> Any:
    message = AIMessage(text, **arguments)
    return chain_tools.requested_action(read_response(message), ["bash", "edit"])


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    # What models say.
    "reply": lambda text: read_response(AIMessage(text)),
    "answer": answers.final_answer,
    "last token": answers.last_token,
    "readings": answers.readings,
    "answer of a draft": judging.final_answer,
    "masked error": judging.masked,
    "program": read_program,
    "quotable": quotable,
    "graded program": code_grading.find_program,
    "leaks": lambda text: find_leaks(text, ["sklearn.datasets", "torchvision"]),
    "names of a program": code_names,
    "text world": text_world.parse_reply,
    "own turn": text_world.own_turn,
    "fields": mlab_tools.read_reply,
    "tool call": lambda text: _request(
        "a", tool_calls=[_CALL | {"args": {"command": text, "at": text}}]
    ),
    "spoiled call": lambda text: _request(
        "a", invalid_tool_calls=[_CALL | {"args": text, "error": None}]
    ),
    "lessons": lambda text: parse_lessons(text, 5),
    **{kind: partial(_judged, shown) for kind, shown in _SHOWN.items()},
    "schema": lambda text: run_dialogue(
        asking([], typed(dict[str, str])), cast("Model", _Filling({"a": text}))
    ),
    "object": lambda text: read_reply(text, typed(dict[str, int])),
    "list": lambda text: read_reply(text, listed(dict[str, int])),
    "wording": Stance.of,
    "sentences": replies.first_sentences,
    "query": _SHOP.query,
    # What tools and programs say.
    "failure": lambda text: diagnose_by_rules(Failure(text, text, text)),
    "review": lambda text: diagnose_by_rules(Failure(analysis=text)),
    "traceback": errors.parse_traceback,
    "canonical error": errors.canonical_error,
    "masked": errors.masked,
    "mentioned error": mentioned_error,
    "error kind": lambda text: error_kind(None, text),
    "error of an API": api_symbol,
    "fix": fix_needs,
    "metric": lambda text: reported_metric(_printed(text), "auc-roc"),
    "numbers": search_programs.NUMBERS.findall,
    "same text": same_text,
    "script": script_of,
    "program on a line": here_program,
    "preview": plain,
    "trimmed": trimmed,
    "returned": lambda text: code_grading.same_value(text.encode(), [1]),
    "printed": lambda text: code_grading.same_output(text.encode(), text + "1"),
    # What memory holds and files bring.
    "block": strip_block,
    "markers": without_markers,
    "looks": looks_like,
    "scanning": lambda text: scan([_item(text)]),
    "encoded": lambda text: list(decoded(text)),
    "words": tokenize,
    "secrets": without_secrets,
    "printable": printable,
    "JSON": lambda text: _refusing(load_json, text.encode()),
    "JSON of a bank": lambda text: _refusing(parse_json, text.encode()),
    "YAML": lambda text: _refusing(load_yaml, text),
    "document": lambda text: _refusing(load_document, text.encode()),
    "bank": lambda text: _of_file("a.jsonl", text, read_bank_file),
    "table": lambda text: refuse_wide(text.encode(), most=10, row=100),
    "preview of a table": lambda text: _of_file(
        "a.csv", text, lambda path: data_preview(path.parent)
    ),
    "preview of JSON": lambda text: _of_file(
        "a.json", text, lambda path: data_preview(path.parent)
    ),
    "preview of lines": lambda text: _of_file(
        "a.jsonl", text, lambda path: data_preview(path.parent)
    ),
    "preview of a text": lambda text: _of_file(
        "a.txt", text, lambda path: data_preview(path.parent)
    ),
    "Markdown": lambda text: Markdown().read(text.encode(), _FILE),
}
"""By what they read."""


LEAST_SECONDS: Final = 0.3
"""Of processor time; what takes less is cheap enough, and too little to be measured."""
LEAST_OF_A_MILLION: Final = 1.0
"""The same for a million characters, which no longer fit into a processor's caches."""
MOST_GROWTH: Final = 15
"""How much more ten times the text may cost."""
MOST_MIB: Final = 200


class Cost(NamedTuple):
    """What came of reading."""

    problems: list[str]
    mib: float
    """Memory taken beyond what was taken before."""
    worst: tuple[float, str]
    """The most seconds of processor time that a text took, and which."""


def cost_of(reader: str, size: int, shapes: Shapes) -> Cost:
    """Read all shapes of `size` and of ten times as many characters, in a process of its own."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(reader, size, shapes, theirs))
    process.start()
    theirs.close()
    try:
        found: Cost = ours.recv()
    except EOFError:
        process.join()
        return Cost([f"the process ended with {process.exitcode}"], 0.0, (0.0, ""))
    process.join()
    return found


def _measured(reader: str, size: int, shapes: Shapes, out: Any) -> None:
    warnings.simplefilter("ignore")  # of escapes in programs, where tests turn warnings into errors
    signal.signal(signal.SIGVTALRM, _give_up)
    before = getrusage(RUSAGE_SELF).ru_maxrss
    problems, worst = list[str](), (0.0, "")
    for name, made in shapes.items():
        try:
            took, growth = _growth(READERS[reader], made, size)
        except Exception as error:  # noqa: BLE001  (any but our own is a fault)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            problems.append(f"{name}: {type(error).__name__}: {error!s:.80}")
            if isinstance(error, TimeoutError):
                break
            continue
        worst = max(worst, (took, name))
        if took > _least(size) and growth > MOST_GROWTH:
            problems.append(
                f"{name}: {took:.2f} s, {growth:.0f} times as much for 10 times the text"
            )
    mib = (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024
    out.send(Cost(problems, mib, worst))


def _growth(
    read: Callable[[str], Any], made: Callable[[int], str], size: int
) -> tuple[float, float]:
    """Return the seconds of the longer text, and how many times those of the shorter one it takes.

    The least of three tries counts: a busy machine only ever adds.
    """
    texts, least = (made(size), made(10 * size)), _least(size)
    took = [_seconds(read, text) for text in texts]
    for _ in range(2):
        if took[1] <= max(least, MOST_GROWTH * took[0]) or took[1] > _NO_DOUBT:
            break
        took[1] = min(took[1], _seconds(read, texts[1]))
    return took[1], took[1] / max(took[0], least / MOST_GROWTH)


def _least(size: int) -> float:
    return LEAST_SECONDS if size < 100_000 else LEAST_OF_A_MILLION


_NO_DOUBT: Final = 5.0
"""Seconds from which on nothing is measured again."""
_ENDLESS: Final = 30.0
"""Seconds of processor time after which a reader is stopped, so that a fault does not hang the tests."""


def _seconds(read: Callable[[str], Any], text: str) -> float:
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, _ENDLESS)
    with suppress(LanggraftError):
        read(text)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - begun


def _give_up(*_: object) -> None:
    msg = f"reading took more than {_ENDLESS:g} s of processor time"
    raise TimeoutError(msg)
