"""What a tokenizer returns: a dictionary that a model takes as it is, and that can be asked where tokens came from."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple


class Origins(NamedTuple):
    """Where the tokens of each row came from, special tokens and padding included.

    Fields, each a list of rows: `tokens`; `words`, the number of the word; `sequences`, 0 for the first text and 1
    for the second; the last two are None for tokens that are not of the text.
    """

    tokens: list[list[str]]
    words: list[list[int | None]]
    sequences: list[list[int | None]]


class BatchEncoding(dict[str, Any]):
    """The fields for a model by name, so that `model(**encoding)` works; `encoding.input_ids` does too.

    Without tensors a single text has flat lists and a batch a list of rows; with tensors the shape is
    `[batch, length]`.

    `tokens`, `word_ids` and `sequence_ids` answer for the tokenizer as it was when it was called. The answer is worked
    out at the first question, so a pickled encoding has it only if somebody asked before; it raises an error otherwise.

    Args:
        data: the fields.
        origins: where the tokens came from; a function is called when somebody asks for the first time.
    """

    def __init__(
        self, data: dict[str, Any] | None = None, origins: Origins | Callable[[], Origins] | None = None
    ) -> None:
        super().__init__(data or {})
        self._origins = origins

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the encoding has no field {name!r}; it has {', '.join(self)}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        # A function that still has to be called holds the tokenizer and its vocabulary; it does not travel.
        return type(self), (dict(self), None if callable(self._origins) else self._origins)

    def __copy__(self) -> "BatchEncoding":
        return type(self)(dict(self), self._origins)

    def __deepcopy__(self, memo: dict[int, Any]) -> "BatchEncoding":
        return self.copy()

    def copy(self) -> "BatchEncoding":
        """Copies the encoding with its tensors, arrays and lists: changing the copy leaves this one as it is."""
        return type(self)({name: _copy(value) for name, value in self.items()}, self._origins)

    def to(self, device: Any, *, non_blocking: bool = False) -> "BatchEncoding":
        """Moves the tensors to a device; arrays and lists stay as they are.

        Args:
            device: anything that `torch.Tensor.to` takes for a device.
            non_blocking: as in `torch.Tensor.to`.

        Returns:
            This encoding.
        """
        import torch

        for name, value in self.items():
            if isinstance(value, torch.Tensor):
                self[name] = value.to(device, non_blocking=non_blocking)
        return self

    @property
    def offsets(self) -> Any:
        """The spans of the tokens in the text, in code points; None for special tokens.

        Raises:
            ValueError: they were not asked for with `return_offsets_mapping=True`.
        """
        if "offset_mapping" not in self:
            raise ValueError("the encoding has no offsets; call the tokenizer with return_offsets_mapping=True")
        return self["offset_mapping"]

    def tokens(self, index: int = 0) -> list[str]:
        """Gives the tokens of a row as text.

        Args:
            index: number of the row.

        Raises:
            ValueError: the encoding did not come from a tokenizer, or was pickled before the first question.
        """
        return list(self._ask().tokens[index])

    def word_ids(self, index: int = 0) -> list[int | None]:
        """Gives for each token of a row the number of its word in its text, None for special tokens and padding.

        With `is_split_into_words=True` it is the place in the list of words; otherwise words are what lies between
        white space, punctuation being apart.

        Args:
            index: number of the row.

        Raises:
            ValueError: as for `tokens`.
        """
        return list(self._ask().words[index])

    def sequence_ids(self, index: int = 0) -> list[int | None]:
        """Gives for each token of a row 0 or 1, the text of the pair it is from; None for special tokens and padding.

        Args:
            index: number of the row.

        Raises:
            ValueError: as for `tokens`.
        """
        return list(self._ask().sequences[index])

    def _ask(self) -> Origins:
        if self._origins is None:
            raise ValueError(
                "this encoding does not know where its tokens came from: ask before pickling it, or make it with "
                "return_offsets_mapping=True or is_split_into_words=True"
            )
        if callable(self._origins):
            self._origins = self._origins()
        return self._origins


def _copy(value: Any) -> Any:
    if hasattr(value, "detach"):
        return value.detach().clone()
    return copy.deepcopy(value)
