"""Special tokens: the roles a token can have, as attributes of a tokenizer, and where they stand in an input."""

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, overload

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The roles, in the order in which they are listed.
ROLES: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class HasRoles(Protocol):
    """What the attributes below need of a tokenizer."""

    def _get_role(self, role: str) -> str | None: ...

    def _set_role(self, role: str, token: str | None) -> None: ...

    def _id_of(self, token: str) -> int: ...


class RoleToken:
    """The token that has a role, None if no token has it; may be set, and then gets an id if it has none.

    Args:
        role: one of `ROLES`.
    """

    def __init__(self, role: str) -> None:
        self._role = role
        self.__doc__ = f"The {role.replace('_', ' ')}, or None."

    @overload
    def __get__(self, owner: None, cls: type) -> "RoleToken": ...

    @overload
    def __get__(self, owner: HasRoles, cls: type) -> str | None: ...

    def __get__(self, owner: HasRoles | None, cls: type) -> "RoleToken | str | None":
        return self if owner is None else owner._get_role(self._role)

    def __set__(self, owner: HasRoles, token: str | None) -> None:
        owner._set_role(self._role, token)


class RoleId:
    """The id of the token that has a role, None if no token has it.

    Args:
        role: one of `ROLES`.
    """

    def __init__(self, role: str) -> None:
        self._role = role
        self.__doc__ = f"The id of the {role.replace('_', ' ')}, or None."

    @overload
    def __get__(self, owner: None, cls: type) -> "RoleId": ...

    @overload
    def __get__(self, owner: HasRoles, cls: type) -> int | None: ...

    def __get__(self, owner: HasRoles | None, cls: type) -> "RoleId | int | None":
        if owner is None:
            return self
        token = owner._get_role(self._role)
        return None if token is None else owner._id_of(token)

    def __set__(self, owner: HasRoles, number: int) -> None:
        raise AttributeError(f"the id follows from the token: set {self._role} instead of {self._role}_id")


class Layout(NamedTuple):
    """Which special ids stand before the first text, between the texts and after the last.

    The ids before and between belong to the first text, those after to the last; so the segment of a token is 0 up to
    the end of `between` in a pair, 1 from there.
    """

    before: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def special_count(self, *, pair: bool) -> int:
        """Counts the special tokens.

        Args:
            pair: whether there are two texts.
        """
        return len(self.before) + len(self.after) + (len(self.between) if pair else 0)

    def join(self, first: "Sequence[int]", second: "Sequence[int] | None" = None) -> list[int]:
        """Puts the special ids around the ids of one text, or of two.

        Args:
            first: ids of the first text.
            second: ids of the second text.
        """
        if second is None:
            return [*self.before, *first, *self.after]
        return [*self.before, *first, *self.between, *second, *self.after]

    def segments(self, first: int, second: int | None = None) -> list[int]:
        """Gives the segment of each token, special tokens included.

        Args:
            first: tokens of the first text.
            second: tokens of the second text.
        """
        if second is None:
            return [0] * (len(self.before) + first + len(self.after))
        return [0] * (len(self.before) + first + len(self.between)) + [1] * (second + len(self.after))

    def special_mask(self, first: int, second: int | None = None) -> list[int]:
        """Gives 1 for each special token and 0 for each token of a text.

        Args:
            first: tokens of the first text.
            second: tokens of the second text.
        """
        mask = [1] * len(self.before) + [0] * first
        if second is not None:
            mask += [1] * len(self.between) + [0] * second
        return mask + [1] * len(self.after)
