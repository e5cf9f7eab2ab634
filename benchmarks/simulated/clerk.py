"""A rule-based clerk for STATE-Bench, in the place of a language model. It is not one.

    agent = create_agent(SimulatedClerk(), tools=attempt.tools, system_prompt=…)

What it knows: the tools by name, which of them look up the customer and the records that a request
names, how to read their results, and that a request and an example are of the same workflow where they
share a word for it (*cancel*, *return*, *promo* …).

What it does not know, declared: which change a request calls for, by which tools and in which order,
whether to preview it, and what their arguments should be: reasons, amounts, payment, which of several
candidates. These are the conventions of a domain. Without an example it looks the named records up,
says so, and changes nothing; which is right for the few tasks that call for no change.

What it can learn from: a written trajectory of the same workflow (`Task: …`, then lines of
`Action: tool({…})` and `Observation: {…}`, as memory writes trajectories) whose tools it has and
which is not said to have failed. It follows the calls one by one and puts its own task's values in their
places:

* an id, a date or an airport that the example's request or customer gave: the one of that kind that stands
  at the same place in its own;
* a value that an earlier result of the example gave: what its own result of that call has at the same path;
* anything else (a reason, `confirm`, a payment method): as in the example.

What it cannot learn from: advice in prose, lessons, notes that tell no calls, and cut trajectories beyond the
cut. It is credulous: a trajectory of another workflow with a word in common misleads it, it takes the
candidate at the same place of a list where another is meant, and where nothing stands for an id, or a
call fails that did not fail in the example, it stops, and what it changed so far stays.

Transfer that is planted, then: from a trajectory of a task to that task, whole; to another task of the same
workflow, as far as the two have records of the same form. Nothing else in a prompt changes what it does.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel, ToolUse
from langgraft.memory.model import BLOCK_END, BLOCK_START, strip_block

MODEL_NAME = "simulated-clerk"

_LOOKUPS: Final[Mapping[str, tuple[str, str]]] = {
    "get_user_reservations": ("user_id", r"user_\d+"),
    "get_booking": ("booking_id", r"BK-\w+"),
    "get_customer": ("customer_id", r"cust_\d+"),
    "get_order": ("order_id", r"ORD-\w+"),
    "get_customer_account": ("customer_id", r"shop_\d+"),
    "get_cart": ("customer_id", r"shop_\d+"),
}
"""What it looks up by itself: tool → its argument, and what stands in the request for it."""

_WORKFLOWS: Final = re.compile(
    r"\b(cancel|chang|mov|resched|book|reserv|hotel|car|delay|upgrad|return|refund|exchang|swap|replac|warrant"
    r"|defect|damag|broke|lost|missing|price|add|remov|cart|promo|code|discount|point|loyalty|ship|deliver"
    r"|compar|recommend|compatib|wrap)",
    re.IGNORECASE,
)
_MONTHS: Final = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
_KINDS: Final = (
    re.compile(r"\b(?:user|cust|shop)_\d+\b"),
    re.compile(r"\b[A-Z]{2,}-\w+\b"),
    re.compile(r"\b(?:20\d\d-)?(?P<month>\d\d)-(?P<day>\d\d)\b"),
    re.compile(rf"\b(?P<name>{'|'.join(_MONTHS)})[a-z]* (?P<named>\d{{1,2}})\b", re.IGNORECASE),
    re.compile(r"\b[A-Z]{3}\b"),
)
"""Values that a request names: customers, records, dates in two forms, airports."""
_ID: Final = re.compile(r"(?:user|cust|shop)_\d+|[A-Z]{2,}-\w+")
_DATE: Final = re.compile(r"20\d\d-\d\d-\d\d")

_TASK: Final = re.compile(r"^Task: ", re.MULTILINE)
_LINE: Final = re.compile(r"^(Action|Observation|Result): ", re.MULTILINE)
_CALL: Final = re.compile(r"(\w+)\((\{.*\})\)\s*", re.DOTALL)
_CUSTOMER: Final = re.compile(r"\bcustomer ((?:user|cust|shop)_\d+)")

_ASKS: Final = "I have looked into this. Shall I go ahead with the next step?"
_DONE: Final = "That is done."
_STOPPED: Final = "I am sorry, I cannot take this any further."
_LOOKED: Final = "I have looked at your records. I have changed nothing."


@dataclass(frozen=True, slots=True)
class _Move:
    """Something done in an example: a call with its result, or something said."""

    tool: str = ""
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    result: JSON = None


@dataclass(frozen=True, slots=True)
class _Example:
    """A trajectory, as far as it can be read."""

    request: str
    moves: tuple[_Move, ...]


class SimulatedClerk(SimulatedChatModel):
    """Serves customers by looking records up, and by following a recalled trajectory; see the module.

    `model_name` is what logs call it.
    """

    model_name: str = MODEL_NAME

    @override
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str | Reply:
        asked = [m for m in messages if isinstance(m, HumanMessage)]
        if not asked:
            return _LOOKED
        system = "\n".join(m.text for m in messages if isinstance(m, SystemMessage))
        customer = _CUSTOMER.search(strip_block(system))
        request = f"{customer[1] if customer else ''}\n{strip_block(asked[0].text)}"
        done = [m for m in messages if isinstance(m, AIMessage)]
        notes = "\n".join(_notes(m.text) for m in messages if BLOCK_START in m.text)
        example = _chosen(notes, request, sampling.tools)
        if example is None:
            return _looked_up(request, len(done), sampling.tools)
        return _followed(_Case(example, request, len(done), _results(messages)))


def _notes(text: str) -> str:
    return text.partition(BLOCK_START)[2].partition(BLOCK_END)[0]


def _results(messages: Sequence[BaseMessage]) -> dict[int, JSON]:
    """Return what its calls gave, by how many messages of its own came before each."""
    found: dict[int, JSON] = {}
    made = 0
    for message in messages:
        if isinstance(message, AIMessage):
            made += 1
        elif isinstance(message, ToolMessage):
            found[made - 1] = _read(message.text)
    return found


def _read(text: str) -> JSON:
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return {"error": text}
    return value


# Without an example ------------------------------------------------------------------------


def _looked_up(request: str, done: int, tools: Sequence[str]) -> str | Reply:
    calls = [
        ToolUse(tool, {argument: named})
        for tool, (argument, pattern) in _LOOKUPS.items()
        if tool in tools
        for named in dict.fromkeys(re.findall(rf"\b{pattern}\b", request))
    ]
    return Reply("", (calls[done],)) if done < len(calls) else _LOOKED


# Examples ----------------------------------------------------------------------------------


def _chosen(notes: str, request: str, tools: Sequence[str]) -> _Example | None:
    """Return the example of the same workflow whose request is most like this one, word by word."""
    words = _words(request)
    best, most = None, 0.0
    for text in _TASK.split(notes)[1:]:
        example = _example(text)
        if example is None or any(m.tool and m.tool not in tools for m in example.moves):
            continue
        theirs = _words(example.request)
        alike = len(words & theirs) / len(words | theirs)
        if alike > most and _workflow(request) & _workflow(example.request):
            best, most = example, alike
    return best


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


def _workflow(text: str) -> set[str]:
    return {word.lower() for word in _WORKFLOWS.findall(text)}


@lru_cache(maxsize=1024)
def _example(text: str) -> _Example | None:
    """Read a trajectory; `None` where it calls nothing, or is said to have failed."""
    request, *parts = _LINE.split(text)
    moves: list[_Move] = []
    for kind, said in zip(parts[::2], parts[1::2], strict=False):
        call = _CALL.fullmatch(said) if kind == "Action" else None
        if kind == "Result" and said.strip().startswith("fail"):
            return None
        if call is not None:
            arguments = _read(call[2])
            if not isinstance(arguments, dict) or "error" in arguments:
                break
            moves.append(_Move(call[1], arguments))
        elif kind == "Action":
            moves.append(_Move())
        elif kind == "Observation" and moves and moves[-1].tool:
            moves[-1] = _Move(moves[-1].tool, moves[-1].arguments, _read(said))
    if not any(move.tool for move in moves):
        return None
    # The customer is no part of the request, but of most first calls.
    customers = (_ID.findall(json.dumps(dict(m.arguments))) for m in moves)
    customer = next((i for ids in customers for i in ids if "_" in i), "")
    return _Example(f"{customer}\n{request}", tuple(moves))


# Following one -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Case:
    """An example, and the task at hand as far as it is done."""

    example: _Example
    request: str
    done: int
    """Messages of its own so far, each a move."""
    results: Mapping[int, JSON]

    def carried(self, name: str, value: JSON) -> JSON:
        """Return what stands in this task for a value of the example.

        Raises:
            LookupError: It is an id, and nothing stands for it.
        """
        if isinstance(value, list):
            return [self.carried(name, each) for each in value]
        if isinstance(value, bool) or value in (None, "", 0, 1):
            return value
        if isinstance(value, str):
            named = _named_alike(value, self.example.request, self.request)
            if named is not None:
                return named
        for at in reversed(range(self.done)):
            leaves = _leaves(self.example.moves[at].result)
            paths = [path for path, leaf in leaves if leaf == value]
            for path in sorted(paths, key=lambda path: not _akin(name, path)):
                found = _at(self.results.get(at), path)
                if isinstance(found, type(value)) and (isinstance(value, str) or _akin(name, path)):
                    return found
        if isinstance(value, str) and _ID.fullmatch(value):
            raise LookupError(value)
        return value


def _followed(case: _Case) -> str | Reply:
    """Return the move that comes next: the example's, with values of this task."""
    moves, last = case.example.moves, case.done - 1
    known = last in case.results and last < len(moves)
    if known and _failed(case.results[last]) != _failed(moves[last].result):
        return _STOPPED
    if case.done >= len(moves):
        return _DONE
    move = moves[case.done]
    if not move.tool:
        return _ASKS if any(later.tool for later in moves[case.done :]) else _DONE
    try:
        arguments = {name: case.carried(name, each) for name, each in move.arguments.items()}
    except LookupError:
        return _STOPPED
    return Reply("", (ToolUse(move.tool, arguments),))


