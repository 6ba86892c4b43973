"""`pytorch_transformers create-pretraining-data`: training data for BERT from text; so does the example script."""

import argparse
import sys
from pathlib import Path
from typing import Any

from .common import Switch, Verb, add_place, place, positive

_DESCRIPTION = """\
Make training data for masked words and next sentences from text files.

The text has one sentence a line and blank lines between documents, unless --layout says otherwise:

  sentences   as said
  lines       a file is a document, a line a sentence
  paragraphs  running text: a paragraph is a document, sentences end at full stops
  files       running text: a file is a document, sentences end at full stops

--output_file chooses the format. A name that ends in .tfrecord (several are divided by commas and take turns) makes
records of tf.train.Example as the original program does; any other is a folder of memory-mapped shards and an index.

  --mode original   the algorithm and draws of the original program, bit for bit; all text is in memory, one process
  --mode streaming  the same rules with draws of its own for each block of text: bounded memory, several processes,
                    the same files for any number of them; a run that was stopped goes on when it is given again

By default records are made in the original mode and folders in the streaming mode."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument(
        "--input_file", required=True, metavar="FILES", help="text, UTF-8: paths and patterns divided by commas"
    )
    parser.add_argument("--output_file", required=True, metavar="FILES", help="see above")
    vocabulary = parser.add_mutually_exclusive_group(required=True)
    vocabulary.add_argument("--vocab_file", metavar="FILE", help="vocab.txt of the model")
    vocabulary.add_argument("--tokenizer", metavar="NAME", help="name, repository or folder of a tokenizer of BERT")
    parser.add_argument(
        "--do_lower_case",
        action=Switch,
        default=None,
        help="lower-case the text, or don't (default: yes with --vocab_file, as saved with --tokenizer)",
    )
    parser.add_argument("--do_whole_word_mask", action=Switch, default=False, help="mask whole words (default: no)")
    parser.add_argument(
        "--max_seq_length", type=positive, default=128, metavar="N", help="most tokens of an input (%(default)s)"
    )
    parser.add_argument(
        "--max_predictions_per_seq", type=positive, default=20, metavar="N", help="most masked tokens (%(default)s)"
    )
    parser.add_argument(
        "--masked_lm_prob",
        type=float,
        default=0.15,
        metavar="P",
        help="part of the tokens that is masked (%(default)s)",
    )
    parser.add_argument(
        "--short_seq_prob", type=float, default=0.1, metavar="P", help="part of shorter inputs (%(default)s)"
    )
    parser.add_argument(
        "--dupe_factor", type=positive, default=10, metavar="N", help="times the text is gone through (%(default)s)"
    )
    parser.add_argument("--random_seed", type=int, default=12345, metavar="N", help="decides all draws (%(default)s)")
    parser.add_argument("--mode", choices=("original", "streaming"), help="see above")
    parser.add_argument(
        "--layout",
        default="sentences",
        choices=("sentences", "lines", "paragraphs", "files"),
        help="see above (%(default)s)",
    )
    parser.add_argument(
        "--next_sentence",
        action=Switch,
        default=True,
        help="inputs of two texts, half of them from two documents; without, one text and masks alone (default: yes)",
    )
    parser.add_argument(
        "--single_document",
        default="refuse",
        choices=("refuse", "distant"),
        help="text of one document: stop, or take random next sentences from a distant part of it (%(default)s)",
    )
    parser.add_argument(
        "--dynamic_masking",
        action=Switch,
        default=False,
        help="leave masking to training, which masks anew in each epoch; give --dupe_factor 1 then (default: no)",
    )
    parser.add_argument(
        "--processes", type=positive, default=1, metavar="N", help="of the streaming mode (%(default)s)"
    )
    parser.add_argument(
        "--block_size",
        type=positive,
        default=1 << 20,
        metavar="N",
        help="characters of a block in the streaming mode; decides memory and the draws (%(default)s)",
    )
    parser.add_argument(
        "--overwrite", action=Switch, default=False, help="replace other data in the folder (default: no)"
    )
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Make the data."""
    from ..data.pretraining.create import create_pretraining_data, create_tfrecords
    from ..data.pretraining.options import InstanceOptions

    wanted = InstanceOptions(**{name: getattr(options, name) for name in InstanceOptions.__dataclass_fields__})
    outputs = [part.strip() for part in options.output_file.split(",") if part.strip()]
    records = [name for name in outputs if Path(name).suffix == ".tfrecord"]
    if not outputs or (records and len(records) != len(outputs)) or (not records and len(outputs) > 1):
        raise ValueError(f"--output_file {options.output_file}: name one folder, or files that all end in .tfrecord")
    common: dict[str, Any] = {
        "layout": options.layout,
        "processes": options.processes,
        "block_size": options.block_size,
        "mode": options.mode or ("original" if records else "streaming"),
    }
    tokenizer = _tokenizer(options)
    if records:
        if options.dynamic_masking:
            raise ValueError("--dynamic_masking needs a folder as --output_file: records hold masked inputs")
        count = create_tfrecords(options.input_file, tokenizer, records, wanted, **common)
        sys.stderr.write(f"{', '.join(records)}: {count} instances\n")
        return 0
    index = create_pretraining_data(
        options.input_file,
        tokenizer,
        outputs[0],
        wanted,
        dynamic_masking=options.dynamic_masking,
        overwrite=options.overwrite,
        **common,
    )
    shards = len(index.shards)
    sys.stderr.write(f"{outputs[0]}: {index.instances} instances of {index.documents} documents in {shards} shards\n")
    return 0


def _tokenizer(options: argparse.Namespace) -> Any:
    from ..models.bert.tokenizer import BertTokenizer

    settings = {} if options.do_lower_case is None else {"do_lower_case": options.do_lower_case}
    if options.vocab_file is not None:  # as the original program: words of up to 200 characters are tried
        return BertTokenizer(options.vocab_file, max_input_chars_per_word=200, **settings)
    return BertTokenizer.from_pretrained(options.tokenizer, **settings, **place(options))


VERB = Verb(
    name="create-pretraining-data",
    summary="training data for BERT from text",
    description=_DESCRIPTION,
    example="pytorch_transformers create-pretraining-data --input_file 'texts/*.txt' --vocab_file vocab.txt \\\n"
    "    --output_file data --processes 2",
    add_arguments=add_arguments,
    run=run,
)
