"""`GenerationOptions`: how a text is continued, checked when it is made. Needs no torch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing_extensions import Self

from ..nn.values import real_number, whole_number

#: New tokens when no length is asked for; fewer where the context has no room for so many.
DEFAULT_NEW_TOKENS: Final = 128


@dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """How a text is continued.

    Scores are changed in this order: repetition penalty, banned n-grams, tokens that may not end the text yet,
    temperature, `top_k`, `top_p`.

    Args:
        do_sample: True draws each token at random, with the probabilities of the model; False takes the likeliest.
            None draws if `temperature`, `top_k`, `top_p` or `num_samples` is given.
        temperature: Scores are divided by it: below 1 the likely gets likelier. Above 0.
        top_k: Only that many likeliest tokens can be drawn (Fan et al. 2018, arXiv:1805.04833), and those that are
            as likely as the last of them. None or 0: no limit.
        top_p: Only the likeliest tokens that together have this share of the probability can be drawn (Holtzman et
            al. 2019, arXiv:1904.09751); the likeliest always can. From 0 to 1.
        top_p_crossing: Whether the token with which the share is reached can be drawn too, as Holtzman et al. and the
            field have it; False leaves it out, as openai/gpt-2 does.
        repetition_penalty: Scores of tokens that the text has already are divided by it when positive and multiplied
            when negative (Keskar et al. 2019, arXiv:1909.05858, section 4.1). 1 changes nothing.
        no_repeat_ngram_size: No sequence of that many tokens comes twice in prompt and continuation. None or 0: any
            may.
        max_new_tokens: Most tokens that are added. Without it and `max_length`: 128, or what the context has room for.
        max_length: Most tokens of prompt and continuation together, padding not counted.
        min_new_tokens: So many tokens come before one of `eos_token_id` may.
        min_length: The same for prompt and continuation together.
        eos_token_id: The id that ends a text, or several; it is part of the result.
        stop_strings: Texts that end a continuation and are cut off; these need a `TextGenerator`.
        pad_token_id: Stands behind the rows that ended first, where the result is one tensor.
        vocabulary_size: Ids from here on are never chosen: rows of the model's table that stand for no token.
        num_samples: Continuations of each prompt; the prompt is computed once.
        first_sample: Number of the first of them. With one seed, samples 0 to 3 and then 4 to 7 are samples 0 to 7.
        seed: Makes draws repeatable: they depend on it, the prompt and the number of the sample, not on what else is
            in the batch. None: on the state of `torch.manual_seed`, differently in each row and each call.
        window: What happens where the context is full: None refuses such a length before anything is computed; a
            number goes on from that many last tokens, computed anew.
        prefill_chunk: Most tokens of the prompt that are computed together, to save memory; None: all.
        output_scores: Whether each new token comes with the scores it was chosen by.

    Raises:
        TypeError: There is no such option.
        ValueError: A value is impossible, or two contradict each other.
    """

    do_sample: bool | None = None
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    top_p_crossing: bool = True
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int | None = None
    max_new_tokens: int | None = None
    max_length: int | None = None
    min_new_tokens: int = 0
    min_length: int = 0
    eos_token_id: int | Iterable[int] | None = None
    stop_strings: str | Sequence[str] = ()
    pad_token_id: int | None = None
    vocabulary_size: int | None = None
    num_samples: int = 1
    first_sample: int = 0
    seed: int | None = None
    window: int | None = None
    prefill_chunk: int | None = None
    output_scores: bool = False
    #: Whether tokens are drawn, after `do_sample` and what it depends on.
    sampling: bool = field(init=False)
    #: `eos_token_id` as a set.
    stop_tokens: frozenset[int] = field(init=False)

    def __new__(cls, *_: Any, **options: Any) -> "Self":
        """Names an option that there is not, and those that there are; then comes the constructor."""
        known = [each.name for each in fields(cls) if each.init]
        if unknown := [name for name in options if name not in known]:
            raise TypeError(f"{', '.join(unknown)}: no such option of generation; there are {', '.join(known)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        self._check_numbers()
        for name in ("do_sample", "top_p_crossing", "output_scores"):
            value = getattr(self, name)
            if not (isinstance(value, bool) or (name == "do_sample" and value is None)):
                raise ValueError(f"{name}: {value!r}, must be True or False")
        self._set(stop_tokens=_ids("eos_token_id", self.eos_token_id))
        strings = (self.stop_strings,) if isinstance(self.stop_strings, str) else tuple(self.stop_strings)
        if bad := [text for text in strings if not isinstance(text, str) or not text]:
            raise ValueError(f"stop_strings: {bad[0]!r}, must be texts that are not empty")
        self._set(stop_strings=strings)
        if self.max_new_tokens is not None and self.max_length is not None:
            raise ValueError("max_new_tokens and max_length say the same in two ways; give one of them")
        if self.max_new_tokens is not None and self.min_new_tokens > self.max_new_tokens:
            raise ValueError(f"min_new_tokens: {self.min_new_tokens}, but max_new_tokens is {self.max_new_tokens}")
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length: {self.min_length}, but max_length is {self.max_length}")
        for_draws = {
            "temperature": self.temperature != 1.0,
            "top_k": bool(self.top_k),
            "top_p": self.top_p is not None,
            "num_samples": self.num_samples > 1,
        }
        given = [name for name, there in for_draws.items() if there]
        if self.do_sample is False and given:
            raise ValueError(f"{given[0]} is for draws, and do_sample=False takes the likeliest token; leave out one")
        self._set(sampling=bool(given) if self.do_sample is None else self.do_sample)

    def _check_numbers(self) -> None:
        """Replace each number by a plain one in its limits."""
        counts = {  # field -> least value; None where no value means something
            "top_k": 0,
            "no_repeat_ngram_size": 0,
            "max_new_tokens": 1,
            "max_length": 1,
            "min_new_tokens": 0,
            "min_length": 0,
            "pad_token_id": 0,
            "vocabulary_size": 1,
            "num_samples": 1,
            "first_sample": 0,
            "window": 1,
            "prefill_chunk": 1,
        }
        for name, least in counts.items():
            if (value := getattr(self, name)) is not None:
                self._set(**{name: whole_number(name, value, least)})
        if self.seed is not None:
            self._set(seed=whole_number("seed", self.seed))
        if self.top_p is not None:
            self._set(top_p=real_number("top_p", self.top_p, 0.0, 1.0))
        for name, remedy in (
            ("temperature", "; for the likeliest token give do_sample=False"),
            ("repetition_penalty", ""),
        ):
            value = real_number(name, getattr(self, name), 0.0)
            if value == 0.0:
                raise ValueError(f"{name}: 0, must be above 0{remedy}")
            self._set(**{name: value})

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def new_tokens(self, prompt: int, context: int | None) -> int:
        """Most tokens that may follow a prompt of that many.

        The last new token is never read again, so it needs no room.

        Args:
            prompt: Tokens of the prompt.
            context: Tokens that the model can read; None without limit.

        Raises:
            ValueError: The context has no room for them, and no window was asked for; or the prompt is too long.
        """
        room = None if context is None or self.window is not None else context + 1 - prompt
        if room is not None and room < 1:
            raise ValueError(
                f"the prompt has {prompt} tokens, but this model has {context} positions; shorten it, or pass window=N "
                "to go on from its last N tokens"
            )
        if self.max_new_tokens is None and self.max_length is None:
            return DEFAULT_NEW_TOKENS if room is None else min(DEFAULT_NEW_TOKENS, room)
        if self.max_length is not None and self.max_length <= prompt:
            raise ValueError(f"max_length: {self.max_length}, but the prompt has {prompt} tokens already")
        count = self.max_length - prompt if self.max_length is not None else self.max_new_tokens
        assert count is not None
        if room is not None and count > room:
            raise ValueError(
                f"a prompt of {prompt} tokens and {count} new ones, but this model has {context} positions: ask for "
                f"{room} new tokens at most, or pass window=N to go on from the last N tokens where they are full"
            )
        return count

    def least_new_tokens(self, prompt: int) -> int:
        """How many tokens must follow a prompt of that many before the text may end."""
        return max(self.min_new_tokens, self.min_length - prompt)


def _ids(name: str, value: Any) -> frozenset[int]:
    if value is None:
        return frozenset()
    value = value.tolist() if hasattr(value, "tolist") else value  # an array or tensor, one of no dimension too
    several = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    return frozenset(whole_number(name, each, 0) for each in several)
