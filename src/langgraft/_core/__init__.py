"""Floor 0: what every room stands on. Imports nothing else of langgraft."""
