r"""Fine-tune BERT on SQuAD: the script of google-research/bert (run_squad.py) by its options and those of 0.6.2.

    python examples/run_squad.py --bert_model bert-base-uncased --do_lower_case --do_train --do_predict \
        --train_file train-v1.1.json --predict_file dev-v1.1.json --train_batch_size 12 --learning_rate 3e-5 \
        --num_train_epochs 2.0 --max_seq_length 384 --doc_stride 128 --output_dir squad
    python examples/run_squad.py --vocab_file vocab.txt --bert_config_file bert_config.json \
        --init_checkpoint pytorch_model.bin --do_train --do_predict --train_file train-v1.1.json \
        --predict_file dev-v1.1.json --output_dir squad --train_batch_size 24 --gradient_accumulation_steps 2 \
        --optimize_on_cpu

`--do_predict` answers the questions of `--predict_file` (predictions.json, nbest_predictions.json, null_odds.json) and
prints exact match and F1 if the file has the answers too; `--do_eval` also does so after each epoch. SQuAD 2.0 needs
no option. `pytorch_transformers train squad` is the same job; `pytorch_transformers predict` uses the trained model.
"""

import sys
from collections.abc import Sequence

from pytorch_transformers.cli.train.arguments import run_script
from pytorch_transformers.cli.train.squad import COMMAND


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    return run_script(COMMAND, "run_squad.py", argv)


if __name__ == "__main__":
    sys.exit(main())
