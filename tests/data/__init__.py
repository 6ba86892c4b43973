"""Tests of the way from files and texts to vectors and files."""
