"""The tokenizer of Transformer-XL: a vocabulary of whole words, counted from a corpus.

Source: kimiyoung/transformer-xl, tf/vocabulary.py. Words are what stands between white space: `Hello, dog` has the word
`Hello,`, which a vocabulary that was counted from split text does not know. `punctuation=True` splits and joins signs
as WikiText-103 has them.

Surprising: the vocabulary may grow. One that is counted starts empty (`count_file`, `build_vocab`), and special tokens
that it turns out not to hold are none. They are words like the others, found only where they stand between white space:
`x<eos>y` is one word.
"""

import logging
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from ...tokenizers.base import PreTrainedTokenizer
from ...tokenizers.engine import Engine
from ...tokenizers.options import EngineName, checked_count, checked_flag
from ...tokenizers.pipeline import Pipeline
from ...tokenizers.table import TokenTable
from ...tokenizers.tokens import numbers_of
from .pretrained import PRETRAINED_VOCAB_ARCHIVE_MAP, REPOSITORIES
from .punctuation import MosesWords
from .text_lines import lines_of
from .vocabulary_files import (
    UNKNOWN_SYMBOLS,
    VOCAB_FILES_NAMES,
    SavedVocabulary,
    read_vocabulary,
    read_word_list,
    save_vocabulary,
    vocabulary_of,
)
from .words import WordPipeline, WordReference

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger(__name__)

#: Argument of the constructor -> shortcut name -> address of the file.
PRETRAINED_VOCAB_FILES_MAP: Final[Mapping[str, Mapping[str, str]]] = {
    "pretrained_vocab_file": PRETRAINED_VOCAB_ARCHIVE_MAP
}
#: Shortcut name -> longest input in tokens; there is no limit.
PRETRAINED_POSITIONAL_EMBEDDINGS_SIZES: Final[Mapping[str, int | None]] = dict.fromkeys(REPOSITORIES)
UNKNOWN: Final = "<unk>"
END_OF_LINE: Final = "<eos>"
#: Stands at both ends of a sentence of the One Billion Word corpus.
SENTENCE_END: Final = "<S>"
FORMULA: Final = "<formula>"
#: What the constructor expects a vocabulary to hold by default; where it doesn't, there is no such special token.
_EXPECTED: Final = frozenset({*UNKNOWN_SYMBOLS, END_OF_LINE, FORMULA})


