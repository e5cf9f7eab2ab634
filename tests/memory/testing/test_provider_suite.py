"""The suite of providers itself: it finds faults, and says what it was not given."""

import xml.etree.ElementTree as ET
from contextlib import suppress

import pytest
from langchain_core.language_models import FakeListChatModel
from warm_python import Warm

from langgraft._core.errors import SettingsError
from langgraft.memory.testing.providers.base import models_refused
from langgraft.testing import ProviderConformance

FAULTS = '''
import itertools, uuid
import pytest
from langchain_core.language_models import FakeListChatModel
from langgraph.store.base import PutOp
from langgraft.memory import bank
from langgraft.memory import Add, MemoryItem, MemoryProvider, MemoryDelta, RankedSettings
from langgraft.memory.provider import FILED
from langgraft.memory.rankers import TermOverlap
from langgraft.memory.recall import Budget, Found, ranked_items
from langgraft.testing import ProviderConformance

class Settings(RankedSettings):
    ranker: object = TermOverlap()

class Sound(MemoryProvider):
    """Keeps to the contract."""
    name = "sound"
    settings_model = Settings
    def _recall(self, query, context):
        return (yield from ranked_items(self.namespace, query, 3))
    def text(self, episode):
        return f"{episode.task}: {episode.outcome.reason}"
    def _learn(self, episode, position, order_index):
        return (
            Add(MemoryItem(
                id=f"{episode.id}/note", text=self.text(episode), type="other",
                source_domain=episode.domain, episode_id=episode.id, success=episode.succeeded,
                order_index=order_index, task_id=episode.task_id,
            )),
        )
        yield

class Repeating(Sound):
    """Files an episode as often as it is handed in."""
    number = itertools.count()
    def file(self, episode):
        from dataclasses import replace
        return super().file(replace(episode, id=f"{episode.id}~{next(self.number)}"))

class Scribbling(Sound):
    """Writes when it is asked."""
    def _recall(self, query, context):
        yield [PutOp(self.namespace, bank.state_key("asked"), bank.state_record("asked", query))]
        return (yield from super()._recall(query, context))

class Random(Sound):
    """Names things by chance."""
    def text(self, episode):
        return f"{super().text(episode)} {uuid.uuid4()}"

class Counting(Sound):
    """Counts in the object what it should count in the bank."""
    count = 0
    def _recall(self, query, context):
        self.count += 1
        found = yield from super()._recall(query, context)
        return found if self.count % 2 else Found()

class Generous(Sound):
    """Gives half as much again as there is room for."""
    def _provide(self, query, context, budget):
        more = None if budget.tokens is None else budget.tokens * 3 // 2
        return (yield from super()._provide(query, context, Budget(more, budget.count)))

class Silent(Sound):
    """Does not tell what it left out."""
    def _provide(self, query, context, budget):
        from dataclasses import replace
        recall = yield from super()._provide(query, context, budget)
        return replace(recall, dropped=(), receipt=replace(recall.receipt, dropped=()))

class Quoting(Sound):
    """Stores what memory itself said."""
    def file(self, episode):
        self.raw = episode.task
        return super().file(episode)
    def text(self, episode):
        return self.raw

class Thinking(Sound):
    """Asks a model, and hides that it could not."""
    def text(self, episode):
        try:
            return FakeListChatModel(responses=["a lesson"]).invoke(episode.task).text
        except Exception:
            return super().text(episode)

class Pruning(Sound):
    """Forgets without a word."""
    def _upkeep(self):
        content = yield from bank.read_content(self.namespace)
        for name in list(content.items)[:-2]:
            yield [PutOp(self.namespace, bank.item_key(name), None)]
        return MemoryDelta()

class Gullible(Sound):
    """Takes gold answers for experience."""
    def _check_feedback(self, episode):
        pass

class Slow(Sound):
    """Does something else asynchronously."""
    async def aprovide(self, query, context, budget=None):
        return await super().aprovide("the " + query, context, budget)

def suite(kind):
    class Faulty(ProviderConformance):
        examples = 10
        many = 50
        @pytest.fixture
        def make(self):
            return kind
    return Faulty

for kind in [Sound, *Sound.__subclasses__()]:
    globals()[f"Test{kind.__name__}"] = suite(kind)
'''

