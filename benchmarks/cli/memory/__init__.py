"""`langgraft memory`: look into banks, search and compare them, and move what they hold."""
