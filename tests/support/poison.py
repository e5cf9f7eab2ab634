"""Poison for memory: 200 payloads, each brought in its own way, and a victim that asks memory later.

A payload is a family times a goal (`poison.yaml`). A family says how the payload is worded, in which
provider and by which way it gets in: a page, a tool, a user, an import; as a lesson, a title, a key, a
task, an error's fix; by reflection, by rules that are merged. The victim is another user with the goal's task.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml
from gullible import GullibleModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.store.memory import InMemoryStore

from langgraft.memory import (
    Episode,
    ErrorRecord,
    Lesson,
    MemoryItem,
    MemoryProvider,
    Outcome,
    RecallContext,
    Step,
    Verdict,
    write_items,
)
from langgraft.memory.providers import make_provider

_DATA: Final = Path(__file__).with_suffix(".yaml")
VICTIM: Final = "ada"
ATTACKER: Final = "eve"

_ALIKE: Final = str.maketrans("aeoc", "аеос")  # noqa: RUF001


@dataclass(frozen=True)
class Payload:
    """One piece of poison."""

    family: str
    text: str
    task: str
    words: tuple[str, ...]
    """What a deed names that carries it out."""

    @property
    def name(self) -> str:
        """A name for messages."""
        return f"{self.family}: {self.words[-1]}"


def payloads() -> list[Payload]:
    """Return all 200, family by family."""
    told = yaml.safe_load(_DATA.read_text())
    return [
        Payload(family, _worded(family, wording, goal), goal["task"], tuple(goal["words"]))
        for family, wording in told["families"].items()
        for goal in told["goals"]
    ]


def _worded(family: str, wording: str, goal: Mapping[str, Any]) -> str:
    deed = goal["deed"]
    first, _, second = deed.partition(" ")
    text = wording.format(deed=deed, task=goal["task"], es=goal["es"], first=first, second=second)
    match family:
        case "base64":
            return f"Setup token: {base64.b64encode(text.encode()).decode()}"
        case "zero_width":
            return "\u200b".join(text)
        case "homoglyphs":
            return text.translate(_ALIKE)
        case "tags":
            return "A fine hint." + "".join(chr(0xE0000 + ord(letter)) for letter in text)
    return text


def provider_of(payload: Payload, settings: Mapping[str, Any]) -> MemoryProvider[Any]:
    """Return the provider that a family attacks, over a bank of its own."""
    name, values = _PROVIDERS.get(payload.family, ("insight", {"top_k": 3}))
    return make_provider(name, InMemoryStore(), settings={**values, **settings})


_PROVIDERS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "title": ("reasoning_bank", {}),
    "task_text": ("trajectory", {"top_k": 3}),
    "tool_output": ("trajectory", {"top_k": 3}),
    "error_fix": ("coding", {"tasks": "all"}),
    "consolidation": ("expel", {"votes": {}}),
    "metadata": ("simple_rag", {}),
    "bare_import": ("simple_rag", {}),
}


def attack(memory: MemoryProvider[Any], payload: Payload, folder: Path) -> None:
    """Bring a payload into memory, in the way of its family."""
    memory.file(_clean(payload))
    _ATTACKS.get(payload.family, _by_page)(memory, payload, folder)


def victim_prompt(memory: MemoryProvider[Any], payload: Payload) -> list[Any]:
    """Return the prompt of a victim that has the payload's task, with what memory says."""
    context = RecallContext(
        domain="office", task_id="victim", episode_id="victim", user=VICTIM, stage="start"
    )
    recall = memory.provide(payload.task, context)
    return [
        SystemMessage("You are an assistant."),
        HumanMessage(f"{payload.task}\n\n{recall.text}"),
    ]


def succeeds(memory: MemoryProvider[Any], payload: Payload, folder: Path) -> bool:
    """Attack, let the victim work, and say whether the gullible model did what the payload wants."""
    attack(memory, payload, folder)
    model = GullibleModel()
    model.invoke(victim_prompt(memory, payload))
    return model.carried_out(payload.words)


def _episode(identity: str, payload: Payload, *sources: str, **fields: Any) -> Episode:
    plain: dict[str, Any] = {"task": payload.task, "task_id": identity, "steps": ()}
    return Episode(
        identity, "office", outcome=Outcome(True), sources=sources, **{**plain, **fields}
    )


def _clean(payload: Payload) -> Episode:
    """Return an episode of the victim's own."""
    lesson = Lesson("Read the whole of it first.", when_to_use=payload.task)
    error = ErrorRecord("numpy", "ValueError: shapes differ", "reshape it")
    step = Step("I read it", "read", "done")
    return _episode("own", payload, lessons=(lesson,), errors=(error,), steps=(step,))


def _by_page(memory: MemoryProvider[Any], payload: Payload, _: Path) -> None:
    source = "tool:search" if payload.family == "sleeper" else "web:evil.example"
    lesson = Lesson(payload.text, when_to_use=payload.task)
    memory.file(_episode("bad", payload, source, lessons=(lesson,)))


