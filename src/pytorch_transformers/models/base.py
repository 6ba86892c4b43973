"""`PreTrainedModel`: what all models share - construction, loading, saving, resizing, pruning. No mathematics."""

import inspect
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, overload

import torch
from torch import Tensor, nn

from ..checkpoint.keymap import KeyMap, select
from ..checkpoint.load import LoadReport, load_state
from ..checkpoint.read import WEIGHT_FILES, find_weights, read_weights
from ..checkpoint.save import save_bin, save_safetensors, save_sharded
from ..files import SAFE_WEIGHTS_NAME, WEIGHTS_NAME
from ..hub import Location, locate
from ..nn.fused import FusableLayer
from ..nn.tied import TiedEmbedding
from ..nn.values import layers_and_heads, whole_number
from .config import PretrainedConfig
from .construction import (
    InitialisesItself,
    NothingDrawn,
    constructing,
    fill_empty,
    share_parameters,
    shared_parameters,
)
from .original import find_original, fitting_config, inferred_config, load_tf_weights, original_state

logger = logging.getLogger(__name__)

Model = TypeVar("Model", bound="PreTrainedModel")
Name = str | PathLike[str]


class PreTrainedModel(nn.Module, metaclass=InitialisesItself):
    """Base of all models.

    A subclass that calls `super().__init__(config)` and adds modules gets their weights initialised by the rule of
    its family when its constructor ends, unless it calls `init_weights` itself. Modules loaded by `from_pretrained`
    inside the constructor keep their weights.

    Raises:
        TypeError: `config` is no configuration of the family.
    """

    config_class: ClassVar[type[PretrainedConfig]] = PretrainedConfig
    #: Name of the encoder inside models with heads.
    base_model_prefix: ClassVar[str] = ""
    #: Shortcut name -> address of the weights.
    pretrained_model_archive_map: ClassVar[Mapping[str, str]] = {}
    #: Patterns of checkpoint names that stand for constants, which the code makes itself.
    constant_keys: ClassVar[tuple[str, ...]] = ()
    #: Parameter -> the parameter it shares its values with.
    tied_weights: ClassVar[Mapping[str, str]] = {}
    #: Names of the original program's checkpoints and of ours, in rows; see `own_key_map`.
    key_map: ClassVar[KeyMap]

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__()
        if not isinstance(config, self.config_class):
            raise TypeError(
                f"{type(self).__name__} takes a {self.config_class.__name__}, found {type(config).__name__}; "
                f"to load weights by name or path use {type(self).__name__}.from_pretrained"
            )
        self.config = config
        self.is_initialised = False
        self._is_loaded = False
        self.register_load_state_dict_pre_hook(_without_constants)  # type: ignore[no-untyped-call]

    # Construction

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise the parameters of one module (not of its children) by the rule of the family."""
        raise NotImplementedError(f"{type(self).__name__} has no rule for new weights")

    def init_weights(self, module: nn.Module | None = None) -> None:
        """Initialise all modules but those that `from_pretrained` loaded, and tie what is shared.

        Args:
            module: Only this one, without its children: the form of `self.apply(self.init_weights)`.
        """
        self.is_initialised = True
        with torch.no_grad():
            if module is not None:
                self._init_weights(module)
            else:
                self._init_below(self)
        self.tie_weights()

    def post_init(self) -> None:
        """Another name of `init_weights`, which code for later libraries calls at the end of a constructor."""
        self.init_weights()

    def _init_below(self, module: nn.Module) -> None:
        if getattr(module, "_is_loaded", False):
            return
        for child in module.children():
            self._init_below(child)
        self._init_weights(module)

    def own_tied_weights(self) -> Mapping[str, str]:
        """`tied_weights` of this model; a family may make them depend on the configuration."""
        return self.tied_weights

    def tie_weights(self) -> None:
        """Make parameters that share their values one parameter (`own_tied_weights`)."""
        share_parameters(self, self.own_tied_weights())

    @property
    def base_model(self) -> "PreTrainedModel":
        """The encoder: the model itself, or the part of it named `base_model_prefix`."""
        base: PreTrainedModel = getattr(self, self.base_model_prefix, self)
        return base

    # Embeddings, heads

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of word embeddings [V, H]."""
        if self.base_model is self:
            raise NotImplementedError(f"{type(self).__name__} has no {self.base_model_prefix!r} and no embeddings")
        return self.base_model.get_input_embeddings()

    def set_input_embeddings(self, embeddings: nn.Embedding) -> None:
        """Replace the table of word embeddings [V, H]; what shares its values goes on doing so."""
        shared = shared_parameters(self, self.base_model_prefix)
        self._replace_embeddings(embeddings)
        self._resize_output(embeddings.num_embeddings)
        share_parameters(self, shared)
        self._note_vocabulary(embeddings.num_embeddings)

    def _replace_embeddings(self, embeddings: nn.Embedding) -> None:
        if self.base_model is self:
            raise NotImplementedError(f"{type(self).__name__} has no {self.base_model_prefix!r} and no embeddings")
        self.base_model._replace_embeddings(embeddings)

    def resize_token_embeddings(self, new_num_tokens: int | None = None) -> nn.Embedding:
        """Change the size of the vocabulary: rows are cut off, or added and initialised by the family's rule.

        Args:
            new_num_tokens: New V; None changes nothing.

        Returns:
            The table of word embeddings.

        Raises:
            ValueError: It is no whole number of at least 1.
        """
        old = self.get_input_embeddings()
        if new_num_tokens is None:
            return old
        new_num_tokens = whole_number("new_num_tokens", new_num_tokens, 1)
        if new_num_tokens == old.num_embeddings:
            return old
        new = TiedEmbedding(new_num_tokens, old.embedding_dim, device=old.weight.device, dtype=old.weight.dtype)
        kept = min(new_num_tokens, old.num_embeddings)
        with torch.no_grad():
            self._init_weights(new)
            new.weight[:kept] = old.weight[:kept]
        new.weight.requires_grad_(old.weight.requires_grad)
        new.train(old.training)
        self.set_input_embeddings(new)
        return new

    def _note_vocabulary(self, size: int) -> None:
        """Write the new number of rows into the configuration; `vocab_size` is what every family calls it."""
        vars(self.config)["vocab_size"] = size

    def _resize_output(self, new_num_tokens: int) -> None:
        """Fit what else has one row or value a vocabulary entry; models with a language head override it."""

    def prune_heads(self, heads_to_prune: Mapping[int, Iterable[int]]) -> None:
        """Remove attention heads for good; removing a head that is gone already changes nothing.

        Args:
            heads_to_prune: Layer -> heads, both counted from 0 in the original numbering.

        Raises:
            ValueError: There is no such layer or head, or no head would be left in a layer.
            TypeError: It is no mapping of layers to heads.
        """
        self.base_model._prune_heads(layers_and_heads(heads_to_prune))

    def _prune_heads(self, heads_to_prune: Mapping[int, set[int]]) -> None:
        raise NotImplementedError(f"{type(self).__name__} can't prune heads")

    def packaged(self, output: Any, return_dict: bool | None) -> Any:
        """The output itself, or a plain tuple where the call or the configuration asks for one."""
        named = self.config.return_dict if return_dict is None else return_dict
        return output if named and (return_dict or not self.config.torchscript) else tuple(output)

    # Switches

    def gradient_checkpointing_enable(self) -> None:
        """In training, keep only the input of each layer and compute the layer again in backward: less memory."""
        self.config.gradient_checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        """Keep all activations again."""
        self.config.gradient_checkpointing = False

    def fuse_for_inference(self: Model) -> Model:
        """Pack copies of the weights for fast inference on the CPU; returns the model, in evaluation mode.

        Without gradients, each linear step then is one kernel with what follows it (see `nn/fused.py`): same results
        within float rounding. The copies cost as much memory as the layers; `train()` and a change of type or device
        drop them, and a weight that changes makes the copies of its layer unused. Changes through `weight.data` go
        unseen: call this again after them.
        """
        self.eval()
        for module in self.modules():
            if isinstance(module, FusableLayer):
                module.fuse()
        return self

    @property
    def device(self) -> torch.device:
        """Where the word embeddings are, and so where inputs must be."""
        return self.get_input_embeddings().weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the word embeddings."""
        return self.get_input_embeddings().weight.dtype

    def num_parameters(self) -> int:
        """Number of learned values, tied ones counted once."""
        return sum(parameter.numel() for parameter in self.parameters())

    # Files

    def own_key_map(self) -> KeyMap:
        """`key_map` of this model; a family may make its rows depend on the configuration."""
        return self.key_map

    @overload
    @classmethod
    def from_pretrained(
        cls: type[Model],
        name_or_path: Name,
        *model_args: Any,
        output_loading_info: Literal[False] = False,
        **options: Any,
    ) -> Model: ...

    @overload
    @classmethod
    def from_pretrained(
        cls: type[Model], name_or_path: Name, *model_args: Any, output_loading_info: Literal[True], **options: Any
    ) -> tuple[Model, dict[str, Any]]: ...

    @classmethod
    def from_pretrained(
        cls: type[Model],
        name_or_path: Name,
        *model_args: Any,
        config: PretrainedConfig | Mapping[str, Any] | Name | None = None,
        cache_dir: Name | None = None,
        state_dict: Mapping[str, Tensor] | None = None,
        from_tf: bool = False,
        revision: str | None = None,
        local_files_only: bool = False,
        dtype: torch.dtype | str | None = None,
        device: torch.device | str | None = None,
        output_loading_info: bool = False,
        ignore_mismatched_sizes: bool = False,
        **config_overrides: Any,
    ) -> Model | tuple[Model, dict[str, Any]]:
        """Load a model, in evaluation mode.

        Args:
            name_or_path: A shortcut name (bert-base-uncased, …), a repository on the hub (owner/name), a folder, a
                weights file beside its configuration, the prefix of a TensorFlow checkpoint, or the path or address
                of a .tar.gz archive.
            *model_args: Passed on to the constructor after the configuration.
            config: A configuration, its values, or its name or path, in place of that beside the weights. Without
                either, an original checkpoint of a family whose program keeps none is asked for its sizes.
            cache_dir: Folder for downloads; the hub's own by default.
            state_dict: Weights to use in place of those in the files.
            from_tf: Whether to read a TensorFlow checkpoint where there are PyTorch weights as well. Without them, and
                for the prefix of a TensorFlow checkpoint, it is read in any case.
            revision: Branch, tag or commit of a repository.
            local_files_only: Whether to use no network at all.
            dtype: Type of the weights: a torch.dtype, its name, "auto" for that of the files; float32 by default.
            device: Where the weights go; the CPU by default.
            output_loading_info: Whether to return, beside the model, a dict of `missing_keys`, `unexpected_keys`,
                `mismatched_keys` and `error_msgs`.
            ignore_mismatched_sizes: Whether weights of another shape are initialised anew rather than an error.
            **config_overrides: Fields of the configuration to change, or named arguments of the constructor.

        Raises:
            OSError: There is no such place, a file is missing, corrupt or truncated; the message names it.
            ValueError: Shapes differ, not one weight fits, or a configuration value is impossible.
            TypeError: An option is unknown.
        """
        if "torch_dtype" in config_overrides:  # the name in other libraries
            if dtype is not None:
                raise TypeError("dtype and torch_dtype are two names of one option; give one of them")
            dtype = config_overrides.pop("torch_dtype")
        if isinstance(config, Mapping):
            config = cls.config_class.from_dict(config)
        location = locate(
            name_or_path,
            shortcuts=cls.config_class.repositories,
            cache_dir=cache_dir,
            revision=revision,
            local_files_only=local_files_only,
        )
        original = None if state_dict is not None else find_original(location, cls.key_map, asked=from_tf)
        constructor_options = cls._constructor_options(config_overrides)
        given = isinstance(config, PretrainedConfig)
        if config is None and original is not None and not _has_config(location, cls.config_class):
            config = inferred_config(cls.config_class, original, cls.key_map, select(cls.key_map, original))
        if not isinstance(config, PretrainedConfig):
            config = cls.config_class.from_pretrained(
                name_or_path if config is None else config,
                cache_dir=cache_dir,
                revision=revision if config is None else None,
                local_files_only=local_files_only,
            )
        config = cls.overridden(config, config_overrides)
        if original is not None:
            said = given or bool({"num_labels", "id2label", "label2id"} & config_overrides.keys())
            config = fitting_config(config, original, cls.key_map, select(cls.key_map, original), labels=not said)
        state: Mapping[str, Tensor]
        if state_dict is not None:
            source, state = "state_dict", _checked_state(state_dict)
        elif original is None:  # before the model is built: what can't be read is found at once
            files = find_weights(location)
            source, state = fspath(files[0]), read_weights(files)
        target = torch.device("cpu" if device is None else device)
        kind = _dtype(dtype)
        model = cls._blank(config, target, kind, *model_args, **constructor_options)
        model.tie_weights()
        shared = shared_parameters(model, cls.base_model_prefix)
        report = LoadReport()
        if original is not None:
            state, plan = original_state(model, original, any_shape=ignore_mismatched_sizes)
            source, report.unexpected = fspath(original.prefix), plan.left_out
        try:
            load_state(
                model,
                state,
                report,
                base_prefix=cls.base_model_prefix,
                ignored=cls.constant_keys,
                tied=shared,
                dtype=kind,
                device=target,
                copy=state_dict is not None,
                ignore_mismatched_sizes=ignore_mismatched_sizes,
            )
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
        share_parameters(model, shared)
        build = partial(cls, config, *model_args, **constructor_options)
        fill_empty(model, model._init_weights, build, target, kind)
        share_parameters(model, shared)
        for module in model.modules():
            if isinstance(module, PreTrainedModel):
                module._is_loaded = True
        if summary := report.summary(cls.__name__, source):
            logger.warning(summary)
        model.eval()
        return (model, report.as_dict()) if output_loading_info else model

    @classmethod
    def without_values(cls: type[Model], config: PretrainedConfig) -> Model:
        """The model on the meta device, in evaluation mode: names, shapes and types without memory for values."""
        model = cls._blank(config, torch.device("meta"), None)
        model.tie_weights()
        return model.eval()

    @classmethod
    def _constructor_options(cls, overrides: dict[str, Any]) -> dict[str, Any]:
        """Take those options out of `overrides` that the constructor names, as a user's subclass may."""
        named = inspect.signature(cls.__init__).parameters
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        own = [key for key in overrides if key in named and named[key].kind in kinds and key not in ("self", "config")]
        return {key: overrides.pop(key) for key in own}

    @classmethod
    def overridden(cls, config: PretrainedConfig, overrides: Mapping[str, Any]) -> PretrainedConfig:
        """A configuration with some fields changed; the one given stays as it is.

        Raises:
            TypeError: A field is unknown.
            ValueError: A value is impossible.
        """
        fields = {config.aliases.get(key, key): value for key, value in overrides.items()}
        config.refuse_typos(fields)
        for key in fields:
            if not hasattr(config, key):
                raise TypeError(f"{cls.__name__}: unknown option {key!r}; it is no field of {type(config).__name__}")
        return type(config).from_dict(config.to_dict(), **fields) if fields else config

    @classmethod
    def _blank(
        cls: type[Model],
        config: PretrainedConfig,
        device: torch.device,
        dtype: torch.dtype | None,
        *args: Any,
        **kwargs: Any,
    ) -> Model:
        """The model without values, so that nothing is allocated or drawn at random that a checkpoint replaces."""
        with constructing():
            try:
                with NothingDrawn(), torch.device("meta"):
                    return cls(config, *args, **kwargs)
            except RuntimeError:  # a user's constructor that computes with values, which the meta device has not
                model = cls(config, *args, **kwargs)
        model.init_weights()
        return model.to(device, dtype)

    @staticmethod
    def load_tf_weights(
        model: Model, *config_and_path: Any, scope: str = "", ignore: Sequence[str] = (), **named: Any
    ) -> Model:
        """See `original.load_tf_weights`, which published code calls as a function of the class."""
        return load_tf_weights(model, *config_and_path, scope=scope, ignore=ignore, **named)

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        safe_serialization: bool = True,
        max_shard_size: int | str | None = None,
    ) -> list[Path]:
        """Write `config.json` and the weights into a folder, each file in one step.

        Args:
            save_directory: The folder; it is made when missing.
            safe_serialization: True writes `model.safetensors`, False `pytorch_model.bin` (all names, tied ones too).
            max_shard_size: Largest file, in bytes or as "200MB"; by default the weights are one file.

        Returns:
            The paths written.

        Raises:
            OSError: The disk refused a file; what was there before stays.
        """
        folder = Path(save_directory)
        vars(self.config)["architectures"] = [type(self).__name__]
        self.config.to_json_string()  # what can't be written is found before anything is
        state = self.state_dict()
        shared = shared_parameters(self, self.base_model_prefix)
        if untied := [f"{name} and {source}" for name, source in self.own_tied_weights().items() if name not in shared]:
            logger.warning("%s: not one weight any more, but loading makes them one again", "; ".join(untied))
        if not safe_serialization:
            weights = [folder / WEIGHTS_NAME]
            save_bin(state, weights[0])
            _remove_preferred(folder)
        else:
            state = {name: tensor for name, tensor in state.items() if name not in shared}
            if max_shard_size is None:
                weights = [folder / SAFE_WEIGHTS_NAME]
                save_safetensors(state, weights[0])
            else:
                weights = save_sharded(state, folder, max_shard_size)
        return [self.config.save_pretrained(folder), *weights]


