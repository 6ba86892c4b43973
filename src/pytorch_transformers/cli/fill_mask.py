"""`pytorch_transformers fill-mask`: which words may stand at [MASK]."""

import argparse
import sys

from .common import Verb, add_place, place, positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of the verb."""
    parser.add_argument("text", nargs="+", metavar="TEXT", help="a text with [MASK] in it")
    parser.add_argument("--model", required=True, metavar="NAME", help="name, repository, folder or archive of a model")
    parser.add_argument("--top_k", type=positive, default=5, metavar="K", help="words for each mask (default: 5)")
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Print the likeliest words for each mask, with their probabilities."""
    import torch

    from ..models.bert.heads import BertForMaskedLM
    from ..models.bert.tokenizer import BertTokenizer

    tokenizer = BertTokenizer.from_pretrained(options.model, **place(options))
    mask = tokenizer.mask_token
    if missing := [text for text in options.text if mask not in text]:
        raise ValueError(f"no {mask} in {missing[0]!r}")
    model, info = BertForMaskedLM.from_pretrained(options.model, output_loading_info=True, **place(options))
    if new := [key for key in info["missing_keys"] if key.startswith("cls.")]:
        raise ValueError(f"{options.model} has no trained masked-language head: {', '.join(new)} would be random")
    for text in options.text:
        batch = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            scores = model(**batch).logits[0].softmax(-1)  # [T, V]
        for place_number, place_of_mask in enumerate((batch["input_ids"][0] == tokenizer.mask_token_id).nonzero(), 1):
            best = scores[place_of_mask[0]].topk(min(options.top_k, scores.shape[-1]))
            sys.stdout.write(f"{text}  (mask {place_number})\n")
            words = tokenizer.convert_ids_to_tokens(best.indices.tolist())
            for word, share in zip(words, best.values.tolist(), strict=True):
                sys.stdout.write(f"  {share:7.4f}  {word}\n")
    return 0


VERB = Verb(
    name="fill-mask",
    summary="likely words for a mask",
    description="Print the likeliest words for each [MASK] of a text, with their probabilities.",
    example='pytorch_transformers fill-mask --model bert-base-uncased "The capital of France is [MASK]."',
    add_arguments=add_arguments,
    run=run,
)
