"""The original program's algorithm, draw for draw: the same seed gives the same instances, bit for bit.

Source: google-research/bert, create_pretraining_data.py. One `random.Random` serves everything, in this order: the
documents are shuffled; each document in turn makes its instances, `dupe_factor` times over; all instances are shuffled.
All documents are in memory, as there. Surprising, and kept:

* a short target length is drawn once per document, not per instance;
* whether a next sentence is random is not drawn where the first text is all there is;
* sentences that a random next one took the place of are used again;
* with whole words, a piece `##x` that the cut left at the start of the second text counts as part of the word before
  `[SEP]`; and a word with more pieces than may still be masked is passed over, where the others come to an end.

Different: after ten draws of its own document the original takes that, and calls its text random; here drawing goes on.
That happens once in 1024 times with two documents, in practice never with many, and not in the recorded outputs.
"""

import random
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, TypeAlias

from .documents import Sentence
from .options import PAIR_MARKS, InstanceOptions, one_document
from .vocabulary import Vocabulary

#: The sentences of a document as ids.
Document: TypeAlias = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Instance:
    """One input of the model with what is to be guessed in it. T tokens, P of them masked.

    Attributes:
        input_ids: [T] with [CLS] and [SEP], masked unless masking is left to the reader.
        second: Where the second text begins; T without one.
        is_random_next: Whether the second text comes from another document; None without one.
        positions: [P] places of the masked tokens, ascending; None where masking is left to the reader.
        labels: [P] ids that stood there; None likewise.
    """

    input_ids: list[int]
    second: int
    is_random_next: bool | None
    positions: list[int] | None
    labels: list[int] | None

    @property
    def token_type_ids(self) -> list[int]:
        """[T] 0 at the first text and its marks, 1 at the second and its mark."""
        return [0] * self.second + [1] * (len(self.input_ids) - self.second)


def collect_documents(sentences: Iterable[Sentence], ids: Iterable[Sequence[int]]) -> list[list[list[int]]]:
    """Puts encoded sentences together to documents; sentences without tokens and documents without any are left out.

    Args:
        sentences: Sentences in order.
        ids: The ids of each.
    """
    documents: list[list[list[int]]] = []
    last = -1
    for sentence, row in zip(sentences, ids, strict=True):
        if not row:
            continue
        if sentence.document != last:
            documents.append([])
            last = sentence.document
        documents[-1].append(list(row))
    return documents


def original_instances(
    documents: Iterable[Document], vocabulary: Vocabulary, options: InstanceOptions, rng: random.Random
) -> list[Instance]:
    """Makes all instances of a corpus, in the order of the original program.

    Args:
        documents: The documents in order, none of them empty, nor any of their sentences.
        vocabulary: Of the tokenizer.
        options: What to make; `next_sentence` must hold, and `random_seed` is in `rng` already.
        rng: `random.Random(options.random_seed)`; afterwards as the original leaves it.

    Raises:
        ValueError: There is one document only, or an option is not one of the original program.
    """
    if not options.next_sentence:
        raise ValueError("the original program makes pairs only: next_sentence=False needs the streaming mode")
    if options.single_document != "refuse":
        raise ValueError("the original program has no single_document='distant': it needs the streaming mode")
    shuffled = list(documents)
    if len(shuffled) == 1:
        raise one_document("the corpus")
    shuffle(shuffled, rng)
    maker = _Maker(shuffled, vocabulary, options, rng)
    instances = [
        instance
        for _ in range(options.dupe_factor)
        for number in range(len(shuffled))
        for instance in maker.of_document(number)
    ]
    shuffle(instances, rng)
    return instances


def shuffle(items: MutableSequence[Any], rng: random.Random) -> None:
    """Puts items in a random order with the very draws of `Random.shuffle`, in less than half of its time.

    Nearly all draws of the original program are made here: every place of every instance takes part. Written out it
    also stays as it is, while Python promises the same numbers in its next release for `random()` alone.

    Args:
        items: Put in order in place.
        rng: Gives one draw for each item but one, and another for each that is out of its range.
    """
    getrandbits = rng.getrandbits
    count = len(items)
    while count > 1:
        bits = count.bit_length()
        fewest = 1 << bits - 1  # as many bits are drawn down to here
        for last in range(count - 1, fewest - 2, -1):
            other = getrandbits(bits)
            while other > last:
                other = getrandbits(bits)
            items[last], items[other] = items[other], items[last]
        count = fewest - 1


