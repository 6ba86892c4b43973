"""Tests of text generation."""
