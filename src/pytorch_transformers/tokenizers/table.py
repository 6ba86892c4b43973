"""The tokens of one tokenizer: its vocabulary, the tokens added to it, and the roles that tokens have."""

from collections.abc import Iterable, Mapping, Sequence

from .special import ROLES


class TokenTable:
    """Maps tokens to ids and back; knows which tokens are special.

    Args:
        vocab: token -> id.
        tokens: the tokens in order of their ids. A vocabulary that holds a token twice has more tokens than `vocab`.
        added: token -> id, for tokens beyond the vocabulary.

    Raises:
        ValueError: an added token has an id that belongs to another token.
    """

    def __init__(self, vocab: Mapping[str, int], tokens: Sequence[str], added: Mapping[str, int]) -> None:
        self.vocab = vocab
        self.tokens = tokens
        self.added: dict[str, int] = {}
        self.roles: dict[str, str | None] = dict.fromkeys(ROLES)
        self.additional: list[str] = []
        self._by_id: dict[int, str] = {}
        self._size = len(tokens)
        for token, number in added.items():
            self._restore(token, number)

    def _restore(self, token: str, number: int) -> None:
        # Other programs also list tokens of the vocabulary among the added ones.
        if self.vocab.get(token) == number:
            return
        holder = self.tokens[number] if 0 <= number < len(self.tokens) else self._by_id.get(number)
        if holder is not None or token in self.vocab or number < 0:
            owner = f"the id of {holder!r}" if holder is not None else f"its id is {self.vocab.get(token)}"
            raise ValueError(f"the added token {token!r} cannot have the id {number}: {owner}")
        self._put(token, number)

    def _put(self, token: str, number: int) -> None:
        self.added[token] = number
        self._by_id[number] = token
        self._size = max(self._size, number + 1)

    def __len__(self) -> int:
        # One more than the largest id, so that a table of embeddings with this many rows has one for each token.
        return self._size

    def __contains__(self, token: str) -> bool:
        return token in self.vocab or token in self.added

    def add(self, tokens: Iterable[str]) -> list[str]:
        """Gives new ids to the tokens that have none.

        Args:
            tokens: the tokens.

        Returns:
            Those that were new.
        """
        new = [token for token in dict.fromkeys(tokens) if token not in self]
        first = len(self)
        for number, token in enumerate(new, first):
            self._put(token, number)
        return new

    def id_of(self, token: str) -> int:
        """Gives the id of a token, that of the unknown token if it has none.

        Args:
            token: the token.

        Raises:
            ValueError: the token has no id and there is no unknown token.
        """
        number = self.vocab.get(token)
        if number is None:
            number = self.added.get(token)
        if number is None:
            unknown = self.roles["unk_token"]
            if unknown is None or unknown not in self:
                raise ValueError(f"{token!r} is not in the vocabulary, and there is no unknown token to stand for it")
            return self.id_of(unknown)
        return number

    def token_of(self, number: int) -> str:
        """Gives the token that has an id.

        Args:
            number: the id.

        Raises:
            ValueError: no token has it.
        """
        if 0 <= number < len(self.tokens):
            return self.tokens[number]
        if number not in self._by_id:
            raise ValueError(f"no token has the id {number}; ids go from 0 to {len(self) - 1}")
        return self._by_id[number]

    def special(self) -> list[str]:
        """Lists the tokens that have a role, then the additional special ones, each once."""
        with_role = [token for token in self.roles.values() if token is not None]
        return list(dict.fromkeys([*with_role, *self.additional]))
