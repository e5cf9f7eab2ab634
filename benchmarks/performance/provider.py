"""What a memory provider costs above its ranker."""

from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.performance.texts import documents, queries
from langgraft.benchmarks.performance.timing import Compared, compared
from langgraft.memory import Episode, Outcome, RecallContext, Step
from langgraft.memory.providers import TrajectoryMemory, TrajectorySettings
from langgraft.memory.rankers import BM25


def recall_over_ranker(items: int = 1_000, *, rounds: int = 7) -> Compared:
    """Compare a recall over a search of the ranker's own index with the same contents.

    Args:
        items: Items in the bank.
        rounds: How often each of 40 queries is asked.
    """
    ranker = BM25()
    provider = TrajectoryMemory(InMemoryStore(), settings=TrajectorySettings(ranker=ranker))
    index = ranker.index()
    for i, text in enumerate(documents(items)):
        provider.file(_episode(str(i), text))
    for item in provider.content().items.values():
        index.put(item.id, item.retrieval_key, (item.order_index,))
    context = RecallContext(domain="synthetic", task_id="t", episode_id="e")
    limit = provider.settings.top_k
    return compared(
        lambda query: provider.provide(query, context),
        lambda query: index.search(query, limit=limit),
        queries(40),
        rounds=rounds,
    )


def _episode(identity: str, task: str) -> Episode:
    return Episode(
        id=identity,
        domain="synthetic",
        task_id=identity,
        task=task,
        steps=(Step(thought="", action="go", observation="a door"),),
        outcome=Outcome(success=True),
    )
