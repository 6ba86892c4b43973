"""From text to text: `TextGenerator` holds a model and its tokenizer together, and streams what can be read so far."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, overload

from torch import Tensor

from .engine import Cancel, Generation
from .lines import LinePieces, Lines
from .options import GenerationOptions
from .protocol import CausalModel
from .results import FinishReason

#: What a tokenizer of bytes decodes the beginning of a character to; two of them for that of a lone surrogate, which
#: GPT-2's tokenizer gives back too.
_INCOMPLETE: Final = "\ufffd"
#: Last tokens of the prompt that the continuation is decoded with, so that spaces between both come out right.
_BEFORE: Final = 4
#: Tokens that wait for the end of a character before the oldest are looked at; those of one character, at most.
_WAITING, _CHARACTER = 16, 4
#: What a tokenizer may do with bytes that are no text, so that text that was given out need not be changed.
_HANDLERS: Final = ("replace", "ignore")


class Tokenizer(Protocol):
    """What `TextGenerator` needs of a tokenizer."""

    @property
    def bos_token_id(self) -> int | None:
        """The id that starts a text, if there is one."""

    @property
    def eos_token_id(self) -> int | None:
        """The id that ends one."""

    def __len__(self) -> int: ...

    def encode(self, text: str, /, *, add_special_tokens: bool) -> Any:
        """The ids of a text."""

    def decode(self, token_ids: Any, /, *, clean_up_tokenization_spaces: bool) -> str:
        """The text of ids."""


def check_vocabulary(tokenizer: Tokenizer, model: CausalModel) -> None:
    """Refuse a tokenizer whose ids are not all among those of the model.

    Raises:
        ValueError: It has more tokens than the model has ids.
    """
    if len(tokenizer) > model.vocabulary_size():
        raise ValueError(
            f"the tokenizer has {len(tokenizer)} tokens, but the model {model.vocabulary_size()}: one belongs to "
            "another model, or tokens were added without model.resize_token_embeddings"
        )


@dataclass(frozen=True)
class GeneratedText:
    """One continuation.

    Attributes:
        prompt: The text it continues; None where it started from nothing.
        sample: Its number among the continuations of that prompt.
        text: What follows the prompt, without stop token and stop string.
        tokens: All ids that came, those of stop token and stop string included.
        finish_reason: Why it ended.
        scores: [tokens, V], the changed scores each token was chosen by, on request.
    """

    prompt: str | None
    sample: int
    text: str
    tokens: list[int]
    finish_reason: FinishReason
    scores: Tensor | None = None


class TextGenerator:
    """Continues texts.

    Args:
        model: A language model, such as `GPT2LMHeadModel`.
        tokenizer: Its tokenizer. Where it has fewer tokens than the model has ids, the others are never chosen.
        line_end_token_id: The id that ends a line, for models of words, such as Transformer-XL, whose tokenizer takes
            a line end for a space: see `Lines`. "tokenizer" asks the tokenizer's attribute of that name, if it has one.
            None for none: texts are then what the tokenizer makes of them, and its `eos_token_id` ends one.

    Raises:
        ValueError: The tokenizer has more tokens than the model has ids, so one of them is another's; or it does
            something to bytes that are no text that can't be done piece by piece.
    """

    def __init__(
        self,
        model: CausalModel,
        tokenizer: Tokenizer,
        *,
        line_end_token_id: int | Literal["tokenizer"] | None = "tokenizer",
    ) -> None:
        check_vocabulary(tokenizer, model)
        if (handler := getattr(tokenizer, "errors", "replace")) not in _HANDLERS:
            raise ValueError(
                f"the tokenizer has errors={handler!r}, but a model may write bytes that are no text (yet): build it "
                f"with errors= {' or '.join(map(repr, _HANDLERS))}"
            )
        if line_end_token_id == "tokenizer":
            line_end_token_id = getattr(tokenizer, "line_end_token_id", None)
        self.model = model
        self.tokenizer = tokenizer
        #: What texts go through.
        self._texts: Tokenizer = tokenizer if line_end_token_id is None else Lines(tokenizer, line_end_token_id)

    @overload
    def generate(self, prompts: str | None = ..., *, cancel: Cancel = ..., **options: Any) -> GeneratedText: ...

    @overload
    def generate(
        self, prompts: Sequence[str | None], *, cancel: Cancel = ..., **options: Any
    ) -> list[GeneratedText]: ...

    def generate(
        self, prompts: str | Sequence[str | None] | None = None, *, cancel: Cancel = None, **options: Any
    ) -> GeneratedText | list[GeneratedText]:
        """Continue one text or several.

        Args:
            prompts: A text, or several, which may differ in length. None starts from nothing: from the token that
                begins a text, or that ends the line before it.
            cancel: Asked before each step; a function, or an event that is set, ends all texts where they are.
            **options: See `GenerationOptions`; `eos_token_id` is by default that of the tokenizer, unless that ends a
                line.

        Returns:
            One result for one text and one sample; otherwise a list, all samples of the first text first.

        Raises:
            ValueError: A text or an option can't be used; nothing was computed.
            TypeError: There is no such option.
        """
        one = prompts is None or isinstance(prompts, str)
        texts = list(prompts) if isinstance(prompts, Iterable) and not isinstance(prompts, str) else [prompts]
        generation = self._generation(texts, cancel, options)
        samples = generation.options.num_samples
        rows = [self._text_of(generation, number) for number in range(len(texts)) for _ in range(samples)]
        for new in generation:
            row = rows[new.row]
            row.add(new.token, new.scores, ended=new.finished == "stop_token")
            if row.stopped:
                generation.finish(new.row, "stop_string")
        results = []
        for number, row in enumerate(rows):
            row.end()
            results.append(
                GeneratedText(
                    prompt=texts[number // samples],
                    sample=generation.options.first_sample + number % samples,
                    text="".join(row.pieces),
                    tokens=row.tokens,
                    finish_reason="stop_string" if row.stopped else generation.reasons[number],
                    scores=row.stacked() if generation.options.output_scores else None,
                )
            )
        return results[0] if one and samples == 1 else results

    def stream(self, prompt: str | None = None, *, cancel: Cancel = None, **options: Any) -> Iterator[str]:
        """Continue one text piece by piece: `"".join` of them is the `text` that `generate` returns.

        A piece ends between characters, and what may be the beginning of a stop string waits until that is known.
        Closing the iterator ends the work.

        Args:
            prompt: See `generate`.
            cancel: See `generate`.
            **options: See `generate`.

        Raises:
            ValueError: See `generate`; also for several samples, whose pieces would mix.
            TypeError: There is no such option.
        """
        generation = self._generation([prompt], cancel, options)
        if generation.options.num_samples > 1:
            raise ValueError("num_samples: pieces of several texts would mix; stream one after the other")
        return self._pieces(generation)

    def _pieces(self, generation: Generation) -> Iterator[str]:
        row = self._text_of(generation, 0)
        try:
            for new in generation:
                row.add(new.token, None, ended=new.finished == "stop_token")
                yield from row.taken()
                if row.stopped:
                    return
            row.end()
            yield from row.taken()
        finally:
            generation.close()

    def _generation(self, texts: Sequence[str | None], cancel: Cancel, options: dict[str, Any]) -> Generation:
        if not texts:
            raise ValueError("no prompts; give at least one")
        if wrong := [text for text in texts if text is not None and not isinstance(text, str)]:
            raise TypeError(
                f"prompts: expected texts, found {type(wrong[0]).__name__}; ids are for model.generate and model.stream"
            )
        options = {"eos_token_id": self._texts.eos_token_id, **options}
        if len(self.tokenizer) < self.model.vocabulary_size():
            options.setdefault("vocabulary_size", len(self.tokenizer))
        checked = GenerationOptions(**options)
        return Generation(self.model, [self._ids(text) for text in texts], None, checked, cancel)

    def _ids(self, text: str | None) -> list[int]:
        if text is not None:
            return list(self._texts.encode(text, add_special_tokens=False))
        if self._texts.bos_token_id is None:
            raise ValueError("the tokenizer has no token that begins a text, so there must be a prompt")
        return [self._texts.bos_token_id]

    def _text_of(self, generation: Generation, prompt: int) -> "_Text":
        before, stops = generation.prompts[prompt], StopStrings(generation.options.stop_strings)
        if isinstance(self._texts, Lines) and self._texts.rejoins:
            return _Text(LinePieces(self._texts, before), stops)
        return _Text(Pieces(self._texts, before[-_BEFORE:]), stops)


class Pieces:
    """Decodes tokens one by one, without cutting a character that takes several of them.

    Each time the new token is decoded together with the one before it, not with the whole text, so that the cost of a
    token does not grow; the rest waits while it ends within a character.

    Args:
        tokenizer: Its `decode` must be such that more tokens only add to the text.
        before: Ids that the first token follows; their text is not repeated.
    """

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._incomplete = "" if getattr(tokenizer, "errors", None) == "ignore" else _INCOMPLETE
        self._ids = list(before)
        self._given = len(self._decode())  # characters of the text of `_ids` that are out already

    def add(self, token: int) -> str:
        """What can be read with one token more; it may be empty."""
        self._ids.append(token)
        text = self._decode()
        complete = text.removesuffix(self._incomplete).removesuffix(self._incomplete)
        piece = complete[self._given :]
        self._given = max(self._given, len(complete))
        if piece and complete == text:
            del self._ids[:-1]
            self._given = len(self._decode())
        elif len(self._ids) > _WAITING:
            self._forget(text)
        return piece

    def _forget(self, text: str) -> None:
        """Drop the oldest tokens, where bytes come on and on that are no characters.

        What a character may still become is in the last tokens. Those are kept from a border on: they decode to the
        end of the text.
        """
        held = len(text) - self._given  # characters that are not out yet
        everything = self._ids
        for kept in range(_CHARACTER, 2 * _CHARACTER):
            self._ids = everything[-kept:]
            end = self._decode()
            if text.endswith(end) and len(end) >= held:
                self._given = len(end) - held
                return
        self._ids = everything

    def rest(self) -> str:
        """What was held back, at the end: a mark in place of the character that was not completed."""
        return self._decode()[self._given :]

    def _decode(self) -> str:
        return self._tokenizer.decode(self._ids, clean_up_tokenization_spaces=False) if self._ids else ""


class StopStrings:
    """Cuts a text that comes in pieces before the first of some strings, also where that is spread over pieces.

    Args:
        strings: What ends the text.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = tuple(strings)
        self._held = ""
        #: Whether one came.
        self.found = False

    def add(self, piece: str) -> str:
        """What is certain to be before any stop string."""
        text = self._held + piece
        places = [place for string in self._strings if (place := text.find(string)) >= 0]
        if places:
            self.found, self._held = True, ""
            return text[: min(places)]
        longest = max((len(string) for string in self._strings), default=1) - 1
        tails = (text[-size:] for size in range(min(longest, len(text)), 0, -1))
        self._held = next((tail for tail in tails if any(s.startswith(tail) for s in self._strings)), "")
        return text[: len(text) - len(self._held)]

    def rest(self) -> str:
        """What was held back, at the end."""
        held, self._held = self._held, ""
        return held


class _Text:
    """The text of one row as it grows."""

    def __init__(self, decoder: "Pieces | LinePieces", stops: StopStrings) -> None:
        self._decoder = decoder
        self._stops = stops
        self.pieces: list[str] = []
        self.tokens: list[int] = []
        self._scores: list[Tensor] = []

    @property
    def stopped(self) -> bool:
        return self._stops.found

    def add(self, token: int, scores: Tensor | None, *, ended: bool) -> None:
        """One token more; `ended` says that it is a stop token, which is no text."""
        self.tokens.append(token)
        if scores is not None:
            self._scores.append(scores)
        if not ended:
            self._note(self._stops.add(self._decoder.add(token)))

    def end(self) -> None:
        """Nothing follows."""
        if not self.stopped:
            self._note(self._stops.add(self._decoder.rest()))
            self._note(self._stops.rest())

    def taken(self) -> list[str]:
        """The pieces since the last time."""
        pieces, self.pieces = self.pieces, []
        return pieces

    def stacked(self) -> Tensor:
        """The scores [tokens, V]."""
        import torch

        return torch.stack(self._scores) if self._scores else torch.empty(0)

    def _note(self, piece: str) -> None:
        if piece:
            self.pieces.append(piece)
