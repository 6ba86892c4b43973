"""Optimizers, learning rate schedules, and the groups of parameters that decay or do not. Knows no model.

`adam` holds three rules on one step: `AdamW`, and the older `BertAdam` and `OpenAIAdam`, which carry their schedule
with them. `schedules` counts in steps and goes with `AdamW`; `classic_schedules` counts in fractions of the training
and goes with the other two. `groups` says what decays.
"""
