"""Tests of the GPT-2 models."""
