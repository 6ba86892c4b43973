"""Count the words of texts for a Transformer-XL: lower case, signs apart, those that come three times or more.

Usage: python assets/count_words.py OUT TEXT...
"""

import sys

from pytorch_transformers import TransfoXLTokenizer

LEAST = 3


def main(out: str, *texts: str) -> None:
    """Write the vocabulary to OUT."""
    tokenizer = TransfoXLTokenizer(lower_case=True, min_freq=LEAST, special=["<eos>", "<unk>"], punctuation=True)
    for text in texts:
        tokenizer.count_words(text, add_eos=True)
    tokenizer.build_vocab()
    tokenizer.save_pretrained(out)
    print(f"{out}: {len(tokenizer)} words")


if __name__ == "__main__":
    main(*sys.argv[1:])
