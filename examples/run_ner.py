r"""Named entities, or other parts of sentences, as tags of words in columns: CoNLL-2003, WNUT-17 and your own files.

    python examples/run_ner.py --data_dir wnut17 --bert_model bert-base-cased --do_train --do_eval \
        --max_seq_length 128 --train_batch_size 32 --learning_rate 5e-5 --num_train_epochs 3 --output_dir wnut17_model
    python examples/run_ner.py --test_file text.txt --bert_model wnut17_model --do_predict --output_dir wnut17_model

A word has the tag of its first piece. The labels are the tags of the files, and no list of them is needed; sentences
that are longer than `--max_seq_length` are divided, and no word is lost. Entities are scored as a whole, by seqeval.
`pytorch_transformers train tokens` is the same.
"""

import sys
from collections.abc import Sequence

from pytorch_transformers.cli.train.arguments import run_script
from pytorch_transformers.cli.train.tokens import COMMAND


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    return run_script(COMMAND, "run_ner.py", argv)


if __name__ == "__main__":
    sys.exit(main())
