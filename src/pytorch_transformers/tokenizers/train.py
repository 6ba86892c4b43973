"""Training vocabularies: word pieces as of BERT, and byte-level byte pair encoding as of GPT-2.

The `tokenizers` library counts and merges. The result depends on the text and the options alone: not on the order of
files, threads or runs. For word pieces the library does not see to that, see `_inside_letters`.

Sources: the file formats of google-research/bert (vocab.txt) and openai/gpt-2 (encoder.json, vocab.bpe).
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from .bpe import Merges
from .text_files import LONGEST_LINE, Files, find_text_files, read_lines
from .wordpiece import CONTINUATION

#: The first tokens of a vocabulary of word pieces, in order of their ids.
WORDPIECE_SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: The last token of a byte-level vocabulary, which divides documents.
END_OF_TEXT: Final = "<|endoftext|>"
#: By default at most this part of a vocabulary of word pieces are single letters, ideographs and signs.
_ALPHABET_SHARE: Final = 4


def train_wordpiece(
    files: Files,
    vocab_size: int = 30522,
    *,
    do_lower_case: bool = True,
    min_frequency: int = 2,
    limit_alphabet: int | None = None,
) -> list[str]:
    """Learns word pieces from text files.

    Args:
        files: see `find_text_files`; UTF-8.
        vocab_size: most tokens, the special ones included. There are fewer where the text has no more pieces.
        do_lower_case: whether to lower-case and to drop accents first; the tokenizer must do the same.
        min_frequency: how often two pieces must stand together to become one.
        limit_alphabet: most different characters that get tokens, the most frequent ones (of equally frequent ones
            those with the lower code points); None for a quarter of `vocab_size`.

    Returns:
        The tokens in order of their ids: special ones, characters that begin words, characters inside words with `##`
        before them, and longer pieces in the order they were learned. `save_tokens` writes them as vocab.txt, and
        `BertTokenizer(tokens, do_lower_case=...)` reads them as they are.

    Raises:
        OSError: a file is not there or cannot be read.
        ValueError: a file is no UTF-8 text, there is no text in the files, or the options do not fit each other.
    """
    from tokenizers import normalizers, pre_tokenizers

    limit = vocab_size // _ALPHABET_SHARE if limit_alphabet is None else limit_alphabet
    _check(vocab_size=vocab_size, min_frequency=min_frequency, limit_alphabet=limit)
    corpus = Corpus(files)
    normalizer = normalizers.BertNormalizer(lowercase=do_lower_case)
    pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def learned(special: list[str], size: int, alphabet: list[str] | None = None) -> list[str]:
        chosen: dict[str, Any] = {} if alphabet is None else {"initial_alphabet": alphabet, "limit_alphabet": limit}
        return _learned(
            corpus,
            normalizer,
            pre_tokenizer,
            vocab_size=size,
            min_frequency=min_frequency,
            special_tokens=special,
            continuing_subword_prefix=CONTINUATION,
            **chosen,
        )

    found = learned([], 0)
    if not found:
        raise corpus.empty()
    alphabet = None
    if sum(len(token) == 1 for token in found) > limit:
        counts: Counter[str] = Counter()
        for line in corpus:
            counts.update(normalizer.normalize_str(line))
        # Spaces are no characters of words: only what the library found can be a token.
        known = [token for token in found if len(token) == 1]
        alphabet = sorted(known, key=lambda letter: (-counts[letter], letter))[:limit]
        found = learned([], 0, alphabet)
    inside = _inside_letters(found)
    single = sorted(set(found) - set(inside))
    smallest = len(WORDPIECE_SPECIAL) + len(single) + len(inside)
    if vocab_size < smallest:
        raise ValueError(
            f"vocab_size is {vocab_size}, and the special tokens and the characters of the text need {smallest}; "
            f"give a larger vocab_size or a limit_alphabet below {len(single)}"
        )
    tokens = learned([*WORDPIECE_SPECIAL, *inside], vocab_size, alphabet)
    first = [*WORDPIECE_SPECIAL, *single, *inside]
    rest = set(first)
    return first + [token for token in tokens if token not in rest]


def _inside_letters(found: list[str]) -> list[str]:
    """The tokens for characters inside words, sorted.

    The library gives them ids in the order in which its hash table of words has them, which is another one in each
    run, and breaks ties between pairs by ids: so the vocabularies differ. As special tokens of the training they have
    their ids before any word is looked at.
    """
    return sorted(token for token in found if len(token) > 1)


def train_byte_bpe(
    files: Files, vocab_size: int = 50257, *, min_frequency: int = 2, end_token: str | None = END_OF_TEXT
) -> tuple[list[str], Merges]:
    """Learns byte-level byte pair encoding from text files.

    Args:
        files: see `find_text_files`; UTF-8.
        vocab_size: most tokens, the 256 bytes and the end token included. There are fewer where the text has no more.
        min_frequency: how often two symbols must stand together to become one.
        end_token: the last token of the vocabulary, which no merge makes; None for a vocabulary without one.

    Returns:
        The tokens in order of their ids (bytes, merges as they were learned, the end token) and the merges. `save_bpe`
        writes them as vocab.json and merges.txt.

    Raises:
        OSError: a file is not there or cannot be read.
        ValueError: a file is no UTF-8 text, there is no text in the files, or `vocab_size` is below 256 and the end.
    """
    from tokenizers import pre_tokenizers

    ends = [] if end_token is None else [end_token]
    if vocab_size < 256 + len(ends):
        raise ValueError(f"vocab_size is {vocab_size}; the 256 bytes and the end token need {256 + len(ends)}")
    _check(vocab_size=vocab_size, min_frequency=min_frequency)
    corpus = Corpus(files, ends="\n")
    model: list[Any] = []
    tokens = _learned(
        corpus,
        None,
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        vocab_size=vocab_size - len(ends),
        min_frequency=min_frequency,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        keep=model,
    )
    if not corpus.characters:
        raise corpus.empty()
    return tokens + ends, Merges(_merges(model[0]))


def _merges(model: Any) -> list[tuple[str, str]]:
    """The merges of the library's model in order; it gives them in its JSON alone."""
    import json

    state = json.loads(model.__getstate__())
    return [(left, right) for left, right in (_two(merge) for merge in state["merges"])]


