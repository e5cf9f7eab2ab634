"""`langgraft competitions`: list, prepare, check and grade machine-learning competitions."""
