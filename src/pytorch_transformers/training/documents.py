"""Documents of a token stream as rows of their own, so that no token is predicted from another document."""

from typing import Any

import numpy as np

from ..data.pretraining import TokenStream


class DocumentRows:
    """Documents, or parts of those that are longer, in the order of the stream.

    A row holds `input_ids` and equal `labels`: the models move them by one themselves. Parts of a document overlap by a
    token, so that each token but the first of its document is predicted once. A document of one token has no row.

    Args:
        stream: The ids.
        length: Most tokens of a row.

    Raises:
        ValueError: The length is below 2, or no document has two tokens.
    """

    def __init__(self, stream: TokenStream, length: int) -> None:
        if length < 2:
            raise ValueError(f"length is {length}; a row needs 2 tokens, one to predict and one to predict it from")
        starts, ends = stream.documents[:-1], stream.documents[1:]
        counts = -(-(ends - starts - 1).clip(min=0) // (length - 1))
        if not counts.any():
            raise ValueError(f"{stream.folder}: no document has two tokens, one to predict and one to predict it from")
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        self._ids = stream
        self._starts = np.repeat(starts, counts) + within * (length - 1)
        self._ends = np.minimum(self._starts + length, np.repeat(ends, counts))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> dict[str, Any]:
        """One row."""
        ids = self._ids.ids[self._starts[number] : self._ends[number]].tolist()
        return {"input_ids": ids, "labels": list(ids)}
