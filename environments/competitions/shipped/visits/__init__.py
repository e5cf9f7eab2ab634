"""The competition `visits`: its texts, data, metric and board."""
