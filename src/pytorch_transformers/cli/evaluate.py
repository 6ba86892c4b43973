"""`pytorch_transformers evaluate`: the perplexity of a Transformer-XL model, over a memory instead of windows.

`examples/run_transfo_xl.py` is the same job by the options of the published script.
"""

import argparse
import io
import json
import logging
import math
import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..hub.shipped import EVALUATE
from .common import Switch, Verb, add_model, add_place, device, place, positive

if TYPE_CHECKING:
    from torch import Tensor

    from ..generation.perplexity import Perplexity
    from ..models.transfo_xl.corpus import TransfoXLCorpus
    from ..models.transfo_xl.tokenizer import TransfoXLTokenizer

logger = logging.getLogger(__name__)

_DESCRIPTION = """\
Compute the perplexity of a Transformer-XL model: exp of the mean loss of the words of a text.

Segments of the text go by, and the model remembers what it read before them. Each word but the first is scored once.
The lengths are by default those with which the paper evaluates on WikiText-103, whatever the configuration says. A
text file is one text; each of its lines ends with <eos>, which is a word like others. A corpus is one that the
published packages or the original program saved, or TransfoXLCorpus.save_pretrained."""

#: The splits of a corpus that each choice of `--split` stands for.
SPLITS: Final = {"valid": ("valid",), "test": ("test",), "all": ("valid", "test")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    add_model(parser, EVALUATE, "--model_name")
    parser.add_argument(
        "--corpus", metavar="NAME", help="name, repository, folder, corpus.bin or cache.pkl of a corpus"
    )
    add_text(parser)
    add_lengths(parser)
    parser.add_argument(
        "--warm_up",
        type=at_least(0),
        metavar="N",
        help="words that a stream reads before those that it scores (as many as the memory holds)",
    )
    parser.add_argument(
        "--json", action=Switch, default=False, help="print a JSON object, with null for what is infinite (default: no)"
    )
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of the model")
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1, mps (default: a GPU when there is one)")
    add_place(parser)


def add_text(parser: argparse.ArgumentParser) -> None:
    """Define the options that say which text is read, but for `--corpus`; `results` checks and reads them."""
    parser.add_argument("--input_file", metavar="FILE", help="a text, UTF-8; - is standard input")
    parser.add_argument(
        "--add_eos",
        action=Switch,
        default=None,
        help="end each line of that text with <eos> (default: if the vocabulary has it)",
    )
    # No default: a text has no splits, and none may be given for it.
    parser.add_argument("--split", choices=tuple(SPLITS), help="part of the corpus; all is valid and test (test)")


def add_lengths(parser: argparse.ArgumentParser) -> None:
    """Define the options that say how a text is read."""
    parser.add_argument("--batch_size", type=positive, default=10, metavar="N", help="streams at a time (%(default)s)")
    parser.add_argument("--tgt_len", type=positive, default=128, metavar="N", help="words of a segment (%(default)s)")
    parser.add_argument(
        "--ext_len",
        type=at_least(0),
        default=0,
        metavar="N",
        help="words before a segment that are computed again with it (%(default)s)",
    )
    parser.add_argument(
        "--mem_len", type=at_least(0), default=1600, metavar="N", help="words that are remembered (%(default)s)"
    )
    parser.add_argument(
        "--clamp_len",
        type=at_least(-1),
        default=1000,
        metavar="N",
        help="distance from which all positions look alike; none if not above 0 (%(default)s)",
    )
    parser.add_argument(
        "--same_length",
        action=Switch,
        default=True,
        help="each word sees itself and mem_len before it, rather than all there are (default: yes)",
    )
    parser.add_argument("--max_eval_steps", type=positive, metavar="N", help="stop after N segments (default: never)")


def at_least(least: int) -> Callable[[str], int]:
    """A whole number of at least that, for `type=`."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    number.__name__ = "int"  # as messages of argparse call it
    return number


def run(options: argparse.Namespace) -> int:
    """Compute and print the perplexity, of each split in turn."""
    if options.input_file is None and options.corpus is None:
        raise ValueError("give --input_file or --corpus, one of the two")
    where = device(options.device)
    for found, more in results(options, options.model, options.dtype, where, **place(options)):
        _report(options, found, more)
    return 0


def results(
    options: argparse.Namespace, name: str, dtype: str, where: str, **places: Any
) -> "Iterator[tuple[Perplexity, dict[str, Any]]]":
    """The perplexity of the text, or of each split of the corpus in turn, with what else there is to say.

    Args:
        options: Those of `add_text` and `add_lengths`, and `corpus`: None for that of the model, if there is no text.
        name: The model.
        dtype: Of its weights.
        where: The device.
        **places: Arguments of `from_pretrained`.

    Yields:
        The perplexity, and "unknown" for a text, "split" for a part of a corpus.

    Raises:
        OSError: Something is not there, or can't be read.
        ValueError: Options contradict each other, or model and text do not belong together.
    """
    is_text = options.input_file is not None
    if is_text and options.corpus is not None:
        raise ValueError("give --input_file or --corpus, one of the two")
    if is_text and options.split is not None:
        raise ValueError(f"--split {options.split}: a text has no splits; they are for --corpus")
    if not is_text and options.add_eos is not None:
        raise ValueError("--add_eos is for --input_file; a corpus has its line ends, or not")
    model = load_model(name, dtype, where, **places)
    if is_text:
        from ..generation.text import check_vocabulary

        tokenizer = _tokenizer(name, **places)
        check_vocabulary(tokenizer, model)
        ids, unknown = encoded(_lines(options.input_file), tokenizer, options.add_eos)
        if len(ids) < 2:
            raise ValueError(f"{options.input_file}: {len(ids)} words; there must be one to predict, and one before it")
        yield measured(model, ids, "evaluate", options), {"unknown": unknown}
        return
    corpus = load_corpus(options.corpus or name, model, name, **places)
    for split in SPLITS[options.split or "test"]:
        yield measured(model, text_of(corpus, split), split, options), {"split": split}


def load_model(name: str, dtype: str, where: str, **places: Any) -> Any:
    """The Transformer-XL language model of that name.

    Raises:
        OSError: There is none, or a file of it can't be read.
        ValueError: It is of another family, or its language model was not trained.
    """
    from ..models import transfo_xl
    from ..models.family import family_of
    from .generate import language_model

    family = transfo_xl.FAMILY
    with suppress(ValueError):  # it doesn't say; then it is taken for one, and its configuration and weights decide
        family = family_of(name, **places)
    if family is not transfo_xl.FAMILY:
        raise ValueError(
            f"{name} is no Transformer-XL but of the family {family.name}; for OpenAI GPT and GPT-2 there is "
            "`pytorch_transformers perplexity`"
        )
    return language_model(family.load("language_model"), name, dtype, where, **places)


def load_corpus(name: str, model: Any, model_name: str, **places: Any) -> "TransfoXLCorpus":
    """A corpus whose ids are those of the model.

    Args:
        name: What `--corpus` says.
        model: The model.
        model_name: Where its vocabulary is, if it has one.
        **places: Arguments of `from_pretrained`.

    Raises:
        OSError: There is no corpus, or it can't be read.
        ValueError: It is a text, or its vocabulary is not that of the model.
    """
    from ..models.transfo_xl.corpus import TransfoXLCorpus, read_corpus
    from ..models.transfo_xl.vocabulary_files import VOCAB_FILES_NAMES

    try:
        tokenizer = _tokenizer(model_name, **places)
    except OSError:
        tokenizer = None  # a model that was converted alone has none, and ids don't need it
    path = Path(name).expanduser()
    if path.suffix == ".txt":
        raise ValueError(f"--corpus {name}: a text; --input_file is for texts")
    if path.is_file():
        # Ids without a vocabulary can only be those of the model.
        alone = path.suffix != ".pkl" and not any((path.parent / each).is_file() for each in VOCAB_FILES_NAMES.values())
        corpus = read_corpus(path, tokenizer if alone else None)
    else:
        corpus = TransfoXLCorpus.from_pretrained(name, **places)
    words = corpus.vocab.idx2sym
    if len(words) != model.vocabulary_size():
        raise ValueError(
            f"--corpus {name}: its vocabulary has {len(words)} words, and the model {model.vocabulary_size()}; they do "
            "not belong together"
        )
    if tokenizer is not None and tokenizer.idx2sym != words:
        pairs = enumerate(zip(words, tokenizer.idx2sym, strict=False))
        differ = next(
            (f"id {number} is {one!r} there and {two!r} here" for number, (one, two) in pairs if one != two), ""
        )
        raise ValueError(
            f"--corpus {name}: its vocabulary is not that of {model_name}: {differ or 'they differ in length'}"
        )
    return corpus


def text_of(corpus: "TransfoXLCorpus", split: str) -> "Tensor":
    """The ids of a split, [n].

    Raises:
        ValueError: There is no such split, or it is no text but sentences without an order.
    """
    from torch import Tensor

    text = getattr(corpus, split)
    if isinstance(text, Tensor):
        return text
    wrong = "the corpus has no such split" if text is None else "sentences without an order; a memory is for a text"
    raise ValueError(f"--split {split}: {wrong}")


def encoded(lines: Iterator[str], tokenizer: "TransfoXLTokenizer", add_eos: bool | None = None) -> tuple["Tensor", int]:
    """The ids of a text, [n], line by line as corpora are made, and how many words the vocabulary lacks.

    A word that is `<unk>` in the text itself, as in WikiText, is not one of these.

    Args:
        lines: The text.
        tokenizer: The vocabulary.
        add_eos: Whether each line ends with `<eos>`; None for whether the vocabulary has it.

    Raises:
        ValueError: The vocabulary has no `<eos>`; or a word is not in it and nothing stands for such words.
    """
    import torch

    from ..models.transfo_xl.tokenizer import END_OF_LINE

    ends = tokenizer.eos_token_id is not None
    if add_eos and not ends:
        raise ValueError(f"--add_eos: the vocabulary has no {END_OF_LINE}")
    ids = array("q")  # eight bytes an id, where a list of Python's takes several times that
    unknown, example = 0, ""
    for line in lines:
        words = tokenizer.tokenize(line, add_eos=ends if add_eos is None else add_eos)
        found = tokenizer.convert_to_tensor(words).tolist()
        ids.extend(found)
        lost = (word for word, number in zip(words, found, strict=True) if number == tokenizer.unk_token_id)
        if missing := [word for word in lost if word != tokenizer.unk_token]:
            unknown += len(missing)
            example = example or missing[0]
    if unknown:
        logger.warning(
            "%d of %d words are not in the vocabulary (such as %r) and count as %s, which is easier to predict: do not "
            "compare the perplexity with that of another vocabulary",
            *(unknown, len(ids), example, tokenizer.unk_token),
        )
    return (torch.frombuffer(ids, dtype=torch.long) if ids else torch.empty(0, dtype=torch.long)), unknown


def measured(model: Any, ids: "Tensor", name: str, options: argparse.Namespace) -> "Perplexity":
    """The perplexity of a text, with a bar that shows how far it is.

    Args:
        model: The model.
        ids: The text, [n].
        name: What the bar is called.
        options: Those of `add_lengths`; `warm_up` if there is such.

    Raises:
        ValueError: See `models.transfo_xl.evaluation.evaluate`.
    """
    from tqdm import tqdm

    from ..models.transfo_xl.evaluation import evaluate

    with tqdm(desc=name, unit=" tokens", total=max(0, len(ids) - 1), disable=None) as bar:

        def show(so_far: "Perplexity") -> None:
            bar.set_postfix(perplexity=f"{so_far.value:.2f}", refresh=False)
            bar.update(so_far.tokens - bar.n)

        return evaluate(
            model,
            ids,
            batch_size=options.batch_size,
            tgt_len=options.tgt_len,
            ext_len=options.ext_len,
            mem_len=options.mem_len,
            clamp_len=options.clamp_len,
            same_length=options.same_length,
            warm_up=getattr(options, "warm_up", None),
            max_eval_steps=options.max_eval_steps,
            progress=show,
        )


def _tokenizer(name: str, **places: Any) -> "TransfoXLTokenizer":
    from ..models.transfo_xl.tokenizer import TransfoXLTokenizer

    return TransfoXLTokenizer.from_pretrained(name, **places)


def _lines(input_file: str) -> Iterator[str]:
    r"""The lines of a file, of which `\n`, `\r\n` and `\r` are the ends, as in the original program.

    Raises:
        OSError: It can't be read.
        ValueError: It is not UTF-8; the message has the number of the line.
    """
    with nullcontext(sys.stdin.buffer) if input_file == "-" else Path(input_file).open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{input_file}, line {number}: not UTF-8 ({error.reason}); convert the file"
                ) from error
            yield from io.StringIO(text, newline=None)


def _report(options: argparse.Namespace, found: "Perplexity", more: dict[str, Any]) -> None:
    """Write a result to standard output; `more` goes into the object of `--json`."""
    loss = found.loss / found.tokens
    if options.json:
        numbers = {"perplexity": found.value, "loss": loss}
        known = {name: value if math.isfinite(value) else None for name, value in numbers.items()}  # as JSON has it
        sys.stdout.write(json.dumps({**known, "tokens": found.tokens, **more}) + "\n")
    else:
        heading = f"{more['split']}: " if options.split == "all" and "split" in more else ""
        sys.stdout.write(f"{heading}perplexity {found.value:.4f}  ({found.tokens} tokens)\n{heading}loss {loss:.4f}\n")
    sys.stdout.flush()


VERB = Verb(
    name="evaluate",
    summary="how well a Transformer-XL model predicts a text or corpus",
    description=_DESCRIPTION,
    example="pytorch_transformers evaluate --model transfo-xl-wt103 --corpus transfo-xl-wt103",
    add_arguments=add_arguments,
    run=run,
)
