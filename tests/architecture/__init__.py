"""How the house stands: its floors as a picture, and the files that a call enters."""
