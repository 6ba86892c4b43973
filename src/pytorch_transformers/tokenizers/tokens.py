"""The tokens that a tokenizer knows and their ids, and the options that all tokenizers have."""

import logging
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

from .engine import Engine, Reference
from .loading import option_names
from .options import BaseOptions, EngineName, Side, check_choice, checked_count, checked_flag, reject_unknown, text_of
from .pipeline import Pipeline
from .rust import AutoEngine, RustEngine
from .special import ROLES, RoleId, RoleToken
from .table import TokenTable

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

#: What `model_max_length` says when there is no limit; the published package used the same number.
NO_LIMIT: Final = int(1e12)


class TokensAndIds:
    """The tokens of a tokenizer and their ids: the vocabulary, added tokens, special tokens. Base of the tokenizers.

    A family gives `_make_reference`, and calls this constructor after it has set what `_make_reference` reads.

    Args:
        vocab: token -> id.
        tokens: the tokens in order of their ids.
        never_split: words that are kept whole wherever they stand in a text, beside the special tokens.
        options: the options of the family, to be saved with the tokenizer.
        **common: options that all families have. The roles `bos_token`, `eos_token`, `unk_token`, `sep_token`,
            `pad_token`, `cls_token`, `mask_token` and the list `additional_special_tokens` name special tokens; one
            that is not in the vocabulary gets a new id. `model_max_length` (alias `max_len`): most tokens that the
            model can take, special ones included; None for no limit. `padding_side`, `truncation_side`: "right" or
            "left". `split_special_tokens`: treat special tokens in a text as any other text.
            `clean_up_tokenization_spaces`: what `decode` does by default. `engine`: "tokenizers" for the library of
            that name, which uses all cores for a batch; "python" for the readable one; "auto" for the faster one of
            the two on a few cores. All give the same result. `added_tokens`:
            token -> id, tokens beyond the vocabulary, as saved.

    Raises:
        TypeError: there is no option of that name, or it has a value of another type.
        ValueError: an option has a value that it cannot have.
    """

    bos_token, bos_token_id = RoleToken("bos_token"), RoleId("bos_token")
    eos_token, eos_token_id = RoleToken("eos_token"), RoleId("eos_token")
    unk_token, unk_token_id = RoleToken("unk_token"), RoleId("unk_token")
    sep_token, sep_token_id = RoleToken("sep_token"), RoleId("sep_token")
    pad_token, pad_token_id = RoleToken("pad_token"), RoleId("pad_token")
    cls_token, cls_token_id = RoleToken("cls_token"), RoleId("cls_token")
    mask_token, mask_token_id = RoleToken("mask_token"), RoleId("mask_token")

    #: What finds special and added tokens in a text.
    pipeline_class: ClassVar[type[Pipeline]] = Pipeline

    def __init__(
        self,
        vocab: Mapping[str, int],
        tokens: Sequence[str],
        *,
        never_split: Iterable[str] = (),
        options: Mapping[str, Any] | None = None,
        **common: "Unpack[BaseOptions]",
    ) -> None:
        reject_unknown(type(self).__name__, common, option_names(type(self)))
        self._options = dict(options or {})
        self._never_split = list(never_split)
        self._warned: set[str] = set()
        #: Counts the changes after which a text may have other tokens.
        self._changes = 0
        self._table = TokenTable(vocab, tokens, common.get("added_tokens") or {})
        self._set_options(common)
        for role in ROLES:
            self._table.roles[role] = text_of(common.get(role), role)
        additional = _texts(common.get("additional_special_tokens") or (), "additional_special_tokens")
        # Other programs list the tokens that have a role among the special ones again.
        self._table.additional = [token for token in additional if token not in self._table.roles.values()]
        self._give_ids(self._table.special())
        self._build_engine()
        self._rebuild()

    def _set_options(self, common: BaseOptions) -> None:
        limit, alias = common.get("model_max_length"), common.get("max_len")
        if limit is not None and alias is not None and limit != alias:
            raise ValueError(f"model_max_length={limit} and max_len={alias} are two names of one option")
        self.model_max_length = alias if limit is None else limit
        self.padding_side: Side = common.get("padding_side", "right")
        self.truncation_side: Side = common.get("truncation_side", "right")
        split, clean = common.get("split_special_tokens"), common.get("clean_up_tokenization_spaces")
        # Other programs save None for what nobody said.
        self.split_special_tokens = split is not None and checked_flag("split_special_tokens", split)
        self.clean_up_tokenization_spaces = clean is None or checked_flag("clean_up_tokenization_spaces", clean)
        self._engine_name: EngineName = common.get("engine", "auto")
        check_choice("padding_side", self.padding_side, ("right", "left"))
        check_choice("truncation_side", self.truncation_side, ("right", "left"))
        check_choice("engine", self._engine_name, ("auto", "tokenizers", "python"))

    # What a family gives.

    def _make_reference(self) -> Reference:
        """Builds the readable engine; called again when the unknown token changes."""
        raise NotImplementedError(f"{type(self).__name__} has no _make_reference")

    def _stored_form(self, token: str) -> str:
        """Gives the form in which an ordinary token is added."""
        return token

    # Tokens and ids.

    @property
    def model_max_length(self) -> int:
        """Most tokens that the model can take, special ones included; `NO_LIMIT` when nobody said."""
        return self._limit

    @model_max_length.setter
    def model_max_length(self, limit: int | None) -> None:
        # Other programs write 1e30 for "no limit".
        number: Any = limit
        number = int(number) if isinstance(number, float) and number >= NO_LIMIT else number
        self._limit = NO_LIMIT if number is None else min(checked_count("model_max_length", number, least=1), NO_LIMIT)

    @property
    def max_len(self) -> int:
        """The older name of `model_max_length`."""
        return self._limit

    @max_len.setter
    def max_len(self, limit: int | None) -> None:
        self.model_max_length = limit

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary, without added ones."""
        return len(self._table.tokens)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(vocab_size={self.vocab_size}, added={len(self._table.added)}, "
            f"model_max_length={'none' if self._limit == NO_LIMIT else self._limit}, engine={self._engine_name!r}, "
            f"special_tokens={self.special_tokens_map})"
        )

    def get_vocab(self) -> dict[str, int]:
        """Gives token -> id of the vocabulary and of the added tokens."""
        return {**self._table.vocab, **self._table.added}

    def get_added_vocab(self) -> dict[str, int]:
        """Gives token -> id of the added tokens."""
        return dict(self._table.added)

    def _get_role(self, role: str) -> str | None:
        return self._table.roles[role]

    def _set_role(self, role: str, token: str | None) -> None:
        self._table.roles[role] = text_of(token, role)
        self._give_ids([] if token is None else [token])
        if role == "unk_token":
            self._build_engine()
        self._rebuild()

    def _give_ids(self, tokens: Iterable[str]) -> list[str]:
        new = self._table.add(tokens)
        if new:
            shown = ", ".join(f"{token!r} ({self._table.added[token]})" for token in new[:10])
            logger.warning(
                "special tokens that were not in the vocabulary got new ids: %s%s; a model needs %d embeddings for "
                "them (resize_token_embeddings)",
                shown,
                ", ..." if len(new) > 10 else "",
                len(self),
            )
        return new

    @property
    def additional_special_tokens(self) -> list[str]:
        """The special tokens without a role; may be set, and then get ids where they have none."""
        return list(self._table.additional)

    @additional_special_tokens.setter
    def additional_special_tokens(self, tokens: Sequence[str]) -> None:
        self._table.additional = _texts(tokens, "additional_special_tokens")
        self._give_ids(self._table.additional)
        self._rebuild()

    @property
    def additional_special_tokens_ids(self) -> list[int]:
        """The ids of the special tokens without a role."""
        return [self._table.id_of(token) for token in self._table.additional]

    @property
    def all_special_tokens(self) -> list[str]:
        """The special tokens, those with a role first, each once."""
        return self._table.special()

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of `all_special_tokens`."""
        return [self._table.id_of(token) for token in self._table.special()]

    @property
    def special_tokens_map(self) -> dict[str, str | list[str]]:
        """Role -> token for the roles that are taken, and the additional ones if there are any."""
        roles: dict[str, str | list[str]] = {role: token for role, token in self._table.roles.items() if token}
        return roles | ({"additional_special_tokens": list(self._table.additional)} if self._table.additional else {})

    def add_tokens(self, new_tokens: str | Sequence[str], special_tokens: bool = False) -> int:
        """Adds tokens that are found in texts as a whole; those that are in the vocabulary already are passed over.

        An ordinary token is compared with the text after the tokenizer has normalised both, so an uncased tokenizer
        finds it in any case; a special one is compared as it is.

        Args:
            new_tokens: a token, or several.
            special_tokens: whether they become additional special tokens.

        Returns:
            How many were new. The embeddings of a model must have `len(tokenizer)` rows then.
        """
        tokens = _texts([new_tokens] if isinstance(new_tokens, str) else new_tokens, "new_tokens")
        if special_tokens:
            self._table.additional = list(dict.fromkeys([*self._table.additional, *tokens]))
            added = self._table.add(tokens)
            self._rebuild()
            return len(added)
        added = self._table.add(self._stored_form(token) for token in tokens)
        for token in added:
            self._pipeline.add_ordinary(token)
        self._changes += bool(added)
        return len(added)

    def add_special_tokens(self, special_tokens_dict: Mapping[str, str | Sequence[str]]) -> int:
        """Gives roles to tokens, and ids to those that have none.

        Args:
            special_tokens_dict: role -> token; `additional_special_tokens` -> list of tokens, which takes the place of
                the list so far.

        Returns:
            How many tokens were new. The embeddings of a model must have `len(tokenizer)` rows then.

        Raises:
            TypeError: there is no such role.
        """
        reject_unknown("add_special_tokens", special_tokens_dict, (*ROLES, "additional_special_tokens"))
        before = len(self._table.added)
        for role, value in special_tokens_dict.items():
            if role == "additional_special_tokens":
                self._table.additional = _texts(value, role)
            else:
                self._table.roles[role] = text_of(value, role)
        self._table.add(self._table.special())
        if "unk_token" in special_tokens_dict:
            self._build_engine()
        self._rebuild()
        return len(self._table.added) - before

    def _build_engine(self) -> None:
        self._reference = self._make_reference()
        self._engine: Engine = self._make_engine(self._engine_name)

    def _make_engine(self, name: EngineName) -> Engine:
        """Builds the engine of that name on `_reference`."""
        engines: dict[str, Callable[[Reference], Engine]] = {"tokenizers": RustEngine, "auto": AutoEngine}
        build = engines.get(name)
        return self._reference if build is None else build(self._reference)

    def _id_of(self, token: str) -> int:
        return self._table.id_of(token)

    def _rebuild(self) -> None:
        """Builds the matchers anew after a change of special tokens."""
        self._changes += 1
        self._pipeline = self.pipeline_class(self._reference, self._engine, self._table.id_of)
        special = dict.fromkeys(self._table.special())
        for token in special:
            self._pipeline.add_special(token)
        for token in self._never_split:
            self._pipeline.add_special(token, whole_word=True)
        for token in self._table.added:
            if token not in special:
                self._pipeline.add_ordinary(token)

    @overload
    def convert_tokens_to_ids(self, tokens: str) -> int: ...

    @overload
    def convert_tokens_to_ids(self, tokens: list[str] | tuple[str, ...]) -> list[int]: ...

    def convert_tokens_to_ids(self, tokens: str | list[str] | tuple[str, ...]) -> int | list[int]:
        """Looks up ids; a token that is not in the vocabulary has the id of the unknown token.

        Args:
            tokens: a token, or several.

        Raises:
            ValueError: a token is not there and there is no unknown token.
        """
        if isinstance(tokens, str):
            return self._table.id_of(tokens)
        return [self._table.id_of(token) for token in tokens]

    @overload
    def convert_ids_to_tokens(self, ids: int, skip_special_tokens: bool = False) -> str: ...

    @overload
    def convert_ids_to_tokens(self, ids: Iterable[int], skip_special_tokens: bool = False) -> list[str]: ...

    def convert_ids_to_tokens(self, ids: int | Iterable[int], skip_special_tokens: bool = False) -> str | list[str]:
        """Looks up tokens.

        Args:
            ids: an id, or several (a list, array or one-dimensional tensor).
            skip_special_tokens: whether to leave out special tokens; has no effect on a single id.

        Raises:
            TypeError: what should be an id is no integer.
            ValueError: no token has the id.
        """
        numbers = numbers_of(ids)
        if isinstance(numbers, int):
            return self._table.token_of(numbers)
        skipped = set(self.all_special_ids) if skip_special_tokens else set()
        return [self._table.token_of(number) for number in numbers if number not in skipped]

    @property
    def init_options(self) -> dict[str, Any]:
        """The options that would build this tokenizer from its vocabulary and added tokens; they are what is saved."""
        return {
            **self._options,
            **self._table.roles,
            "additional_special_tokens": list(self._table.additional),
            "model_max_length": None if self._limit == NO_LIMIT else self._limit,
            "padding_side": self.padding_side,
            "truncation_side": self.truncation_side,
            "split_special_tokens": self.split_special_tokens,
            "clean_up_tokenization_spaces": self.clean_up_tokenization_spaces,
            "engine": self._engine_name,
        }

    def _warn_once(self, message: str) -> None:
        """Logs a warning the first time; `message` without its numbers is what counts as the same."""
        key = "".join(char for char in message if not char.isdigit())
        if key not in self._warned:
            self._warned.add(key)
            logger.warning("%s", message)


def _texts(values: Iterable[object], name: str) -> list[str]:
    """Gives the texts of several tokens, each once."""
    if isinstance(values, str):
        raise TypeError(f"{name} must be a list of tokens, not one string")
    texts = [text_of(value, f"{name}[{number}]") for number, value in enumerate(values)]
    if None in texts or "" in texts:
        raise ValueError(f"{name} holds an empty token at place {[not text for text in texts].index(True)}")
    return [text for text in dict.fromkeys(texts) if text]


def numbers_of(ids: Any) -> int | list[int]:
    """Gives an id, or several, as int: a tensor, an array, an integer of either, or a sequence of such.

    Args:
        ids: the ids.

    Raises:
        TypeError: something is no integer.
        ValueError: there is more than one row.
    """
    values = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, (int, Iterable)):
        raise TypeError(f"ids must be an int or a list of int, not {values!r:.60} ({type(values).__name__})")
    if isinstance(values, int):
        return values
    return [_number(value) for value in values]


def _number(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, (list, tuple)) or getattr(value, "ndim", None):
            raise ValueError("ids must be one row; use batch_decode for several") from None
        raise TypeError(f"an id must be an int, not {value!r:.60} ({type(value).__name__})") from None
