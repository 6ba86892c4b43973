"""The tasks, one file each: which data, which head, which metrics. See `training.task` for what a task answers."""
