"""The options of making masked training data, with the defaults of the original program."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

#: What becomes of a corpus of one document, whose random next sentences would have to come from itself.
SingleDocument: TypeAlias = Literal["refuse", "distant"]
#: Tokens of [CLS] a [SEP] b [SEP] that are not text.
PAIR_MARKS: Final = 3
#: The same for [CLS] a [SEP].
SINGLE_MARKS: Final = 2


@dataclass(frozen=True)
class InstanceOptions:
    """How instances are made; an instance is one input with what is to be guessed in it.

    Attributes:
        max_seq_length: Most tokens, special ones included.
        max_predictions_per_seq: Most masked tokens.
        masked_lm_prob: Part of the tokens that is masked, of all tokens with the special ones.
        do_whole_word_mask: Whether words are masked whole, that is, with all their pieces.
        short_seq_prob: Part of the inputs that are made shorter, so that the model meets short ones too.
        dupe_factor: How often the corpus is gone through, with other draws each time.
        random_seed: Decides all draws.
        next_sentence: Whether inputs are pairs, half of them with a second text from another document; otherwise each
            is one stretch of a document. Not in the original program.
        single_document: For a corpus of one document: stop, or take the second text from a distant part of it. Not in
            the original program.

    Raises:
        ValueError: A value is out of its range.
    """

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    masked_lm_prob: float = 0.15
    do_whole_word_mask: bool = False
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    random_seed: int = 12345
    next_sentence: bool = True
    single_document: SingleDocument = "refuse"

    def __post_init__(self) -> None:
        least = PAIR_MARKS + 2
        # Places of tokens are stored in two bytes.
        for name, low, high in (
            ("max_seq_length", least, (1 << 16) - 1),
            ("max_predictions_per_seq", 1, self.max_seq_length),
            ("dupe_factor", 1, 1 << 31),
            ("random_seed", 0, (1 << 63) - 1),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} is {value}; it should be from {low} to {high}")
        for name in ("masked_lm_prob", "short_seq_prob"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it should be from 0 to 1")
        if self.single_document not in ("refuse", "distant"):
            raise ValueError(f"single_document is {self.single_document!r}; it should be refuse or distant")

    @property
    def most_tokens(self) -> int:
        """Most tokens of text in an input."""
        return self.max_seq_length - (PAIR_MARKS if self.next_sentence else SINGLE_MARKS)


def one_document(name: str) -> ValueError:
    """The error for a corpus from which no random next sentence can be taken.

    Args:
        name: What to call the corpus.
    """
    return ValueError(
        f"{name} holds one document, and a random next sentence must come from another one. Divide it into documents "
        "with blank lines, name more files, read paragraphs as documents (--layout paragraphs), or choose "
        "--single_document distant (second texts from a distant part) or --no_next_sentence (masked words alone)."
    )
