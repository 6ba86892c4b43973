r"""Text from GPT-2: the script of openai/gpt-2 (src/interactive_conditional_samples.py and its sibling) by its options.

    python examples/run_gpt2.py --top_k 40 --seed 1                        asks for prompts
    python examples/run_gpt2.py --unconditional --nsamples 4 --batch_size 2

As there, every token is drawn, `--top_k 0` draws among all, a text has exactly `--length` tokens, and the token
<|endoftext|> is text like others. What is different: a seed gives the same texts whatever `--batch_size` is, and an
unconditional run ends after `--nsamples` texts. `pytorch_transformers generate` can do more.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

from pytorch_transformers.cli.common import device, positive
from pytorch_transformers.cli.generate import keep_odd_bytes, load, unusable
from pytorch_transformers.cli.program import guarded, prepare_output
from pytorch_transformers.generation import GenerationOptions


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    prepare_output()
    options = _parse(argv)
    return guarded("run_gpt2", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    settings = {"do_sample": True, "temperature": options.temperature, "top_k": options.top_k, "seed": options.seed}
    GenerationOptions(**settings)  # its errors come before a model is loaded, and before anybody types
    generator = load(options.model_name_or_path, "float32", device("cpu" if options.no_cuda else None))
    context = generator.model.context_length() or 0
    length = context // 2 if options.length == -1 else options.length
    if length > context:
        raise ValueError(f"Can't get samples longer than window size: {context}")
    for number, prompt in enumerate(_prompts(options)):
        try:
            if prompt is not None and (problem := unusable(prompt)):
                raise ValueError(problem)
            for first in range(0, options.nsamples, options.batch_size):
                texts = generator.generate(
                    [prompt],
                    max_new_tokens=length,
                    num_samples=options.batch_size,
                    first_sample=number * options.nsamples + first,
                    eos_token_id=None,
                    **settings,
                )
                for place, text in enumerate(texts, first + 1):
                    print(f"{'=' * 40} SAMPLE {place} {'=' * 40}")
                    print(text.text, flush=True)
        except ValueError as error:
            if prompt is None:
                raise
            print(f"run_gpt2: {error}", file=sys.stderr)  # the next prompt may be better
            continue
        if prompt is not None:
            print("=" * 80)
    return 0


def _prompts(options: argparse.Namespace) -> Iterator[str | None]:
    """What is to be continued: nothing, once; or what is typed until the input ends."""
    if options.unconditional:
        yield None
        return
    keep_odd_bytes()
    while True:
        try:
            prompt = input("Model prompt >>> ")
        except EOFError:
            return
        if prompt:
            yield prompt
        else:
            print("Prompt should not be empty!")


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Continue prompts with GPT-2, or write texts without any.",
        epilog="example: python examples/run_gpt2.py --model_name_or_path gpt2 --top_k 40 --nsamples 2",
    )
    parser.add_argument(
        "--model_name_or_path", default="gpt2", metavar="NAME", help="name, repository, folder or archive (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="makes the draws repeatable (%(default)s)")
    parser.add_argument("--nsamples", type=positive, default=1, metavar="N", help="texts for a prompt (%(default)s)")
    parser.add_argument("--batch_size", type=_batch_size, default=1, metavar="N", help="texts at a time (%(default)s)")
    parser.add_argument(
        "--length",
        type=_length,
        default=-1,
        metavar="N",
        help="tokens of a text; -1: half of the context (%(default)s)",
    )
    parser.add_argument(
        "--temperature", type=float, default=1.0, metavar="X", help="scores are divided by it (%(default)s)"
    )
    parser.add_argument(
        "--top_k", type=int, default=0, metavar="K", help="draw among the K likeliest tokens; 0: all (%(default)s)"
    )
    parser.add_argument("--unconditional", action="store_true", help="start from nothing, ask for no prompt")
    parser.add_argument("--no_cuda", action="store_true", help="use no GPU")
    options = parser.parse_args(argv)
    if options.nsamples % options.batch_size:
        parser.error(f"--nsamples {options.nsamples} is no multiple of --batch_size {options.batch_size}")
    return options


def _batch_size(text: str) -> int:
    """A number of texts; the original's default -1 is 1."""
    return 1 if text == "-1" else positive(text)


def _length(text: str) -> int:
    return -1 if text == "-1" else positive(text)


if __name__ == "__main__":
    sys.exit(main())
