"""Weights in files: reading them safely and writing them whole. Knows no model family."""
