"""Names in TensorFlow checkpoints that belong to training and to no model. Data only.

Slots are variables beside each weight, named after the optimizer: `adam_m`, `adam_v` of google-research/bert
(optimization.py), `Adam`, `Adam_1` and `Momentum` of tf.train, those of AdamWeightDecayOptimizer where a wrapper
(Horovod, mixed precision) lost its own names, and of LAMB (NVIDIA's BERT). The rest are counters and flags.
"""

from typing import Final

_SLOTS: Final = ("adam_m", "adam_v", r"AdamWeightDecayOptimizer(_\d+)?", r"Adam(_\d+)?", r"LAMB\w*", r"Momentum(_\d+)?")
_SCALARS: Final = (
    "global_step",
    "beta1_power",
    "beta2_power",
    "loss_scale",
    "good_steps",
    "signal_early_stopping/STOP",
    # The structure of the Python objects that a TensorFlow 2 program saved beside the variables.
    "_CHECKPOINTABLE_OBJECT_GRAPH",
)

#: Patterns of optimizer slots, to be matched with the whole name.
TENSORFLOW_SLOTS: Final[tuple[str, ...]] = tuple(f".+/{slot}" for slot in _SLOTS)
#: Patterns of all bookkeeping; a counter may stand in a scope.
TENSORFLOW_BOOKKEEPING: Final[tuple[str, ...]] = (*TENSORFLOW_SLOTS, *(f"(.+/)?{name}" for name in _SCALARS))
