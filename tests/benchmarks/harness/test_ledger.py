"""Counting what an item costs that several processes work through, one after another."""

from pathlib import Path

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from typing_extensions import override

from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.models import MeteredChatModel
from langgraft.benchmarks.harness.usage import TokenCounts, UsageFile, metered
from langgraft.nodes.dialogue import sample_config


class Numbered(BaseChatModel):
    """Answers with how often it has been asked."""

    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "numbered"

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        self.asked += 1
        tokens = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
        message = AIMessage(f"answer {self.asked}", usage_metadata=tokens)
        return ChatResult(generations=[ChatGeneration(message=message)])


def model(responses: ResponseCache | None = None) -> MeteredChatModel:
    """Make a model behind the harness."""
    return MeteredChatModel(inner=Numbered(), identity={"model": "n"}, responses=responses)


QUESTION = [HumanMessage("the same")]


def test_cache_when_a_sample_is_named_then_only_that_name_shares_its_answer(tmp_path: Path) -> None:
    """The same prompt at another step of a search is another draw; asked again it is the first."""
    with ResponseCache(tmp_path / "cache.sqlite") as cache:
        asked = model(cache)
        first = asked.invoke(QUESTION, sample_config("s", "000", "write")).text
        second = asked.invoke(QUESTION, sample_config("s", "001", "write")).text
        unnamed = asked.invoke(QUESTION).text
        again = model(cache).invoke(QUESTION, sample_config("s", "000", "write")).text
    assert len({first, second, unnamed}) == 3
    assert again == first


async def test_ledger_when_a_second_process_goes_on_then_all_replies_are_counted_once(
    tmp_path: Path,
) -> None:
    """What was asked before a crash counts, and what is asked again since is not counted twice."""
    path = tmp_path / "work" / "usage.jsonl"
    for names in (("000", "001"), ("001", "002")):
        ledger = UsageFile(path)
        with metered(ledger) as usage:
            for name in names:
                await model().ainvoke(QUESTION, sample_config("s", name, "write"))
        ledger.close()
    assert usage.totals()["replies"] == 3
    assert usage.totals()["prompt_tokens"] == 30
    assert usage.billing()["attempts"] == 2


def test_ledger_when_a_line_was_cut_off_then_it_is_dropped(tmp_path: Path) -> None:
    """A crash in the middle of a line loses that line alone."""
    path = tmp_path / "usage.jsonl"
    ledger = UsageFile(path)
    ledger.note("a", "write", TokenCounts(1, 2, 3, 4), simulated=True)
    ledger.note("b", "", None, simulated=False)
    ledger.close()
    path.write_bytes(path.read_bytes() + b'["c","write",{"prom')
    again = UsageFile(path)
    again.note("d", "write", TokenCounts(1), simulated=True)
    again.close()
    totals = UsageFile(path).used().totals()
    assert totals["replies"] == 3
    assert totals["replies_without_usage"] == 1
    assert totals["simulated_replies"] == 2
    assert totals["by_node"] == {"write": {"replies": 2, "tokens": 4}}


def test_ledger_when_its_folder_is_a_file_then_says_which(tmp_path: Path) -> None:
    """What is in the way is named."""
    (tmp_path / "work").write_text("")
    with pytest.raises(RunDirectoryError, match="work"):
        UsageFile(tmp_path / "work" / "usage.jsonl")
