r"""Classes or scores of texts and pairs: the published script on GLUE by its flags, and your own files.

    python examples/run_classifier.py --task_name MRPC --data_dir glue/MRPC --bert_model bert-base-uncased \
        --do_train --do_eval --max_seq_length 128 --train_batch_size 32 --learning_rate 2e-5 --num_train_epochs 3 \
        --output_dir mrpc
    python examples/run_classifier.py --train_file train.csv --dev_file dev.csv --bert_model bert-base-uncased \
        --output_dir mine
    python examples/run_classifier.py --test_file texts.csv --do_predict --bert_model mine --output_dir mine

As there, `--do_train` and `--do_eval` say what is done. What is different: without them it trains and evaluates;
`--do_eval` alone evaluates the model in `--output_dir`; `--train_batch_size` is that of an update, however it is
divided; rows are padded to the longest of their batch. `pytorch_transformers train classify` is the same.
"""

import sys
from collections.abc import Sequence

from pytorch_transformers.cli.train.arguments import run_script
from pytorch_transformers.cli.train.classify import COMMAND


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    return run_script(COMMAND, "run_classifier.py", argv)


if __name__ == "__main__":
    sys.exit(main())
