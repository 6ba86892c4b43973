"""The options of a call, checked once, and the options that all tokenizers are built with."""

import difflib
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict

Padding = bool | Literal["longest", "max_length", "do_not_pad"]
Truncation = bool | Literal["longest_first", "only_first", "only_second", "do_not_truncate"]
Tensors = Literal["pt", "np"]
Side = Literal["left", "right"]
EngineName = Literal["auto", "tokenizers", "python"]

_PADDING: Final = {True: "longest", False: "do_not_pad"}
_TRUNCATION: Final = {True: "longest_first", False: "do_not_truncate"}


class CommonOptions(TypedDict, total=False):
    """What every tokenizer can be built with, beside roles and the options of its family; see `TokensAndIds`."""

    additional_special_tokens: Sequence[str]
    model_max_length: int | None
    max_len: int | None
    padding_side: Side
    truncation_side: Side
    split_special_tokens: bool
    clean_up_tokenization_spaces: bool
    engine: EngineName
    added_tokens: Mapping[str, int]


class BaseOptions(CommonOptions, total=False):
    """The common options and the roles; a family that gives a role a default has it in its own signature."""

    bos_token: str | None
    eos_token: str | None
    unk_token: str | None
    sep_token: str | None
    pad_token: str | None
    cls_token: str | None
    mask_token: str | None


class CallOptions(TypedDict, total=False):
    """The keyword options of `PreTrainedTokenizer.__call__`; they are described there."""

    add_special_tokens: bool
    padding: Padding
    truncation: Truncation
    max_length: int | None
    stride: int
    is_split_into_words: bool
    pad_to_multiple_of: int | None
    return_tensors: Tensors | None
    return_token_type_ids: bool | None
    return_attention_mask: bool | None
    return_overflowing_tokens: bool
    return_special_tokens_mask: bool
    return_offsets_mapping: bool
    return_length: bool
    split_special_tokens: bool | None


@dataclass(frozen=True)
class Call:
    """The options of one call, with every default filled in; see `PreTrainedTokenizer.__call__`.

    The sides are those of the tokenizer at the time of the call.

    Raises:
        TypeError: a number is none.
        ValueError: a value is none of those that the option can take.
    """

    padding: str
    truncation: str
    max_length: int | None
    padding_side: Side
    truncation_side: Side
    add_special_tokens: bool = True
    stride: int = 0
    is_split_into_words: bool = False
    pad_to_multiple_of: int | None = None
    return_tensors: str | None = None
    return_token_type_ids: bool = True
    return_attention_mask: bool = True
    return_overflowing_tokens: bool = False
    return_special_tokens_mask: bool = False
    return_offsets_mapping: bool = False
    return_length: bool = False
    split_special_tokens: bool = False

    def __post_init__(self) -> None:
        check_choice("padding", self.padding, ("longest", "max_length", "do_not_pad"))
        check_choice("truncation", self.truncation, ("longest_first", "only_first", "only_second", "do_not_truncate"))
        check_choice("return_tensors", self.return_tensors, ("pt", "np", None))
        self._check_count("max_length", self.max_length, least=0)
        self._check_count("stride", self.stride, least=0)
        self._check_count("pad_to_multiple_of", self.pad_to_multiple_of, least=1)

    def _check_count(self, name: str, value: int | None, *, least: int) -> None:
        if value is not None:
            object.__setattr__(self, name, checked_count(name, value, least=least))  # the class is frozen

    @property
    def truncates(self) -> bool:
        """Whether long texts are cut."""
        return self.truncation != "do_not_truncate"

    @property
    def pads(self) -> bool:
        """Whether short rows are filled."""
        return self.padding != "do_not_pad"

    @property
    def only_ids(self) -> bool:
        """Whether ids alone answer the call, so that nobody needs to know where in the text they came from."""
        return not (
            self.return_overflowing_tokens
            or self.return_special_tokens_mask
            or self.return_offsets_mapping
            or self.is_split_into_words
        )


def padding_name(value: Padding) -> str:
    """Gives the name of a padding strategy.

    Args:
        value: a name, True for "longest" or False for "do_not_pad".
    """
    return _PADDING[value] if isinstance(value, bool) else value


def truncation_name(value: Truncation) -> str:
    """Gives the name of a truncation strategy.

    Args:
        value: a name, True for "longest_first" or False for "do_not_truncate".
    """
    return _TRUNCATION[value] if isinstance(value, bool) else value


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raises `ValueError` if an option has a value that it cannot have.

    Args:
        name: the option.
        value: its value.
        choices: the values that it can have.
    """
    if value not in choices:
        raise ValueError(f"{name}={value!r} is none of {', '.join(map(repr, choices))}")


def checked_count(name: str, value: Any, *, least: int) -> int:
    """Gives a number as an int, be it one of Python's or of NumPy's.

    Args:
        name: the option.
        value: its value.
        least: the least value that it can have.

    Raises:
        TypeError: it is no integer.
        ValueError: it is less.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {value!r:.60} ({type(value).__name__})") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number


def checked_flag(name: str, value: Any) -> bool:
    """Gives a value that is True or False; a text such as "False" would count as true, and is refused.

    Args:
        name: the option.
        value: its value.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r:.60} ({type(value).__name__})")
    return value


def reject_unknown(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises `TypeError` for options that do not exist, and names those that may have been meant.

    Args:
        owner: what the options were given to, for the message.
        given: the names given.
        known: the names that exist.
    """
    known = sorted(known)
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
            raise TypeError(f"{owner} has no option {name!r}{hint}")


def text_of(token: object, name: str) -> str | None:
    """Gives the text of a token that may be wrapped as other libraries and saved files do.

    Args:
        token: a string, None, a mapping with "content", or an object with an attribute `content`.
        name: the option it was given for, for the message.

    Raises:
        TypeError: it is none of these.
    """
    content: Any = token.get("content") if isinstance(token, Mapping) else getattr(token, "content", token)
    if content is None or isinstance(content, str):
        return content
    raise TypeError(f"{name} must be a string or None, not {type(token).__name__}")
