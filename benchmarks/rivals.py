"""What a user would pick instead, each set up as its own documentation says."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pytorch_transformers import GPT2LMHeadModel

from .inputs import model_folder

#: Longest input in tokens, for all sides: what sentence-transformers has stored with the model.
MAX_LENGTH: Final = 256
#: Tokens of a batch for those that are fed sorted batches: the budget that our side uses.
TOKENS_PER_BATCH: Final = 2048
#: Texts of a batch for those that are not: the default of sentence-transformers and the habit of most scripts.
BATCH_SIZE: Final = 32
#: Dropout is random and would make two sides differ in training.
NO_DROPOUT_GPT2: Final[Mapping[str, Any]] = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


class Transformers:
    """transformers' BertModel with its fast tokenizer, and mean pooling as the model's card shows it."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(model_folder())
        self.model: Any = AutoModel.from_pretrained(model_folder(), dtype=dtype).eval()

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> Tensor:
        """Vectors of texts in batches of 32, in the order in which they come."""
        vectors = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = self.tokenizer(
                texts[start : start + BATCH_SIZE],
                padding=True,
                truncation=True,
                max_length=MAX_LENGTH,
                return_tensors="pt",
            )
            vectors.append(pooled(self.model(**batch).last_hidden_state, batch["attention_mask"]))
        return torch.cat(vectors)

    @torch.inference_mode()
    def encode_sorted(self, texts: Sequence[str]) -> Tensor:
        """Vectors of texts in batches of about 2,048 tokens of about equal length."""
        vectors = torch.empty(len(texts), self.model.config.hidden_size)
        for places, ids, mask in sorted_batches(library_tokenizer(), texts):
            vectors[places] = pooled(self.model(input_ids=ids, attention_mask=mask).last_hidden_state, mask)
        return vectors


class OnnxRuntime:
    """The same network in ONNX Runtime, exported once by torch with both axes free, all graph optimisations on.

    Args:
        folder: Where the exported model goes.
    """

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        path = folder / "model.onnx"
        if not path.exists():
            _export(path)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = torch.get_num_threads()
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._tokenizer = library_tokenizer()

    def run(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Hidden states [B, T, H] of one batch."""
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
        (hidden,) = self._session.run(None, {name: value.numpy() for name, value in feed.items()})
        return torch.from_numpy(hidden)

    def encode_sorted(self, texts: Sequence[str]) -> Tensor:
        """As `Transformers.encode_sorted`."""
        parts = [
            (places, pooled(self.run(ids, mask), mask)) for places, ids, mask in sorted_batches(self._tokenizer, texts)
        ]
        vectors = torch.empty(len(texts), parts[0][1].shape[1])
        for places, part in parts:
            vectors[places] = part
        return vectors

    def encode_one(self, text: str) -> Tensor:
        """The vector [1, H] of one text, without a detour through batches."""
        ids = torch.tensor([self._tokenizer.encode(text).ids])
        mask = torch.ones_like(ids)
        return pooled(self.run(ids, mask), mask)


def gpt2_of_transformers(ours: GPT2LMHeadModel) -> Any:
    """The GPT-2 of transformers with the sizes, weights and precision of one of ours."""
    import transformers

    names = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", *NO_DROPOUT_GPT2)
    config = transformers.GPT2Config(**{name: getattr(ours.config, name) for name in names})
    theirs = transformers.GPT2LMHeadModel(config).to(ours.dtype)
    state = ours.state_dict()
    theirs.load_state_dict({**state, "lm_head.weight": state["transformer.wte.weight"]})  # tied in both
    return theirs


def sentence_transformers_model(dtype: torch.dtype = torch.float32) -> Any:
    """A SentenceTransformer on the CPU."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(model_folder()), device="cpu", model_kwargs={"dtype": dtype})


def library_tokenizer() -> Any:
    """The tokenizer of the `tokenizers` library as it comes with the model, without padding, cutting at 256."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_LENGTH)
    return tokenizer


def sorted_batches(tokenizer: Any, texts: Sequence[str]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Places of the texts, ids and mask [B, T] of each batch, shortest texts first, padded to the longest."""
    rows = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]
    batch: list[int] = []
    tokens = 0
    for place in sorted(range(len(rows)), key=lambda place: len(rows[place])):
        if batch and tokens + len(rows[place]) > TOKENS_PER_BATCH:
            yield batch, *_padded([rows[i] for i in batch])
            batch, tokens = [], 0
        batch.append(place)
        tokens += len(rows[place])
    if batch:
        yield batch, *_padded([rows[i] for i in batch])


def _padded(rows: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return ids, mask


def pooled(hidden: Tensor, mask: Tensor) -> Tensor:
    """Mean of the tokens of each sequence, scaled to length one; a mask without gaps costs no multiplication."""
    if bool(mask.all()):
        return F.normalize(hidden.mean(1))
    weights = mask[..., None].to(hidden.dtype)
    return F.normalize((hidden * weights).sum(1) / weights.sum(1))


def _export(path: Path) -> None:
    from transformers import AutoModel

    class States(nn.Module):
        """Last hidden states alone, with tensors for arguments."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder: Any = AutoModel.from_pretrained(model_folder(), dtype=torch.float32).eval()

        def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
            states: Tensor = self.encoder(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            ).last_hidden_state
            return states

    # An example with padding, so that the mask is in the graph.
    ids = torch.arange(1000, 1027).view(3, 9)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    axes = {0: torch.export.Dim("batch", min=1, max=1 << 20), 1: torch.export.Dim("tokens", min=2, max=512)}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            States(),
            (ids, mask, torch.zeros_like(ids)),
            str(path),
            input_names=["input_ids", "attention_mask", "token_type_ids"],
            output_names=["last_hidden_state"],
            dynamic_shapes=(axes, axes, axes),
            dynamo=True,
            external_data=False,
        )