def _failed(result: JSON) -> bool:
    return isinstance(result, dict) and bool(result.get("error"))


def _named_alike(value: str, theirs: str, ours: str) -> str | None:
    """Return what this request names at the place where the example's names a value."""
    for kind in _KINDS:
        named = [_plain(found) for found in kind.finditer(theirs)]
        if _without_year(value) in named:
            own = [_plain(found) for found in kind.finditer(ours)]
            place = list(dict.fromkeys(named)).index(_without_year(value))
            distinct = list(dict.fromkeys(own))
            if place < len(distinct):
                dated = _DATE.fullmatch(value)
                return f"{value[:5]}{distinct[place]}" if dated else distinct[place]
    return None


def _plain(found: re.Match[str]) -> str:
    groups = found.groupdict()
    if groups.get("name"):
        return f"{_MONTHS.index(groups['name'][:3].lower()) + 1:02}-{int(groups['named']):02}"
    return f"{groups['month']}-{groups['day']}" if groups.get("month") else found[0]


def _without_year(value: str) -> str:
    return value[5:] if _DATE.fullmatch(value) else value


def _akin(name: str, path: tuple[str | int, ...]) -> bool:
    """Say whether an argument and the last name on a path share a word: `amount`, `refund_amount`."""
    last = next((part for part in reversed(path) if isinstance(part, str)), "")
    return bool({*name.split("_")} & {*last.split("_")})


def _leaves(value: JSON, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, JSON]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _leaves(each, (*path, place))
    else:
        yield path, value


def _at(value: JSON, path: tuple[str | int, ...]) -> JSON:
    for part in path:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value
