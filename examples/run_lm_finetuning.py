r"""BERT goes on with its pre-training on a text: the published script by its flags; also `simple_lm_finetuning.py`.

    python examples/run_lm_finetuning.py --train_corpus my_corpus.txt --bert_model bert-base-uncased --do_lower_case \
        --output_dir finetuned_lm/ --do_train --max_seq_length 128 --train_batch_size 32 --learning_rate 3e-5

The corpus has one sentence a line and blank lines between documents. What is different: inputs are as long as
--max_seq_length, and not two lines; a random second text is from another document; the corpus is made into
memory-mapped data in the folder `data` of --output_dir and never in memory as a whole, whether --on_memory is given or
not. Each epoch has other pairs, and other masks. For data of several epochs and machines there are
`pregenerate_training_data.py` and `finetune_on_pregenerated.py`. All options of `pytorch_transformers train pretrain`
about model, training and machine are taken too.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytorch_transformers.cli.common import positive
from pytorch_transformers.cli.train.arguments import run_script
from pytorch_transformers.cli.train.pretrain import COMMAND

if TYPE_CHECKING:
    from pytorch_transformers.training.task import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the data."""
    add = parser.add_argument_group("data").add_argument
    add("--train_corpus", required=True, metavar="FILES", help="text: paths and patterns divided by commas")
    add("--dev_data", metavar="FOLDER", help="made by create-pretraining-data of other text, for --do_eval")
    add("--on_memory", action="store_true", help="not needed: memory is bounded")
    add("--times", type=positive, default=1, help=argparse.SUPPRESS)


def make(options: argparse.Namespace) -> "Task":
    """The task."""
    from pytorch_transformers.data.pretraining import InstanceOptions
    from pytorch_transformers.training.tasks.text import MaskedText

    return MaskedText(
        text=options.train_corpus,
        folder=Path(options.output_dir, "data"),
        options=InstanceOptions(
            max_seq_length=options.max_seq_length,
            max_predictions_per_seq=min(20, options.max_seq_length),
            dupe_factor=options.times,
        ),
        dev_data=options.dev_data,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    command = replace(
        COMMAND,
        description=(__doc__ or "").partition("\n")[0],
        example="--train_corpus corpus.txt --bert_model bert-base-uncased --output_dir out --do_train",
        add_arguments=add_arguments,
        make=make,
        defaults={"learning_rate": 3e-5},
    )
    # The data hold as many versions of the text as there are epochs, so once through them is all.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--num_train_epochs", type=float, default=3.0)
    options, rest = parser.parse_known_args(argv)
    times = max(1, math.ceil(options.num_train_epochs))
    epochs = ["--num_train_epochs", str(options.num_train_epochs / times), "--times", str(times)]
    return run_script(command, "run_lm_finetuning.py", ["--do_train", *epochs, *rest])


if __name__ == "__main__":
    sys.exit(main())