def _has_config(location: Location, kind: type[PretrainedConfig]) -> bool:
    """Whether a configuration was named, or lies in the place."""
    named = location.chosen is not None and location.chosen.suffix == ".json"
    return named or location.first(kind.filenames) is not None


def _without_constants(model: nn.Module, state: dict[str, Any], prefix: str, *others: Any) -> None:
    """Leave out of a state dict, before it is loaded, what the code makes itself."""
    del prefix, others
    patterns = [re.compile(pattern) for pattern in getattr(model, "constant_keys", ())]
    for name in [name for name in state if any(pattern.search(name) for pattern in patterns)]:
        del state[name]


def _remove_preferred(folder: Path) -> None:
    """Remove older weights that a reader would take before the `pytorch_model.bin` just written."""
    for name in WEIGHT_FILES[: WEIGHT_FILES.index(WEIGHTS_NAME)]:
        if (folder / name).exists():
            logger.warning(
                "Removed %s of an earlier save, which would be read in place of %s.", folder / name, WEIGHTS_NAME
            )
            (folder / name).unlink()


def _checked_state(state_dict: Any) -> Mapping[str, Tensor]:
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"state_dict: expected names and tensors, found {type(state_dict).__name__}")
    if others := [name for name, value in state_dict.items() if not isinstance(value, Tensor)]:
        raise TypeError(f"state_dict: {others[0]!r} is no tensor but {type(state_dict[others[0]]).__name__}")
    return state_dict


def _dtype(dtype: torch.dtype | str | None) -> torch.dtype | None:
    """The type that floating-point weights get; None keeps that of the files."""
    if dtype is None:
        return torch.get_default_dtype()
    if dtype == "auto":
        return None
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ValueError(f"dtype: {dtype!r} is no floating-point type; use float32, bfloat16, float16, or auto")
    return found
