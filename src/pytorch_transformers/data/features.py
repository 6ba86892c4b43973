"""Vectors of texts from a BERT encoder, fast: the job of google-research/bert's extract_features.py.

The texts of a window are tokenised in a second thread while the model computes, sorted by length, and run in batches of
about as many tokens each, without padding; the results come back in the order of the texts.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import torch
import torch.nn.functional as F
from torch import Tensor

from ..models.base import PreTrainedModel
from ..models.bert.model import BertModel, Inputs
from ..models.family import family_of
from ..nn.values import whole_number
from .pooling import POOLINGS, Pooling, flat_tokens, pool_tokens
from .rows import Row, Text, batches_of, rows_of, windows_of

if TYPE_CHECKING:
    from ..models.bert.tokenizer import BertTokenizer

#: Tokens of a batch: enough to fill the matrix units, few enough that the activations of a layer stay in the cache.
TOKENS_PER_BATCH: Final = 2048
#: Texts that are sorted together; more makes the batches more even, and results appear later.
WINDOW: Final = 4096
#: Characters of such texts, and bytes of their results: what bounds the memory for long texts and for single tokens.
WINDOW_CHARACTERS: Final = 1 << 22
WINDOW_BYTES: Final = 1 << 30
_SAMPLE: Final = 64  # values of each weight in a fingerprint; training changes them all


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


class FeatureExtractor:
    """An encoder and its tokenizer, ready to turn texts into vectors.

    Args:
        model: The encoder, or a model with a head, whose encoder is used. The encoder is put in evaluation mode, and
            on a CPU its weights are packed (`fuse_for_inference`).
        tokenizer: The tokenizer that belongs to it.
        max_length: Longest input in tokens, special ones included; longer texts are cut. By default what the model has
            positions for.
        tokens_per_batch: Tokens of a batch.
        batch_size: Most texts of a batch; unlimited by default.
        window: Most texts that are sorted together; long ones are fewer, so that memory has a bound.

    Raises:
        ValueError: A number is too small, or `max_length` is more than the model has positions for.
        TypeError: The model is no encoder and has none.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: "BertTokenizer",
        *,
        max_length: int | None = None,
        tokens_per_batch: int = TOKENS_PER_BATCH,
        batch_size: int | None = None,
        window: int = WINDOW,
    ) -> None:
        encoder = model.base_model if isinstance(model, PreTrainedModel) else model
        if not isinstance(encoder, BertModel):
            raise TypeError(f"model: expected an encoder (BertModel) or a model with one, found {type(model).__name__}")
        positions = encoder.config.max_position_embeddings
        if max_length is not None:
            max_length = whole_number("max_length", max_length)
            if not 3 <= max_length <= positions:
                raise ValueError(f"max_length: {max_length}, must be from 3 to {positions}, the positions of the model")
        self.model = encoder.eval()
        if encoder.device.type == "cpu":
            encoder.fuse_for_inference()
        self.tokenizer = tokenizer
        self.max_length = max_length or min(positions, tokenizer.model_max_length)
        self.tokens_per_batch = whole_number("tokens_per_batch", tokens_per_batch, 1)
        self.batch_size = None if batch_size is None else whole_number("batch_size", batch_size, 1)
        self.window = whole_number("window", window, 1)

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

        Raises:
            TypeError: The model is of a family that has no encoder.
        """
        place: dict[str, Any] = {
            "cache_dir": cache_dir,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        casing: dict[str, Any] = {} if do_lower_case is None else {"do_lower_case": do_lower_case}
        family = family_of(name_or_path, **place)
        encoder = family.load("model")
        if not issubclass(encoder, BertModel):
            raise TypeError(f"{name_or_path}: vectors need an encoder such as BERT; {family.name} is none")
        tokenizer = family.load("tokenizer").from_pretrained(name_or_path, **place, **casing)
        model = encoder.from_pretrained(name_or_path, dtype=dtype, device=device, **place)
        return cls(model, tokenizer, **options)

    @overload
    def encode(
        self,
        texts: Iterable[Text],
        *,
        pooling: Literal["cls", "mean", "max"] = "mean",
        layers: Iterable[int] = (-1,),
        normalize: bool = False,
        special_tokens: bool = True,
    ) -> Tensor: ...

    @overload
    def encode(
        self,
        texts: Iterable[Text],
        *,
        pooling: Literal["none"],
        layers: Iterable[int] = (-1,),
        normalize: bool = False,
        special_tokens: bool = True,
    ) -> list[Tensor]: ...

    def encode(
        self,
        texts: Iterable[Text],
        *,
        pooling: Pooling = "mean",
        layers: Iterable[int] = (-1,),
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
        texts, numbers = list(texts), _layer_numbers(layers)  # both are read twice
        for number, text in enumerate(texts):
            if text is None:  # for `stream` it is a pause
                raise TypeError(f"texts[{number}]: expected a text or a pair of texts, found None")
        found = self.stream(texts, pooling=pooling, layers=numbers, normalize=normalize, special_tokens=special_tokens)
        vectors = [features.vectors if len(numbers) > 1 else features.vectors.squeeze(-2) for features in found]
        if pooling == "none":
            return vectors
        size = self.model.config.hidden_size
        empty = torch.zeros(0, size) if len(numbers) == 1 else torch.zeros(0, len(numbers), size)
        return torch.stack(vectors) if vectors else empty

    def stream(
        self,
        texts: Iterable[Text | None],
        *,
        pooling: Pooling = "mean",
        layers: Iterable[int] = (-1,),
        normalize: bool = False,
        special_tokens: bool = True,
    ) -> Iterator[Features]:
        """Turn texts into vectors in their order, with memory for two windows however many texts there are.

        Args:
            texts: Texts, or pairs of texts. None between them says that there are no more for now: what came before
                is answered before the next text is asked for.
            pooling: "cls" takes the first token, "mean" and "max" all of them, "none" keeps every token.
            layers: Which layers, counted from 0 or, from the last backwards, from -1; as the original counts.
            normalize: Whether to scale each vector to length 1.
            special_tokens: Whether [CLS] and [SEP] count in "mean" and "max", and have rows in "none".

        Raises:
            ValueError: An option has no such value.
            TypeError: A text is none, and the message says where; or `layers` is no collection.
        """
        return chain.from_iterable(
            self.stream_windows(
                texts, pooling=pooling, layers=layers, normalize=normalize, special_tokens=special_tokens
            )
        )

    def stream_windows(
        self,
        texts: Iterable[Text | None],
        *,
        pooling: Pooling = "mean",
        layers: Iterable[int] = (-1,),
        normalize: bool = False,
        special_tokens: bool = True,
    ) -> Iterator[list[Features]]:
        """As `stream`, but the results of a window at once; those of each do not depend on where the texts began."""
        depths = self._depths(layers)
        if pooling not in POOLINGS:
            raise ValueError(f"pooling: {pooling!r}, use one of {', '.join(POOLINGS)}")
        characters = WINDOW_CHARACTERS
        if pooling == "none":  # about every token has a character, and a row of float32 for each layer
            characters = min(characters, WINDOW_BYTES // (4 * self.model.config.hidden_size * len(depths)))
        windows = windows_of(texts, self.window, characters)
        return self._stream_windows(windows, pooling, depths, normalize, marks=not special_tokens)

    def fingerprint(self) -> str:
        """A short name for all that results depend on to the last digit but the batches: equal results, equal name."""
        digest = hashlib.sha256()
        facts = (self.model.config.to_json_string(), self.model.dtype, self.max_length, self.window)
        digest.update(repr(facts).encode())
        for name, weight in self.model.state_dict().items():
            if name.startswith("pooler."):  # not used, and random where a checkpoint has none
                continue
            digest.update(name.encode())
            digest.update(weight.flatten()[:_SAMPLE].double().cpu().numpy().tobytes())
        with tempfile.TemporaryDirectory() as folder:
            self.tokenizer.save_pretrained(folder)
            for path in sorted(Path(folder).iterdir()):
                digest.update(path.name.encode())
                digest.update(path.read_bytes())
        return digest.hexdigest()[:16]

    def _depths(self, layers: Iterable[int]) -> list[int]:
        """How many layers lie below each of those asked for, itself included."""
        L = self.model.config.num_hidden_layers
        numbers = _layer_numbers(layers)
        for layer in numbers:
            if not -L <= layer < L:
                raise ValueError(f"layers: {layer}, must be from {-L} to {L - 1}: the model has {L} layers")
        if not numbers:
            raise ValueError("layers: name at least one")
        return [layer % L + 1 for layer in numbers]

    def _stream_windows(
        self,
        windows: Iterator[tuple[list[Text], bool]],
        pooling: Pooling,
        depths: list[int],
        normalize: bool,
        marks: bool,
    ) -> Iterator[list[Features]]:
        with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as pool:
            # The caller's iterator is read in the caller's thread; only the tokenizer runs beside the model. Nothing
            # overlaps the first window, so it starts no thread: most calls have no other.
            waiting: list[Callable[[], list[Row]]] = []
            for number, (texts, awaited) in enumerate(windows):
                if texts:
                    tokenize = partial(rows_of, texts, self.tokenizer, self.max_length, marks)
                    waiting.append(pool.submit(tokenize).result if number else tokenize)
                while len(waiting) > (0 if awaited else 1):
                    yield self._window(waiting.pop(0)(), pooling, depths, normalize)
            for rows in waiting:
                yield self._window(rows(), pooling, depths, normalize)

    def _window(self, rows: list[Row], pooling: Pooling, depths: list[int], normalize: bool) -> list[Features]:
        found: dict[int, Features] = {}
        for places in batches_of(rows, self.tokens_per_batch, self.batch_size):
            batch = [rows[i] for i in places]
            # A copy made out of inference mode may be used where gradients are computed.
            vectors = self._run(batch, pooling, depths, normalize).clone()
            parts = vectors.split([len(row.ids) for row in batch]) if pooling == "none" else vectors.unbind(0)
            found.update(zip(places, map(_features, batch, parts), strict=True))
        return [found[i] for i in range(len(rows))]

    @torch.inference_mode()
    def _run(self, batch: list[Row], pooling: Pooling, depths: list[int], normalize: bool) -> Tensor:
        """The vectors of one batch, whose rows come shortest first: the order of the packed layout.

        Returns:
            [B, layers, H], or with pooling "none" [N, layers, H].
        """
        lengths = [len(row.ids) for row in batch]
        several = len(depths) > 1
        encoded = self.model.encode(
            self._inputs(batch, lengths),
            pack=True,
            first_only=pooling == "cls" and not several,
            depth=max(depths),
            output_hidden_states=several,
            output_attentions=False,
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
        return vectors.cpu()

    def _inputs(self, batch: list[Row], lengths: list[int]) -> Inputs:
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


def _layer_numbers(layers: Any) -> tuple[int, ...]:
    """The numbers of the layers, which may come from any collection.

    Raises:
        TypeError: They are no collection.
        ValueError: One is no whole number.
    """
    if isinstance(layers, str) or not isinstance(layers, Iterable):
        raise TypeError(f"layers: expected a list of whole numbers such as (-1, -2), found {layers!r}")
    return tuple(whole_number("layers", layer) for layer in layers)


def _features(row: Row, vectors: Tensor) -> Features:
    """The result of one text, without the rows of special tokens where these are left out."""
    if row.counted is None or vectors.ndim == 2:  # [layers, H]: one vector for the whole text
        return Features(row.ids, vectors, row.truncated)
    kept = [i for i, counts in enumerate(row.counted) if counts]
    return Features([row.ids[i] for i in kept], vectors[kept], row.truncated)
