"""The Transformer-XL decoder: ids to hidden states, with a memory of earlier segments.

Source: kimiyoung/transformer-xl, tf/model.py, transformer. What is surprising in it: the memory holds what went into
each layer; it starts as zeros, which are attended to like any token; and no position is added to the words, since
attention looks at distances. Letters of the shapes: `nn/__init__.py`; M is the number of tokens in the memory, and
K = M + T.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ...checkpoint.keymap import KeyMap
from ...nn.checks import (
    check_device,
    check_float_type,
    check_indices,
    check_shape,
    check_tensor,
    recording,
    transforming,
)
from ...nn.dropout import Dropout
from ...nn.tied import TiedEmbedding
from ...nn.values import whole_number
from ..base import PreTrainedModel
from ..config import PretrainedConfig
from ..construction import share_parameters, shared_parameters
from ..decoder import layer_head_mask
from ..outputs import TransfoXLModelOutput
from .adaptive_softmax import AdaptiveEmbedding, ProjectedAdaptiveLogSoftmax
from .config import TransfoXLConfig
from .convert import KEY_MAP, key_map
from .memory import LayerMemory, TransfoXLCache
from .pretrained import TRANSFO_XL_PRETRAINED_MODEL_ARCHIVE_MAP
from .relative_attention import (
    Context,
    LayerOutput,
    PositionalEmbedding,
    RelPartialLearnableDecoderLayer,
    RelPartialLearnableMultiHeadAttn,
)

#: What a segment continues from: for each layer what went into it, [M, B, H], or a cache.
Memories = Sequence[Tensor] | TransfoXLCache | None


class TransfoXLPreTrainedModel(PreTrainedModel):
    """Base of the Transformer-XL models, and of your own: subclass it, and new modules are initialised as its own."""

    config_class: ClassVar[type[PretrainedConfig]] = TransfoXLConfig
    base_model_prefix: ClassVar[str] = "transformer"
    key_map: ClassVar[KeyMap] = KEY_MAP
    pretrained_model_archive_map: ClassVar[Mapping[str, str]] = TRANSFO_XL_PRETRAINED_MODEL_ARCHIVE_MAP
    #: Published checkpoints hold the wave lengths of the sinusoids.
    constant_keys: ClassVar[tuple[str, ...]] = (r"(^|\.)pos_emb\.inv_freq$",)
    config: TransfoXLConfig

    def own_key_map(self) -> KeyMap:
        """The rows for clusters and layers as the configuration has them."""
        return key_map(self.config)

    def _init_weights(self, module: nn.Module) -> None:
        """Matrices and attention's biases from a normal or uniform distribution, other biases 0, normalisation 1.

        Source: tf/train_gpu.py, `initializer` and `proj_initializer`.
        """
        config = self.config

        def draw(weight: Tensor) -> None:
            if config.init == "uniform":
                weight.uniform_(-config.init_range, config.init_range)
            else:
                weight.normal_(0.0, config.init_std)

        if isinstance(module, nn.Linear | nn.Embedding):
            draw(module.weight)
        elif isinstance(module, nn.LayerNorm) and module.elementwise_affine:
            module.weight.fill_(1.0)
        elif isinstance(module, RelPartialLearnableMultiHeadAttn | TransfoXLModel):
            for bias in (module.r_w_bias, module.r_r_bias):
                if bias is not None:
                    draw(bias)
        elif isinstance(module, AdaptiveEmbedding | ProjectedAdaptiveLogSoftmax):
            projections = module.emb_projs if isinstance(module, AdaptiveEmbedding) else module.out_projs
            for projection in projections:
                if projection is not None:
                    projection.normal_(0.0, config.proj_init_std)
            if isinstance(module, ProjectedAdaptiveLogSoftmax) and module.tails:
                draw(module.cluster_weight)
                module.cluster_bias.zero_()
        if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is not None:
            module.bias.zero_()

    def resize_token_embeddings(self, new_num_tokens: int | None = None) -> Any:
        """Change the size of the vocabulary: the last cluster loses words, or gets new ones.

        Args:
            new_num_tokens: New V; None changes nothing.

        Returns:
            The tables of words, an `AdaptiveEmbedding`.

        Raises:
            ValueError: It is no whole number, or would leave the last cluster without words.
        """
        tables: Any = self.get_input_embeddings()
        if new_num_tokens is None or new_num_tokens == tables.num_embeddings:
            return tables
        old = tables.emb_layers[-1]
        assert isinstance(old, nn.Embedding)
        words = whole_number("new_num_tokens", new_num_tokens, 1) - tables.num_embeddings + old.num_embeddings
        start = self.config.cutoffs[-1] if self.config.cutoffs else 0
        if new_num_tokens <= start:
            raise ValueError(
                f"new_num_tokens: {new_num_tokens}, but the last cluster begins at word {start}; keep more"
            )
        new = TiedEmbedding(words, old.embedding_dim, device=old.weight.device, dtype=old.weight.dtype)
        kept = min(words, old.num_embeddings)
        with torch.no_grad():
            self._init_weights(new)
            new.weight[:kept] = old.weight[:kept]
        new.weight.requires_grad_(old.weight.requires_grad)
        shared = shared_parameters(self, self.base_model_prefix)
        tables.replace_last(new.train(old.training))
        self._resize_output(new_num_tokens)
        share_parameters(self, shared)
        self._note_vocabulary(new_num_tokens)
        return tables

    def _make_decoder(self, config: TransfoXLConfig) -> "TransfoXLModel":
        """Build the decoder of a model with a head."""
        return TransfoXLModel(config)


class Decoded(NamedTuple):
    """Result of `TransfoXLModel.decode`: [B, T, H]; what to remember, [M, B, H] a layer; states and probabilities."""

    hidden: Tensor
    mems: tuple[Tensor, ...]
    states: tuple[Tensor, ...]
    probs: tuple[Tensor, ...]


class TransfoXLModel(TransfoXLPreTrainedModel):
    """The decoder without a head.

    Args:
        config: The sizes.

    Attributes:
        tgt_len: Tokens of a segment; for programs that cut a text into segments.
        ext_len: Tokens at the end of a segment that stay out of the memory.
        mem_len: Tokens of the memory.
        clamp_len: Distance from which all positions look alike; none if it isn't above 0.
        same_length: Whether every token sees itself and `mem_len` tokens before it, rather than all there are.
    """

    def __init__(self, config: TransfoXLConfig) -> None:
        super().__init__(config)
        self.tgt_len, self.ext_len, self.mem_len = config.tgt_len, config.ext_len, config.mem_len
        self.clamp_len, self.same_length = config.clamp_len, config.same_length
        self.word_emb = AdaptiveEmbedding(
            config.vocab_size,
            config.d_embed,
            config.d_model,
            config.cutoffs,
            config.div_val,
            proj_same_dim=config.proj_same_dim,
        )
        self.drop = Dropout(config.dropout)
        self.r_w_bias = self.r_r_bias = None
        if not config.untie_r:
            self.r_w_bias = nn.Parameter(torch.empty(config.n_head, config.d_head))
            self.r_r_bias = nn.Parameter(torch.empty(config.n_head, config.d_head))
        self.layers = nn.ModuleList(
            RelPartialLearnableDecoderLayer(
                config.n_head,
                config.d_model,
                config.d_head,
                config.d_inner,
                config.dropout,
                dropatt=config.dropatt,
                pre_lnorm=config.pre_lnorm,
                r_w_bias=self.r_w_bias,
                r_r_bias=self.r_r_bias,
                layer_norm_epsilon=config.layer_norm_epsilon,
            )
            for _ in range(config.n_layer)
        )
        self.pos_emb = PositionalEmbedding(config.d_model)
        #: The sinusoids of the last call, which training asks for at every step, and what they are for.
        self._table: tuple[Any, Tensor] | None = None

    def own_tied_weights(self) -> Mapping[str, str]:
        """Where the layers share attention's biases."""
        return {
            f"layers.{number}.dec_attn.{name}": name
            for number in range(0 if self.config.untie_r else self.config.n_layer)
            for name in ("r_w_bias", "r_r_bias")
        }

    def forward(
        self,
        input_ids: Tensor | None = None,
        mems: Memories = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Compute the states of a segment.

        Args:
            input_ids: [B, T] ids of the segment. Tokens that are in `mems` are not given again.
            mems: What `mems` of the output for the segment before was: for each layer what went into it, [M, B, H],
                batch second. At the start None, for `mem_len` rows of zeros, which are attended to as in the original;
                tensors [0, B, H] mean no memory. Or a `TransfoXLCache`, which is written in place.
            head_mask: [A] or [L, A], 1 keeps a head, 0 silences it; gradients flow into it.
            inputs_embeds: [B, T, H] vectors in place of `input_ids`, scaled by the root of H already.
            output_hidden_states: Whether to return what goes into each layer, and the final states.
            output_attentions: Whether to return the attention probabilities of all layers.
            return_dict: False returns a plain tuple.

        Returns:
            `TransfoXLModelOutput`: last_hidden_state [B, T, H], mems (L times [M, B, H] for the next segment, without
            gradients; or the cache; none if `mem_len` is 0), and on request hidden_states (L + 1 times [B, T, H]) and
            attentions (L times [B, A, T, K]).

        Raises:
            ValueError: An argument has a wrong shape, type or value; the message names it.
        """
        output = self.outputs(input_ids, mems, head_mask, inputs_embeds, output_hidden_states, output_attentions)
        return self.packaged(output, return_dict)

    def outputs(
        self,
        input_ids: Tensor | None,
        mems: Memories,
        head_mask: Tensor | None,
        inputs_embeds: Tensor | None,
        output_hidden_states: bool | None,
        output_attentions: bool | None,
    ) -> Any:
        """The same by name, which is what models with a head call; see `forward`."""
        config = self.config
        need_states = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        need_probs = config.output_attentions if output_attentions is None else output_attentions
        self._check(input_ids, mems, head_mask, inputs_embeds)
        decoded = self.decode(
            input_ids,
            mems,
            head_mask=head_mask,
            inputs_embeds=inputs_embeds,
            need_states=need_states,
            need_probs=need_probs,
        )
        return TransfoXLModelOutput.of(
            last_hidden_state=decoded.hidden,
            mems=mems if isinstance(mems, TransfoXLCache) else decoded.mems or None,
            hidden_states=decoded.states or None,
            attentions=decoded.probs or None,
        )

    def decode(
        self,
        input_ids: Tensor | None,
        mems: Memories,
        *,
        padding: Tensor | None = None,
        ext_len: int | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        need_states: bool = False,
        need_probs: bool = False,
    ) -> Decoded:
        """The forward that all models, evaluation and text generation share, without checks.

        Args:
            input_ids: See `forward`.
            mems: See `forward`.
            padding: [B], how many of all tokens so far stand for nothing, on the left; with a cache only. They are
                remembered as zeros, like what is before a text.
            ext_len: Tokens at the end that stay out of a cache, if not as many as the model has it.
            head_mask: See `forward`.
            inputs_embeds: See `forward`.
            need_states: Whether to return what goes into each layer, and the final states.
            need_probs: Whether to return the attention probabilities.
        """
        words = self.word_emb(input_ids) if inputs_embeds is None else inputs_embeds
        hidden = self.drop(words)  # [B, T, H]
        T = hidden.shape[1]
        cache = mems if isinstance(mems, TransfoXLCache) else None
        earlier: Sequence[Tensor] = ()
        if cache is not None:
            cache.make_room(T)
            M = cache.length
        else:
            earlier = (self.init_mems(hidden) if mems is None or isinstance(mems, TransfoXLCache) else mems) or ()
            M = earlier[0].shape[0] if earlier else 0
        remembers = bool(earlier) and (recording() or M > 0)
        context = self._context(hidden, M, cache, padding)
        silenced = layer_head_mask(head_mask, self.config.n_layer, self.config.n_head, hidden)
        recompute = self.config.gradient_checkpointing and self.training and torch.is_grad_enabled()
        remembered, states, probs = [], [], []
        for number, layer in enumerate(self.layers):
            if context.padding is not None:
                hidden = hidden.masked_fill(context.padding, 0.0)
            if need_states:
                states.append(hidden)
            memory: Any = None
            if cache is not None:
                memory = cache.layer(number)
            else:
                memory = earlier[number].transpose(0, 1) if remembers else None  # [B, M, H]
                if self.mem_len:
                    remembered.append(self._remembered(memory, hidden))
            head = None if silenced is None else silenced[number]
            arguments = (hidden, context, memory, head, need_probs)
            run = self._run_layer
            done = checkpoint(run, layer, *arguments, use_reentrant=False) if recompute else run(layer, *arguments)
            hidden = done.hidden
            if done.probs is not None:
                probs.append(done.probs)
        if cache is not None:
            cache.advance(max(0, T - (self.ext_len if ext_len is None else ext_len)))
        last = self.drop(hidden)
        return Decoded(last, tuple(remembered), (*states, last) if need_states else (), tuple(probs))

    def _run_layer(
        self,
        layer: nn.Module,
        hidden: Tensor,
        context: Context,
        memory: Tensor | LayerMemory | None,
        head_mask: Tensor | None,
        need_probs: bool,
    ) -> LayerOutput:
        """Run one layer; see `RelPartialLearnableDecoderLayer.forward`."""
        done: LayerOutput = layer(hidden, context, memory, head_mask, need_probs)
        return done

    def _remembered(self, memory: Tensor | None, hidden: Tensor) -> Tensor:
        """What a layer remembers, [M, B, H]: the end of memory [B, M, H] and segment [B, T, H], `ext_len` left out.

        It is a copy, so that it may be changed before the backward pass.
        """
        tokens = hidden.shape[1]
        if recording():  # what is longer must not become part of a graph
            joined = hidden if memory is None else torch.cat((memory, hidden), dim=1)
            if self.ext_len:
                before = 0 if memory is None else memory.shape[1]
                joined = joined[:, : before + torch.sym_max(0, tokens - self.ext_len)]
            kept = joined[:, -self.mem_len :]
        else:
            tokens = max(0, tokens - self.ext_len)
            kept = hidden[:, max(0, tokens - self.mem_len) : tokens]
            if memory is not None and tokens < self.mem_len:
                kept = torch.cat((memory[:, max(0, memory.shape[1] + tokens - self.mem_len) :], kept), dim=1)
        return kept.detach().clone().transpose(0, 1)

    def _context(self, hidden: Tensor, memory: int, cache: TransfoXLCache | None, padding: Tensor | None) -> Context:
        """What all layers share: distances, and which keys each token sees."""
        T = hidden.shape[1]
        queries = torch.arange(T, device=hidden.device)[:, None]
        keys = torch.arange(memory + T, device=hidden.device)
        before = max(0, self.mem_len - self.config.same_length_one_fewer) if self.same_length else memory
        masks = recording() or T > 1 or memory > before  # one token alone usually sees all there are
        unseen = keys > queries + memory
        if self.same_length:
            unseen = unseen | (keys < queries + memory - before)
        nothing = None
        if cache is not None and (padding is not None or not cache.zeros_seen):
            # The first key is token number `cache.tokens - memory`. What is in front of a text of its own, zeros that
            # are seen and others, comes before its first token; padding moves that one to the right.
            first = 0 if cache.zeros_seen else memory
            hidden_keys = torch.tensor([first]) if padding is None else padding + first
            hidden_keys = hidden_keys.to(hidden.device) - cache.tokens
            masks = masks or bool((hidden_keys > 0).any())
            unseen = unseen | (keys < hidden_keys[:, None, None, None])
            if padding is not None:
                places = torch.arange(cache.tokens, cache.tokens + T, device=hidden.device)
                nothing = (places < padding[:, None])[..., None]
        mask = torch.zeros_like(unseen, dtype=hidden.dtype).masked_fill(unseen, -torch.inf) if masks else None
        distances = self.sinusoids(memory + T) if cache is None else hidden.new_empty(0)
        return Context(distances, mask, nothing)

    def sinusoids(self, longest: int) -> Tensor:
        """Sinusoids [longest + 1, H] of the distances from `longest` down to 0, with dropout in training.

        They are computed in float32 whatever the type of the model, as in the original.
        """
        # What is made in there is of no use outside.
        if recording() or transforming() or torch.is_inference_mode_enabled():
            return self.drop(self._new_table(longest))
        like = self.word_emb.weight
        key = (longest, self.clamp_len, like.dtype, like.device)
        if self._table is None or self._table[0] != key:
            self._table = key, self._new_table(longest)
        table: Tensor = self.drop(self._table[1])
        return table

    def _new_table(self, longest: int) -> Tensor:
        like = self.word_emb.weight
        distances = torch.arange(longest, -1, -1, dtype=torch.float32, device=like.device)
        if self.clamp_len > 0:
            distances = distances.clamp(max=self.clamp_len)
        table: Tensor = self.pos_emb(distances).to(like.dtype)
        return table

    def _check(
        self, input_ids: Tensor | None, mems: Memories, head_mask: Tensor | None, inputs_embeds: Tensor | None
    ) -> None:
        """Refuse what would fail in a kernel, or compute something else than was meant.

        Raises:
            ValueError: A shape, type or value is wrong; the message names the argument, the limit and the way out.
            TypeError: Something is no tensor.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give input_ids or inputs_embeds, one of the two")
        name, given = ("input_ids", input_ids) if inputs_embeds is None else ("inputs_embeds", inputs_embeds)
        check_tensor(name, given)
        assert given is not None
        if recording():
            return
        like = self.word_emb.weight
        axes = 2 if input_ids is not None else 3
        if given.ndim != axes or 0 in given.shape:
            meaning = "[batch, tokens]" if axes == 2 else "[batch, tokens, hidden]"
            raise ValueError(f"{name}: expected a shape {meaning} without empty axes, found {list(given.shape)}")
        check_device(name, given, "the model", like)
        B, T = given.shape[:2]
        if input_ids is not None:
            check_indices("input_ids", input_ids, self.word_emb.num_embeddings, "is this the tokenizer of the model?")
        else:
            check_shape("inputs_embeds", given, (B, T, self.config.d_model), "batch, tokens, hidden size")
            check_float_type("inputs_embeds", given, like.dtype)
        if head_mask is not None:
            check_tensor("head_mask", head_mask)
            check_device("head_mask", head_mask, name, given)
        self._check_memory(mems, B, like)

    def _check_memory(self, mems: Memories, batch: int, like: Tensor) -> None:
        """Raise unless the memory is one of this model, for that many rows."""
        if mems is None:
            return
        if isinstance(mems, TransfoXLCache):
            if mems.layers != len(self.layers) or mems.batch != batch:
                raise ValueError(
                    f"mems: a cache of {mems.layers} layers for a batch of {mems.batch}, but the model has "
                    f"{len(self.layers)} and the batch is {batch}; make one with model.new_cache(batch, length)"
                )
            for number in range(mems.layers):
                values = mems.layer(number).values
                sizes = (2, batch, self.config.n_head, values.shape[3], self.config.d_head)
                check_shape("mems: a cache", values, sizes, "keys and values, batch, heads, tokens, head size")
                check_float_type("mems: a cache", values, like.dtype)
                check_device("mems: a cache", values, "the model", like)
            if torch.is_grad_enabled() and any(parameter.requires_grad for parameter in self.parameters()):
                raise ValueError(
                    "mems: a cache takes part in no gradients; call the model under torch.no_grad(), or pass the mems "
                    "of the output before"
                )
            return
        if not isinstance(mems, list | tuple):
            raise TypeError(f"mems: expected a tensor for each layer, or a TransfoXLCache, found {type(mems).__name__}")
        if len(mems) != len(self.layers):
            raise ValueError(f"mems: expected one tensor for each layer, {len(self.layers)}, found {len(mems)}")
        for layer in mems:
            check_tensor("mems", layer)
            length = mems[0].shape[0] if mems[0].ndim else 0
            meaning = "remembered tokens, batch, hidden size; start anew with mems=None"
            check_shape("mems", layer, (length, batch, self.config.d_model), meaning)
            check_device("mems", layer, "the model", like)
            check_float_type("mems", layer, like.dtype)

    # Memory.

    def init_mems(self, data: Tensor | int) -> tuple[Tensor, ...] | None:
        """The memory at the start of a text: zeros [mem_len, B, H] for each layer; None if `mem_len` is 0.

        Args:
            data: The batch size B, or ids [B, T].
        """
        if self.mem_len == 0:
            return None
        batch = data.shape[0] if isinstance(data, Tensor) else data
        like = self.word_emb.weight
        return tuple([like.new_zeros(self.mem_len, batch, self.config.d_model) for _ in self.layers])

    def reset_length(self, tgt_len: int, ext_len: int, mem_len: int) -> None:
        """Use other lengths than those of the configuration, which stays as it is.

        Args:
            tgt_len: Tokens of a segment.
            ext_len: Tokens at the end of a segment that stay out of the memory.
            mem_len: Tokens of the memory.

        Raises:
            ValueError: One is no whole number, or below 1, 0 and 0.
        """
        self.tgt_len = whole_number("tgt_len", tgt_len, 1)
        self.ext_len = whole_number("ext_len", ext_len, 0)
        self.mem_len = whole_number("mem_len", mem_len, 0)

    def new_cache(self, batch: int, length: int, *, zeros_seen: bool = True) -> TransfoXLCache:
        """A memory that keeps keys and values, at the start of that many texts.

        It takes two to three times the place of the published memory. One that is made under `torch.inference_mode`
        can be used there only.

        Args:
            batch: Number of texts, B.
            length: Tokens that will come; more are no fault, for a long text moves through a window.
            zeros_seen: Whether the zeros at the start are attended to, as in the original.
        """
        with torch.no_grad():
            like = self.word_emb.weight
            zeros = like.new_zeros(1, 1, self.config.d_model)
            attentions = [layer.dec_attn for layer in self.layers if isinstance(layer, RelPartialLearnableDecoderLayer)]
            empty = [torch.cat(attention.keys_and_more(zeros)[1:])[:, 0] for attention in attentions]
        room = min(length, max(self.mem_len // 4, 256))
        stacked = torch.stack(empty) if empty else like.new_empty(0, 2, self.config.n_head, self.config.d_head)
        return TransfoXLCache(stacked, batch, self.mem_len, room, self.sinusoids, zeros_seen=zeros_seen)

    # Embeddings.

    def get_input_embeddings(self) -> Any:
        """The tables of words, an `AdaptiveEmbedding`."""
        return self.word_emb
