"""From texts to the inputs of a model: the call of a tokenizer."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from .assemble import ORIGIN_FIELDS, Recipe, full_rows, id_rows
from .encoding import BatchEncoding, Origins
from .engine import Piece
from .inputs import Inputs, Text, sort_inputs
from .options import Call, CallOptions, Padding, Tensors, Truncation, padding_name, truncation_name
from .padding import IGNORED_LABEL, Rows, pad_rows, target_length, to_tensor
from .special import Layout
from .tokens import NO_LIMIT, TokensAndIds

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TextEncoder(TokensAndIds):
    """Calls: texts in, inputs of a model out. Base of `PreTrainedTokenizer`."""

    #: The fields that models of the family take, in order.
    model_input_names: ClassVar[tuple[str, ...]] = ("input_ids", "token_type_ids", "attention_mask")
    #: The segment of padding.
    pad_token_type_id: ClassVar[int] = 0

    def special_layout(self) -> Layout:
        """Gives the special tokens that stand around one text or two; none unless the family says otherwise."""
        return Layout()

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Counts the special tokens that are put around a text, or around two.

        Args:
            pair: whether there are two.
        """
        return self.special_layout().special_count(pair=pair)

    @property
    def max_len_single_sentence(self) -> int:
        """Most tokens of one text, without the special tokens."""
        return self.model_max_length - self.num_special_tokens_to_add()

    @property
    def max_len_sentences_pair(self) -> int:
        """Most tokens of a pair of texts, without the special tokens."""
        return self.model_max_length - self.num_special_tokens_to_add(pair=True)

    def __call__(
        self,
        text: str | Sequence[str] | Sequence[Sequence[str]] | Sequence[Sequence[Sequence[str]]],
        text_pair: str | Sequence[str] | Sequence[Sequence[str]] | None = None,
        *,
        add_special_tokens: bool = True,
        padding: Padding = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        return_tensors: Tensors | None = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        split_special_tokens: bool | None = None,
    ) -> BatchEncoding:
        """Turns one text, a pair or a batch of either into the input of a model.

        Args:
            text: a text; a list of texts; a list of pairs. With `is_split_into_words` a list of words takes the place
                of each text.
            text_pair: the second text, or as many as there are first ones.
            add_special_tokens: whether to put the special tokens of the family around the texts.
            padding: True or "longest" fills every row to the longest of the batch; "max_length" to `max_length`.
            truncation: True or "longest_first" takes tokens from the longer text of a pair, one at a time;
                "only_first" and "only_second" cut one of the two.
            max_length: most tokens of a row, special ones included; `model_max_length` by default.
            stride: how many tokens of text a window shares with the one before.
            is_split_into_words: whether each text is a list of words.
            pad_to_multiple_of: rounds the padded length up to a multiple.
            return_tensors: "pt" or "np": int64 of shape [batch, length] in place of lists.
            return_token_type_ids: whether to give segments; None as models of the family take them.
            return_attention_mask: whether to give 1 for tokens and 0 for padding; None as models of the family take it.
            return_overflowing_tokens: gives what does not fit as further rows, windows over the text that is cut;
                `overflow_to_sample_mapping` tells of which text each row is.
            return_special_tokens_mask: whether to give `special_tokens_mask`, 1 for special tokens and padding.
            return_offsets_mapping: whether to give `offset_mapping`: start and end of each token in its text as given,
                in code points (in its word, when texts are lists of words); None for special tokens and padding, which
                is (0, 0) in a tensor.
            return_length: whether to give `length`, the tokens of each row without padding.
            split_special_tokens: whether special tokens in the text are treated as any other text; None as the
                tokenizer was built.

        Returns:
            `input_ids`, `token_type_ids`, `attention_mask` and what was asked for.

        Raises:
            TypeError: what should be a text or a number is none; the message says where.
            ValueError: the texts cannot be cut or filled as asked, or rows of different lengths should be a tensor.
        """
        call = self._make_call(
            padding=padding,
            truncation=truncation,
            max_length=max_length,
            add_special_tokens=add_special_tokens,
            stride=stride,
            is_split_into_words=is_split_into_words,
            pad_to_multiple_of=pad_to_multiple_of,
            return_tensors=return_tensors,
            return_token_type_ids=return_token_type_ids,
            return_attention_mask=return_attention_mask,
            return_overflowing_tokens=return_overflowing_tokens,
            return_special_tokens_mask=return_special_tokens_mask,
            return_offsets_mapping=return_offsets_mapping,
            return_length=return_length,
            split_special_tokens=split_special_tokens,
        )
        return self._encode(sort_inputs(text, text_pair, words=is_split_into_words), call)

    def encode(self, text: Any, text_pair: Any = None, **options: "Unpack[CallOptions]") -> Any:
        """Gives the ids alone, special tokens included unless `add_special_tokens=False`.

        Args:
            text: see `__call__`.
            text_pair: see `__call__`.
            **options: see `__call__`.

        Raises:
            TypeError: see `__call__`.
            ValueError: see `__call__`.
        """
        return self(text, text_pair, **options)["input_ids"]

    def encode_plus(self, text: Any, text_pair: Any = None, **options: "Unpack[CallOptions]") -> BatchEncoding:
        """Does what calling the tokenizer does, for one text or pair.

        Args:
            text: see `__call__`.
            text_pair: see `__call__`.
            **options: see `__call__`.

        Raises:
            TypeError: see `__call__`.
            ValueError: see `__call__`.
        """
        return self(text, text_pair, **options)

    def batch_encode_plus(
        self, batch_text_or_text_pairs: Sequence[Any], **options: "Unpack[CallOptions]"
    ) -> BatchEncoding:
        """Does what calling the tokenizer does, for a list of texts or of pairs.

        Args:
            batch_text_or_text_pairs: the texts or pairs.
            **options: see `__call__`.

        Raises:
            TypeError: see `__call__`.
            ValueError: see `__call__`.
        """
        if isinstance(batch_text_or_text_pairs, str):
            raise TypeError("batch_encode_plus needs a list of texts or of pairs, not one text; use encode_plus")
        return self(batch_text_or_text_pairs, **options)

    def tokenize(self, text: str, *, split_special_tokens: bool | None = None) -> list[str]:
        """Splits a text into tokens, without adding special ones.

        Args:
            text: the text.
            split_special_tokens: see `__call__`.

        Raises:
            TypeError: it is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, not {type(text).__name__}")
        split = self.split_special_tokens if split_special_tokens is None else split_special_tokens
        return [piece.token for piece in self._pipeline.pieces([text], split_special=split)[0]]

    def _encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Gives the ids of texts without special tokens or truncation, at the speed of the engine."""
        return self._pipeline.ids(texts, split_special=self.split_special_tokens)

    def _make_call(
        self,
        *,
        padding: Padding,
        truncation: Truncation = False,
        max_length: int | None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        split_special_tokens: bool | None = None,
        **options: Any,
    ) -> Call:
        """Fills in what nobody said, as the tokenizer is now: later changes to it do not concern this call."""
        takes = self.model_input_names
        fill, cut = padding_name(padding), truncation_name(truncation)
        return Call(
            padding=fill,
            truncation=cut,
            max_length=self._resolve_length(max_length, fill, cut),
            padding_side=self.padding_side,
            truncation_side=self.truncation_side,
            return_token_type_ids="token_type_ids" in takes if return_token_type_ids is None else return_token_type_ids,
            return_attention_mask="attention_mask" in takes if return_attention_mask is None else return_attention_mask,
            split_special_tokens=self.split_special_tokens if split_special_tokens is None else split_special_tokens,
            **options,
        )

    def _resolve_length(self, max_length: int | None, padding: str, truncation: str) -> int | None:
        if max_length is None:
            limited = self.model_max_length < NO_LIMIT
            if truncation != "do_not_truncate" and not limited:
                self._warn_once("truncation cuts nothing: pass max_length, for the tokenizer has no model_max_length")
            return self.model_max_length if limited else None
        if truncation == "do_not_truncate" and padding != "max_length":
            self._warn_once("max_length does nothing without truncation=True or padding='max_length'")
        return max_length

    def _encode(self, inputs: Inputs, call: Call) -> BatchEncoding:
        if call.only_ids:
            split = call.split_special_tokens
            first = self._pipeline.ids(cast("list[str]", inputs.first), split_special=split)
            second = (
                None
                if inputs.second is None
                else self._pipeline.ids(cast("list[str]", inputs.second), split_special=split)
            )
            recipe = self._recipe(call)
            columns = id_rows(first, second, recipe)
            return self._finish(
                columns, call, inputs.batched, origins=partial(self._origins, inputs, recipe, self._changes)
            )
        first_pieces, second_pieces = self._all_pieces(inputs, call)
        columns, samples = full_rows(first_pieces, second_pieces, self._recipe(call), self._table.token_of)
        return self._finish(columns, call, inputs.batched, samples)

    def _recipe(self, call: Call) -> Recipe:
        return Recipe(self.special_layout() if call.add_special_tokens else Layout(), call)

    def _all_pieces(self, inputs: Inputs, call: Call) -> tuple[list[list[Piece]], list[list[Piece]] | None]:
        second = None if inputs.second is None else self._pieces(inputs.second, call)
        return self._pieces(inputs.first, call), second

    def _pieces(self, texts: list[Text], call: Call) -> list[list[Piece]]:
        split = call.split_special_tokens
        if not call.is_split_into_words:
            return self._pipeline.pieces(cast("list[str]", texts), split_special=split)
        words = iter(self._pipeline.pieces([word for text in texts for word in text], split_special=split))
        return [[piece._replace(word=number) for number in range(len(text)) for piece in next(words)] for text in texts]

    def _origins(self, inputs: Inputs, recipe: Recipe, changes: int) -> Origins:
        """Finds out where tokens came from, when somebody asks for it only afterwards.

        The recipe is that of the call, with its sides and special tokens, whatever the tokenizer says by now.

        Raises:
            ValueError: the tokenizer would not give the same tokens any more.
        """
        if changes != self._changes:
            raise ValueError(
                "tokens were added to the tokenizer since this encoding was made, so it cannot tell any more where its "
                "tokens came from; ask before, or make it with return_offsets_mapping=True"
            )
        first, second = self._all_pieces(inputs, recipe.call)
        columns, _ = full_rows(first, second, recipe, self._table.token_of)
        return self._take_origins(self._pad(columns, recipe.call))

    def _finish(
        self,
        columns: dict[str, Rows],
        call: Call,
        batched: bool,
        samples: list[int] | None = None,
        origins: Callable[[], Origins] | None = None,
    ) -> BatchEncoding:
        """Fills the rows, leaves out what was not asked for, makes tensors."""
        lengths = [len(row) for row in columns["input_ids"]]
        if not call.truncates and max(lengths, default=0) > self.model_max_length:
            self._warn_once(
                f"a text has {max(lengths)} tokens, more than the {self.model_max_length} that the model can take "
                "(model_max_length); pass truncation=True to cut it"
            )
        fields = self._order(columns, lengths, call)
        padded = self._pad(fields, call)
        known = self._take_origins(padded) if samples is not None else origins
        result: dict[str, Any] = dict(padded)
        if call.return_length:
            result["length"] = lengths
        if call.return_overflowing_tokens:
            result["overflow_to_sample_mapping"] = samples
        if call.return_tensors:
            result = {name: to_tensor(name, rows, call.return_tensors) for name, rows in result.items()}
        elif not batched and not call.return_overflowing_tokens:
            result = {name: rows[0] for name, rows in result.items()}
        return BatchEncoding(result, known)

    def _order(self, columns: dict[str, Rows], lengths: list[int], call: Call) -> dict[str, Rows]:
        """Puts the fields asked for in the order in which models take them."""
        fields = {"input_ids": columns["input_ids"]}
        if call.return_token_type_ids:
            fields["token_type_ids"] = columns["token_type_ids"]
        if call.return_attention_mask:
            fields["attention_mask"] = [[1] * length for length in lengths]
        if call.return_special_tokens_mask:
            fields["special_tokens_mask"] = columns["special_tokens_mask"]
        if call.return_offsets_mapping:
            fields["offset_mapping"] = columns["offset_mapping"]
        return fields | {name: columns[name] for name in ORIGIN_FIELDS if name in columns}

    def _pad(self, columns: dict[str, Rows], call: Call) -> dict[str, Rows]:
        longest = max(map(len, columns["input_ids"]), default=0)
        length = target_length(longest, call.padding, call.max_length, call.pad_to_multiple_of)
        if length is None:
            return columns
        fills = self._fills()
        return {name: pad_rows(rows, length, fills[name], call.padding_side) for name, rows in columns.items()}

    def _fills(self) -> dict[str, Any]:
        """Gives what each field is filled with.

        Raises:
            ValueError: there is no token for it.
        """
        if self.pad_token is None:
            raise ValueError(
                "the tokenizer has no padding token; give it one with tokenizer.pad_token = '[PAD]', or "
                "tokenizer.add_special_tokens({'pad_token': '[PAD]'}), and enlarge the embeddings of the model to "
                "len(tokenizer)"
            )
        return {
            "input_ids": self.pad_token_id,
            "token_type_ids": self.pad_token_type_id,
            "attention_mask": 0,
            "special_tokens_mask": 1,
            "offset_mapping": None,
            "labels": IGNORED_LABEL,
            "tokens": self.pad_token,
            "words": None,
            "sequences": None,
        }

    @staticmethod
    def _take_origins(columns: dict[str, Rows]) -> Origins:
        return Origins(*(columns.pop(name) for name in ORIGIN_FIELDS))