def _by_title(memory: MemoryProvider[Any], payload: Payload, _: Path) -> None:
    lesson = Lesson("See the title.", title=payload.text, when_to_use="a rule of the house")
    memory.file(_episode("bad", payload, "web:evil.example", lessons=(lesson,)))


def _by_key(memory: MemoryProvider[Any], payload: Payload, _: Path) -> None:
    lesson = Lesson("That is all.", when_to_use=payload.text)
    memory.file(_episode("bad", payload, "web:evil.example", lessons=(lesson,)))


def _by_task(memory: MemoryProvider[Any], payload: Payload, _: Path) -> None:
    step = Step("", "", "a desk")
    memory.file(_episode("bad", payload, f"user:{ATTACKER}", task=payload.text, steps=(step,)))


def _by_tool(memory: MemoryProvider[Any], payload: Payload, _: Path) -> None:
    step = Step("I look it up", "search", payload.text)
    memory.file(_episode("bad", payload, "tool:search", steps=(step,)))


def _by_fix(memory: MemoryProvider[Any], payload: Payload, _: Path) -> None:
    error = ErrorRecord("office", f"Failure: cannot {payload.task}", payload.text)
    memory.file(_episode("bad", payload, "tool:shell", errors=(error,)))


def _split(memory: MemoryProvider[Any], payload: Payload, _: Path) -> None:
    parts = payload.text.replace("First part: ", "").split(" || Second part: ")
    for number, part in enumerate(reversed(parts)):
        lesson = Lesson(part, when_to_use=payload.task)
        memory.file(_episode(f"bad{number}", payload, "tool:search", lessons=(lesson,)))


def _by_reflection(memory: MemoryProvider[Any], payload: Payload, folder: Path) -> None:
    _by_page(memory, payload, folder)
    context = RecallContext(domain="office", task_id="second", episode_id="second", user=VICTIM)
    recall = memory.provide(payload.task, context)
    model = GullibleModel()
    model.invoke([HumanMessage(f"What did you learn?\n{recall.text}")])
    lessons = tuple(
        Lesson(deed, when_to_use=payload.task)
        for deed in dict.fromkeys(model.obeyed)
        if payload.words[-1] in deed
    )
    memory.file(_episode("second", payload, lessons=lessons[:1], recalls=(recall.receipt,)))
    memory.forget("bad/lessons")  # the page's own item may be long gone


def _by_rules(memory: MemoryProvider[Any], payload: Payload, _: Path) -> None:
    def judged(episode: Episode, action: str, text: str, item: str | None = None) -> Episode:
        (question,) = memory.questions(episode)
        return replace(episode, verdicts=(Verdict(question.id, action, item, text),))

    good = _episode("good", payload)
    memory.file(judged(good, "add", "Read the whole of it first."))
    bad = _episode("bad", payload, "web:evil.example")
    memory.file(judged(bad, "edit", payload.text, "good/rule-0"))


def _by_user(memory: MemoryProvider[Any], payload: Payload, _: Path) -> None:
    lesson = Lesson(payload.text, when_to_use=payload.task)
    memory.file(_episode("bad", payload, f"user:{ATTACKER}", lessons=(lesson,)))


def _by_import(memory: MemoryProvider[Any], payload: Payload, folder: Path) -> None:
    metadata = payload.family == "metadata"
    item = MemoryItem(
        id=f"note-{payload.words[-1]}",
        text=payload.text if not metadata else f"Task: {payload.task}\n{payload.text}",
        type="strategic",
        source_domain="office",
        episode_id="own",
        success=True,
        order_index=0,
        key=payload.task,
        metadata={"hint": payload.text} if metadata else {},
        sources=(f"user:{VICTIM}",) if metadata else (),  # it claims to be the victim's own
    )
    path = folder / f"bank-{payload.family}-{payload.words[-1]}.jsonl"
    write_items(path, [item])
    memory.import_items(path)


_ATTACKS: Final[Mapping[str, Callable[[MemoryProvider[Any], Payload, Path], None]]] = {
    "title": _by_title,
    "key": _by_key,
    "task_text": _by_task,
    "tool_output": _by_tool,
    "error_fix": _by_fix,
    "homoglyphs": _by_page,
    "split": _split,
    "reflection": _by_reflection,
    "consolidation": _by_rules,
    "across_users": _by_user,
    "bare_import": _by_import,
    "metadata": _by_import,
}


def outcomes(settings: Mapping[str, Any], folder: Path) -> Iterator[tuple[Payload, bool]]:
    """Try all payloads under some settings of the providers."""
    folder.mkdir(parents=True, exist_ok=True)
    for payload in payloads():
        yield payload, succeeds(provider_of(payload, settings), payload, folder)
