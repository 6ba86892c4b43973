"""`pytorch_transformers fill-mask`: which words may stand at [MASK]."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..hub.shipped import FILL_MASK
from .common import Switch, Verb, add_model, add_place, device, place, positive

if TYPE_CHECKING:
    from ..models.bert.heads import BertForMaskedLM
    from ..models.bert.tokenizer import BertTokenizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("text", nargs="+", metavar="TEXT", help="a text with [MASK] in it, once or more often")
    add_model(parser, FILL_MASK)
    parser.add_argument("--top_k", type=positive, default=5, metavar="K", help="words for each mask (default: 5)")
    parser.add_argument(
        "--json", action=Switch, default=False, help="print a JSON object for each text on one line (default: no)"
    )
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1, mps (default: a GPU when there is one)")
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Print the likeliest words for each mask, with their probabilities."""
    from ..models.family import family_of

    where = device(options.device)
    family = family_of(options.model, **place(options))
    model_class = family.load("masked_lm")
    tokenizer = family.load("tokenizer").from_pretrained(options.model, **place(options))
    if tokenizer.mask_token is None or tokenizer.mask_token_id is None:
        raise ValueError(f"the tokenizer of {options.model} has no mask token")
    if missing := [text for text in options.text if tokenizer.mask_token not in text]:
        raise ValueError(f"no {tokenizer.mask_token} in {missing[0]!r}")
    model, info = model_class.from_pretrained(options.model, output_loading_info=True, device=where, **place(options))
    if new := [key for key in info["missing_keys"] if not key.startswith(f"{model.base_model_prefix}.")]:
        raise ValueError(f"{options.model} has no trained masked-language head: {', '.join(new)} would be random")
    for text in options.text:
        masks = list(_fill(model, tokenizer, text, options.top_k))
        sys.stdout.write(json.dumps({"text": text, "masks": masks}) + "\n" if options.json else _table(text, masks))
    return 0


def _fill(
    model: "BertForMaskedLM", tokenizer: "BertTokenizer", text: str, top_k: int
) -> Iterator[list[dict[str, Any]]]:
    """For each mask of a text the likeliest words, best first."""
    import torch

    batch = tokenizer(text, return_tensors="pt").to(model.device)
    with torch.inference_mode():
        logits = model(**batch).logits[0]  # [T, V]
    for scores in logits[batch["input_ids"][0] == tokenizer.mask_token_id].float().softmax(-1):
        best = scores.topk(min(top_k, len(scores)))
        words = tokenizer.convert_ids_to_tokens(best.indices.tolist())
        yield [{"token": word, "probability": p} for word, p in zip(words, best.values.tolist(), strict=True)]


def _table(text: str, masks: list[list[dict[str, Any]]]) -> str:
    lines = []
    for number, words in enumerate(masks, 1):
        lines.append(f"{text}  (mask {number})\n")
        lines += [f"  {word['probability']:7.4f}  {word['token']}\n" for word in words]
    return "".join(lines)


VERB = Verb(
    name="fill-mask",
    summary="likely words for a mask",
    description="Print the likeliest words for each [MASK] of a text, with their probabilities.",
    example='pytorch_transformers fill-mask --model bert-base-uncased "The capital of France is [MASK]."',
    add_arguments=add_arguments,
    run=run,
)
