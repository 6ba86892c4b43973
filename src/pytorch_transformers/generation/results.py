"""What generation returns: tokens as they come, and all of them at the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

#: Why a row ended: a stop token came, a stop string came, it has the length asked for, every token was banned, or the
#: caller did not want more.
FinishReason = Literal["stop_token", "stop_string", "length", "banned", "cancelled"]


class NewToken(NamedTuple):
    """One token of a continuation.

    Attributes:
        row: Which continuation it belongs to: number of the prompt times `num_samples`, plus number of the sample.
        token: Its id.
        finished: Why it is the last of its row; None when it is not.
        scores: [V] in float32, the changed scores it was chosen by, on request.
    """

    row: int
    token: int
    finished: FinishReason | None = None
    scores: Tensor | None = None


@dataclass(frozen=True)
class GenerationOutput:
    """All continuations; row by row as `NewToken.row` numbers them.

    Attributes:
        prompts: Ids of the prompt of each row, without padding.
        new_tokens: Ids that follow it; the stop token is the last of them where one came.
        finish_reasons: Why each row ended.
        scores: [new tokens, V] of each row, the changed scores each token was chosen by, on request.
        pad_token_id: See `sequences`.
    """

    prompts: Sequence[list[int]]
    new_tokens: Sequence[list[int]]
    finish_reasons: Sequence[FinishReason]
    scores: Sequence[Tensor] | None = None
    pad_token_id: int | None = None

    @property
    def rows(self) -> list[list[int]]:
        """Prompt and continuation of each row."""
        return [[*prompt, *new] for prompt, new in zip(self.prompts, self.new_tokens, strict=True)]

    @property
    def sequences(self) -> Tensor:
        """Prompts and continuations as one tensor [rows, T] on the CPU; shorter rows are padded behind.

        Raises:
            ValueError: Rows differ in length, and it is not known with what to pad.
        """
        rows = self.rows
        longest = max(map(len, rows))
        if self.pad_token_id is None and any(len(row) < longest for row in rows):
            raise ValueError(
                "the rows are of different length and there is no pad token: pass pad_token_id, or take the lists in "
                "`rows` or `new_tokens`"
            )
        fill = self.pad_token_id or 0
        return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
