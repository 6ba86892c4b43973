"""Tests of `pytorch_transformers.checkpoint.tensorflow`."""
