r"""What a small pre-trained model has to beat: baselines on the same tokens, fitted to the text that it was trained on.

    python assets/baselines.py --train STREAM --held_out STREAM            perplexity, for causal models
    python assets/baselines.py --masked --train DATA --held_out DATA       accuracy at masked words, for BERT

Streams are made by `create-token-stream`: a unigram model and an n-gram model with interpolated Kneser-Ney smoothing
(Chen and Goodman 1999), over the whole vocabulary of the tokenizer. As for the models, each token but the very first is
predicted, from those before it and across the borders of documents. The n-gram model is nltk's; see `GatheredKneserNey`
and `KneserNeyToUniform` for what differs. DATA are made by `create-pretraining-data`: one token is guessed behind all
masks.

The baselines are favoured: the discount, one for all orders, is the one of `DISCOUNTS` that suits the held-out text
best, and the best single guess for the masked words is given too, though only their labels tell it.

Needs nltk 3.9 or newer. 1.7 million tokens at order 5 take about a minute and 3 GB; nltk refuses more than ten million
different n-grams, see its `nltk.lm.counter.MAX_NGRAMS`.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from nltk.lm import NgramCounter, Vocabulary
from nltk.lm.models import InterpolatedLanguageModel
from nltk.lm.smoothing import KneserNey
from nltk.util import ngrams

from pytorch_transformers.data.pretraining import PretrainingDataset, TokenStream

#: What is taken off each count, tried on the held-out text.
DISCOUNTS: Final = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
#: Rows of masked data that are read together.
_BATCH: Final = 2048


class Followers(NamedTuple):
    """What follows a context.

    Fields: `counts`, of each token that does; and `total`, their sum.
    """

    counts: Mapping[str, int]
    total: int


class GatheredKneserNey(KneserNey):  # type: ignore[misc]  # nltk has no types
    """nltk's Kneser-Ney smoothing with all counts gathered once; nltk itself searches all n-grams for each score.

    Scores are those of nltk, but for contexts at the very start of the text. There an n-gram has nothing before it, so
    that its continuation count lacks an occurrence that nltk still counts among the followers of its context: nltk's
    probabilities then sum to more than 1, or it divides by zero. Here both come from the continuation counts.

    Args:
        vocabulary: The tokens.
        counter: N-grams of all lengths up to `order`.
        order: N-grams of this length have their own counts, shorter ones the number of different tokens before them.
        discount: What is taken off each count, from 0 to 1.
    """

    def __init__(self, vocabulary: Vocabulary, counter: NgramCounter, order: int, discount: float = 0.1) -> None:
        super().__init__(vocabulary, counter, order, discount)
        #: The length of a context says which counts it has.
        self._followers = dict(_gather(counter, order))

    def alpha_gamma(self, word: str, context: tuple[str, ...]) -> tuple[float, float]:
        """What a token gets from its count, and the share that goes to the order below."""
        followers = self._followers.get(context)
        if followers is None:
            return 0.0, 1.0
        alpha = max(followers.counts.get(word, 0) - self.discount, 0.0) / followers.total
        return alpha, self.discount * len(followers.counts) / followers.total

    def unigram_score(self, word: str) -> float:
        """As nltk: the share of a token in all continuations, 0 for one that never follows another."""
        counts, total = self._followers[()]
        return counts.get(word, 0) / total


class KneserNeyToUniform(GatheredKneserNey):
    """The same with one order more below the unigrams: 1 / V for each of the V tokens of the vocabulary.

    Unigrams are discounted like all others, and what that frees is shared out evenly. So each token has a probability
    above 0, and they sum to 1.
    """

    def unigram_score(self, word: str) -> float:
        """The probability of a token where nothing is known of those before it."""
        alpha, gamma = self.alpha_gamma(word, ())
        # The length of nltk's vocabulary counts a label for unknown words, of which there are none here.
        return alpha + gamma / len(self.vocab.counts)


class NgramModel(InterpolatedLanguageModel):  # type: ignore[misc]  # nltk has no types
    """nltk's interpolated model with `KneserNeyToUniform`; of order 1, the discounted unigrams.

    Args:
        order: Most tokens of an n-gram, at least 1.
        vocabulary: All V tokens.
        counter: N-grams of all lengths up to `order`.
    """

    def __init__(self, order: int, vocabulary: Vocabulary, counter: NgramCounter) -> None:
        super().__init__(
            KneserNeyToUniform, order, vocabulary=vocabulary, counter=counter, params={"order": order, "discount": 0.75}
        )

    def loss(self, tokens: Sequence[str], discount: float) -> float:
        """The mean of -log p over all tokens but the first, in nats.

        Args:
            tokens: A text of at least two.
            discount: Above 0, to 1.
        """
        self.estimator.discount = discount
        most = self.order - 1
        scores = (
            self.unmasked_score(tokens[at], tuple(tokens[max(0, at - most) : at])) for at in range(1, len(tokens))
        )
        return -math.fsum(map(math.log, scores)) / (len(tokens) - 1)

    def best(self, tokens: Sequence[str]) -> dict[str, Any]:
        """Loss and perplexity with the discount that gives the lowest, and the perplexities with all.

        Args:
            tokens: A text of at least two.
        """
        losses = {discount: self.loss(tokens, discount) for discount in DISCOUNTS}
        discount = min(losses, key=losses.__getitem__)
        return {
            "loss": losses[discount],
            "perplexity": math.exp(losses[discount]),
            "discount": discount,
            "tried": {str(tried): math.exp(loss) for tried, loss in losses.items()},
        }


def count_ngrams(tokens: Sequence[str], order: int) -> NgramCounter:
    """Count the n-grams of a text of all lengths up to `order`."""
    counter = NgramCounter()
    counter.update(ngrams(tokens, length) for length in range(1, order + 1))
    return counter


def _gather(counter: NgramCounter, order: int) -> Iterator[tuple[tuple[str, ...], Followers]]:
    """Contexts of all lengths below `order` with their followers, those that have any."""
    highest = {(): counter.unigrams} if order == 1 else counter[order]
    yield from ((context, Followers(counts, counts.N())) for context, counts in highest.items() if counts)
    for length in range(2, order + 1):
        found: dict[tuple[str, ...], dict[str, int]] = {}
        for context, counts in counter[length].items():
            shorter = found.setdefault(context[1:], {})
            for word in counts:
                shorter[word] = shorter.get(word, 0) + 1
        yield from ((context, Followers(words, sum(words.values()))) for context, words in found.items() if words)


def stream_baselines(train: Path, held_out: Path, order: int) -> dict[str, Any]:
    """Unigram and n-gram perplexity of a token stream.

    Args:
        train: The stream to count in.
        held_out: The stream to predict.
        order: Most tokens of an n-gram.

    Raises:
        ValueError: The streams have different vocabularies, or there is nothing to predict.
        OSError: A stream is missing or damaged.
    """
    streams = {"train": TokenStream(train), "held_out": TokenStream(held_out)}
    size, other = (stream.index.vocab_size for stream in streams.values())
    if size != other:
        raise ValueError(f"{train} and {held_out} have vocabularies of {size} and {other} tokens; make both with one")
    if len(streams["held_out"]) < 2:
        raise ValueError(f"{held_out} has a single token, and the first is not predicted; give a longer text")
    names = [str(number) for number in range(size)]
    text, unseen = ([names[number] for number in stream.ids.tolist()] for stream in streams.values())
    counter, vocabulary = count_ngrams(text, order), Vocabulary(names)
    found = {name: NgramModel(n, vocabulary, counter).best(unseen) for name, n in (("unigram", 1), ("ngram", order))}
    return {"order": order, "vocab_size": size, "train_tokens": len(text), "predicted": len(unseen) - 1, **found}


def masked_baselines(train: Path, held_out: Path) -> dict[str, Any]:
    """Accuracy of one guess for all masked words: the most frequent token of the training text, and the best of all.

    Args:
        train: Folder of training data; instances count as often as training sees them in an epoch.
        held_out: Folder of data to guess in. Where masks are drawn when read, those of epoch 0 count, as in evaluation.

    Raises:
        ValueError: The data have different vocabularies.
        OSError: They are missing or damaged.
    """
    data = {"train": PretrainingDataset(train), "held_out": PretrainingDataset(held_out)}
    vocabulary = data["train"].vocabulary
    if vocabulary.sha256 != data["held_out"].vocabulary.sha256:
        raise ValueError(f"{train} and {held_out} were made with different vocabularies; make both with one")
    tokens, _ = count_tokens(data["train"])
    _, labels = count_tokens(data["held_out"])
    return {
        "vocab_size": vocabulary.size,
        "train_tokens": int(tokens.sum()),
        "masked": int(labels.sum()),
        "most_frequent": _guess(int(tokens.argmax()), labels),
        "best_constant": _guess(int(labels.argmax()), labels),
    }


def count_tokens(data: PretrainingDataset) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """How often each token is in the texts of training data, and how often behind a mask; both [V].

    Tokens that no text has, [CLS], [SEP] and [PAD], are left out: they are never masked.

    Args:
        data: The data; masks are undone.
    """
    vocabulary = data.vocabulary
    tokens, labels = np.zeros((2, vocabulary.size), np.int64)
    for start in range(0, len(data), _BATCH):
        for instance in data.instances(range(start, min(start + _BATCH, len(data)))):
            ids, hidden = np.array(instance.input_ids), np.array(instance.labels or [], np.int64)
            ids[np.array(instance.positions or [], np.int64)] = hidden
            np.add.at(tokens, ids, 1)
            np.add.at(labels, hidden, 1)
    tokens[[vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id]] = 0
    return tokens, labels


def _guess(token: int, labels: npt.NDArray[np.int64]) -> dict[str, Any]:
    return {"id": token, "accuracy": float(labels[token] / labels.sum())}


def describe(found: Mapping[str, Any]) -> Iterator[str]:
    """What was found, as lines to read."""
    if "masked" in found:
        yield f"{found['train_tokens']:,} training tokens, {found['masked']:,} masked, V = {found['vocab_size']:,}"
        for name, title in (
            ("most_frequent", "most frequent token of the training text"),
            ("best_constant", "best single guess, told by the labels"),
        ):
            yield f"{title}: accuracy {found[name]['accuracy']:.4f} (id {found[name]['id']})"
        return
    yield f"{found['train_tokens']:,} training tokens, {found['predicted']:,} predicted, V = {found['vocab_size']:,}"
    for name, title in (("unigram", "unigrams"), ("ngram", f"{found['order']}-grams, interpolated Kneser-Ney")):
        best = found[name]
        yield (
            f"{title}: perplexity {best['perplexity']:.2f}, loss {best['loss']:.4f} "
            f"(discount {best['discount']}, the best of {len(best['tried'])} on the held-out text)"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Compute and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="folder of what the model is trained with")
    parser.add_argument("--held_out", type=Path, required=True, help="folder of what it is evaluated on")
    parser.add_argument("--masked", action="store_true", help="the folders hold data for masked words, not streams")
    parser.add_argument("--order", type=int, help="most tokens of an n-gram (default: 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    if options.order is not None and options.masked:
        parser.error("--order: there are no n-grams behind masks; leave it out")
    order = 5 if options.order is None else options.order
    if order < 1:
        parser.error(f"--order is {order}; it should be at least 1")
    if options.masked:
        found = masked_baselines(options.train, options.held_out)
    else:
        found = stream_baselines(options.train, options.held_out, order)
    print(json.dumps(found, indent=2) if options.json else "\n".join(describe(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
