"""Tests of the BERT models."""
