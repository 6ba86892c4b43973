"""What the classic models of all families share: loading as 0.6.2 did it, faces for parts, names in state dicts.

The models are those of `pytorch_transformers`, with the arguments and results of 0.6.2: a class here derives from the
one of the same name there, and changes how it is called. No mathematics.
"""

import logging
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from weakref import WeakValueDictionary

from torch import Tensor, nn

from pytorch_transformers.models.base import PreTrainedModel
from pytorch_transformers.models.config import PretrainedConfig
from pytorch_transformers.models.original import load_tf_weights

from .classic_cache import classic_place

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

Module = TypeVar("Module", bound=nn.Module)

#: Whether state dicts have the names of `pytorch_transformers`, whose loading and saving goes by them.
_core_names: Final[ContextVar[bool]] = ContextVar("core_names", default=False)
#: Constants of state dicts that someone still holds.
_constants: Final[WeakValueDictionary[Hashable, Tensor]] = WeakValueDictionary()


def classic_first(values: dict[str, Any]) -> dict[str, Any]:
    """Values of a configuration with the size of the vocabulary under the name of the classic first argument."""
    named = dict(values)
    if "vocab_size" in named:
        named["vocab_size_or_config_json_file"] = named.pop("vocab_size")
    return named


class ClassicConfig(PretrainedConfig):
    """What the classic configurations change in the methods of `pytorch_transformers`: names of arguments."""

    @classmethod
    def from_dict(  # type: ignore[override]
        cls, json_object: Mapping[str, Any], **overrides: Any
    ) -> "Self":
        """Build from the content of a `config.json`; `overrides` replace its values.

        Raises:
            ValueError: A value is impossible, or a key looks like a typing error.
        """
        return super().from_dict(json_object, **overrides)

    @classmethod
    def _by_field(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        return classic_first(super()._by_field(values))


@contextmanager
def core_names() -> Iterator[None]:
    """Inside, state dicts have the names of `pytorch_transformers`."""
    token = _core_names.set(True)
    try:
        yield
    finally:
        _core_names.reset(token)


class ClassicNames(nn.Module):
    """A part whose state dict has the names of 0.6.2, and which loads by them as well as by its own.

    These are methods rather than hooks, so that a part that was put on a face has them, too.
    """

    #: Name here -> name in 0.6.2, both seen from this part.
    renamed: ClassVar[Mapping[str, str]] = {}
    #: Name here -> name in `pytorch_transformers`.
    core_named: ClassVar[Mapping[str, str]] = {}
    #: Names of what 0.6.2 keeps as a buffer -> what makes it, given this part. They are made when a state dict is
    #: written, and dropped when one is read.
    constants: ClassVar[Mapping[str, Callable[[Any], Tensor]]] = {}

    def state_dict(self, *args: Any, **named: Any) -> Any:
        """See `nn.Module.state_dict`; the names are those of 0.6.2."""
        state = super().state_dict(*args, **named)
        prefix = named.get("prefix", args[1] if len(args) > 1 else "")
        core = _core_names.get()
        for own, other in (self.core_named if core else self.renamed).items():
            if prefix + own in state:
                state[prefix + other] = state.pop(prefix + own)
        for name, made in ({} if core else self.constants).items():
            state[prefix + name] = made(self)
        return state

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        for own, other in (*self.renamed.items(), *self.core_named.items()):
            if prefix + other in state_dict:
                value = state_dict.pop(prefix + other)
                state_dict.setdefault(prefix + own, value)
        for name in self.constants:
            state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *others)


def shared_constant(key: Hashable, like: Tensor, make: Callable[[], Tensor]) -> Tensor:
    """A constant of the type and device of `like`; one tensor for all parts, so that a file holds it once.

    Args:
        key: What it is.
        like: A parameter of the part.
        make: Makes it.
    """
    whole = (key, like.dtype, like.device)
    found = _constants.get(whole)
    if found is None:
        found = _constants[whole] = make().to(like)
    return found


