"""Conversion of a TensorFlow checkpoint of GPT-2, as 0.6.2 had it; TensorFlow is not needed."""

from pytorch_transformers.models.gpt2.convert import convert_gpt2_checkpoint_to_pytorch

from .commands import run_script
from .modeling_gpt2 import CONFIG_NAME, WEIGHTS_NAME, GPT2Config, GPT2Model, load_tf_weights_in_gpt2

__all__ = [
    "CONFIG_NAME",
    "WEIGHTS_NAME",
    "GPT2Config",
    "GPT2Model",
    "convert_gpt2_checkpoint_to_pytorch",
    "load_tf_weights_in_gpt2",
]

if __name__ == "__main__":
    raise SystemExit(run_script(convert_gpt2_checkpoint_to_pytorch, optional=("gpt2_config_file",)))
