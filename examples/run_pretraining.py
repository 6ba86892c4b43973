r"""Pre-training of BERT: the script of google-research/bert with its flags.

    python examples/run_pretraining.py --input_file data.tfrecord --bert_config_file bert_config.json \
        --init_checkpoint bert_model.ckpt --do_train=True --do_eval=True --train_batch_size 32 --max_seq_length 128 \
        --max_predictions_per_seq 20 --num_train_steps 20 --num_warmup_steps 10 --learning_rate 2e-5 \
        --output_dir pretraining_output

The input files are TFRecord files, or a folder that `pytorch_transformers create-pretraining-data` made; without
--init_checkpoint a new model begins. As there, the evaluation reads --input_file where no --eval_file is given, Adam
does not correct its averages, and booleans may be given as `--do_train=True`. What is different: a tokenizer is saved
with the model, so vocab.txt lies beside the checkpoint or the configuration, or --vocab_file names it; inputs are as
long as the files have them, so --max_predictions_per_seq says nothing more. All options of `pytorch_transformers train
pretrain`, which is the same, are taken too.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pytorch_transformers.cli.flags import as_switches
from pytorch_transformers.cli.train.arguments import run_script
from pytorch_transformers.cli.train.pretrain import COMMAND

NAME = "run_pretraining.py"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    parser = argparse.ArgumentParser(
        prog=NAME, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--input_file", required=True, metavar="FILES", help="records, divided by commas, or a folder")
    add("--eval_file", metavar="FILES", help="others to evaluate on")
    add("--bert_config_file", metavar="FILE", help="sizes of the model")
    add("--init_checkpoint", metavar="NAME", help="to begin with")
    add("--vocab_file", metavar="FILE", help="of the tokenizer")
    add("--num_train_steps", type=int, default=100_000, metavar="N", help="updates (%(default)s)")
    add("--num_warmup_steps", type=int, default=10_000, metavar="N", help="in which the rate rises (%(default)s)")
    add("--save_checkpoints_steps", type=int, default=1000, metavar="N", help="between checkpoints (%(default)s)")
    add("--max_eval_steps", type=int, default=100, metavar="N", help="batches of the evaluation (%(default)s)")
    add("--eval_batch_size", type=int, default=8, metavar="N", help="rows of such a batch (%(default)s)")
    add("--max_predictions_per_seq", type=int, help="not used: the files say it")
    for flag in ("iterations_per_loop", "num_tpu_cores", "tpu_name", "tpu_zone", "gcp_project", "master"):
        add(f"--{flag}", help=argparse.SUPPRESS)
    given = as_switches(sys.argv[1:] if argv is None else argv, ("do_train", "do_eval", "use_tpu"))
    options, rest = parser.parse_known_args([flag for flag in given if flag not in ("--use_tpu", "--no_use_tpu")])
    steps = options.num_train_steps
    arguments = [
        *("--data", options.input_file, "--dev_data", options.eval_file or options.input_file),
        *("--num_train_epochs", "1e6", "--max_steps", str(steps), "--evaluate_every", "0", "--no_correct_bias"),
        *("--warmup_proportion", str(min(options.num_warmup_steps, steps) / max(steps, 1))),
        *("--save_every", str(options.save_checkpoints_steps), "--eval_batch_size", str(options.eval_batch_size)),
        *("--most_dev_rows", str(options.max_eval_steps * options.eval_batch_size), "--learning_rate", "5e-5"),
    ]
    for name, value in (
        ("--model", options.init_checkpoint),
        ("--config", options.bert_config_file),
        ("--tokenizer", options.vocab_file or _vocabulary_beside(options.init_checkpoint, options.bert_config_file)),
    ):
        arguments += [name, value] if value else []
    return run_script(COMMAND, NAME, [*arguments, *rest])


def _vocabulary_beside(*places: str | None) -> str | None:
    """vocab.txt beside one of these files."""
    found = (Path(place).with_name("vocab.txt") for place in places if place)
    return next((str(path) for path in found if path.is_file()), None)


if __name__ == "__main__":
    sys.exit(main())
