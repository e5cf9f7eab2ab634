"""`extract`: facts and preferences that were said in an episode, for memory that keeps them.

    graph.add_node("extract", extract_facts_node(model, memory))  # before judge and remember

Each names the turn and the words it was drawn from; one whose words stand in no turn is sent back
once for correction, and then left out. Who said it is read off the turn. Where no reply can be used
there are no facts, and `extraction` in the state says why.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable
from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft._core.texts import Prompt
from langgraft.memory.facts import Attribute, Fact, FactKind, moment
from langgraft.memory.model import Episode, strip_block
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.episode_items import excerpt
from langgraft.nodes.dialogue import ChatModel, Dialogue, Update, dialogue_node
from langgraft.nodes.judging import Lowered, as_text, by_line
from langgraft.nodes.memory import episode_of
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.state import AgentState
from langgraft.nodes.structured import asking, listed

MAX_FACTS: Final = 20
"""Most facts kept of one episode."""
SHOWN: Final = 4_000
"""Most characters of a turn that a model is shown."""
QUOTED: Final = 300
"""Most characters kept of the words that a fact was drawn from."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """What came of extracting."""

    facts: tuple[Fact, ...]
    why: str
    """`ok`, or what was wrong with a model's reply."""
    calls: int
    """How often a model was asked."""


@checked
def extract_facts_node(
    model: ChatModel | None, memory: MemoryProvider[Any], *, prompt: Prompt | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that asks a model which facts an episode told.

    Its update holds `facts`, and in `extraction` `ok` or why some are missing.

    Args:
        model: Any chat model, or the name of one; without one there are no facts.
        memory: Whose declared attributes the model is told.
        prompt: Prompt with the placeholders `$at`, `$attributes`, `$turns` and `$limit`.
    """

    def begin(state: AgentState) -> Dialogue[Update]:
        found = yield from extracting(episode_of(state), memory.attributes, prompt)
        return {"facts": [asdict(each) for each in found.facts], "extraction": found.why}

    return dialogue_node("extract", model, begin)


def extracting(
    episode: Episode, attributes: Sequence[Attribute] = (), template: Prompt | None = None
) -> Dialogue[Extracted]:
    """Ask for the facts of an episode; see `extract_facts_node`."""
    turns = turns_of(episode)
    values = {
        "at": episode.at or "at a time that is not known",
        "attributes": by_line(_declared(each) for each in attributes),
        "turns": by_line(
            {"turn": each.number, "who": each.who, "said": excerpt(each.said, SHOWN)}
            for each in turns
        ),
        "limit": str(MAX_FACTS),
    }
    asked = HumanMessage((template or shipped("extract_facts")).render(**values))

    def objection(told: _Told, kept: Sequence[_Told]) -> str:
        if len(kept) >= MAX_FACTS:
            return f"at most {MAX_FACTS} facts are asked for"
        if _source(told, turns) is None:
            return "`quote` stands in no turn; copy the words of the turn as they are"
        try:
            told.fact("", 0)
        except InputError as error:
            return str(error)
        return ""

    answer = yield from asking([asked], listed(_Told, objection), what="extract")
    if answer.value is None:
        return Extracted((), answer.why, answer.calls)
    found = ((told, _source(told, turns)) for told in answer.value)
    facts = tuple(told.fact(turn.who, turn.number) for told, turn in found if turn is not None)
    return Extracted(facts, answer.why, answer.calls)


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """One thing that was said."""

    number: int
    """Of the step, from 0; the task is of step 0, too."""
    who: str
    said: str


def turns_of(episode: Episode) -> list[SaidTurn]:
    """List what was said in an episode, without what memory had said."""
    said = [SaidTurn(0, "user", episode.task)]
    for number, step in enumerate(episode.steps):
        reply = "\n".join(filter(None, (step.thought, step.action)))
        said += [SaidTurn(number, "assistant", reply), SaidTurn(number, "tool", step.observation)]
    stripped = (SaidTurn(each.number, each.who, strip_block(each.said).strip()) for each in said)
    return [each for each in stripped if each.said]


def _declared(attribute: Attribute) -> JSON:
    told: dict[str, JSON] = {"attribute": attribute.name, "several values": attribute.many}
    if attribute.description:
        told["means"] = attribute.description
    if attribute.category:
        told["category"] = attribute.category
    return told


def _blank(value: object) -> object:
    return "" if value is None else value


_Name = Annotated[str, Field(min_length=1), BeforeValidator(lambda value: as_text(value).strip())]
_Optional = Annotated[str, BeforeValidator(_blank)]


class _Told(BaseModel):
    """A fact as a model writes it."""

    subject: _Name
    attribute: _Name = Field(validation_alias=AliasChoices("attribute", "predicate", "relation"))
    value: _Name = Field(validation_alias=AliasChoices("value", "object"))
    quote: _Name
    kind: Annotated[FactKind, Lowered] = "fact"
    turn: int = 0
    since: _Optional = ""
    until: _Optional = ""
    category: _Optional = ""
    holds: bool = True

    def fact(self, said_by: str, turn: int) -> Fact:
        """Return the fact.

        Raises:
            InputError: `since` or `until` is no moment.
        """
        for name in ("since", "until"):
            if getattr(self, name):
                moment(getattr(self, name), f"`{name}`")
        return Fact(
            self.subject,
            self.attribute,
            self.value,
            self.kind,
            said_by,
            turn,
            self.quote[:QUOTED],
            self.since,
            self.until,
            self.category,
            self.holds,
        )


def _source(told: _Told, turns: Sequence[SaidTurn]) -> SaidTurn | None:
    """Return the turn that a quotation stands in: the one named, or else the first."""
    words = " ".join(told.quote.split()).casefold()
    holding = [each for each in turns if words in " ".join(each.said.split()).casefold()]
    named = (each for each in holding if each.number == told.turn)
    return next(named, holding[0] if holding else None)
