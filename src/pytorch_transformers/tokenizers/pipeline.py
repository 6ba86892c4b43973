"""From text to ids: special tokens in the raw text, added tokens in the normalised text, an engine for the rest."""

from collections.abc import Callable, Iterator, Sequence

from .added import TokenMatcher
from .engine import Engine, Piece, Reference


class Pipeline:
    """Finds special and added tokens and gives what is between them to an engine.

    Special tokens are compared with the text as it is. Added tokens are compared after the family's normalisation of
    both. Either way the leftmost is taken first and the longest of those that begin there.

    Args:
        reference: the readable engine, which also keeps spans where added tokens were found.
        engine: the engine for everything else; may be the reference.
        token_id: token -> id, for the tokens found here.
    """

    def __init__(self, reference: Reference, engine: Engine, token_id: Callable[[str], int]) -> None:
        self.reference = reference
        self.engine = engine
        self._token_id = token_id
        self.special = TokenMatcher()
        self.added = TokenMatcher()
        #: Normalised added token -> the token as it was added.
        self._spelling: dict[str, str] = {}

    def add_special(self, token: str, *, whole_word: bool = False) -> None:
        """Makes a token be found in raw text.

        Args:
            token: the token.
            whole_word: whether it must not touch letters or digits; see `TokenMatcher.add`.
        """
        self.special.add(token, whole_word=whole_word)

    def add_ordinary(self, token: str) -> None:
        """Makes a token be found in normalised text.

        Args:
            token: the token; one of which the normalisation leaves nothing is never found.
        """
        form = self._form_of(token)
        self.added.add(form)
        # Two tokens may have one form; the first one added is the one that is found.
        self._spelling.setdefault(form, token)

    def _form_of(self, token: str) -> str:
        """Gives the form in which a token is looked for; space at its ends would say nothing, as texts lose theirs."""
        return self.reference.normalize(token).strip()

    def ids(self, texts: Sequence[str], *, split_special: bool = False) -> list[list[int]]:
        """Gives the ids of each text.

        Args:
            texts: any texts.
            split_special: whether special tokens in the text are treated as any other text.
        """
        # One look at all texts together: in most batches there is nothing to be found.
        if not self.added and (split_special or not self.special.may_match("".join(texts))):
            return self.engine.ids(texts)
        rows = [self._parts(text, not split_special and self.special.may_match(text)) for text in texts]
        plain = iter(self.engine.ids([part for row in rows for part in row if isinstance(part, str)]))
        return [next(plain) if len(row) == 1 and isinstance(row[0], str) else _joined(row, plain) for row in rows]

    def _parts(self, text: str, find_special: bool) -> list[str | int]:
        """Divides a text into plain texts and the ids of the tokens found between them."""
        if not find_special and not self.added:
            return [text]
        parts: list[str | int] = []
        done = 0
        for start, end in self.special.find(text) if find_special else ():
            self._add_plain(parts, text[done:start])
            parts.append(self._token_id(text[start:end]))
            done = end
        self._add_plain(parts, text[done:])
        return parts

    def _add_plain(self, parts: list[str | int], text: str) -> None:
        if not text:
            return
        form = self.engine.normalize(text) if self.added else ""
        found = self.added.find(form)
        if not found:
            parts.append(text)
            return
        done = 0
        for start, end in found:
            # Normalised text may be normalised again: it gives the same words.
            parts.append(form[done:start])
            parts.append(self._token_id(self._spelling[form[start:end]]))
            done = end
        parts.append(form[done:])

    def pieces(self, texts: Sequence[str], *, split_special: bool = False) -> list[list[Piece]]:
        """Gives the tokens of each text with their ids, spans and words; the ids are those that `ids` gives.

        Args:
            texts: any texts.
            split_special: whether special tokens in the text are treated as any other text.
        """
        if not self.added and (split_special or not self.special.may_match("".join(texts))):
            return self.engine.pieces(texts)
        return [self._pieces_of(text, split_special) for text in texts]

    def _pieces_of(self, text: str, split_special: bool) -> list[Piece]:
        pieces: list[Piece] = []
        done = 0
        for start, end in () if split_special else self.special.find(text):
            _append(pieces, self._plain_pieces(text[done:start]), done)
            token = text[start:end]
            _append(pieces, [Piece(self._token_id(token), token, 0, end - start, 0)], start)
            done = end
        _append(pieces, self._plain_pieces(text[done:]), done)
        return pieces

    def _plain_pieces(self, text: str) -> list[Piece]:
        if not self.added or not self.added.may_match(self.engine.normalize(text)):
            return self.engine.pieces([text])[0] if text else []
        aligned = self.reference.normalize_aligned(text)
        pieces: list[Piece] = []
        done = 0
        for start, end in self.added.find(aligned.text):
            _append(pieces, self.reference.pieces_between(aligned, done, start), 0)
            token = self._spelling[aligned.text[start:end]]
            _append(pieces, [Piece(self._token_id(token), token, *aligned.span(start, end), 0)], 0)
            done = end
        _append(pieces, self.reference.pieces_between(aligned, done, len(aligned.text)), 0)
        return pieces


class SpacedPipeline(Pipeline):
    """For families that keep every space: one at the end of an added token belongs to it."""

    def _form_of(self, token: str) -> str:
        return self.reference.normalize(token)


def _joined(row: Sequence[str | int], plain: Iterator[list[int]]) -> list[int]:
    """Gives the ids of a text in parts: those of plain parts come from `plain` in turn, the others are ids already."""
    return [number for part in row for number in (next(plain) if isinstance(part, str) else (part,))]


def _append(pieces: list[Piece], more: list[Piece], offset: int) -> None:
    """Appends pieces of a later part of a text: their words are counted on, their spans moved by `offset`."""
    words = pieces[-1].word + 1 if pieces else 0
    pieces += [
        Piece(piece.id, piece.token, piece.start + offset, piece.end + offset, piece.word + words) for piece in more
    ]
