"""Measure everything and print it: `python -m langgraft.benchmarks.performance`."""

from langgraft.benchmarks.performance.command_line import help_seconds
from langgraft.benchmarks.performance.harness import overhead_per_item
from langgraft.benchmarks.performance.react_agent import episode_ratio

ratio, ours, floor = episode_ratio()
print(f"ReAct episode over a hand-written loop: {ratio:.2f}x ({ours:.1f} / {floor:.1f} ms CPU)")
added, item = overhead_per_item()
print(f"harness per item: {added:.2f} ms CPU, on items of {item:.1f} ms")
help_time, python_time = help_seconds()
print(f"langgraft --help: {help_time:.2f} s beyond Python's {python_time:.2f} s")
