"""Making a folder of training data from text files: several processes, bounded memory, and going on after a stop.

In the streaming mode the corpus is encoded once, block by block, into `work/` in the output folder, and each block then
makes one shard with all its duplicates. Blocks do not depend on processes, and each has its own draws, so any number of
processes gives the same files. All files appear whole or not at all: a run that was stopped, or found the disk full,
keeps what is there when the same command is given again. `work/` is removed at the end.

In the original mode everything is in memory, see `instances.py`.
"""

import fcntl
import hashlib
import json
import logging
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from ...files import write_json
from ...tokenizers.text_files import Files, find_text_files
from .arrays import map_arrays, sha256_of
from .documents import Block, Layout, blocks_of, read_sentences
from .instances import Instance, collect_documents, original_instances
from .options import InstanceOptions, one_document
from .processes import Workers, workers
from .rows import instances_of, make_shard, shard_of
from .shards import INDEX, DataIndex, ShardFacts, shard_name, write_shard
from .tfrecord import write_tfrecords
from .tokens import TABLE, Tokens, encode_plain, part_name, write_part, write_table
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from ...models.bert.tokenizer import BertTokenizer

logger = logging.getLogger(__name__)

Mode: TypeAlias = Literal["original", "streaming"]
MODES: Final[tuple[str, ...]] = get_args(Mode)
#: Characters of a block, about a million: some 25,000 inputs of 128 tokens from ten duplicates.
BLOCK_SIZE: Final = 1 << 20
#: Instances of a shard in the original mode.
_SHARD: Final = 1 << 14
#: For a single document: the least length, in longest inputs and in sentences, that has distant parts.
_DISTANT: Final = 8
_WORK: Final = "work"
_JOB: Final = "job.json"
_LOCK: Final = "lock"


def create_pretraining_data(
    files: Files,
    tokenizer: "BertTokenizer",
    output: str | os.PathLike[str],
    options: InstanceOptions | None = None,
    *,
    mode: Mode = "streaming",
    layout: Layout = "sentences",
    dynamic_masking: bool = False,
    processes: int = 1,
    block_size: int = BLOCK_SIZE,
    overwrite: bool = False,
) -> DataIndex:
    """Makes training data for masked words and next sentences and writes them to a folder for `PretrainingDataset`.

    Args:
        files: Text files, see `find_text_files`; they count in this order.
        tokenizer: Of the model; its vocabulary is that of word pieces.
        output: The folder.
        options: How instances are made; None for the defaults of the original program.
        mode: `streaming`, or `original` for the original program's instances, bit for bit, with all text in memory.
        layout: How files are read, see `documents.py`.
        dynamic_masking: Whether to leave masking to the reader, who masks anew in each epoch. Streaming mode only.
        processes: How many work at a time; with more than one, what a program runs must stand under
            `if __name__ == "__main__"`. The original mode has use for one only.
        block_size: Characters that are worked on together in the streaming mode; other sizes give other instances.
        overwrite: Whether to replace complete data that were made from something else.

    Returns:
        What the folder holds.

    Raises:
        OSError: A file cannot be read or written, or another process is writing to the folder.
        ValueError: There is no text, too few documents, a file that is no text, or the options do not fit.
    """
    task = _Task.of(files, tokenizer, options, mode, layout, dynamic_masking, block_size)
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, and shards need a folder; a name that ends in .tfrecord makes records")
    work = folder / _WORK
    with _locked(work):
        if (folder / INDEX).exists():
            earlier = DataIndex.read(folder) if not overwrite else None
            if earlier is not None and earlier.job != task.fingerprint:
                raise ValueError(f"{folder} holds other training data already; name another folder, or overwrite it")
            if earlier is not None:
                logger.warning("%s is complete already: nothing to do", folder)
                return earlier
            (folder / INDEX).unlink()
        _begin(folder, work, task)
        if mode == "original":
            index = _original(folder, task)
        else:
            with workers((folder, work, task), processes) as pool:
                index = _streaming(folder, work, task, pool)
        index.write(folder)
        for name in _shards_in(folder) - {shard.file for shard in index.shards}:
            (folder / name).unlink()
    return index


