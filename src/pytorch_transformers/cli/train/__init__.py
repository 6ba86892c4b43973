"""`pytorch_transformers train TASK`: fine-tuning. One file a task; `arguments` has what all share."""
