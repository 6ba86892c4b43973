"""Tests of the OpenAI GPT models."""
