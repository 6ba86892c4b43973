r"""Which of four endings goes on from a sentence: the published script on SWAG by its flags.

    python examples/run_swag.py --data_dir SWAG/data --bert_model bert-base-uncased --do_train --do_eval \
        --max_seq_length 80 --train_batch_size 16 --learning_rate 2e-5 --num_train_epochs 3 --output_dir swag_model
    python examples/run_swag.py --data_dir SWAG/data --bert_model swag_model --do_predict --output_dir swag_model

As there, the sentence is the first text of each of the four inputs, and its beginning with an ending the second. What
is different: `--do_eval` alone evaluates the model in `--output_dir`; `--do_predict` chooses the endings of `test.csv`;
a batch has the tokens that it needs, not four times `--max_seq_length` a row, which is 80 without the flag.
`pytorch_transformers train swag` is the same.
"""

import sys
from collections.abc import Sequence

from pytorch_transformers.cli.train.arguments import run_script
from pytorch_transformers.cli.train.swag import COMMAND


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    return run_script(COMMAND, "run_swag.py", argv)


if __name__ == "__main__":
    sys.exit(main())