class _Maker:
    """Makes instances of one document after the other."""

    def __init__(
        self, documents: Sequence[Document], vocabulary: Vocabulary, options: InstanceOptions, rng: random.Random
    ) -> None:
        self._documents = documents
        self._vocabulary = vocabulary
        self._continues = vocabulary.continues.tolist()
        self._options = options
        self._most = options.max_seq_length - PAIR_MARKS
        self._rng = rng

    def of_document(self, number: int) -> Iterator[Instance]:
        """The instances of one document."""
        rng, document = self._rng, self._documents[number]
        target = self._most
        if rng.random() < self._options.short_seq_prob:
            target = rng.randint(2, self._most)
        chunk: list[Sequence[int]] = []
        length = i = 0
        while i < len(document):
            chunk.append(document[i])
            length += len(document[i])
            if i == len(document) - 1 or length >= target:
                first_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
                first = list(chain.from_iterable(chunk[:first_end]))
                is_random = len(chunk) == 1 or rng.random() < 0.5
                if is_random:
                    second = self._from_another(number, target - len(first))
                    i -= len(chunk) - first_end  # those that were not used come again
                else:
                    second = list(chain.from_iterable(chunk[first_end:]))
                yield self._instance(*truncate_pair(first, second, self._most, rng), is_random)
                chunk, length = [], 0
            i += 1

    def _from_another(self, number: int, target: int) -> list[int]:
        """At least `target` tokens of another document from a random sentence on, or all up to its end."""
        rng, documents = self._rng, self._documents
        other = rng.randint(0, len(documents) - 1)
        while other == number:  # ten times at most in the original
            other = rng.randint(0, len(documents) - 1)
        document = documents[other]
        tokens: list[int] = []
        for sentence in document[rng.randint(0, len(document) - 1) :]:
            tokens.extend(sentence)
            if len(tokens) >= target:
                break
        return tokens

    def _instance(self, first: list[int], second: list[int], is_random: bool) -> Instance:
        cls_id, sep_id = self._vocabulary.cls_id, self._vocabulary.sep_id
        ids = [cls_id, *first, sep_id, *second, sep_id]
        places = self._to_mask(ids, len(first) + 2)
        positions = sorted(places)
        labels = [ids[place] for place in positions]
        self._mask(ids, places)
        return Instance(ids, len(first) + 2, is_random, positions, labels)

    def _to_mask(self, ids: Sequence[int], second: int) -> list[int]:
        """Draw which places of an input are masked; the second text begins at `second`."""
        options = self._options
        most = min(options.max_predictions_per_seq, max(1, round(len(ids) * options.masked_lm_prob)))
        places = [*range(1, second - 1), *range(second, len(ids) - 1)]
        if not options.do_whole_word_mask:
            shuffle(places, self._rng)
            return places[:most]
        starts = [at for at, place in enumerate(places) if at == 0 or not self._continues[ids[place]]]
        words = list(pairwise([*starts, len(places)]))
        shuffle(words, self._rng)
        chosen: list[int] = []
        for start, end in words:
            if len(chosen) + end - start <= most:
                chosen += places[start:end]
        return chosen

    def _mask(self, ids: list[int], places: Iterable[int]) -> None:
        """Mask `ids` in place."""
        draw, mask_id, words = self._rng.random, self._vocabulary.mask_id, self._vocabulary.words
        for place in places:
            if draw() < 0.8:
                ids[place] = mask_id
            elif draw() >= 0.5:
                ids[place] = words[self._rng.randint(0, len(words) - 1)]


def truncate_pair(
    first: Sequence[int], second: Sequence[int], most: int, rng: random.Random
) -> tuple[list[int], list[int]]:
    """Takes tokens from the longer text, one at a time, from its start or its end as drawn, until both fit.

    Args:
        first: Tokens.
        second: Tokens; of two equally long texts this one loses a token.
        most: Tokens that both together may have.
        rng: Gives one draw for each token taken.
    """
    # Places only are moved: a text of a million tokens would be moved a million times.
    draw = rng.random
    first_start, first_end = 0, len(first)
    second_start, second_end = 0, len(second)
    for _ in range(len(first) + len(second) - most):
        at_start = draw() < 0.5
        if first_end - first_start > second_end - second_start:
            if at_start:
                first_start += 1
            else:
                first_end -= 1
        elif at_start:
            second_start += 1
        else:
            second_end -= 1
    return list(first[first_start:first_end]), list(second[second_start:second_end])
