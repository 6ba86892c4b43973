"""Tests of the data for pre-training."""
