"""x"""

from langgraft.benchmarks.simulated.engineer.model import SimulatedEngineer

__all__ = ["SimulatedEngineer"]
