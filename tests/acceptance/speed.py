"""Speed, as ratios in one run, several times over; the median is judged."""

from acceptance.figure import Figure, Setting
from langgraft.benchmarks.performance.react_agent import episode_ratio, overhead_per_item
from langgraft.benchmarks.performance.timing import help_seconds, plans_cpu_seconds


def measure_graph(setting: Setting) -> list[Figure]:
    """Measure an episode of our graph over one of a hand-written loop."""
    rounds = setting.size(5, 3)
    return [
        _judged(
            "Our graph costs little over a hand-written LangGraph loop",
            "CPU of a BabyAI episode with a zero-latency model and no memory, ours over the loop's",
            [episode_ratio(rounds=rounds)[0] for _ in _times(setting)],
            "x",
            1.5,
        )
    ]


def measure_harness(setting: Setting) -> list[Figure]:
    """Measure what the harness costs per item."""
    return [
        _judged(
            "The harness costs little per item",
            "CPU of the harness over continual episodes played beforehand",
            [overhead_per_item()[0] for _ in _times(setting)],
            " ms",
            5,
            judge=not setting.reduced,
        )
    ]


def measure_help(setting: Setting) -> list[Figure]:
    """Measure how long the command line takes to answer."""
    rounds = setting.size(7, 3)
    return [
        _judged(
            "`langgraft --help` answers at once",
            "wall time of the whole process, Python's start included, best of a few",
            [sum(help_seconds(rounds=rounds)) for _ in _times(setting)],
            " s",
            0.5,
            judge=not setting.reduced,
        ),
        _judged(
            "`langgraft plans` answers at once, where data lies too",
            "CPU time of the whole process, Python's start included, best of a few",
            [plans_cpu_seconds(rounds=rounds) for _ in _times(setting)],
            " s",
            1,
            judge=not setting.reduced,
        ),
    ]


# At reduced size, in CI, times by themselves are told and not judged: any machine may run it.


def _times(setting: Setting) -> range:
    return range(setting.size(3, 1))


def _judged(
    promise: str, how: str, values: list[float], unit: str, bound: float, *, judge: bool = True
) -> Figure:
    median = sorted(values)[len(values) // 2]
    listed = ", ".join(f"{value:.2f}{unit}" for value in values)
    return Figure(
        promise,
        how,
        f"{median:.2f}{unit} ({listed})",
        f"≤ {bound:g}{unit}",
        median <= bound if judge else None,
    )
