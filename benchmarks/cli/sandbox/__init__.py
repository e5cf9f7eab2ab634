"""`langgraft sandbox`: build the image, attack the sandbox, and clear up after it."""
