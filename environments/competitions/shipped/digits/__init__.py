"""The competition `digits`: its texts, data, metric and board."""
