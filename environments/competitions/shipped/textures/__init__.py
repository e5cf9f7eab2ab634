"""The competition `textures`: its texts, data, metric and board."""