def create_tfrecords(
    files: Files,
    tokenizer: "BertTokenizer",
    outputs: Sequence[str | os.PathLike[str]],
    options: InstanceOptions | None = None,
    *,
    mode: Mode = "original",
    layout: Layout = "sentences",
    processes: int = 1,
    block_size: int = BLOCK_SIZE,
) -> int:
    """Makes training data as TFRecord files, as the original program does; several files take turns.

    Args:
        files: See `create_pretraining_data`, like all but the next.
        tokenizer: See there.
        outputs: The files.
        options: See there; `next_sentence` must hold.
        mode: See there; in the streaming mode the shards lie in a folder beside the first file until all is done.
        layout: See there.
        processes: See there.
        block_size: See there.

    Returns:
        How many instances there are.

    Raises:
        OSError: See there.
        ValueError: See there, or no file is named.
    """
    paths = [Path(output) for output in outputs]
    if not paths:
        raise ValueError("outputs: name at least one file")
    options = options or InstanceOptions()
    if not options.next_sentence:
        raise ValueError("the original's records have a second text: next_sentence=False needs a folder as output")
    if mode == "original":
        task = _Task.of(files, tokenizer, options, mode, layout, False, block_size)
        instances, _, _ = task.original()
        return write_tfrecords(paths, instances, options)
    folder = paths[0].with_name(f"{paths[0].name}.partial")
    index = create_pretraining_data(
        files,
        tokenizer,
        folder,
        options,
        mode=mode,
        layout=layout,
        processes=processes,
        block_size=block_size,
        overwrite=True,
    )
    every = (one for shard in index.shards for one in instances_of(map_arrays(folder / shard.file)))
    count = write_tfrecords(paths, every, options)
    shutil.rmtree(folder)
    return count


