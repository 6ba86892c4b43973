"""What making training data needs to know of a tokenizer of BERT."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...tokenizers.wordpiece import CONTINUATION

if TYPE_CHECKING:
    from ...models.bert.tokenizer import BertTokenizer


@dataclass(frozen=True)
class Vocabulary:
    """The special ids of a vocabulary of word pieces, and which of its tokens go on a word.

    Attributes:
        size: Tokens, V. Replacement ids are drawn from 0 to V - 1.
        cls_id: Begins an input.
        sep_id: Ends each text.
        mask_id: Stands at tokens to be guessed.
        pad_id: Fills short inputs.
        continues: bool [V], whether the token goes on the word before it (`##`).
        words: Ids to draw replacements from in the order of the original program, which draws a place in this list.
        sha256: Of the tokens, one a line.
    """

    size: int
    cls_id: int
    sep_id: int
    mask_id: int
    pad_id: int
    continues: npt.NDArray[np.bool_]
    words: tuple[int, ...]
    sha256: str

    @classmethod
    def of(cls, tokenizer: "BertTokenizer") -> "Vocabulary":
        """Look at a tokenizer.

        Raises:
            TypeError: It has no vocabulary of word pieces.
            ValueError: It has tokens beyond its vocabulary, or lacks a special one.
        """
        vocab: Mapping[str, int] | None = getattr(tokenizer, "vocab", None)
        if vocab is None:
            raise TypeError(
                f"{type(tokenizer).__name__} has no word pieces; masked training data are made with a BertTokenizer"
            )
        ids: dict[str, int] = {}
        for role in ("cls", "sep", "mask", "pad"):
            number = getattr(tokenizer, f"{role}_token_id")
            if number is None:
                raise ValueError(f"the tokenizer has no {role}_token, which training data need")
            ids[f"{role}_id"] = number
        # One more than the largest id; a vocabulary that lists a token twice has a hole where it was first.
        size = len(tokenizer)
        tokens = [tokenizer.convert_ids_to_tokens(number) for number in range(size)]
        continues = np.array([str(token).startswith(CONTINUATION) for token in tokens])
        digest = hashlib.sha256("".join(f"{token}\n" for token in tokens).encode("utf-8", "surrogatepass"))
        return cls(size, **ids, continues=continues, words=tuple(vocab.values()), sha256=digest.hexdigest())

    @property
    def id_type(self) -> "np.dtype[Any]":
        """The smallest type that holds all ids: uint16 or int32."""
        return np.dtype(np.uint16 if self.size <= 1 << 16 else np.int32)

    def described(self) -> dict[str, Any]:
        """What reading the data needs, as plain values."""
        return {
            "size": self.size,
            "sha256": self.sha256,
            "cls_id": self.cls_id,
            "sep_id": self.sep_id,
            "mask_id": self.mask_id,
            "pad_id": self.pad_id,
            "continues": np.flatnonzero(self.continues).tolist(),
        }

    @classmethod
    def from_description(cls, value: Mapping[str, Any]) -> "Vocabulary":
        """The same from what `described` gave."""
        continues = np.zeros(value["size"], bool)
        continues[value["continues"]] = True
        ids = {name: value[name] for name in ("cls_id", "sep_id", "mask_id", "pad_id")}
        words = tuple(range(value["size"]))
        return cls(value["size"], **ids, continues=continues, words=words, sha256=value["sha256"])
