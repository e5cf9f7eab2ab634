"""Settings of `ExpeL`, in its simplified form and with votes."""

from typing import Annotated, Self

from pydantic import Field as SettingsField
from pydantic import SkipValidation, model_validator

from langgraft._core.settings import Settings
from langgraft.memory.providers.retrieval import RetrievalSettings
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.lexical import BM25

Count = Annotated[int, SettingsField(ge=1)]


class VoteSettings(Settings):
    """How rules live by votes; the defaults are those of ExpeL (arXiv:2308.10144) and its code."""

    max_rules: Count = 20
    """From how many rules on the list counts as full: a judge is told to remove before adding.
    ExpeL's code has 20. It is advice; the limit that `manage` enforces is `max_insights`, whose
    140 are memory-transplants' figure for a list without votes."""
    full_margin: int = SettingsField(default=5, ge=0)
    """How many rules beyond `max_rules` make removals weigh more."""
    added: Count = 2
    """Votes that a rule starts with. An imported rule starts with as many."""
    removal: Count = 1
    """Votes that a removal takes."""
    removal_when_full: Count = 3
    """Votes that it takes from `max_rules` and `full_margin` together on."""
    max_operations: Count = 4
    """Operations that count per episode, one per rule."""
    success_batch: int | None = SettingsField(default=8, ge=2)
    """Each time as many episodes have succeeded, the latest successes are shown together with the
    episode, for what they have in common. ExpeL does so offline, in chunks of 8; `None`: never."""
    shown_characters: Count = 4000
    """Characters shown of each trajectory, half of them from its end. ExpeL shows all that the
    model's window holds; eight times 4,000 are about 8,000 tokens."""


class ExpeLSettings(RetrievalSettings):
    """Settings of `ExpeL`; the defaults are memory-transplants' §4.2 where it has one."""

    max_insights: Count = 140
    """Insights that `manage` leaves (§4.2): the newest, or with votes those that have the most."""
    max_trajectories: Count = 140
    """Trajectories that `manage` leaves, the newest ones (§4.2)."""
    insight_share: float = SettingsField(default=0.65, gt=0, lt=1)
    """Part of the token budget for insights; the rest is for trajectories (§4.2: 65/35)."""
    top_k: Count = 5
    """Insights per recall; with votes all rules come, as far as their share goes. The paper names
    shares of the budget and no number of items; 5 as in `SimpleRAG`."""
    top_k_trajectories: Count = 2
    """Trajectories per recall. Not in the paper either; ExpeL shows 2 in ALFWorld."""
    votes: VoteSettings | None = None
    """Let a judge add, agree with, edit and remove rules, as ExpeL does; `None` keeps what
    reflection says of each episode, as memory-transplants does."""
    ranker: SkipValidation[Ranker] = BM25(ties="newest")
    """The paper does not name ExpeL's ranking, and its other baseline is lexical. BM25 is exact
    and needs no embedding model, which ExpeL's own (all-mpnet-base-v2) would have to download;
    a query's rare words, which tell tasks apart, count most. Of equals the newest comes first."""

    @model_validator(mode="after")
    def _room_for_rules(self) -> Self:
        if self.votes is not None and self.votes.max_rules > self.max_insights:
            msg = (
                f"votes.max_rules is {self.votes.max_rules}, beyond max_insights"
                f" {self.max_insights}: rules would be forgotten before the list is full"
            )
            raise ValueError(msg)
        return self
