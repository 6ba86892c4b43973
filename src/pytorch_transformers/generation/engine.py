"""The loop: a prompt is computed once, then one token of each row at a time, with a cache that is allocated once.

Each step costs the model's forward and the choice of a token, however long the text has become: rows that ended leave
the batch, nothing is joined, and no value is read but the chosen ids. Rows never see each other: each has its own
limits and random numbers, and where the context is full each goes on from its own last tokens.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Event
from typing import Any

import torch
from torch import Tensor

from . import scores as rules
from .options import GenerationOptions
from .prompts import Prompts, padded_left, prompt_rows
from .protocol import CausalModel
from .results import FinishReason, GenerationOutput, NewToken

#: Asks whether to stop: a function that says so, or an event that is set.
Cancel = Callable[[], bool] | Event | None


@dataclass
class _Row:
    """One continuation that goes on."""

    number: int  # as in `NewToken.row`
    ids: list[int]  # prompt and continuation
    prompt: int  # tokens of the prompt
    most: int  # new tokens
    least: int  # new tokens before it may end
    random: Random
    start: int = 0  # of the ids, where the context begins
    followers: dict[tuple[int, ...], list[int]] = field(default_factory=dict)  # of each n-gram less its last token

    @property
    def new(self) -> int:
        return len(self.ids) - self.prompt


class Generation:
    """Continuations of a batch of prompts, as an iterator over their tokens in the order in which they come.

    The next token is computed when it is asked for; `close`, or dropping the iterator, ends the work.

    Args:
        model: What predicts.
        prompts: See `prompt_rows`.
        attention_mask: See `prompt_rows`.
        options: How to continue.
        cancel: Asked before each step; the rows end where they are when it says so.

    Raises:
        ValueError: Something given can't be used, or is too long for the model; nothing was computed.
        TypeError: An argument is of another type.
    """

    def __init__(
        self,
        model: CausalModel,
        prompts: Prompts,
        attention_mask: Prompts | None,
        options: GenerationOptions,
        cancel: Cancel = None,
    ) -> None:
        self.prompts = prompt_rows(prompts, attention_mask, model.vocabulary_size())
        self.options = options
        self._model = model
        self._words = model.vocabulary_size()  # ids that scores are for: those read, until the first scores are there
        self._context = model.context_length()
        self._cancelled: Callable[[], bool] = cancel.is_set if isinstance(cancel, Event) else cancel or (lambda: False)
        self._check_model()
        self._rows = self._all_rows()
        #: Why rows ended, by their number.
        self.reasons: dict[int, FinishReason] = {}
        self._bans = bool(options.no_repeat_ngram_size) or any(row.least for row in self._rows)
        self._cache: Any = None
        self._room = 0  # tokens that the cache has room for
        self._columns = 0  # tokens in it, padding included
        self._padding: list[int] = []  # of each row; the longest has none
        self._mask: Tensor | None = None  # [B, room], None where nothing is padded
        self._seen: Tensor | None = None  # [B, V], which tokens the text has; None without repetition penalty
        self._last: Tensor | None = None  # [B], the newest ids
        self._tokens = self._run()

    def __iter__(self) -> Iterator[NewToken]:
        return self

    def __next__(self) -> NewToken:
        return next(self._tokens)

    def close(self) -> None:
        """End the work and free the cache."""
        self._tokens.close()
        self._end()  # which a generator does not come to that was not begun

    def finish(self, row: int, reason: FinishReason) -> None:
        """Compute no more of a row."""
        self.reasons.setdefault(row, reason)

    def _check_model(self) -> None:
        options = self.options
        if self._model.training:
            raise ValueError("the model is in training mode, where dropout changes every step; call model.eval() first")
        if beyond := [token for token in sorted(options.stop_tokens) if token >= self._words]:
            raise ValueError(f"eos_token_id: {beyond[0]}, but the model has {self._words} ids")
        if options.pad_token_id is not None and options.pad_token_id >= self._words:
            raise ValueError(f"pad_token_id: {options.pad_token_id}, but the model has {self._words} ids")
        if options.vocabulary_size is not None and options.vocabulary_size > self._words:
            raise ValueError(
                f"vocabulary_size: {options.vocabulary_size}, but the model has {self._words} ids; the tokenizer "
                "belongs to another model, or tokens were added to it without model.resize_token_embeddings"
            )
        if options.window is not None and self._context is not None and options.window > self._context:
            raise ValueError(f"window: {options.window}, but this model has {self._context} positions")

    def _all_rows(self) -> list[_Row]:
        """A row for each sample of each prompt.

        Random numbers depend on the seed, the prompt and the number of the sample: the same whatever else is in the
        batch, others for other prompts. Python's generator takes a text of any length and is the same everywhere.
        """
        options = self.options
        drawn = int(torch.randint(2**62, ())) if options.sampling and options.seed is None else None
        rows = []
        for number, prompt in enumerate(self.prompts):
            most = options.new_tokens(len(prompt), self._context)
            least = options.least_new_tokens(len(prompt))
            if least > most:
                raise ValueError(
                    f"min_new_tokens or min_length: {least} tokens must follow prompt {number}, but at most {most} "
                    "come; give max_new_tokens, or a smaller minimum"
                )
            for sample in range(options.num_samples):
                row = number * options.num_samples + sample
                key = (drawn, row) if options.seed is None else (options.seed, options.first_sample + sample, prompt)
                random = Random(repr(key) if options.sampling else 0)
                rows.append(_Row(row, list(prompt), len(prompt), most, least, random))
        return rows

    def _run(self) -> Generator[NewToken, None, None]:
        try:
            logits = self._start()
            while logits is not None:
                tokens, scores = self._choose(logits)
                for place, (row, token) in enumerate(zip(self._rows, tokens, strict=True)):
                    if token is None:
                        self.finish(row.number, "banned")
                        continue
                    self._append(row, token)
                    if (reason := self._reason(row, token)) is not None:
                        self.finish(row.number, reason)
                    yield NewToken(row.number, token, reason, None if scores is None else scores[place])
                logits = self._next()
        finally:
            self._end()

    def _end(self) -> None:
        for row in self._rows:
            self.finish(row.number, "cancelled")  # unless it ended before
        self._rows = []
        self._cache = self._mask = self._seen = self._last = None

    # What computes runs without gradients; the iterator's user is outside of it, so it ends before each `yield`.

    @torch.inference_mode()
    def _start(self) -> Tensor | None:
        """Compute the prompts: scores [B, V], None if that was cancelled."""
        samples, window = self.options.num_samples, self.options.window
        if window is not None and self._context is not None:
            for row in self._rows:
                if len(row.ids) > self._context:
                    row.start = len(row.ids) - window
        firsts = self._rows[::samples]
        longest = max(len(row.ids) - row.start for row in firsts)
        room = longest + max(row.most for row in firsts) - 1
        if window is not None and self._context is not None:
            room = min(room, self._context)
        self._room = room
        self._cache = self._model.new_cache(len(firsts), room)
        logits = self._read([row.ids[row.start :] for row in firsts])
        if logits is None:
            return None
        if samples > 1:
            self._select([place for place in range(len(firsts)) for _ in range(samples)])
            logits = logits.repeat_interleave(samples, 0)
        self._words = logits.shape[-1]
        if self.options.repetition_penalty != 1.0:
            self._seen = torch.zeros_like(logits, dtype=torch.bool)
            for place, row in enumerate(self._rows):
                self._seen[place, [token for token in row.ids if token < self._words]] = True
        if self.options.no_repeat_ngram_size:
            for row in self._rows:
                for end in range(1, len(row.ids) + 1):
                    self._note_ngram(row, end)
        return logits

    @torch.inference_mode()
    def _next(self) -> Tensor | None:
        """Drop rows that ended and compute one token more of the others: scores [B, V], None at the end."""
        kept = [place for place, row in enumerate(self._rows) if row.number not in self.reasons]
        if len(kept) < len(self._rows):
            self._rows = [self._rows[place] for place in kept]
            if not kept:
                return None
            self._select(kept)
        if self._cancelled():
            return None
        if self._columns == self._context:  # there is a row without padding, and it has no position left
            return self._slide()
        assert self._last is not None
        self._columns += 1
        return self._model.next_token_logits(self._last[:, None], self._cache, self._visible())

    def _slide(self) -> Tensor | None:
        """The context of a row is full: it goes on from its last tokens, the others from all that they had."""
        assert self._context is not None
        assert self.options.window is not None
        for row in self._rows:
            if len(row.ids) - row.start > self._context:
                row.start = len(row.ids) - self.options.window
        self._cache.clear()
        return self._read([row.ids[row.start :] for row in self._rows])

    def _read(self, contexts: Sequence[Sequence[int]]) -> Tensor | None:
        """Compute whole contexts with an empty cache, a piece at a time: scores [B, V], None if that was cancelled."""
        ids, self._padding = padded_left(contexts)
        ids = ids.to(self._model.device)
        self._mask = self._mask_of_padding()
        self._columns = 0
        logits = None
        for piece in ids.split(self.options.prefill_chunk or ids.shape[1], dim=1):
            if self._cancelled():
                return None
            self._columns += piece.shape[1]
            logits = self._model.next_token_logits(piece, self._cache, self._visible())
        return logits

    def _mask_of_padding(self) -> Tensor | None:
        if not any(self._padding):
            return None
        places = torch.arange(self._room)
        return (places >= torch.tensor(self._padding)[:, None]).long().to(self._model.device)

    def _visible(self) -> Tensor | None:
        return None if self._mask is None else self._mask[:, : self._columns]

    def _select(self, places: list[int]) -> None:
        """Keep those rows of the batch; columns that are padding in all of them go."""
        index = torch.tensor(places, device=self._model.device)
        self._cache.select(index)
        self._padding = [self._padding[place] for place in places]
        if self._seen is not None:
            self._seen = self._seen.index_select(0, index)
        if self._last is not None:
            self._last = self._last.index_select(0, index)
        if self._mask is None:
            return
        if unused := min(self._padding):
            self._cache.drop_first(unused)
            self._columns -= unused
            self._padding = [pad - unused for pad in self._padding]
        self._mask = self._mask_of_padding()

    @torch.inference_mode()
    def _choose(self, logits: Tensor) -> tuple[list[int | None], Tensor | None]:
        """The next token of each row, None where all are banned, and the changed scores if they were asked for.

        Raises:
            ValueError: Scores are not finite, so that no token can be told to be the next.
        """
        options = self.options
        scores = logits.float()
        if self._seen is not None:
            scores = rules.penalise_repetition(scores, self._seen, options.repetition_penalty)
        stuck: list[int] = []  # places of rows that may not go on with any token
        if self._bans:
            words = min(options.vocabulary_size or self._words, self._words)  # ids that can be chosen
            banned = [{token for token in self._banned(row) if token < words} for row in self._rows]
            stuck = [place for place, ids in enumerate(banned) if len(ids) >= words]
            scores = rules.ban(scores, [[] if place in stuck else ids for place, ids in enumerate(banned)])
        if options.vocabulary_size is not None:
            scores = rules.keep_first(scores, options.vocabulary_size)
        highest = scores.amax(-1, keepdim=True)  # finite, unless a score is no number or infinite, or all are banned
        if options.sampling:
            if options.temperature != 1.0:
                scores = rules.divide(scores, highest, options.temperature)
            if options.top_k:
                scores = rules.keep_top_k(scores, options.top_k)
            if options.top_p is not None:
                scores = rules.keep_top_p(scores, options.top_p, crossing=options.top_p_crossing)
            uniform = torch.tensor([random_number(row.random) for row in self._rows], dtype=torch.float64)
            self._last = rules.draw(scores, uniform.to(scores.device))
        else:
            self._last = rules.likeliest(scores)
        if self._seen is not None:
            self._seen.scatter_(1, self._last[:, None], True)
        chosen = torch.stack((self._last, highest[:, 0].isfinite().to(self._last.dtype)))  # both in one transfer
        tokens, finite = chosen.tolist()
        if not all(finite):
            raise ValueError(
                "the model's scores are not finite (infinite, or not a number), so no token can be chosen; its weights "
                "are not, or a dtype such as float16 or a repetition_penalty is too small for them"
            )
        for place in stuck:
            tokens[place] = None
        return tokens, scores if options.output_scores else None

    def _banned(self, row: _Row) -> set[int]:
        """Ids that a row may not go on with: ends that come too early, and n-grams that it has already."""
        size = self.options.no_repeat_ngram_size
        banned = set(self.options.stop_tokens) if row.new < row.least else set()
        if size:
            banned.update(row.followers.get(tuple(row.ids[len(row.ids) - size + 1 :]), ()))
        return banned

    def _append(self, row: _Row, token: int) -> None:
        row.ids.append(token)
        if self.options.no_repeat_ngram_size:
            self._note_ngram(row, len(row.ids))

    def _note_ngram(self, row: _Row, end: int) -> None:
        """Remember which token ended the n-gram before that place of the ids."""
        size = self.options.no_repeat_ngram_size
        assert size
        if end >= size:
            row.followers.setdefault(tuple(row.ids[end - size : end - 1]), []).append(row.ids[end - 1])

    def _reason(self, row: _Row, token: int) -> FinishReason | None:
        if token in self.options.stop_tokens:
            return "stop_token"
        return "length" if row.new >= row.most else None


def collected(generation: Generation) -> GenerationOutput:
    """Run to the end and keep everything; rows that were cancelled have what they had until then."""
    options = generation.options
    prompts = [prompt for prompt in generation.prompts for _ in range(options.num_samples)]
    tokens: list[list[int]] = [[] for _ in prompts]
    scores: list[list[Tensor]] = [[] for _ in prompts]
    for new in generation:
        tokens[new.row].append(new.token)
        if new.scores is not None:
            scores[new.row].append(new.scores)
    return GenerationOutput(
        prompts=prompts,
        new_tokens=tokens,
        finish_reasons=[generation.reasons[row] for row in range(len(prompts))],
        scores=[torch.stack(row) if row else torch.empty(0) for row in scores] if options.output_scores else None,
        pad_token_id=options.pad_token_id,
    )


def random_number(random: Random) -> float:
    """From 0 to below 1 in steps of 2^-52: times any number it is less than that number, also after rounding."""
    return random.getrandbits(52) * 2.0**-52
