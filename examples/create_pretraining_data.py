r"""Training data for BERT from text: the script of google-research/bert with its flags, as a thin page.

    python examples/create_pretraining_data.py --input_file "texts/*.txt" --output_file data.tfrecord \
        --vocab_file vocab.txt --do_lower_case --max_seq_length 128 --random_seed 12345

Booleans may also be given as the original's flags are: `--do_lower_case=False`, `--nodo_lower_case`. With the defaults
the records are those of the original program, bit for bit. The work is that of
`pytorch_transformers create-pretraining-data`, whose other options (`--help`) are taken too.
"""

import re
import sys
from collections.abc import Sequence

from pytorch_transformers.cli.main import main as command

#: Flags of the original that are true or false.
BOOLEANS = ("do_lower_case", "do_whole_word_mask")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    return command(["create-pretraining-data", *(_switch(argument) for argument in arguments)])


def _switch(argument: str) -> str:
    """A boolean flag in the form of the command: `--name` or `--no_name`."""
    names = "|".join(BOOLEANS)
    if found := re.fullmatch(rf"--?no({names})", argument):
        return f"--no_{found[1]}"
    if found := re.fullmatch(rf"--?({names})=(true|t|1|yes|y|false|f|0|no|n)", argument, re.IGNORECASE):
        return f"--{found[1]}" if found[2].lower()[0] in "t1y" else f"--no_{found[1]}"
    return argument


if __name__ == "__main__":
    sys.exit(main())
