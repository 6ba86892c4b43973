"""From a word to word pieces: the longest piece of the vocabulary that fits, again and again.

Source: google-research/bert, tokenization.py, `WordpieceTokenizer`. A piece inside a word is written with `##` before
it. A word that cannot be cut into known pieces to its end is unknown as a whole.
"""

from collections.abc import Mapping
from typing import Final

#: What marks a piece that continues a word.
CONTINUATION: Final = "##"


class WordpieceTokenizer:
    """Cuts words into the longest pieces that a vocabulary holds, from left to right.

    Source: google-research/bert, tokenization.py, `WordpieceTokenizer`.

    Args:
        vocab: token -> id; only the tokens are read.
        unk_token: what stands for a word that cannot be cut.
        max_input_chars_per_word: longest word in characters that is tried; a longer one is unknown. The original uses
            200, its ports to PyTorch 100.
    """

    def __init__(self, vocab: Mapping[str, int], unk_token: str = "[UNK]", max_input_chars_per_word: int = 100) -> None:
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word

    def tokenize(self, text: str) -> list[str]:
        """Cuts each word of a text.

        Args:
            text: words with white space between them, as `BasicTokenizer` gives them.
        """
        return [token for word in text.split() for token, _, _ in self.pieces(word)]

    def pieces(self, word: str) -> list[tuple[str, int, int]]:
        """Cuts one word, and says which characters of it each piece covers.

        Args:
            word: one word, not empty.

        Returns:
            For each piece the token, its first character and one past its last.
        """
        length = len(word)
        unknown = [(self.unk_token, 0, length)]
        if length > self.max_input_chars_per_word:
            return unknown
        found: list[tuple[str, int, int]] = []
        prefix = ""
        start = 0
        while start < length:
            end = length
            while (token := prefix + word[start:end]) not in self.vocab:
                end -= 1
                if end == start:
                    return unknown
            found.append((token, start, end))
            prefix = CONTINUATION
            start = end
        return found
