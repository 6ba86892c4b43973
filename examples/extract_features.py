r"""Vectors of the tokens of a text: the script of google-research/bert, its flags and its output, as a thin page.

    python examples/extract_features.py --input_file in.txt --output_file out.jsonl --do_lower_case \
        --bert_model bert-base-uncased --layers -1,-2

Each line of the output is one of the input, as JSON: {"linex_index": 0, "features": [{"token": "[CLS]", "layers":
[{"index": -1, "values": [...]}, ...]}, ...]}. The work is that of
`pytorch_transformers features`, which has more: pooling, binary formats, devices.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from pytorch_transformers.cli.common import join_negative_lists, positive
from pytorch_transformers.cli.main import main as command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    options = _parse(sys.argv[1:] if argv is None else argv)
    if (rank := int(os.environ.get("RANK", 0))) > 0:
        # The original let every process write the same file.
        print(f"extract_features: process 0 does all the work, process {rank} none", file=sys.stderr)
        return 0
    arguments = [
        f"--input_file={options.input_file}",
        f"--output_file={options.output_file}",
        f"--model={options.bert_model}",
        f"--layers={options.layers}",
        f"--max_seq_length={options.max_seq_length}",
        f"--batch_size={options.batch_size}",
        "--pooling=none",
        "--do_lower_case" if options.do_lower_case else "--no_do_lower_case",
    ]
    if options.no_cuda:
        arguments.append("--device=cpu")
    elif options.local_rank >= 0:
        arguments.append(f"--device=cuda:{options.local_rank}")
    return command(["features", *arguments])


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Extract features of the tokens of a text, layer by layer, as lines of JSON.",
        epilog="example: python examples/extract_features.py --input_file in.txt --output_file out.jsonl "
        "--bert_model bert-base-uncased --do_lower_case",
    )
    parser.add_argument("--input_file", required=True, help="a text a line, or two divided by ' ||| '; - is stdin")
    parser.add_argument("--output_file", required=True, help="lines of JSON; - is stdout")
    parser.add_argument("--bert_model", required=True, help="name, repository, folder or archive of a model")
    parser.add_argument("--do_lower_case", action="store_true", help="lower-case the text, for an uncased model")
    parser.add_argument("--layers", default="-1,-2,-3,-4", help="layers, from 0, or back from -1 (%(default)s)")
    parser.add_argument(
        "--max_seq_length", default=128, type=int, help="longest input in tokens; longer is cut (%(default)s)"
    )
    parser.add_argument("--batch_size", default=32, type=positive, help="most lines of a batch (%(default)s)")
    parser.add_argument(
        "--local_rank", "--local-rank", default=-1, type=int, help="number of the GPU to use; -1: the first if any"
    )
    parser.add_argument("--no_cuda", action="store_true", help="use no GPU")
    return parser.parse_args(join_negative_lists(argv))


if __name__ == "__main__":
    sys.exit(main())
