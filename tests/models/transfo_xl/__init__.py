"""Tests of the Transformer-XL models."""
