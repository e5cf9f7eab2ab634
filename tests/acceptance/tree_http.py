"""A tree search through ChatOpenAI over HTTP whose model misbehaves: no reply ends the run."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from langchain.chat_models import init_chat_model
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.simulated.data_scientist import SimulatedDataScientist
from langgraft.benchmarks.simulated.server import ModelServer, serve
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.graphs.tree import build_tree_agent
from langgraft.memory.providers.coding import CodingMemory
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.prompts import prompt
from langgraft.nodes.search.journal import read_search

COMPETITION: Final = "weather"
_LONG: Final = 2_000_000
"""Characters of an over-long reply."""

BAD: Final[Mapping[str, Callable[[str], AIMessage]]] = {
    "malformed": lambda _: AIMessage('```python\ndef (:\n```\n{"is_bug": maybe, "metric": [}'),
    "of another form": lambda _: AIMessage('{"is_bug": "no", "summary": 7, "metric": "high"}'),
    "empty": lambda _: AIMessage(""),
    "over-long": lambda good: AIMessage("and so on " * (_LONG // 10) + good),
    "cut off": lambda good: AIMessage(
        good[: len(good) // 2], response_metadata={"finish_reason": "length"}
    ),
    "refused": lambda _: AIMessage("I'm sorry, but I can't help with that."),
    "filtered": lambda _: AIMessage("", response_metadata={"finish_reason": "content_filter"}),
    "without code": lambda _: AIMessage("A gradient boosting model should do well here."),
    "of odd characters": lambda good: AIMessage(f"\x00\ufffe\u202e{good}\x00"),
}
"""What a model may reply, by its kind: made of what it would have replied."""

ROLES: Final = ("tree_draft", "tree_improve", "tree_debug", "tree_review", "diagnose")
"""The prompts that are told apart by how they begin."""
_START: Final = 100
"""Characters in which they differ."""


class Unruly(BaseChatModel):
    """Answers each prompt badly every other time, in all ways in turn."""

    inner: BaseChatModel
    seen: Counter[tuple[str, str]] = Field(default_factory=Counter)
    """How often each prompt was answered in each way."""

    @property
    def _llm_type(self) -> str:
        return "unruly"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        good = str(self.inner.invoke(messages).content)
        asked = role(str(messages[0].content))
        before = sum(count for (prompted, _), count in self.seen.items() if prompted == asked)
        way = "good" if before % 2 else list(BAD)[before // 2 % len(BAD)]
        self.seen[asked, way] += 1
        reply = AIMessage(good) if way == "good" else BAD[way](good)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        return await asyncio.to_thread(self._generate, messages, stop, None, **kwargs)


def role(text: str) -> str:
    """Return the name of the prompt that a text was made from."""
    return next((name for name in ROLES if text[:_START] == prompt(name).text[:_START]), "other")


def measure(setting: Setting) -> list[Figure]:
    """Search with a model that misbehaves, with a plain client and with the harness's."""
    return asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> list[Figure]:
    steps = setting.size(40, 6)
    unruly = Unruly(inner=SimulatedDataScientist(seed=3))
    made: list[int] = []
    problems: list[str] = []
    async with serve(unruly) as server:
        for name, model in _clients(server).items():
            setting.say(f"a tree search with a model that misbehaves, through {name}")
            with suppress(_Ended):
                made.append(await _search(setting, name, model, steps, problems))
        calls = len(server.calls)
    pairs = [pair for pair in unruly.seen if pair[1] != "good"]
    bad = sum(count for (_, way), count in unruly.seen.items() if way != "good")
    how = (
        f"{len(_clients(server))} searches of {steps} steps in {COMPETITION}, with memory, through"
        f" ChatOpenAI over HTTP (`init_chat_model`, and the harness's model); {bad:,} of"
        f" {calls:,} replies bad, in {len({way for _, way in pairs})} ways to"
        f" {len({asked for asked, _ in pairs})} kinds of prompt ({len(pairs)} pairs)"
    )
    return [
        Figure(
            "No reply ends a search: malformed, empty, over-long, refused, without code",
            how,
            share(sum(made), 2 * steps, problems) + " programs in the journals",
            "all, and every way seen",
            sum(made) == 2 * steps and not problems and {way for _, way in pairs} == set(BAD),
        )
    ]


class _Ended(Exception):  # noqa: N818  (no error of ours: the search that ended is told)
    pass


def _clients(server: ModelServer) -> dict[str, BaseChatModel]:
    plain = init_chat_model(
        "openai:simulated", base_url=server.base_url, api_key="none", max_retries=0
    )
    ours = make_model("openai:simulated", base_url=server.base_url, api_key="none")
    return {"init_chat_model": plain, "the harness's model": ours}


async def _search(
    setting: Setting, name: str, model: BaseChatModel, steps: int, problems: list[str]
) -> int:
    """Search, and return how many programs the journal has."""
    competition = Registry(setting.work / "data").get_competition(COMPETITION)
    if not competition.prepared:
        prepare_competition(competition)
    artifacts = MemoryArtifacts()
    async with DockerSandbox(inputs={"input": competition.public_dir}) as sandbox:
        agent = build_tree_agent(
            model,
            competition=competition,
            sandbox=sandbox,
            memory=CodingMemory(InMemoryStore()),
            artifacts=artifacts,
            steps=steps,
            seconds=60,
            width=2,
        )
        try:
            final = await agent.ainvoke({"episode_id": "unruly", "seed": 1})
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
            raise _Ended from error
    return len(read_search(artifacts, final["journal"]).nodes)
