"""The competition `phrases`: its texts, data, metric and board."""
