"""Conversion of a checkpoint of OpenAI GPT in NumPy files, as 0.6.2 had it."""

from pytorch_transformers.models.openai_gpt.convert import convert_openai_checkpoint_to_pytorch

from .commands import run_script
from .modeling_openai import CONFIG_NAME, WEIGHTS_NAME, OpenAIGPTConfig, OpenAIGPTModel, load_tf_weights_in_openai_gpt

__all__ = [
    "CONFIG_NAME",
    "WEIGHTS_NAME",
    "OpenAIGPTConfig",
    "OpenAIGPTModel",
    "convert_openai_checkpoint_to_pytorch",
    "load_tf_weights_in_openai_gpt",
]

if __name__ == "__main__":
    raise SystemExit(run_script(convert_openai_checkpoint_to_pytorch, optional=("openai_config_file",)))