class ClassicModel(PreTrainedModel):
    """Base of the classic models.

    Args:
        config: The sizes.
        *inputs: Further arguments of a user's subclass; not used.
        **kwargs: The same.
    """

    #: Class of a part of the model there -> the class here that has the same parameters and is called as in 0.6.2.
    faces: ClassVar[Mapping[type[nn.Module], type[nn.Module]]] = {}

    def __init__(self, config: Any, *inputs: Any, **kwargs: Any) -> None:
        del inputs, kwargs
        super().__init__(config)

    def put_on_faces(self) -> None:
        """Make every part of the model one of the classes here; they have no state of their own."""
        for module in self.modules():
            face = self.faces.get(type(module))
            if face is not None:
                module.__class__ = face

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls, pretrained_model_name_or_path: str, *inputs: Any, **kwargs: Any
    ) -> "Self":
        """Load a model, in training mode as 0.6.2 left it: call `eval()` before using it.

        Args:
            pretrained_model_name_or_path: A shortcut name, a folder, an archive, a file, or an address.
            *inputs: Passed on to the constructor after the configuration.
            **kwargs: `state_dict`, weights to use in place of the file's; `cache_dir`, folder for downloads; `from_tf`,
                whether to read a TensorFlow checkpoint. Others go to the constructor, as `num_labels`.

        Raises:
            OSError: There is no such model, or a file is damaged. (0.6.2 returned None.)
            TypeError: An option is unknown.
        """
        place = classic_place(os.fspath(pretrained_model_name_or_path), cls.pretrained_model_archive_map, kwargs)
        with core_names():
            model: Any = super().from_pretrained(place, *inputs, **kwargs)
        model.train()
        return model

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> list[Path]:
        """See `pytorch_transformers.PreTrainedModel.save_pretrained`, whose names the files have."""
        with core_names():
            return super().save_pretrained(save_directory, **options)

    @staticmethod
    def load_tf_weights(model: Any, *config_and_path: Any, **options: Any) -> Any:
        """Read an original checkpoint into a model, in place: `(model, path)` or `(model, config, path)`."""
        with core_names():
            return load_tf_weights(model, *config_and_path, **options)


def real_rows(attention_mask: Tensor | None) -> Tensor | None:
    """A mask whose rows all have a token: one without any is as good as one with all.

    0.6.2 adds the same number to all scores of such a row, which changes none of its probabilities; padded batches have
    rows of this kind.
    """
    if attention_mask is None or attention_mask.ndim != 2:
        return attention_mask
    empty = (attention_mask == 0).all(dim=1, keepdim=True)
    return attention_mask.masked_fill(empty, 1)


def with_face(module: Module, faces: Mapping[type[nn.Module], type[nn.Module]]) -> Module:
    """A module made on its own, with the classes here for its parts."""
    for part in module.modules():
        face = faces.get(type(part))
        if face is not None:
            part.__class__ = face
    return module


def is_watched(module: nn.Module) -> bool:
    """Whether a hook sees what goes into a module, or what comes out of it."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )


def called_as_in_062(parts: Iterable[tuple[Any, type[nn.Module]]], asked: Mapping[str, bool]) -> bool:
    """Whether parts of a model must be called with the arguments of 0.6.2, since one is a user's own, or watched.

    Args:
        parts: Parts of a layer, each with the class that it has by itself.
        asked: What 0.6.2 has no arguments for -> whether it is asked for.

    Raises:
        NotImplementedError: Such a thing is asked for, and a part is a user's own.
    """
    parts = list(parts)
    own = [part for part, kind in parts if type(part) is not kind or "forward" in vars(part)]
    wanted = [name for name, value in asked.items() if value]
    if own and wanted:
        raise NotImplementedError(
            f"{', '.join(wanted)}: this model has a {type(own[0]).__name__} of your own, which is called as in "
            "pytorch_pretrained_bert 0.6.2, without such an argument; use the model classes of pytorch_transformers, "
            "or parts as they are"
        )
    return bool(own) or (not wanted and any(is_watched(part) for part, _ in parts))


class WithDecoder(nn.Module):
    """A model with a head, whose decoder is called like any module: with its own forward, and its hooks."""

    decoder_class: ClassVar[type[nn.Module]]
    transformer: Any

    def next_token_logits(self, input_ids: Tensor, cache: Any, attention_mask: Tensor | None) -> Tensor:
        """The step of text generation.

        Raises:
            NotImplementedError: The decoder has a forward of its own.
        """
        inner = self.transformer
        if type(inner).forward is not self.decoder_class.forward or "forward" in vars(inner):
            raise NotImplementedError(
                f"text generation: the transformer of this model, a {type(inner).__name__}, has a forward of its own, "
                "which generation would leave out; call the model itself token by token"
            )
        scores: Tensor = super().next_token_logits(input_ids, cache, attention_mask)  # type: ignore[misc]
        return scores
