"""Conversion of a TensorFlow checkpoint of BERT, as 0.6.2 had it; TensorFlow is not needed."""

from pytorch_transformers.models.bert.convert import convert_tf_checkpoint_to_pytorch

from .commands import run_script
from .modeling import BertConfig, BertForPreTraining, load_tf_weights_in_bert

__all__ = ["BertConfig", "BertForPreTraining", "convert_tf_checkpoint_to_pytorch", "load_tf_weights_in_bert"]

if __name__ == "__main__":
    raise SystemExit(run_script(convert_tf_checkpoint_to_pytorch))
