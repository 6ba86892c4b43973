"""Token classification: from words and tags to rows of pieces, and from scores back to a tag for each word."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .columns import OUTSIDE, Sentence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..tokenizers.base import PreTrainedTokenizer
    from .batches import InputRow

IGNORED: Final = -100


@dataclass(frozen=True)
class Window:
    """Where the words of a row are.

    Attributes:
        sentence: Number of the sentence.
        words: Numbers of the words in the sentence.
        places: Place in the row of the first piece of each of these words.
    """

    sentence: int
    words: Sequence[int]
    places: Sequence[int]


def encode_sentences(
    sentences: Sequence[Sentence],
    tokenizer: "PreTrainedTokenizer",
    max_seq_length: int,
    labels: Sequence[str] | None = None,
) -> "tuple[list[InputRow], list[Window]]":
    """Rows of pieces; a sentence that is too long for one is divided between words, so that no word is lost.

    Words become the pieces that `tokenizer(words, is_split_into_words=True)` gives, but each distinct word is asked
    for once. A word that is none, such as a control character, is in no row.

    Args:
        sentences: The sentences.
        tokenizer: Its special tokens stand around each row.
        max_seq_length: Most tokens of a row, special ones included; more pieces of one word are cut.
        labels: See `labels_of`; None leaves the tags out.

    Returns:
        Rows of `input_ids`, `token_type_ids` if models of the family take them, and with `labels` also `labels` [T]:
        at the first piece of a word the class of its tag, elsewhere -100. And where the words of each row are.

    Raises:
        ValueError: `max_seq_length` has no room for a piece; with `labels`, a sentence has no tags or one that is not
            among them.
    """
    room = max_seq_length - tokenizer.num_special_tokens_to_add()
    if room < 1:
        least = tokenizer.num_special_tokens_to_add() + 1
        raise ValueError(f"max_seq_length={max_seq_length} has no room for a word; pass {least} or more")
    first_place = tokenizer.get_special_tokens_mask([0]).index(0)  # how many special tokens are before the words
    distinct = list(dict.fromkeys(word for sentence in sentences for word in sentence.words))
    pieces = {word: ids[:room] for word, ids in zip(distinct, tokenizer._encode_ids(distinct), strict=True)}
    classes = None if labels is None else {label: number for number, label in enumerate(labels)}
    rows: list[InputRow] = []
    windows: list[Window] = []
    for number, sentence in enumerate(sentences):
        known = None if classes is None else _classes(number, sentence, classes)
        for words in _divide([len(pieces[word]) for word in sentence.words], room):
            ids: list[int] = []
            places = []
            for word in words:
                places.append(first_place + len(ids))
                ids += pieces[sentence.words[word]]
            row: dict[str, Any] = {"input_ids": tokenizer.build_inputs_with_special_tokens(ids)}
            if "token_type_ids" in tokenizer.model_input_names:
                row["token_type_ids"] = tokenizer.create_token_type_ids_from_sequences(ids)
            if known is not None:
                row["labels"] = [IGNORED] * len(row["input_ids"])
                for word, place in zip(words, places, strict=True):
                    row["labels"][place] = known[word]
            rows.append(row)
            windows.append(Window(number, words, places))
    return rows, windows


def _classes(number: int, sentence: Sentence, classes: dict[str, int]) -> list[int]:
    if sentence.tags is None:
        raise ValueError(f"sentences[{number}] has no tags; leave out labels, or read the file with its tags")
    for word, tag in zip(sentence.words, sentence.tags, strict=True):
        if tag not in classes:
            raise ValueError(
                f"sentences[{number}]: the tag {tag!r:.60} of {word!r:.60} is none of {', '.join(classes)}; collect "
                "the labels from all files that are used"
            )
    return [classes[tag] for tag in sentence.tags]


def _divide(sizes: Sequence[int], room: int) -> Iterator[list[int]]:
    """Numbers of words, as many together as there is room for; words without a piece are left out."""
    words: list[int] = []
    taken = 0
    for word, size in enumerate(sizes):
        if taken + size > room:
            yield words
            words, taken = [], 0
        if size:
            words.append(word)
            taken += size
    if words:
        yield words


def predicted_tags(
    logits: "Sequence[NDArray[np.float32]]",
    windows: Sequence[Window],
    sentences: Sequence[Sentence],
    labels: Sequence[str],
) -> list[list[str]]:
    """One tag for each word of each sentence; O for a word that is in no row.

    Args:
        logits: Of each row, [T, number of labels].
        windows: What `encode_sentences` gave with the rows.
        sentences: What it was given.
        labels: See `labels_of`.

    Raises:
        ValueError: The logits are not those of the windows and labels.
    """
    if len(logits) != len(windows):
        raise ValueError(f"logits of {len(logits)} rows and {len(windows)} windows; each row has one")
    tags = [[OUTSIDE] * len(sentence.words) for sentence in sentences]
    for scores, window in zip(logits, windows, strict=True):
        if scores.ndim != 2 or scores.shape[1] != len(labels) or len(scores) <= window.places[-1]:
            raise ValueError(
                f"logits of shape {list(scores.shape)}; expected [{window.places[-1] + 1} or more, {len(labels)}]: "
                "a row a token, a column a label"
            )
        best = scores[list(window.places)].argmax(axis=-1).tolist()
        for word, label in zip(window.words, best, strict=True):
            tags[window.sentence][word] = labels[label]
    return tags
