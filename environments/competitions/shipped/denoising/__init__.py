"""The competition `denoising`: its texts, data, metric and board."""
