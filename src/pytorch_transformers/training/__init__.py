"""Training: one loop for every task, on one device or many, with exact resume. Built on `accelerate`.

`options` says what can be chosen, `plan` which examples make an update, `objective` what is minimised; `loop` is the
loop itself and `checkpoints` what it keeps on disk. `evaluation` runs a model over rows, and `record` and `report` say
afterwards what was done.
"""
