r"""BERT goes on with its pre-training on data of `pregenerate_training_data.py`: the published script by its flags.

    python examples/finetune_on_pregenerated.py --pregenerated_data training/ --bert_model bert-base-uncased \
        --do_lower_case --output_dir finetuned_lm/ --epochs 3 --train_batch_size 32 --learning_rate 3e-5

An epoch is once through the text: with data of 3 epochs, --epochs 3 reads each input once, and --epochs 6 twice, with
other masks. The inputs of all epochs are shuffled together. Memory is bounded, whether --reduce_memory is given or not.
What is different: --train_batch_size is that of an update, however it is divided. All options of
`pytorch_transformers train pretrain`, which is the same, are taken too: --gradient_accumulation_steps, --fp16,
--loss_scale, --no_cuda, --local_rank, --seed, --warmup_proportion, --adam_epsilon, --dev_data with --do_eval, ...
"""

import argparse
import sys
from collections.abc import Sequence

from pytorch_transformers.cli.program import guarded
from pytorch_transformers.cli.train.arguments import run_script
from pytorch_transformers.cli.train.pretrain import COMMAND

NAME = "finetune_on_pregenerated.py"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    parser = argparse.ArgumentParser(
        prog=NAME, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--pregenerated_data", required=True, metavar="FOLDER", help="what the other script made")
    add("--bert_model", required=True, metavar="NAME", help="model to begin with: name, repository or folder")
    add("--output_dir", required=True, metavar="FOLDER", help="for the model")
    add("--epochs", type=float, default=3, metavar="X", help="times through the text (%(default)s)")
    add("--train_batch_size", type=int, default=32, metavar="N", help="inputs of an update (%(default)s)")
    add("--learning_rate", type=float, default=3e-5, metavar="X", help="(%(default)s)")
    add("--warmup_steps", type=int, metavar="N", help="updates in which the rate rises (default: a tenth)")
    add("--reduce_memory", action="store_true", help="not needed: memory is bounded")
    options, rest = parser.parse_known_args(argv)
    return guarded(NAME, lambda: _run(options, rest))


def _run(options: argparse.Namespace, rest: list[str]) -> int:
    from pytorch_transformers.data.pretraining import PretrainingDataset
    from pytorch_transformers.training.plan import BatchPlan

    data = PretrainingDataset(options.pregenerated_data)
    epochs = options.epochs / data.index.options.dupe_factor
    arguments = [
        *("--do_train", "--data", options.pregenerated_data, "--bert_model", options.bert_model),
        *("--output_dir", options.output_dir, "--num_train_epochs", str(epochs)),
        *("--train_batch_size", str(options.train_batch_size), "--learning_rate", str(options.learning_rate)),
    ]
    if options.warmup_steps is not None:
        updates = BatchPlan(len(data), options.train_batch_size, seed=0).total_updates(epochs, None)
        arguments += ["--warmup_proportion", str(min(options.warmup_steps, updates) / updates)]
    return run_script(COMMAND, NAME, [*arguments, *rest])


if __name__ == "__main__":
    sys.exit(main())
