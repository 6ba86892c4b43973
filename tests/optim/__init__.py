"""Tests of optimizers, schedules and groups."""
