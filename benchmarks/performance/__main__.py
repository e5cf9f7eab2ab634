"""Measure everything and print it: `python -m langgraft.benchmarks.performance`."""

from langgraft._core.errors import MissingExtraError, SandboxUnavailableError
from langgraft.benchmarks.performance.alfworld import engine_times, generated_games
from langgraft.benchmarks.performance.dense_search import (
    dense_over_in_memory_store,
    dense_over_matrix_product,
    filtered_over_chroma,
    write_over_chroma,
)
from langgraft.benchmarks.performance.lexical_search import (
    changing_over_bm25s,
    first_recall_of_process,
    opening_over_building,
    recall_opened_over_built,
    recall_over_ranker,
    search_over_bm25s,
)
from langgraft.benchmarks.performance.react_agent import (
    calls_in_process,
    calls_over_http,
    episode_ratio,
    overhead_per_item,
    turn_cost,
)
from langgraft.benchmarks.performance.sandboxes import (
    Paired,
    first_instruction_over_floor,
    fresh_over_floor,
    imports_in_kernel_over_exec,
    kernel_cells,
)
from langgraft.benchmarks.performance.timing import alone, help_seconds

SEARCHES = (
    ("BM25: ours over bm25s", search_over_bm25s, 100_000),
    ("BM25, add and query: ours over building bm25s anew", changing_over_bm25s, 100_000),
    ("dense: ours over InMemoryStore", dense_over_in_memory_store, 100_000),
    ("dense: ours over one matrix product", dense_over_matrix_product, 100_000),
    ("dense, a filter that passes 5 %: ours over Chroma", filtered_over_chroma, 20_000),
    ("first answer of a bank: opened over built", opening_over_building, 100_000),
    ("first recall of a provider: opened over built", recall_opened_over_built, 10_000),
    ("first recall of a process: index beside its file over none", first_recall_of_process, 1_000),
    ("first recall of a process: index beside its file over none", first_recall_of_process, 10_000),
    ("a batch of new records: ChromaStore over Chroma's upsert", write_over_chroma, 100),
    ("recall of a provider over a search of its ranker", recall_over_ranker, 1_000),
)


def main() -> None:
    """Measure everything."""
    for name, measure, size in SEARCHES:
        found = alone(measure, size)
        print(f"{name}, {size:,}: {found.ratio:.4f}x ({found.ours:.2f} / {found.floor:.2f} ms CPU)")
    _measure_agents()
    _measure_harness()
    _measure_alfworld()
    _measure_sandboxes()


def _measure_harness() -> None:
    for count in (16, 64):
        print(
            f"harness, a model in process, {count} in flight: {calls_in_process(count):.0%} of ideal"
        )
    for count in (16, 64, 256):
        for mixed in (False, True):
            ours, bare = calls_over_http(count, mixed=mixed)
            plan = "half of it streams that learn" if mixed else "frozen"
            print(
                f"harness over HTTP, {count} in flight, {plan}: {ours / bare:.0%} of bare ChatOpenAI"
                f" ({ours:.1f} / {bare:.1f} calls a second)"
            )


def _measure_alfworld() -> None:
    try:
        times = engine_times(generated_games())
    except MissingExtraError as error:
        print(f"ALFWorld's engine: not measured: {error}")
        return
    for call, found in times.items():
        print(
            f"ALFWorld, a {call}: TextWorld over our engine: {found.ratio:.1f}x"
            f" ({found.plain:.2f} / {found.ours:.2f} ms CPU)"
        )


def _measure_sandboxes() -> None:
    try:
        fresh = fresh_over_floor()
    except SandboxUnavailableError as error:
        print(f"sandboxes: not measured: {error}")
        return
    print(f"fresh container over the engine's floor: {_pair(fresh)}")
    print(
        f"first instruction from the pool over that floor: {_pair(first_instruction_over_floor())}"
    )
    print(f"cell of a kernel: {kernel_cells()}")
    print(f"importing the ML stack, kernel over exec: {_pair(imports_in_kernel_over_exec())}")


def _pair(found: Paired) -> str:
    return f"{found.ratio:.3f}x ({found.ours} / {found.floor})"


def _measure_agents() -> None:
    ratio, ours, floor = episode_ratio()
    print(f"ReAct episode over a hand-written loop: {ratio:.2f}x ({ours:.1f} / {floor:.1f} ms CPU)")
    for history in (0, 2_000):
        turn = turn_cost(10_000, history=history)
        print(
            f"a turn with memory, 10,000 items, after {history:,} messages: {turn.overhead:.2f} ms CPU beside"
            f" the provider's {turn.provider:.2f}; LangGraph takes for the hooks {turn.hooks - turn.bare:.2f}"
        )
    added, item = overhead_per_item()
    print(f"harness per item: {added:.2f} ms CPU, on items of {item:.1f} ms")
    help_time, python_time = help_seconds()
    print(f"langgraft --help: {help_time:.2f} s beyond Python's {python_time:.2f} s")


if __name__ == "__main__":  # the processes of `alone` load this file again
    main()
