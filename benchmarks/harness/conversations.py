"""Episodes of a log as data to train a model on, or to read: what a study tells of one, and the forms of it.

=================  ==============================================================================
form               a line of JSON is
=================  ==============================================================================
`sft`              a reply, as `completion`, after all that the model was sent for it, as `prompt`,
                   both lists of messages: the conversational prompt-completion data that TRL's
                   `SFTTrainer` reads, and whose loss is of the completion alone
`openai`           `{"messages": [{"role": …, "content": …}, …]}`, the chat format of fine-tuning
                   services; replies that nothing is to be learned from have `"weight": 0`
`trajectories`     an episode: where it is from, how it ended, its steps, and what was recalled
=================  ==============================================================================

For people to look through, `harness/inspect_logs.py` writes a folder with a log a run.

A *conversation* is what a model was sent, and what it said. Nothing is to be learned from a reply that
was of no use (in a text world, one without an action), nor, where memory was asked again within an
episode, from replies that were made when another block of memory stood in the conversation: these are
shown as what came before, in the prompt or with weight 0.

TRL reads lists of `messages`, too, but knows no weights, and masks what is not the model's own only
where a chat template marks it: a row a reply needs neither.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError

Form: TypeAlias = Literal["sft", "openai", "trajectories"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)

Split: TypeAlias = Literal["train", "evaluate"]
"""Whether memory learned from an episode, or was tried out on it."""

MOST_NAMED: Final = 20
"""Names that an error lists."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    learned: bool = False
    """Whether it is a reply that something is to be learned from."""
    call: tuple[str, str, Mapping[str, JSON]] | None = None
    """Of a reply, the id, name and arguments of the tool it calls; of a tool, what it was called with."""

    def to_json(self) -> dict[str, JSON]:
        """Return what a chat model is sent."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a model was sent and said, up to a reply that something is to be learned from."""

    messages: tuple[Message, ...]

    def openai(self) -> dict[str, JSON]:
        """Return it whole, with weight 0 for replies that are only what came before."""
        return {
            "messages": [
                each.to_json()
                if each.role != "assistant" or each.learned
                else {**each.to_json(), "weight": 0}
                for each in self.messages
            ]
        }

    def prompt_completions(self) -> Iterator[dict[str, JSON]]:
        """Yield each reply that is to be learned from, after what the model was sent for it."""
        told = [each.to_json() for each in self.messages]
        for number, each in enumerate(self.messages):
            if each.learned:
                prompt: list[JSON] = [*told[:number]]
                yield {"prompt": prompt, "completion": [told[number]]}


