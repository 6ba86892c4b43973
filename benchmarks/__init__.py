"""Measurements against what a user would pick instead; `python -m benchmarks` runs them and writes the report."""
