r"""Training data for `finetune_on_pregenerated.py`: the published script by its flags.

    python examples/pregenerate_training_data.py --train_corpus my_corpus.txt --bert_model bert-base-uncased \
        --do_lower_case --output_dir training/ --epochs_to_generate 3 --max_seq_len 256

The corpus has one sentence a line and blank lines between documents. What is different: the data are one folder of
memory-mapped shards, in which the text is gone through --epochs_to_generate times with other pairs each time; words
are not masked in it, but anew whenever the training reads it, so that a training of more epochs sees no mask twice. The
corpus is never in memory as a whole, whether --reduce_memory is given or not. Without --do_lower_case the tokenizer
does what was saved with it. All options of `pytorch_transformers create-pretraining-data`, which is the same, are taken
too, such as --processes.
"""

import argparse
import sys
from collections.abc import Sequence

from pytorch_transformers.cli.main import main as command

NAME = "pregenerate_training_data.py"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    parser = argparse.ArgumentParser(
        prog=NAME, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--train_corpus", required=True, metavar="FILES", help="text: paths and patterns divided by commas")
    add("--output_dir", required=True, metavar="FOLDER", help="for the data")
    add("--bert_model", required=True, metavar="NAME", help="model or tokenizer: name, repository or folder")
    add("--reduce_memory", action="store_true", help="not needed: memory is bounded")
    add("--epochs_to_generate", type=int, default=3, metavar="N", help="times the text is gone through (%(default)s)")
    add("--max_seq_len", type=int, default=128, metavar="N", help="most tokens of an input (%(default)s)")
    add("--short_seq_prob", type=float, default=0.1, metavar="P", help="part of shorter inputs (%(default)s)")
    add("--masked_lm_prob", type=float, default=0.15, metavar="P", help="part of the tokens masked (%(default)s)")
    add("--max_predictions_per_seq", type=int, default=20, metavar="N", help="most masked tokens (%(default)s)")
    options, rest = parser.parse_known_args(argv)
    arguments = [
        *("--input_file", options.train_corpus, "--output_file", options.output_dir),
        *("--tokenizer", options.bert_model, "--dupe_factor", str(options.epochs_to_generate), "--dynamic_masking"),
        *("--max_seq_length", str(options.max_seq_len), "--short_seq_prob", str(options.short_seq_prob)),
        *("--masked_lm_prob", str(options.masked_lm_prob)),
        *("--max_predictions_per_seq", str(options.max_predictions_per_seq)),
    ]
    return command(["create-pretraining-data", *arguments, *rest])


if __name__ == "__main__":
    sys.exit(main())