CAUGHT = {
    "TestRepeating": "test_episode_when_filed_again_changes_nothing",
    "TestScribbling": "test_memory_when_asked_anything_changes_nothing",
    "TestRandom": "test_memory_when_made_anew_elsewhere_does_the_same",
    "TestCounting": "test_memory_when_asked_again_gives_the_same_answer",
    "TestGenerous": "test_recall_when_limited_never_exceeds_the_budget",
    "TestSilent": "test_item_when_larger_than_the_budget_is_dropped_with_the_reason",
    "TestQuoting": "test_episode_when_it_quotes_recalled_memory_is_filed_without_it",
    "TestThinking": "test_stream_when_filed_leaves_items",
    "TestPruning": "test_stream_when_its_deltas_are_folded_is_the_bank",
    "TestGullible": "test_episode_when_judged_by_gold_answers_is_refused_unless_declared",
    "TestSlow": "test_memory_when_used_asynchronously_does_the_same",
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Run the suite on providers with a planted fault; return the failed tests by class."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "test_faults.py").write_text(FAULTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    report = folder / "report.xml"
    given = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    # Whether a fault shows is up to what hypothesis draws: the same draws every time.
    given += ["--hypothesis-seed=1", "-p", "no:xdist"]
    given += [f"--junitxml={report}", "test_faults.py::TestSound"]
    given += [f"test_faults.py::{kind}::{test}" for kind, test in CAUGHT.items()]
    with Warm(pytest.main, given, folder=folder) as testing:
        testing.ended()
    failed: dict[str, set[str]] = {"all": set()}
    for case in ET.parse(report).iter("testcase"):
        kind = case.get("classname", "").rpartition(".")[2]
        failed["all"].add(kind)
        if case.find("failure") is not None or case.find("error") is not None:
            failed.setdefault(kind, set()).add(case.get("name", ""))
    return failed


@pytest.mark.matrix
@pytest.mark.parametrize("kind", CAUGHT)
def test_provider_when_a_fault_is_planted_fails_the_case_about_it(
    failures: dict[str, set[str]], kind: str
) -> None:
    """Faults that memory systems have had are found."""
    assert failures[kind] == {CAUGHT[kind]}


@pytest.mark.matrix
def test_provider_when_sound_passes_with_nothing_but_the_extra(
    failures: dict[str, set[str]],
) -> None:
    """A provider of a few lines needs one fixture, and no plugin of pytest."""
    assert "TestSound" in failures["all"]
    assert "TestSound" not in failures


def test_suite_when_a_provider_does_less_collects_only_what_applies() -> None:
    """What a provider does not do is said, not skipped."""

    class Reading(ProviderConformance):
        learns = False
        imports = False
        departures = {"test_budget_when_zero_gives_nothing": "it is a gift"}  # noqa: RUF012

    assert Reading.test_stream_when_filed_leaves_items is None
    assert Reading.test_import_when_the_bank_is_not_to_be_written_is_refused is not None
    assert Reading.test_stream_when_asked_about_is_recalled is not None
    assert ProviderConformance.test_import_when_the_bank_is_not_to_be_written_is_refused is None
    with pytest.raises(SettingsError, match="names no test of the suite"):
        type("Wrong", (ProviderConformance,), {"departures": {"test_no_such": "why"}})


@pytest.mark.parametrize("call", ["invoke", "stream", "generate"])
def test_model_when_called_while_refused_fails_the_test_even_if_caught(call: str) -> None:
    """A provider cannot hide a call behind `except`, however wide."""
    model = FakeListChatModel(responses=["hello"])

    def hide() -> None:
        with models_refused(), suppress(BaseException):
            getattr(model, call)(["hello"])

    with pytest.raises(pytest.fail.Exception, match=f"language model: {call}"):
        hide()
    assert model.invoke("hello").text == "hello"
