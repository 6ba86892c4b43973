"""Tests of `pytorch_transformers.checkpoint` and `pytorch_transformers.files`."""