class TransfoXLTokenizer(PreTrainedTokenizer):
    """Turns text into words and their ids, and counts the words of a corpus.

    No special tokens are put around texts.

    Args:
        special: symbols that `build_vocab` puts in front, whatever their counts.
        min_freq: fewest occurrences of a word that `build_vocab` takes.
        max_size: most words that `build_vocab` takes, `special` not counted; None for all.
        lower_case: whether texts are put into lower case, all but special tokens.
        delimiter: what stands between words; None for any white space, "" where each character is a word.
        vocab_file: a list of words in order of their ids, the first field of each line, that `build_vocab` takes in
            place of counts; it is taken at once too.
        pretrained_vocab_file: a vocabulary that was saved whole: `vocab.txt` as `save_pretrained` writes it, or the
            pickle of a published package (`vocab.bin`) or of the original program (`cache.pkl`), of which nothing but
            plain data is read; or what such a pickle held, by name. `special`, `min_freq`, `max_size`, `lower_case`,
            `delimiter` and `never_split` of a pickle are taken where the argument has its default.
        never_split: words that keep their case and their signs, beside the special tokens.
        unk_token: stands for words that are not in the vocabulary. By default that is `<UNK>` where the vocabulary has
            that and no `<unk>`. Without it such a word is an error.
        eos_token: ends a line.
        additional_special_tokens: special tokens without a role.
        punctuation: whether signs are split from words by the rules of WikiText-103, and joined by `decode`; needs
            sacremoses.
        bos_token: a role that Transformer-XL does not use.
        sep_token: a role that Transformer-XL does not use.
        pad_token: fills short rows; there is none unless one is given.
        cls_token: a role that Transformer-XL does not use.
        mask_token: a role that Transformer-XL does not use.
        **common: the options of every tokenizer, see `TokensAndIds`; `clean_up_tokenization_spaces` is False here
            unless it is asked for. `engine` "auto" is the readable one here; "tokenizers" is that library only where
            there is an unknown token and neither a delimiter nor `punctuation`.

    Raises:
        ImportError: `punctuation` needs sacremoses, which is not installed.
        OSError: a file cannot be read, or is a pickle of more than plain data.
        TypeError: there is no option of that name, or it has a value of another type.
        ValueError: a file does not hold what it should, or an option has a value that it cannot have.
    """

    vocab_files_names: ClassVar[Mapping[str, str]] = {"pretrained_vocab_file": VOCAB_FILES_NAMES["vocab_file"]}
    other_files_names: ClassVar[tuple[Mapping[str, str], ...]] = (
        {"pretrained_vocab_file": VOCAB_FILES_NAMES["pretrained_vocab_file"]},
    )
    pretrained_repositories: ClassVar[Mapping[str, str]] = REPOSITORIES
    pipeline_class: ClassVar[type[Pipeline]] = WordPipeline
    #: The model takes neither segments nor a mask.
    model_input_names: ClassVar[tuple[str, ...]] = ("input_ids",)

    def __init__(
        self,
        special: Sequence[str] | None = None,
        min_freq: int = 0,
        max_size: int | None = None,
        lower_case: bool = False,
        delimiter: str | None = None,
        vocab_file: str | os.PathLike[str] | None = None,
        pretrained_vocab_file: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        never_split: Sequence[str] | None = None,
        unk_token: str | None = UNKNOWN,
        eos_token: str | None = END_OF_LINE,
        additional_special_tokens: Sequence[str] = (FORMULA,),
        *,
        punctuation: bool = False,
        bos_token: str | None = None,
        sep_token: str | None = None,
        pad_token: str | None = None,
        cls_token: str | None = None,
        mask_token: str | None = None,
        **common: Any,
    ) -> None:
        saved = SavedVocabulary([], {}, {}, {})
        if isinstance(pretrained_vocab_file, Mapping):
            saved = vocabulary_of(pretrained_vocab_file, Path(VOCAB_FILES_NAMES["pretrained_vocab_file"]))
        elif pretrained_vocab_file is not None:
            saved = read_vocabulary(pretrained_vocab_file)
        said = saved.options
        self.special = _list_of("special", special if special is not None else said.get("special"))
        self.min_freq = checked_count("min_freq", min_freq or said.get("min_freq", 0), least=0)
        size = said.get("max_size") if max_size is None else max_size
        self.max_size = None if size is None else checked_count("max_size", size, least=0)
        self._lower_case = checked_flag("lower_case", lower_case) or bool(said.get("lower_case"))
        self._delimiter: str | None = said.get("delimiter") if delimiter is None else delimiter
        if not isinstance(self._delimiter, str | None):
            raise TypeError(f"delimiter must be a string or None, not {type(self._delimiter).__name__}")
        self._moses = MosesWords() if checked_flag("punctuation", punctuation) else None
        if self._moses is not None and self._delimiter is not None:
            raise ValueError(f"punctuation=True splits at white space; it cannot go with delimiter={self._delimiter!r}")
        kept = _list_of("never_split", never_split if never_split is not None else said.get("never_split"))
        self.vocab_file = vocab_file
        #: Symbol -> how often it was counted.
        self.counter: Counter[str] = Counter(saved.counter)
        #: The symbols in order of their ids.
        self.idx2sym: list[str] = []
        #: Symbol -> id.
        self.sym2idx: dict[str, int] = {}
        self._named = dict(saved.named)
        self._fill(saved.symbols)
        self._name_special()
        if vocab_file is not None:
            self._fill_from_list(vocab_file)
        # Special tokens that are asked for and are not, or not yet, in the vocabulary.
        self._waiting_roles: dict[str, str] = {}
        self._waiting_additional: list[str] = []
        self._stale = False
        if common.get("clean_up_tokenization_spaces") is None:
            common["clean_up_tokenization_spaces"] = False
        super().__init__(
            self.sym2idx,
            self.idx2sym,
            never_split=kept,
            bos_token=bos_token,
            eos_token=eos_token,
            unk_token=unk_token,
            sep_token=sep_token,
            pad_token=pad_token,
            cls_token=cls_token,
            mask_token=mask_token,
            additional_special_tokens=additional_special_tokens,
            **common,
        )

    # The options that say what a word is: they cannot be changed, as the vocabulary was counted by them.

    @property
    def lower_case(self) -> bool:
        """Whether texts are put into lower case."""
        return self._lower_case

    @property
    def delimiter(self) -> str | None:
        """What stands between words; None for any white space, "" where each character is a word."""
        return self._delimiter

    @property
    def punctuation(self) -> bool:
        """Whether signs are split from words by the rules of WikiText-103."""
        return self._moses is not None

    @property
    def never_split(self) -> list[str]:
        """Words that keep their case and their signs, beside the special tokens."""
        return list(self._never_split)

    @property
    def line_end_token_id(self) -> int | None:
        """The id that stands for the end of a line, for text generation."""
        return self.eos_token_id

    @property
    def unk_idx(self) -> int | None:
        """The original's attribute: the id of the unknown token if that was in `special` or in a list of words.

        None otherwise, even if `<unk>` was counted as a word and stands for unknown ones: see `unk_token_id`.
        """
        return self._named.get("unk_idx")

    @property
    def eos_idx(self) -> int | None:
        """The original's attribute: the id of `<eos>` if that was in `special`, None otherwise; see `eos_token_id`."""
        return self._named.get("eos_idx")

    # A vocabulary that grows: what is made of it is made anew at the next question, once for however many symbols.

    @property
    def _table(self) -> TokenTable:
        if self._stale:
            self._refresh()
        return self._current_table

    @_table.setter
    def _table(self, table: TokenTable) -> None:
        self._current_table = table

    @property
    def _pipeline(self) -> Pipeline:
        if self._stale:
            self._refresh()
        return self._current_pipeline

    @_pipeline.setter
    def _pipeline(self, pipeline: Pipeline) -> None:
        self._current_pipeline = pipeline

    @property
    def _line(self) -> WordPipeline:
        return cast("WordPipeline", self._pipeline)

    def _refresh(self) -> None:
        self._stale = False
        old = self._current_table
        table = TokenTable(self.sym2idx, self.idx2sym, {})
        table.roles = {**old.roles, **self._waiting_roles}
        table.additional = list(dict.fromkeys([*old.additional, *self._waiting_additional]))
        self._waiting_roles, self._waiting_additional = {}, []
        self._table = table
        self._give_ids([*old.added, *table.special()])
        self._build_engine()
        self._rebuild()

    def _give_ids(self, tokens: Iterable[str]) -> list[str]:
        self._set_aside()
        dropped = {*_EXPECTED, *self._waiting_roles.values(), *self._waiting_additional}.difference(
            self._table.special()
        )
        return super()._give_ids(token for token in tokens if token not in dropped)

    def _set_aside(self) -> None:
        """Takes out the special tokens that the vocabulary should hold and does not, or not yet."""
        table = self._table
        unknown = table.roles["unk_token"]
        if unknown in UNKNOWN_SYMBOLS and unknown not in table:
            table.roles["unk_token"] = next((symbol for symbol in UNKNOWN_SYMBOLS if symbol in table), unknown)
        for role, token in table.roles.items():
            if token is not None and self._waits(token):
                self._waiting_roles[role] = token
                table.roles[role] = None
        self._waiting_additional += [token for token in table.additional if self._waits(token)]
        table.additional = [token for token in table.additional if not self._waits(token)]

    def _waits(self, token: str) -> bool:
        return token not in self._table and (token in _EXPECTED or not self.idx2sym)

    def _set_role(self, role: str, token: str | None) -> None:
        self._waiting_roles.pop(role, None)
        if token is not None and self.idx2sym:
            self._table.add([token])  # somebody asks for it by name: it is not to wait
        super()._set_role(role, token)

    def _make_reference(self) -> WordReference:
        unknown = self._table.roles["unk_token"]
        self._words = WordReference(
            self.sym2idx,
            unknown,
            None if unknown is None else self._table.id_of(unknown),
            lower_case=self._lower_case,
            delimiter=self._delimiter,
            moses=self._moses,
        )
        return self._words

    def _make_engine(self, name: EngineName) -> Engine:
        # What remains to be done is a look-up, in which a dict of Python's is as fast as the library.
        return super()._make_engine(name if name == "tokenizers" and self._words.suits_library else "python")

    def _rebuild(self) -> None:
        super()._rebuild()
        # Also what the vocabulary does not hold yet, while words are counted.
        self._line.kept.update(symbol for symbol in self.special if self._words.normalize(symbol) != symbol)
        self._line.whole.update(self.special, _EXPECTED, self._waiting_roles.values(), self._waiting_additional)

    # Counting and building.

    def count_words(self, path: str | os.PathLike[str], add_eos: bool = False) -> int:
        """Counts the words of a text file, line by line.

        Args:
            path: the file, UTF-8.
            add_eos: whether each line ends with `<eos>`.

        Returns:
            How many lines there are.

        Raises:
            OSError: it cannot be read.
            ValueError: it is not UTF-8; the message names the line.
        """
        lines = 0
        for line in lines_of(path):
            self.counter.update(self.tokenize(line, add_eos=add_eos))
            lines += 1
        return lines

    def count_file(self, path: str | os.PathLike[str], verbose: bool = False, add_eos: bool = False) -> list[list[str]]:
        """Counts the words of a text file and gives them, a list for each line; `count_words` does not keep them.

        Args:
            path: see `count_words`.
            verbose: whether to log that it begins.
            add_eos: see `count_words`.

        Raises:
            OSError: see `count_words`.
            ValueError: see `count_words`.
        """
        if verbose:
            logger.info("counting file %s", os.fspath(path))
        sentences = [self.tokenize(line, add_eos=add_eos) for line in lines_of(path)]
        self.count_sents(sentences)
        return sentences

    def count_sents(self, sents: Iterable[Sequence[str]], verbose: bool = False) -> None:
        """Counts the words of sentences.

        Args:
            sents: a list of symbols for each sentence.
            verbose: whether to log that it begins.
        """
        if verbose:
            logger.info("counting sentences")
        for symbols in sents:
            if isinstance(symbols, str):
                raise TypeError(f"a sentence is a list of symbols, not the text {symbols!r:.60}; use tokenize")
            self.counter.update(symbols)

    def build_vocab(self) -> None:
        """Builds the vocabulary anew: from the list of words if there is one, else from what was counted.

        `special` comes first, then words by their counts, those with the same count as they were first met. Added
        tokens get new ids behind it.

        Raises:
            OSError: the list of words cannot be read.
            ValueError: it is no such list; or there is a vocabulary already and nothing was counted to build another.
        """
        if self.vocab_file is not None:
            self._fill_from_list(self.vocab_file)
            return
        if self.idx2sym and not self.counter and set(self.idx2sym) > set(self.special):
            raise ValueError(
                f"no words were counted, so build_vocab would replace {len(self.idx2sym)} symbols by nothing; "
                "count_file or count_sents comes first (a saved tokenizer has no counts)"
            )
        self._fill(())
        for symbol in self.special:
            self.add_special(symbol)
        for symbol, count in self.counter.most_common(self.max_size):
            if count < self.min_freq:
                break
            self.add_symbol(symbol)
        logger.info("vocabulary: %d symbols of %d words counted", len(self.idx2sym), len(self.counter))

    def _fill_from_list(self, path: str | os.PathLike[str]) -> None:
        self._fill(read_word_list(path))
        self._named = {"unk_idx": next(self.sym2idx[each] for each in UNKNOWN_SYMBOLS if each in self.sym2idx)}

    def _fill(self, symbols: Iterable[str]) -> None:
        self.idx2sym = list(symbols)
        self.sym2idx = {symbol: number for number, symbol in enumerate(self.idx2sym)}
        self._stale = True

    def _name_special(self) -> None:
        """Finds the ids that a saved vocabulary had by name, which `vocab.txt` does not say.

        `<UNK>` is in lists of words, in which it need not be declared; `<unk>` may be any word.
        """
        for name, symbol in (("unk_idx", "<UNK>"), ("unk_idx", UNKNOWN), ("eos_idx", END_OF_LINE)):
            if symbol in self.sym2idx and (symbol in self.special or symbol == "<UNK>"):
                self._named.setdefault(name, self.sym2idx[symbol])

    def add_special(self, sym: str) -> None:
        """Puts a special symbol at the end of the vocabulary, unless it is there.

        Args:
            sym: the symbol; `<unk>` and `<eos>` become `unk_idx` and `eos_idx`.

        Raises:
            ValueError: see `add_symbol`.
        """
        if sym not in self.sym2idx:
            self.add_symbol(sym)
            self._named[f"{sym.strip('<>')}_idx"] = self.sym2idx[sym]

    def add_symbol(self, sym: str) -> None:
        """Puts a symbol at the end of the vocabulary, unless it is there.

        Args:
            sym: the symbol.

        Raises:
            TypeError: it is no text.
            ValueError: there are added tokens, which stand behind the vocabulary and would get other ids.
        """
        if not isinstance(sym, str):
            raise TypeError(f"a symbol must be a string, not {type(sym).__name__}")
        if sym in self.sym2idx:
            return
        if not self._stale and (added := self._current_table.added):
            raise ValueError(
                f"{sym!r} would take the id {len(self.idx2sym)} of the added token {next(iter(added))!r}; add symbols "
                "before special tokens, or use add_tokens"
            )
        self.sym2idx[sym] = len(self.idx2sym)
        self.idx2sym.append(sym)
        self._stale = True

    def add_tokens(self, new_tokens: str | Sequence[str], special_tokens: bool = False) -> int:
        """Adds words that are not in the vocabulary; see `PreTrainedTokenizer.add_tokens`.

        Args:
            new_tokens: a word, or several.
            special_tokens: whether they become additional special tokens.

        Raises:
            ValueError: one has white space in it, and could not be found in a text.
        """
        tokens = [new_tokens] if isinstance(new_tokens, str) else list(new_tokens)
        if self._delimiter is None and (wrong := [each for each in tokens if len(str(each).split()) > 1]):
            raise ValueError(f"the token {wrong[0]!r} has white space in it, so that no text holds it as a word")
        return super().add_tokens(tokens, special_tokens)

    # Symbols and ids.

    def get_sym(self, idx: int) -> str:
        """Gives the symbol that has an id.

        Args:
            idx: the id.

        Raises:
            ValueError: no symbol has it.
        """
        return self._table.token_of(idx)

    def get_idx(self, sym: str) -> int:
        """Gives the id of a symbol, that of the unknown one if it has none.

        Args:
            sym: the symbol.

        Raises:
            ValueError: it is not there and nothing stands for it.
        """
        return self._table.id_of(sym)

    def convert_to_tensor(self, symbols: Sequence[str]) -> "Tensor":
        """Gives the ids of symbols as int64, [len].

        Args:
            symbols: the symbols.

        Raises:
            ValueError: one is unknown and nothing stands for it.
        """
        import torch

        return torch.tensor(self._line.lookup(symbols), dtype=torch.long)

    # Texts to ids.

    def tokenize(
        self,
        text: str,
        add_eos: bool = False,
        add_double_eos: bool = False,
        *,
        split_special_tokens: bool | None = None,
    ) -> list[str]:
        """Splits a line into words, unknown ones as they are.

        Args:
            text: the line; white space at its ends is left out.
            add_eos: whether to put `<eos>` behind it.
            add_double_eos: whether to put `<S>` around it, as the One Billion Word corpus has it; then `add_eos` has no
                effect.
            split_special_tokens: whether special tokens that are not in the vocabulary are treated as any other word;
                None as the tokenizer was built.

        Raises:
            TypeError: it is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, not {type(text).__name__}")
        split = self.split_special_tokens if split_special_tokens is None else split_special_tokens
        symbols = self._line.symbols(text, split_special=split)
        if add_double_eos:
            return [SENTENCE_END, *symbols, SENTENCE_END]
        return [*symbols, END_OF_LINE] if add_eos else symbols

    def _encoded_lines(self, path: str | os.PathLike[str], add_eos: bool, add_double_eos: bool) -> Iterator[list[int]]:
        for line in lines_of(path):
            yield self._line.lookup(self.tokenize(line, add_eos, add_double_eos))

    def encode_file(
        self,
        path: str | os.PathLike[str],
        ordered: bool = False,
        verbose: bool = False,
        add_eos: bool = True,
        add_double_eos: bool = False,
    ) -> "Tensor | list[Tensor]":
        """Gives the ids of a text file, line by line.

        Args:
            path: the file, UTF-8.
            ordered: whether the lines are one text.
            verbose: whether to log that it begins.
            add_eos: see `tokenize`.
            add_double_eos: see `tokenize`.

        Returns:
            int64: a tensor for each line, or with `ordered` all in a row.

        Raises:
            OSError: it cannot be read.
            ValueError: it is not UTF-8, or a word is unknown and nothing stands for it.
        """
        if verbose:
            logger.info("encoding file %s", os.fspath(path))
        return _tensors(self._encoded_lines(path, add_eos, add_double_eos), ordered)

    def encode_sents(
        self, sents: Iterable[Sequence[str]], ordered: bool = False, verbose: bool = False
    ) -> "Tensor | list[Tensor]":
        """Gives the ids of sentences.

        Args:
            sents: a list of symbols for each sentence.
            ordered: whether the sentences are one text.
            verbose: whether to log that it begins.

        Returns:
            int64: a tensor for each sentence, or with `ordered` all in a row.

        Raises:
            ValueError: a symbol is unknown and nothing stands for it.
        """
        if verbose:
            logger.info("encoding sentences")
        return _tensors((self._line.lookup(symbols) for symbols in sents), ordered)

    # Ids to text.

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Joins words to text: with spaces or the delimiter between them, or as text without `punctuation` would be.

        Args:
            tokens: the words.
        """
        if self._moses is not None:
            return self._moses.join(tokens, self._line.whole)
        return (" " if self._delimiter is None else self._delimiter).join(tokens)

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        *,
        exclude: Iterable[int] | None = None,
    ) -> str:
        """Turns ids back into text; white space is that of `convert_tokens_to_string`.

        Args:
            token_ids: an id, or several (a list, array or one-dimensional tensor).
            skip_special_tokens: whether to leave out special tokens.
            clean_up_tokenization_spaces: whether to take out the spaces before punctuation and contractions; None as
                the tokenizer was built, which is not to.
            exclude: ids to leave out, as the 0.6.2 package has it.

        Raises:
            TypeError: what should be an id is no integer.
            ValueError: no token has one of the ids.
        """
        numbers = numbers_of(token_ids)
        left_out = frozenset(exclude or ())
        ids = [number for number in ([numbers] if isinstance(numbers, int) else numbers) if number not in left_out]
        text = self.convert_tokens_to_string(self.convert_ids_to_tokens(ids, skip_special_tokens=skip_special_tokens))
        asked = clean_up_tokenization_spaces
        clean = self.clean_up_tokenization_spaces if asked is None else asked
        return self.clean_up_tokenization(text) if clean else text

    # Loading and saving.

    def save_vocabulary(self, save_directory: str | os.PathLike[str]) -> tuple[str, ...]:
        """Writes the vocabulary, one symbol a line; counts and added tokens are not in it.

        Args:
            save_directory: an existing folder, or the file to write.

        Returns:
            The path written.

        Raises:
            OSError: it cannot be written.
            ValueError: there is no vocabulary yet, or a symbol has a newline in it.
        """
        path = Path(save_directory)
        path = path / VOCAB_FILES_NAMES["vocab_file"] if path.is_dir() else path
        return (str(save_vocabulary(self.idx2sym, path)),)

    @property
    def init_options(self) -> dict[str, Any]:
        """See `TokensAndIds.init_options`; special tokens that the vocabulary does not hold are among them."""
        saved = super().init_options
        return {
            **saved,
            **self._waiting_roles,
            "additional_special_tokens": [*saved["additional_special_tokens"], *self._waiting_additional],
            "special": list(self.special),
            "min_freq": self.min_freq,
            "max_size": self.max_size,
            "lower_case": self._lower_case,
            "delimiter": self._delimiter,
            "never_split": self.never_split,
            "punctuation": self.punctuation,
        }

    def _check_loaded(self, given: Iterable[str]) -> None:
        # The pickle of a published package comes without a list of special tokens: what it holds of the usual is one.
        if not self.additional_special_tokens and FORMULA in self.sym2idx and self.counter:
            self.additional_special_tokens = [FORMULA]


#: The original's name.
Vocab = TransfoXLTokenizer


def _list_of(name: str, symbols: Any) -> list[str]:
    if symbols is None:
        return []
    if isinstance(symbols, str) or not all(isinstance(symbol, str) and symbol for symbol in symbols):
        raise TypeError(f"{name} must be a list of symbols, not {symbols!r:.60}")
    return list(symbols)


def _tensors(rows: Iterable[Sequence[int]], ordered: bool) -> "Tensor | list[Tensor]":
    """Gives int64 tensors, one for each row or one of all; ids of a whole file are never a list of Python's."""
    import torch

    if not ordered:
        return [torch.tensor(row, dtype=torch.long) for row in rows]
    ids = array("q")
    for row in rows:
        ids.extend(row)
    return torch.frombuffer(ids, dtype=torch.long) if ids else torch.empty(0, dtype=torch.long)
