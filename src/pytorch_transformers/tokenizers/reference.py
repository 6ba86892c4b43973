"""The readable engine of BERT: `BasicTokenizer`, `WordpieceTokenizer` and a look-up."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from .aligned import Aligned, unchanged
from .basic import BasicTokenizer, words_in
from .engine import Piece
from .memory import Ids, Memory
from .wordpiece import CONTINUATION, WordpieceTokenizer

#: Longest chunk that is remembered, in characters: a longer one, such as a line of Chinese, hardly ever comes again.
LONGEST_CHUNK: Final = 32
#: Longest word that is remembered, in characters; by default longer ones are unknown as a whole.
LONGEST_WORD: Final = 100


def _ids_of_word(vocab: Mapping[str, int], wordpiece: WordpieceTokenizer, word: str) -> Ids:
    return tuple([vocab[token] for token, _, _ in wordpiece.pieces(word)])


def _ids_of_chunk(split: Callable[[str], list[str]], word_ids: Memory, chunk: str) -> Ids:
    ids: list[int] = []
    for word in split(chunk):
        ids += word_ids[word]
    return tuple(ids)


class WordPieceReference:
    """Words, then word pieces, then ids, in plain Python.

    Nothing that is done to a text looks across a space, so a text has the ids of its chunks, the parts between spaces,
    in a row. They are remembered, and most chunks cost one look-up.

    Args:
        vocab: token -> id.
        wordpiece: what cuts words.
        basic: what splits text into words; None splits at white space alone and changes nothing.
    """

    def __init__(self, vocab: Mapping[str, int], wordpiece: WordpieceTokenizer, basic: BasicTokenizer | None) -> None:
        self.vocab = vocab
        self.wordpiece = wordpiece
        self.basic = basic
        self._memory = self.rules, self._new_memory()

    def __reduce__(self) -> tuple[Any, ...]:
        # What is remembered does not travel: it is soon found out again.
        return type(self), (self.vocab, self.wordpiece, self.basic)

    def normalize(self, text: str) -> str:
        """Gives the text as the words will be cut from it.

        Args:
            text: a plain text.
        """
        return self.basic.normalize(text) if self.basic else text

    def normalize_aligned(self, text: str) -> Aligned:
        """Does the same as `normalize` and keeps the places of the characters.

        Args:
            text: a plain text.
        """
        return self.basic.normalize_aligned(text) if self.basic else unchanged(text)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Gives the ids of each text.

        Args:
            texts: plain texts.
        """
        ids_of = self._chunk_ids().__getitem__
        rows: list[list[int]] = []
        for text in texts:
            row: list[int] = []
            # Not `split()`, which also splits at control characters, such as the form feed, that are to be dropped.
            for ids in map(ids_of, text.split(" ")):
                row.extend(ids)
            rows.append(row)
        return rows

    def _chunk_ids(self) -> Memory:
        rules, memory = self.rules, self._memory
        if memory[0] != rules:
            self._memory = memory = rules, self._new_memory()
        return memory[1]

    def _new_memory(self) -> Memory:
        split = self.basic.split if self.basic else str.split
        word_ids = Memory(partial(_ids_of_word, self.vocab, self.wordpiece), LONGEST_WORD)
        return Memory(partial(_ids_of_chunk, split, word_ids), LONGEST_CHUNK)

    def pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        """Gives the tokens of each text with their ids, spans and words.

        Args:
            texts: plain texts.
        """
        aligned = [self.normalize_aligned(text) for text in texts]
        return [self.pieces_between(text, 0, len(text.text)) for text in aligned]

    def pieces_between(self, aligned: Aligned, start: int, end: int) -> list[Piece]:
        """Gives the tokens of a part of a normalised text, with spans in the original.

        Args:
            aligned: what `normalize_aligned` gave.
            start: first character of the part.
            end: one past its last character.
        """
        return [
            Piece(self.vocab[token], token, *aligned.span(first + begin, first + stop), number)
            for number, (first, last) in enumerate(self._words_between(aligned, start, end))
            for token, begin, stop in self.wordpiece.pieces(aligned.text[first:last])
        ]

    def _words_between(self, aligned: Aligned, start: int, end: int) -> list[tuple[int, int]]:
        text = aligned.text[start:end]
        words = words_in(text) if self.basic else words_in_plain(text)
        return [(start + first, start + last) for first, last in words]

    def spans(self, text: str) -> list[tuple[str, int, int]]:
        """Gives the words of a text, with their spans in it.

        Args:
            text: a plain text.
        """
        aligned = self.normalize_aligned(text)
        words = self._words_between(aligned, 0, len(aligned.text))
        return [(aligned.text[first:last], *aligned.span(first, last)) for first, last in words]

    @property
    def settings(self) -> tuple[object, ...]:
        """All that decides how characters are treated: the options of the basic tokenizer."""
        if self.basic is None:
            return ("whitespace",)
        basic = self.basic
        return ("basic", basic.do_lower_case, basic.strip_accents, basic.tokenize_chinese_chars)

    @property
    def rules(self) -> tuple[object, ...]:
        """The settings and the options of word pieces; all are attributes that anybody may change at any time."""
        return (*self.settings, self.wordpiece.unk_token, self.wordpiece.max_input_chars_per_word)

    def always_ours(self, char: str) -> bool:
        """Tells which characters depend on their neighbours, so that a trial of one alone proves nothing.

        A capital sigma is lowered by what stands around it. Marks that are not dropped with the accents change places
        with their neighbours in canonical order.

        Args:
            char: one character.
        """
        reorders = unicodedata.combining(char) != 0 and unicodedata.category(char) != "Mn"
        return char == "\u03a3" or reorders

    def library_steps(self) -> tuple[Any, Any]:
        """Builds the normaliser (or None) and the pre-tokenizer of the `tokenizers` library that do the same."""
        from tokenizers import normalizers, pre_tokenizers

        if self.basic is None:
            return None, pre_tokenizers.WhitespaceSplit()
        normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.basic.tokenize_chinese_chars,
            strip_accents=self.basic.strip_accents,
            lowercase=self.basic.do_lower_case,
        )
        return normalizer, pre_tokenizers.BertPreTokenizer()

    def library_tokenizer(self) -> Any:
        """Builds the tokenizer of the `tokenizers` library that does the same."""
        from tokenizers import Tokenizer, models

        model = models.WordPiece(
            dict(self.vocab),
            unk_token=self.wordpiece.unk_token,
            max_input_chars_per_word=self.wordpiece.max_input_chars_per_word,
            continuing_subword_prefix=CONTINUATION,
        )
        tokenizer = Tokenizer(model)
        normalizer, tokenizer.pre_tokenizer = self.library_steps()
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        return tokenizer


def words_in_plain(text: str) -> list[tuple[int, int]]:
    """Gives start and end of each word of a text, split at white space alone.

    Args:
        text: any text.
    """
    words = []
    place = 0
    for word in text.split():
        place = text.index(word, place)
        words.append((place, place + len(word)))
        place += len(word)
    return words