@dataclass(frozen=True)
class _Task:
    """What is to be made from what."""

    paths: Sequence[Path]
    tokenizer: "BertTokenizer"
    vocabulary: Vocabulary
    options: InstanceOptions
    mode: Mode
    layout: Layout
    dynamic: bool
    block_size: int
    source: Sequence[dict[str, Any]]

    @classmethod
    def of(
        cls,
        files: Files,
        tokenizer: "BertTokenizer",
        options: InstanceOptions | None,
        mode: Mode,
        layout: Layout,
        dynamic: bool,
        block_size: int,
    ) -> "_Task":
        """Look at everything before any work begins."""
        if mode not in MODES:
            raise ValueError(f"mode is {mode!r}; it should be one of {', '.join(MODES)}")
        if dynamic and mode == "original":
            raise ValueError("the original program masks what it makes: dynamic masking needs the streaming mode")
        if block_size < 1:
            raise ValueError(f"block_size is {block_size}; it should be at least 1")
        paths = find_text_files(files)
        source = [
            {"name": path.name, "size": path.stat().st_size, "sha256": sha256_of(path)} for path in paths
        ]  # not the folder: equal text makes equal files wherever it lies
        vocabulary = Vocabulary.of(tokenizer)
        options = options or InstanceOptions()
        return cls(paths, tokenizer, vocabulary, options, mode, layout, dynamic, block_size, source)

    @property
    def fingerprint(self) -> str:
        """One value for all that the result depends on."""
        facts = {
            "options": asdict(self.options),
            "vocabulary": self.vocabulary.sha256,
            "tokenizer": self.tokenizer.init_options,
            "mode": self.mode,
            "layout": self.layout,
            "dynamic": self.dynamic,
            "block_size": self.block_size,
            "source": self.source,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()

    def empty(self) -> ValueError:
        """The error for files with nothing in them."""
        return ValueError(f"there is no text in {', '.join(map(str, self.paths[:5]))}")

    def index(self, documents: int, shards: Sequence[ShardFacts]) -> DataIndex:
        """The index of what was made."""
        return DataIndex(
            options=self.options,
            vocabulary=self.vocabulary.described(),
            mode=self.mode,
            dynamic_masking=self.dynamic,
            job=self.fingerprint,
            source=self.source,
            documents=documents,
            shards=tuple(shards),
        )

    def original(self) -> tuple[list[Instance], int, float]:
        """All instances by the original's algorithm, how many documents there were, and the next draw."""
        sentences = list(read_sentences(self.paths, self.layout, join_files=True, whole_lines=True))
        ids = encode_plain(self.tokenizer, [text for _, text in sentences])
        documents = collect_documents(sentences, ids)
        if not documents:
            raise self.empty()
        rng = random.Random(self.options.random_seed)
        instances = original_instances(documents, self.vocabulary, self.options, rng)
        return instances, len(documents), rng.random()


@contextmanager
def _locked(work: Path) -> Iterator[None]:
    """Hold the folder; it goes with its lock when the work ended well."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / _LOCK).open("wb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # gone with the process, however it ends
        except OSError as error:
            raise OSError(f"another process is writing to {work.parent}: it uses {work}") from error
        try:
            yield
        except (ValueError, TypeError):  # what was asked for can't be done: there is nothing to go on with
            shutil.rmtree(work)
            with suppress(OSError):  # other files in it stay
                work.parent.rmdir()
            raise
    shutil.rmtree(work)


def _shards_in(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("shard-*.safetensors")}


def _begin(folder: Path, work: Path, task: _Task) -> None:
    """Keep what an earlier run of this very task has left, and nothing else."""
    job = {"job": task.fingerprint}
    for path in (*folder.glob(".shard-*.tmp"), *folder.glob(f".{INDEX}.*.tmp")):  # a killed run was writing these
        path.unlink()
    try:
        same = json.loads((work / _JOB).read_text(encoding="utf-8")) == job
    except (OSError, ValueError):
        same = False
    if same:
        logger.warning("%s: going on with what an earlier run has left", folder)
        return
    for path in (*(folder / name for name in _shards_in(folder)), *work.glob("*.safetensors")):
        path.unlink()
    write_json(work / _JOB, job)


def _original(folder: Path, task: _Task) -> DataIndex:
    instances, documents, after = task.original()
    shards = [
        write_shard(folder, number, shard_of(instances[start : start + _SHARD], task.vocabulary))
        for number, start in enumerate(range(0, len(instances), _SHARD))
    ]
    return replace(task.index(documents, shards), rng_random_after=after)


def _streaming(folder: Path, work: Path, task: _Task, pool: Workers) -> DataIndex:
    if not (work / TABLE).exists():
        blocks = blocks_of(read_sentences(task.paths, task.layout), task.block_size)
        missing = _counted(blocks, work, done := [0])
        for _ in _bar(pool.map(_encode, missing), "encode", None):
            pass
        write_table(work, done[0])
    tokens = Tokens(work)
    if not len(tokens):
        raise task.empty()
    if len(tokens) == 1 and task.options.next_sentence:
        _check_single(tokens, task)
    jobs = range(len(tokens.parts) - 1)
    return task.index(len(tokens), list(_bar(pool.map(_make, jobs), "make", len(jobs))))


def _counted(blocks: Iterator[Block], work: Path, done: list[int]) -> Iterator[Block]:
    """The blocks that are not encoded yet; counts all."""
    for block in blocks:
        done[0] += 1
        if not (work / part_name(block.number)).exists():
            yield block


def _bar(results: Iterator[Any], what: str, total: int | None) -> Iterator[Any]:
    """A progress bar, which is off when stderr is no terminal."""
    from tqdm import tqdm

    return iter(tqdm(results, desc=what, total=total, unit=" blocks", disable=None))


def _encode(shared: tuple[Path, Path, _Task], block: Block) -> None:
    _, work, task = shared
    path = work / part_name(block.number)
    write_part(path, block, task.tokenizer, task.vocabulary.id_type, task.options.most_tokens)


def _make(shared: tuple[Path, Path, _Task], number: int) -> ShardFacts:
    folder, work, task = shared
    path = folder / shard_name(number)
    if path.exists():
        return ShardFacts.of(path.name, map_arrays(path), sha256_of(path))
    arrays = make_shard(_opened(work), number, task.vocabulary, task.options, masked=not task.dynamic)
    return write_shard(folder, number, arrays)


#: The corpus that this process has opened last.
_corpus: list[tuple[Path, Tokens]] = []


def _opened(work: Path) -> Tokens:
    if not _corpus or _corpus[0][0] != work:
        _corpus[:] = [(work, Tokens(work))]
    return _corpus[0][1]


def _check_single(tokens: Tokens, task: _Task) -> None:
    """Refuse one document, or one that is too short to have distant parts.

    Raises:
        ValueError: It can't be used.
    """
    name = ", ".join(map(str, task.paths[:5]))
    if task.options.single_document == "refuse":
        raise one_document(name)
    sentences = int(tokens.parts[-1])
    size = sum(len(tokens.part(number).ids) for number in range(len(tokens.parts) - 1))
    if sentences < _DISTANT or size < _DISTANT * task.options.max_seq_length:
        raise ValueError(
            f"{name} holds one document of {sentences} sentences and {size} tokens, which has no distant parts: "
            f"single_document distant needs {_DISTANT} sentences and {_DISTANT * task.options.max_seq_length} tokens"
        )
