"""Tests of `pytorch_transformers.hub`, and a hub server for all tests."""
