"""The parts of a tree search over programs: its journal, its policy, and its nodes."""
