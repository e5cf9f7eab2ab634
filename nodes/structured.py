"""A chat model's answer as a value of a given type: read, checked and, once, repaired.

    read = listed(Lesson)
    answer = run_dialogue(asking([HumanMessage("…")], read), model)
    answer.value     # list[Lesson], or None where neither reply could be used
    answer.problems  # what was wrong with the reply that was used, or with the last one
    answer.calls     # 1, or 2 where a repair was asked for

No tool calling and no provider's JSON mode is needed, so any chat model will do; `held_to` has a
provider that holds its models to a schema do so. What a model says
is untrusted: text around the JSON, fences, lone surrogates, numbers that are not finite, nesting
without end and quoted memory do no harm. What calling the model raises is not caught: a model that
cannot be reached has not given a bad answer.
"""

import json
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Generic, TypeAlias, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import TypeAdapter, ValidationError

from langgraft._core.arguments import checked
from langgraft._core.errors import InputError
from langgraft._core.untrusted import bounded, unreadable_as
from langgraft.nodes.dialogue import CUT_SHORT, NO_MODEL, Dialogue, Model, Request, Response
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.replies import cleaned, encodable, entries_of_cut_list, in_turns, json_values

T = TypeVar("T")

CUT_OFF = "the list is cut off"
"""What is wrong with a list of which the end is missing."""
MOST_PROBLEMS = 5
"""Most problems of one reply that are listed; one that is all wrong needs no longer list."""
PROBLEM_LENGTH = 300
"""Most characters of one problem."""
MOST_ENTRIES = 1000
"""Most values of a reply, and entries of a list, that are read."""
REPLY_SHOWN = 20_000
"""Most characters of a bad reply that are sent back with the request to correct it: its first."""


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """What could be read."""

    value: T
    problems: tuple[str, ...] = ()
    """What was wrong with parts that were left out."""


Reader: TypeAlias = Callable[[Any], Read[T]]
"""Makes a value of what JSON holds; raises `ValueError`, saying why, where nothing can be used."""

Objection: TypeAlias = Callable[[T, Sequence[T]], str]
"""Says why an entry cannot follow those already kept; an empty text lets it in."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What came of asking."""

    value: T | None
    """The value, without what had to be left out; `None`: no reply could be used."""
    problems: tuple[str, ...]
    """What was wrong with the reply that was used, or with the last one; empty: nothing."""
    calls: int
    """How often a model was asked."""

    @property
    def why(self) -> str:
        """`ok`, or what was wrong, in one line."""
        return "; ".join(self.problems) or "ok"


def asking(
    messages: Sequence[BaseMessage],
    read: Reader[T],
    what: str = "ask",
) -> Dialogue[Answer[T]]:
    """Ask for a value, and once for its correction.

    Where the correction is worse than no reply, what could be used of the first one counts. Without
    a model there is no value, and `problems` says so.

    Args:
        messages: The question.
        read: Makes the value: `typed(…)`, `listed(…)` or a function of your own.
        what: What the calls are for.
    """
    reply = yield Request(list(messages), what)
    if reply.failure == NO_MODEL:
        return Answer(None, (NO_MODEL,), 0)
    said = _said(reply)
    first = read_reply(said, read)
    if not first.problems:
        return first
    told = (*first.problems, CUT_SHORT) if reply.cut else first.problems
    problems = "\n".join(f"- {problem}" for problem in told)
    correction = HumanMessage(shipped("repair").render(problems=problems))
    shown = AIMessage(said[:REPLY_SHOWN])
    corrected = yield Request(in_turns([*messages, shown, correction]), what)
    second = read_reply(_said(corrected), read)
    if second.value is None and corrected.cut:
        second = replace(second, problems=(*second.problems, CUT_SHORT))
    worse = second.value is None and first.value is not None
    return replace(first if worse else second, calls=2)


@unreadable_as(lambda _: "")
def _said(reply: Response) -> str:
    """Return the text of a reply; of one that fills in a schema instead, what it filled in."""
    calls = getattr(reply.message, "tool_calls", None)
    if reply.text.strip() or not calls:
        return reply.text
    return bounded(json.dumps(calls[0]["args"], ensure_ascii=False))


@checked
def held_to(model: Model, name: str, fields: Mapping[str, Any], described: str) -> Model:
    """Return a model that its provider holds to a schema, or the model itself where none does.

    It is asked by a call of a tool, with all fields required. That is done where the class of the
    model names `strict` for its tools and no server of one's own is meant, which may know neither.
    Where the provider refuses the request, the model is asked without.

    Args:
        model: Any chat model.
        name: Of the tool.
        fields: JSON schemas of the fields, by name.
        described: What the tool is for.
    """
    inner = getattr(model, "inner", model)
    bind: Any = getattr(type(inner), "bind_tools", None)
    own = getattr(inner, "openai_api_base", None) is not None
    if bind is None or own or "strict" not in signature(bind).parameters:
        return model
    schema = {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }
    function = {"name": name, "description": described, "parameters": schema, "strict": True}
    tool = {"type": "function", "function": function}
    try:
        bound: Model = cast("BaseChatModel", model).bind_tools(
            [tool], tool_choice=name, strict=True
        )
    except NotImplementedError:
        return model
    return bound.with_fallbacks([model], exceptions_to_handle=(InputError, *_refusals()))