@dataclass(frozen=True, slots=True)
class Recalled:
    """What memory gave an agent at one moment, as it was."""

    step: int
    """Replies before it was asked."""
    query: str
    text: str
    """The block; empty where nothing was recalled."""
    items: tuple[Mapping[str, JSON], ...]
    """In canonical form, best first; of a control, with the text that it puts there."""
    scores: tuple[float, ...]

    def to_json(self) -> dict[str, JSON]:
        """Return it as JSON."""
        return {
            "step": self.step,
            "query": self.query,
            "block": self.text,
            "items": [dict(each) for each in self.items],
            "scores": list(self.scores),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedEpisode:
    """An episode of a log. What takes work is made when it is called for."""

    run: str
    condition: str
    split: Split
    domain: str
    task: str
    success: bool
    score: float | None
    """The world's own; `None` where there is none beside success."""
    steps: Sequence[tuple[str, str, str]]
    """Thought, action and observation of each step; of the first, what was shown at the start."""
    recalled: Callable[[], Sequence[Recalled]]
    """What memory gave.

    Raises:
        InputError: It cannot be made again exactly as it was.
    """
    conversations: Callable[[bool], Sequence[Conversation]]
    """Its conversations, with the recalled block or without; none holds nothing to be learned.

    Raises:
        InputError: They cannot be made again exactly as they were.
    """

    def trajectory(self, *, with_memory: bool) -> dict[str, JSON]:
        """Return the episode as one object."""
        names = ("thought", "action", "observation")
        recalled: JSON = [each.to_json() for each in self.recalled()] if with_memory else None
        return {
            "run": self.run,
            "condition": self.condition,
            "split": self.split,
            "domain": self.domain,
            "task": self.task,
            "success": self.success,
            "score": self.score,
            "steps": [dict(zip(names, step, strict=True)) for step in self.steps],
            **({"recalled": recalled} if with_memory else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which episodes are exported: those that pass everything that is given; by default all."""

    success: bool = False
    """Successes alone."""
    split: Split | None = None
    conditions: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    def takes(self, episode: PlayedEpisode) -> bool:
        """Say whether an episode passes."""
        return (
            (episode.success or not self.success)
            and self.split in {None, episode.split}
            and all(
                not wanted or name in wanted
                for wanted, name in (
                    (self.conditions, episode.condition),
                    (self.domains, episode.domain),
                    (self.tasks, episode.task),
                )
            )
        )


class Chooser:
    """Picks episodes, and knows afterwards whether what was asked for is there."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._seen: dict[str, Counter[str]] = {
            "condition": Counter(),
            "domain": Counter(),
            "task": Counter(),
        }

    def takes(self, episode: PlayedEpisode) -> bool:
        """Say whether an episode passes, and note its names."""
        for name, names in self._seen.items():
            names[str(getattr(episode, name))] += 1
        return self._choice.takes(episode)

    @property
    def total(self) -> int:
        """How many episodes there were."""
        return self._seen["task"].total()

    def check(self) -> None:
        """Check, once all were seen, that what was chosen by is there.

        Raises:
            InputError: A name is of no episode.
        """
        choice = self._choice
        chosen = (choice.conditions, choice.domains, choice.tasks)
        for (name, seen), wanted in zip(self._seen.items(), chosen, strict=True):
            if unknown := [each for each in wanted if each not in seen]:
                more = " …" if len(seen) > MOST_NAMED else ""
                there = ", ".join([*seen][:MOST_NAMED])
                msg = f"no episode of the log has {name} {unknown[0]!r}; there are {there}{more}"
                raise InputError(msg)


@dataclass(slots=True)
class Exported:
    """Lines of an export, and what was counted on the way."""

    lines: list[str] = field(default_factory=list)
    episodes: int = 0
    empty: int = 0
    """Episodes with nothing to be learned from, which have no line."""


def export(
    episodes: Iterable[PlayedEpisode], form: Form, choice: Choice, *, with_memory: bool
) -> Exported:
    """Write the episodes that are chosen, one JSON object a line, in ASCII.

    Args:
        episodes: Those of a log.
        form: What a line is.
        choice: Which of them.
        with_memory: Whether the recalled block stands where the agent saw it; in `trajectories`,
            whether what was recalled is told.

    Raises:
        InputError: A name that is to be chosen by is of no episode, none passes, or what an agent
            saw cannot be made again exactly.
    """
    made, chooser = Exported(), Chooser(choice)
    for episode in episodes:
        if chooser.takes(episode):
            made.episodes += 1
            rows = list(_rows(episode, form, with_memory=with_memory))
            made.empty += not rows
            made.lines += [f"{json.dumps(row, allow_nan=False)}\n" for row in rows]
    chooser.check()
    if not made.lines:
        msg = (
            f"nothing to export: of {chooser.total} episodes in the log {made.episodes} are chosen"
        )
        raise InputError(f"{msg}, and none holds a reply to learn from" if made.episodes else msg)
    return made


def _rows(episode: PlayedEpisode, form: Form, *, with_memory: bool) -> Iterator[Mapping[str, JSON]]:
    if form == "trajectories":
        yield episode.trajectory(with_memory=with_memory)
        return
    for each in episode.conversations(with_memory):
        if form == "openai":
            yield each.openai()
        else:
            yield from each.prompt_completions()


def up_to_the_last_learned(messages: Sequence[Message]) -> tuple[Conversation, ...]:
    """Return one conversation that ends where the last reply is to be learned from, if there is one."""
    last = max((n for n, each in enumerate(messages, start=1) if each.learned), default=0)
    return (Conversation(tuple(messages[:last])),) if last else ()
