r"""Perplexity of Transformer-XL on its corpus: the published script by its options.

    python examples/run_transfo_xl.py --model_name transfo-xl-wt103
    python examples/run_transfo_xl.py --model_name my-model --split all --work_dir results
    python examples/run_transfo_xl.py --model_name my-model --input_file text.txt --max_eval_steps 100

What is different: the lengths are by default those of the paper, so `--same_length` holds unless `--no_same_length` is
given; every word but the first is scored, each once; and `--work_dir`, which gets `log.txt` unless `--no_log` is given,
may be left out. `pytorch_transformers evaluate` can do more.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pytorch_transformers.cli.common import device
from pytorch_transformers.cli.evaluate import add_lengths, add_text, results
from pytorch_transformers.cli.program import guarded, prepare_output


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    prepare_output()
    options = _parse(argv)
    return guarded("run_transfo_xl", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    said = []
    for found, more in results(options, options.model_name, "float32", device("cpu" if options.no_cuda else None)):
        text = more.get("split", "text")
        said.append(f"{text} loss {found.loss / found.tokens:5.2f} | {text} ppl {found.value:9.3f}")
    lines = ["=" * 100, f"| {' | '.join(said)} |", "=" * 100]
    print("\n".join(lines))
    if options.work_dir is not None and not options.no_log:
        folder = Path(options.work_dir)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log.txt").open("a", encoding="utf-8") as log:
            log.write("\n".join([f"{vars(options)}", *lines]) + "\n")
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compute the perplexity of Transformer-XL on the valid or test part of its corpus, or on a text.",
        epilog="example: python examples/run_transfo_xl.py --model_name transfo-xl-wt103 --split test",
    )
    parser.add_argument(
        "--model_name",
        default="transfo-xl-wt103",
        metavar="NAME",
        help="name, repository or folder of model and corpus (%(default)s)",
    )
    parser.add_argument("--corpus", metavar="NAME", help="where the corpus is, if not with the model")
    add_text(parser)
    add_lengths(parser)
    parser.add_argument("--no_cuda", action="store_true", help="use no GPU")
    parser.add_argument("--work_dir", metavar="FOLDER", help="gets log.txt, to which each run is added")
    parser.add_argument("--no_log", action="store_true", help="write no log.txt")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
