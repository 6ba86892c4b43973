"""Whole runs of each task."""
