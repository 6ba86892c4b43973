"""Finding special and added tokens in a text, at a cost that does not depend on how many there are.

The tokens are kept by their first character with the lengths that occur, and looked up as a whole in a dictionary: at
a place where a token may begin there are as many look-ups as there are different lengths, be it five tokens or 50,000.
"""

import re
from collections.abc import Iterable, Iterator


def _is_word_character(char: str) -> bool:
    return char.isalnum() or char == "_"


class TokenMatcher:
    """A set of tokens that can be found in texts, the leftmost first and the longest of those that begin there."""

    def __init__(self) -> None:
        #: Token -> whether it must stand as a whole word.
        self._tokens: dict[str, bool] = {}
        #: First character -> lengths of the tokens that begin with it, longest first.
        self._lengths: dict[str, list[int]] = {}
        self._begin: re.Pattern[str] | None = None

    @classmethod
    def of(cls, tokens: Iterable[str], *, whole_words: bool = False) -> "TokenMatcher":
        """Makes a matcher of some tokens.

        Args:
            tokens: the tokens.
            whole_words: see `add`.
        """
        matcher = cls()
        for token in tokens:
            matcher.add(token, whole_word=whole_words)
        return matcher

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._tokens

    def add(self, token: str, *, whole_word: bool = False) -> None:
        """Adds a token; one that is there already stays as it is.

        Args:
            token: the token; an empty one is never found and is left out.
            whole_word: whether the token, where it begins or ends in a letter or digit, must not be preceded or
                followed by another letter or digit.
        """
        if not token or token in self._tokens:
            return
        self._tokens[token] = whole_word
        lengths = self._lengths.setdefault(token[0], [])
        if len(token) not in lengths:
            lengths.append(len(token))
            lengths.sort(reverse=True)
        self._begin = None

    def may_match(self, text: str) -> bool:
        """Tells quickly whether a token can be in a text: False is certain, True is not.

        Args:
            text: any text.
        """
        if len(self._lengths) <= 4:
            # Faster than a regular expression for the usual case, in which all tokens begin with one or two signs.
            return any(first in text for first in self._lengths)
        return self._pattern().search(text) is not None

    def find(self, text: str) -> list[tuple[int, int]]:
        """Finds the tokens in a text.

        Args:
            text: any text.

        Returns:
            Start and end of each token found, in order; they do not overlap.
        """
        return list(self._search(text)) if self.may_match(text) else []

    def _search(self, text: str) -> Iterator[tuple[int, int]]:
        pattern = self._pattern()
        begin = pattern.search(text)
        while begin:
            start = begin.start()
            end = self._longest(text, start)
            if end:
                yield start, end
            begin = pattern.search(text, end or start + 1)

    def _longest(self, text: str, start: int) -> int:
        for length in self._lengths[text[start]]:
            end = start + length
            whole_word = self._tokens.get(text[start:end])
            # Near the end of a text the slice is shorter than asked for; a token of that length has had no turn yet.
            if whole_word is None or end > len(text):
                continue
            if not whole_word or self._stands_alone(text, start, end):
                return end
        return 0

    def _stands_alone(self, text: str, start: int, end: int) -> bool:
        before, after = text[start - 1 : start] if start else "", text[end : end + 1]
        touches_before = before and _is_word_character(before) and _is_word_character(text[start])
        touches_after = after and _is_word_character(after) and _is_word_character(text[end - 1])
        return not touches_before and not touches_after

    def _pattern(self) -> re.Pattern[str]:
        if self._begin is None:
            self._begin = re.compile("[" + "".join(map(re.escape, self._lengths)) + "]" if self._lengths else "(?!)")
        return self._begin
