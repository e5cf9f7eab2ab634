"""ALFWorld: household tasks in words, played by the real TextWorld engine."""
