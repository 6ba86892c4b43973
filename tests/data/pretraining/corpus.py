"""A small corpus of known documents: the words of one are not in another, so that each token tells where it is from."""

import random
from pathlib import Path

from pytorch_transformers import BertTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
#: Words of a document, and the pieces that go on each of them.
WORDS, PIECES = 12, 3


def document_words(number: int) -> list[str]:
    """The words of a document: letters that name the document, then the word."""
    name = chr(ord("a") + number % 26) + chr(ord("a") + number // 26)
    return [f"{name}{chr(ord('a') + word)}" for word in range(WORDS)]


def make_tokenizer(documents: int) -> BertTokenizer:
    """A tokenizer that knows the words of so many documents, and the pieces ##x0, ##x1, ##x2 that may follow each."""
    words = [word for number in range(documents) for word in document_words(number)]
    return BertTokenizer([*SPECIAL, *words, *(f"##x{piece}" for piece in range(PIECES))])


def make_documents(documents: int, sentences: int, seed: int = 0, longest: int = 12) -> list[list[str]]:
    """Documents of sentences of 1 to `longest` words, every third of which has pieces."""
    draw = random.Random(seed)
    made = []
    for number in range(documents):
        words = document_words(number)
        made.append(
            [
                " ".join(
                    draw.choice(words) + "".join(f"x{draw.randrange(PIECES)}" for _ in range(draw.choice((0, 0, 1, 3))))
                    for _ in range(draw.randint(1, longest))
                )
                for _ in range(sentences)
            ]
        )
    return made


def write_documents(path: Path, documents: list[list[str]]) -> Path:
    """One sentence a line, blank lines between documents."""
    path.write_text("\n\n".join("\n".join(sentences) for sentences in documents) + "\n", encoding="utf-8")
    return path


def document_of(token: str) -> str | None:
    """The name of the document that a token is from; None for pieces and special tokens."""
    return None if token in SPECIAL or token.startswith("##") else token[:2]
