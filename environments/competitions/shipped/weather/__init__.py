"""The competition `weather`: its texts, data, metric and board."""