def _refusals() -> tuple[type[Exception], ...]:
    """Return what clients raise for a request that a provider does not take."""
    client = sys.modules.get("openai")
    return () if client is None else (client.BadRequestError,)


def typed(kind: type[T] | TypeAdapter[T], objection: Callable[[T], str] | None = None) -> Reader[T]:
    """Make the reader of one value.

    Args:
        kind: A pydantic type, or the adapter of any other.
        objection: Says why a value of that type is not acceptable; an empty text accepts it.
    """
    adapter = _adapter(kind)

    def read(value: Any) -> Read[T]:
        made = _validated(adapter, value)
        if objection is not None and (problem := objection(made)):
            raise ValueError(problem)
        return Read(made)

    return read


def listed(
    kind: type[T] | TypeAdapter[T], objection: Objection[T] | None = None
) -> Reader[list[T]]:
    """Make the reader of a list, whose bad entries are left out and told.

    A list of nothing but bad entries cannot be used; an empty one can. An object that holds one list,
    as `{"lessons": [...]}` does, stands for that list, and any other for a list of itself.

    Args:
        kind: Type of one entry.
        objection: Says why an entry cannot follow those already kept.
    """
    adapter = _adapter(kind)

    def read(value: Any) -> Read[list[T]]:
        if isinstance(value, dict):
            lists = [each for each in value.values() if isinstance(each, list)]
            value = lists[0] if len(lists) == len(value) == 1 else [value]
        if not isinstance(value, list):
            msg = f"expected a JSON list, got {_NAMES.get(type(value), 'a single value')}"
            raise ValueError(msg)  # noqa: TRY004  (one kind of error for every bad reply)
        kept: list[T] = []
        problems: list[str] = []
        if len(value) > MOST_ENTRIES:
            problems.append(f"only the first {MOST_ENTRIES:,} entries are read")
        for number, entry in enumerate(value[:MOST_ENTRIES], start=1):
            try:
                made = _validated(adapter, entry)
                problem = "" if objection is None else objection(made, kept)
            except ValueError as error:
                problem = str(error)
            if problem:
                problems.append(f"entry {number}: {problem}")
            else:
                kept.append(made)
        if problems and not kept:
            raise ValueError(_joined(problems))
        return Read(kept, tuple(problems))

    return read


_NAMES = {dict: "an object", str: "a text", type(None): "null"}


@unreadable_as(lambda *_: Answer(None, ("the reply cannot be read",), 1))
def read_reply(text: str, read: Reader[T]) -> Answer[T]:
    """Read a value from a model's reply, whatever else the reply holds.

    Of several values that can be used the last one counts, as models come to their conclusion
    at the end; an empty one does not take the place of another. Objects one after the other, as in JSON
    lines, are one list where a list is read. Of a list that is cut off, the entries that are whole
    count, and that it was cut is a problem.
    """
    found: Read[T] | None = None
    problems = ["the reply holds no complete JSON value"]
    try:
        values = list(deque(json_values(text), MOST_ENTRIES))
        if len(values) > 1 and all(isinstance(value, dict) for value in values):
            values.append(values[:])
        for value in values:
            try:
                usable = read(cleaned(value))
            except ValueError as error:
                problems = [str(error)]
            else:
                if found is None or value:
                    found = usable
        if found is None and (entries := entries_of_cut_list(text)):
            with suppress(ValueError):
                usable = read(cleaned(entries))
                found = replace(usable, problems=(CUT_OFF, *usable.problems))
    except RecursionError:
        problems = ["the JSON is nested too deeply"]
    if found is None:
        return Answer(None, _listed(problems), 1)
    return Answer(found.value, _listed(found.problems), 1)


def _adapter(kind: type[T] | TypeAdapter[T]) -> TypeAdapter[T]:
    return kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)


def _validated(adapter: TypeAdapter[T], value: Any) -> T:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        told = [
            _problem(each["loc"], _OBJECT if each["type"] in _NO_OBJECT else each["msg"])
            for each in found
        ]
        raise ValueError(_joined(told)) from error


_NO_OBJECT = {"model_type", "dataclass_type"}
_OBJECT = "expected a JSON object"
"""In place of pydantic's words, which name a class of ours that no model knows."""


def _problem(place: Sequence[int | str], message: str) -> str:
    where = ".".join(map(str, place))
    return f"`{where}`: {message}" if where else message


def _joined(problems: Sequence[str]) -> str:
    return "; ".join(problems[:MOST_PROBLEMS])


def _listed(problems: Sequence[str]) -> tuple[str, ...]:
    return tuple(encodable(problem)[:PROBLEM_LENGTH] for problem in problems[:MOST_PROBLEMS])