def _two(merge: Any) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _learned(
    corpus: "Corpus", normalizer: Any, pre_tokenizer: Any, *, keep: list[Any] | None = None, **options: Any
) -> list[str]:
    """The tokens that the library learns, in order of their ids; its model is added to `keep`."""
    from tokenizers import Tokenizer, models, trainers

    tokenizer = Tokenizer(models.BPE())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(iter(corpus), trainers.BpeTrainer(show_progress=False, **options))
    if keep is not None:
        keep.append(tokenizer.model)
    vocab = tokenizer.get_vocab(with_added_tokens=True)
    return sorted(vocab, key=vocab.__getitem__)


def _check(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} is {value}; it should be at least 1")


class Corpus:
    """The lines of text files, read anew each time.

    Args:
        files: see `find_text_files`.
        ends: what to put behind each line.
    """

    def __init__(self, files: Files, ends: str = "") -> None:
        self.paths: list[Path] = find_text_files(files)
        self._ends = ends
        #: Characters other than white space of the last reading.
        self.characters = 0

    def __iter__(self) -> Iterator[str]:
        self.characters = 0
        for path in self.paths:
            for line in read_lines(path, LONGEST_LINE):
                self.characters += len(line.strip())
                yield line + self._ends

    def empty(self) -> ValueError:
        """The error for files with nothing in them."""
        return ValueError(
            f"there is no text in {', '.join(map(str, self.paths[:5]))}; a vocabulary is learned from text"
        )
