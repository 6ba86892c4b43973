"""Vectors of texts from a BERT encoder, fast: the job of google-research/bert's extract_features.py.

The texts of a window are tokenised in a second thread while the model computes, sorted by length, and run in batches of
about as many tokens each, without padding; the results come back in the order of the texts.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import torch
import torch.nn.functional as F
from torch import Tensor

from ..models.bert.model import BertModel, Inputs
from .pooling import POOLINGS, Pooling, flat_tokens, pool_tokens

if TYPE_CHECKING:
    from ..models.bert.tokenizer import BertTokenizer

Text = str | tuple[str, str]

#: Tokens of a batch: enough to fill the matrix units, few enough that the activations of a layer stay in the cache.
TOKENS_PER_BATCH: Final = 2048
#: Texts that are sorted together; more makes the batches more even, and results appear later.
WINDOW: Final = 4096


@dataclass(frozen=True)
class Features:
    """The vectors of one text.

    Attributes:
        ids: The tokens that the model saw, or those of them that `vectors` has rows for.
        vectors: float32 on the CPU: [layers, H], or [tokens, layers, H] with pooling "none".
        truncated: Whether the text was longer than the model takes, and cut.
    """

    ids: list[int]
    vectors: Tensor
    truncated: bool


@dataclass(frozen=True)
class _Row:
    """One text as ids: its tokens, segments (None: one text), which tokens count, and whether it was cut."""

    ids: list[int]
    types: list[int] | None
    counted: list[bool] | None
    truncated: bool


class FeatureExtractor:
    """An encoder and its tokenizer, ready to turn texts into vectors.

    Args:
        model: The encoder. It is put in evaluation mode, and on a CPU its weights are packed (`fuse_for_inference`).
        tokenizer: The tokenizer that belongs to it.
        max_length: Longest input in tokens, special ones included; longer texts are cut. By default what the model has
            positions for.
        tokens_per_batch: Tokens of a batch.
        batch_size: Most texts of a batch; unlimited by default.
        window: Texts that are sorted together.

    Raises:
        ValueError: A number is too small, or `max_length` is more than the model has positions for.
    """

    def __init__(
        self,
        model: BertModel,
        tokenizer: "BertTokenizer",
        *,
        max_length: int | None = None,
        tokens_per_batch: int = TOKENS_PER_BATCH,
        batch_size: int | None = None,
        window: int = WINDOW,
    ) -> None:
        positions = model.config.max_position_embeddings
        if max_length is not None and not 3 <= max_length <= positions:
            raise ValueError(f"max_length: {max_length}, must be from 3 to {positions}, the positions of the model")
        for name, value in (("tokens_per_batch", tokens_per_batch), ("batch_size", batch_size), ("window", window)):
            if value is not None and value < 1:
                raise ValueError(f"{name}: {value}, must be at least 1")
        self.model = model.eval()
        if model.device.type == "cpu":
            model.fuse_for_inference()
        self.tokenizer = tokenizer
        self.max_length = max_length or min(positions, tokenizer.model_max_length)
        self.tokens_per_batch = tokens_per_batch
        self.batch_size = batch_size
        self.window = window

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | PathLike[str],
        *,
        cache_dir: str | PathLike[str] | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        dtype: torch.dtype | str | None = None,
        device: torch.device | str | None = None,
        do_lower_case: bool | None = None,
        **options: Any,
    ) -> "FeatureExtractor":
        """Load encoder and tokenizer from one place; see `BertModel.from_pretrained` for the arguments.

        Args:
            do_lower_case: Whether to lower-case; by default as saved with the tokenizer.
            **options: Arguments of the constructor.
        """
        from ..models.bert.tokenizer import BertTokenizer

        place: dict[str, Any] = {
            "cache_dir": cache_dir,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        casing: dict[str, Any] = {} if do_lower_case is None else {"do_lower_case": do_lower_case}
        tokenizer = BertTokenizer.from_pretrained(name_or_path, **place, **casing)
        model = BertModel.from_pretrained(name_or_path, dtype=dtype, device=device, **place)
        return cls(model, tokenizer, **options)

    @overload
    def encode(
        self,
        texts: Sequence[Text],
        *,
        pooling: Literal["cls", "mean", "max"] = "mean",
        layers: Sequence[int] = (-1,),
        normalize: bool = False,
        special_tokens: bool = True,
    ) -> Tensor: ...

    @overload
    def encode(
        self,
        texts: Sequence[Text],
        *,
        pooling: Literal["none"],
        layers: Sequence[int] = (-1,),
        normalize: bool = False,
        special_tokens: bool = True,
    ) -> list[Tensor]: ...

    def encode(
        self,
        texts: Sequence[Text],
        *,
        pooling: Pooling = "mean",
        layers: Sequence[int] = (-1,),
        normalize: bool = False,
        special_tokens: bool = True,
    ) -> Tensor | list[Tensor]:
        """Turn texts, or pairs of texts, into vectors; see `stream` for the arguments.

        Returns:
            float32 in the order of the texts: [texts, H], or [texts, layers, H] for more than one layer. With pooling
            "none" a list with one [tokens, H] or [tokens, layers, H] for each text.
        """
        if isinstance(texts, str):
            raise TypeError("texts: expected a list of texts, found one text; put it in a list")
        found = self.stream(texts, pooling=pooling, layers=layers, normalize=normalize, special_tokens=special_tokens)
        vectors = [features.vectors if len(layers) > 1 else features.vectors.squeeze(-2) for features in found]
        if pooling == "none":
            return vectors
        size = self.model.config.hidden_size
        empty = torch.zeros(0, size) if len(layers) == 1 else torch.zeros(0, len(layers), size)
        return torch.stack(vectors) if vectors else empty

    def stream(
        self,
        texts: Iterable[Text],
        *,
        pooling: Pooling = "mean",
        layers: Sequence[int] = (-1,),
        normalize: bool = False,
        special_tokens: bool = True,
    ) -> Iterator[Features]:
        """Turn texts into vectors one window at a time, in order, with memory for two windows.

        Args:
            texts: Texts, or pairs of texts.
            pooling: "cls" takes the first token, "mean" and "max" all of them, "none" keeps every token.
            layers: Which layers, counted from 0 or, from the last backwards, from -1; as the original counts.
            normalize: Whether to scale each vector to length 1.
            special_tokens: Whether [CLS] and [SEP] count in "mean" and "max", and have rows in "none".

        Raises:
            ValueError: An option has no such value.
            TypeError: A text is none; the message says where.
        """
        depths = self._depths(layers)
        if pooling not in POOLINGS:
            raise ValueError(f"pooling: {pooling!r}, use one of {', '.join(POOLINGS)}")
        return self._stream(texts, pooling, depths, normalize, special_tokens)

    def _depths(self, layers: Sequence[int]) -> list[int]:
        """How many layers lie below each of those asked for, itself included."""
        L = self.model.config.num_hidden_layers
        for layer in layers:
            if not -L <= layer < L:
                raise ValueError(f"layers: {layer}, must be from {-L} to {L - 1}: the model has {L} layers")
        if not layers:
            raise ValueError("layers: name at least one")
        return [layer % L + 1 for layer in layers]

    def _stream(
        self, texts: Iterable[Text], pooling: Pooling, depths: list[int], normalize: bool, special_tokens: bool
    ) -> Iterator[Features]:
        remaining = iter(texts)
        marks = not special_tokens
        with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as pool:
            # The caller's iterator is read in the caller's thread; only the tokenizer runs beside the model.
            window = list(islice(remaining, self.window))
            pending = pool.submit(self._tokenize, window, marks)
            while window:
                rows = pending.result()
                window = list(islice(remaining, self.window))
                if window:
                    pending = pool.submit(self._tokenize, window, marks)
                yield from self._window(rows, pooling, depths, normalize)

    def _tokenize(self, texts: Sequence[Text], marks: bool) -> list[_Row]:
        """Rows of ids for texts and pairs; with `marks`, also which tokens are not special."""
        parts = [part for text in texts for part in ((text,) if isinstance(text, str) else text)]
        ids = iter(self.tokenizer._encode_ids(parts))
        return [
            self._single(next(ids), marks) if isinstance(text, str) else self._pair(next(ids), next(ids), marks)
            for text in texts
        ]

    def _single(self, ids: list[int], marks: bool) -> _Row:
        room = self.max_length - self.tokenizer.num_special_tokens_to_add()
        kept = ids if len(ids) <= room else ids[:room]
        row = self.tokenizer.build_inputs_with_special_tokens(kept)
        counted = [not special for special in self.tokenizer.get_special_tokens_mask(kept)] if marks else None
        return _Row(row, None, counted, len(ids) > room)

    def _pair(self, first: list[int], second: list[int], marks: bool) -> _Row:
        whole = self.tokenizer.prepare_for_model(
            first, second, truncation="longest_first", max_length=self.max_length, return_special_tokens_mask=marks
        )
        counted = [not special for special in whole["special_tokens_mask"]] if marks else None
        longest = self.max_length - self.tokenizer.num_special_tokens_to_add(pair=True)
        return _Row(whole["input_ids"], whole["token_type_ids"], counted, len(first) + len(second) > longest)

    def _window(self, rows: list[_Row], pooling: Pooling, depths: list[int], normalize: bool) -> Iterator[Features]:
        found: list[Features | None] = [None] * len(rows)
        for places in self._batches(rows):
            batch = [rows[i] for i in places]
            for i, features in zip(places, self._run(batch, pooling, depths, normalize), strict=True):
                found[i] = features
        return (features for features in found if features is not None)

    def _batches(self, rows: list[_Row]) -> Iterator[list[int]]:
        """Places in `rows`, shortest text first, cut into batches by the budget of tokens."""
        batch: list[int] = []
        tokens = 0
        for i in sorted(range(len(rows)), key=lambda i: len(rows[i].ids)):
            full = tokens + len(rows[i].ids) > self.tokens_per_batch or len(batch) == self.batch_size
            if batch and full:
                yield batch
                batch, tokens = [], 0
            batch.append(i)
            tokens += len(rows[i].ids)
        if batch:
            yield batch

    @torch.inference_mode()
    def _run(self, batch: list[_Row], pooling: Pooling, depths: list[int], normalize: bool) -> Iterator[Features]:
        """The vectors of one batch, whose rows come shortest first: the order of the packed layout."""
        lengths = [len(row.ids) for row in batch]
        several = len(depths) > 1
        encoded = self.model.encode(
            self._inputs(batch, lengths),
            pack=True,
            first_only=pooling == "cls" and not several,
            depth=max(depths),
            output_hidden_states=several,
        )
        states = [encoded.states[depth] for depth in depths] if several else [encoded.hidden]
        counted = None
        if batch[0].counted is not None:
            flags = [flag for row in batch for flag in row.counted or ()]
            counted = torch.tensor(flags, device=encoded.hidden.device)
        if encoded.first_only:
            vectors = encoded.layout.first_in_batch_order(encoded.hidden)[:, None]  # [B, 1, H]
        else:
            flat = [flat_tokens(state, encoded.layout) for state in states]
            if pooling == "none":
                vectors = torch.stack([tokens for tokens, _ in flat], dim=1)  # [N, layers, H]
            else:
                vectors = torch.stack([pool_tokens(*each, pooling, counted) for each in flat], dim=1)
        vectors = vectors.float()
        if normalize:
            vectors = F.normalize(vectors, dim=-1)
        vectors = vectors.cpu()
        parts = vectors.split(lengths) if pooling == "none" else vectors.unbind(0)
        return (self._features(row, part, pooling) for row, part in zip(batch, parts, strict=True))

    def _inputs(self, batch: list[_Row], lengths: list[int]) -> Inputs:
        device = self.model.device
        B, T = len(batch), lengths[-1]
        types = None
        paired = any(row.types is not None for row in batch)
        if lengths[0] == T:  # equally long: already a rectangle
            ids = torch.tensor([row.ids for row in batch], device=device)
            if paired:
                types = torch.tensor([row.types or [0] * T for row in batch], device=device)
            return Inputs(ids, token_type_ids=types)
        real = torch.arange(T)[None] < torch.tensor(lengths)[:, None]  # [B, T]
        ids = torch.zeros(B, T, dtype=torch.long)
        ids[real] = torch.tensor([token for row in batch for token in row.ids])
        if paired:
            types = torch.zeros(B, T, dtype=torch.long)
            types[real] = torch.tensor([kind for row in batch for kind in row.types or [0] * len(row.ids)])
            types = types.to(device)
        return Inputs(ids.to(device), real.long().to(device), types)

    @staticmethod
    def _features(row: _Row, vectors: Tensor, pooling: Pooling) -> Features:
        if pooling != "none" or row.counted is None:
            return Features(row.ids, vectors, row.truncated)
        kept = [i for i, flag in enumerate(row.counted) if flag]
        return Features([row.ids[i] for i in kept], vectors[kept], row.truncated)
