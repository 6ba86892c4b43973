"""A folder of training data: shards of instances and an index; and the dataset that reads it, memory-mapped.

`index.json` says what is in the folder (see `DataIndex`), `shard-00000.safetensors` ... hold the arrays of `rows.py`.
The index is written last: a folder without one is not complete.
"""

import json
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from ...files import write_json
from .arrays import Arrays, map_arrays, sha256_of, write_arrays
from .draws import key_of
from .instances import Instance
from .options import InstanceOptions
from .rows import Row, instance_at, mask_instances, row_of
from .vocabulary import Vocabulary

INDEX: Final = "index.json"
_FORMAT: Final = "pytorch_transformers pre-training data"
_VERSION: Final = 1
#: Shards that a dataset keeps open at a time.
_OPEN: Final = 64


def shard_name(number: int) -> str:
    """The name of the file of a shard."""
    return f"shard-{number:05d}.safetensors"


@dataclass(frozen=True)
class ShardFacts:
    """What the index says of a shard.

    Attributes:
        file: Its name.
        instances: How many there are in it.
        tokens: Of them together, special ones included.
        masked: Tokens to be guessed; 0 where masking is left to the reader.
        random_next: Instances whose second text comes from another document.
        sha256: Of the file.
    """

    file: str
    instances: int
    tokens: int
    masked: int
    random_next: int
    sha256: str

    @classmethod
    def of(cls, file: str, arrays: Arrays, sha256: str) -> "ShardFacts":
        """Count."""
        instances, tokens = len(arrays["offsets"]) - 1, len(arrays["ids"])
        masked = len(arrays["positions"]) if "positions" in arrays else 0
        return cls(file, instances, tokens, masked, int((arrays["random"] == 1).sum()), sha256)


@dataclass(frozen=True)
class DataIndex:
    """What a folder of training data holds.

    Attributes:
        options: How the instances were made.
        vocabulary: Size, SHA-256 and special ids of the vocabulary, and the ids of the tokens that go on a word.
        mode: `original` or `streaming`.
        dynamic_masking: Whether the instances are stored without masks, and masked when read.
        job: What the instances were made from and how, as one SHA-256: equal jobs give equal shards.
        source: Name, size in bytes and SHA-256 of each text file.
        documents: Documents with text in them.
        shards: What there is in each shard.
        rng_random_after: In the original mode the next draw after the last, which says whether as many were made.
    """

    options: InstanceOptions
    vocabulary: Mapping[str, Any]
    mode: str
    dynamic_masking: bool
    job: str
    source: Sequence[Mapping[str, Any]]
    documents: int
    shards: Sequence[ShardFacts] = field(default_factory=tuple)
    rng_random_after: float | None = None

    @property
    def instances(self) -> int:
        """How many there are in all shards."""
        return sum(shard.instances for shard in self.shards)

    def write(self, folder: Path) -> None:
        """Writes the index, which makes the folder complete.

        Raises:
            OSError: The disk refused it.
        """
        counts = {
            name: sum(getattr(shard, name) for shard in self.shards)
            for name in ("instances", "tokens", "masked", "random_next")
        }
        write_json(folder / INDEX, {"format": _FORMAT, "version": _VERSION, **counts, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> "DataIndex":
        """Reads the index of a folder.

        Raises:
            OSError: There is none, or it is damaged or of another version.
        """
        path = folder / INDEX
        if not path.is_file():
            raise OSError(
                f"{path} is missing: the folder holds no complete training data. Make them with "
                "`pytorch_transformers create-pretraining-data`; a run that was stopped goes on when it is given again"
            )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.get("format") != _FORMAT or content.get("version") != _VERSION:
                raise ValueError(f"format {content.get('format')!r}, version {content.get('version')!r}")
            return cls(
                options=InstanceOptions(**content["options"]),
                shards=tuple(ShardFacts(**shard) for shard in content["shards"]),
                **{
                    name: content[name]
                    for name in (
                        *("vocabulary", "mode", "dynamic_masking", "job", "source", "documents"),
                        "rng_random_after",
                    )
                },
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OSError(f"{path} is damaged or from another program: {error}") from error


def write_shard(folder: Path, number: int, arrays: Arrays) -> ShardFacts:
    """Writes a shard, whole or not at all.

    Args:
        folder: Of the training data.
        number: Of the shard.
        arrays: See `rows.py`.

    Raises:
        OSError: The disk refused it.
    """
    name = shard_name(number)
    return ShardFacts.of(name, arrays, write_arrays(folder / name, arrays))


class PretrainingDataset:
    """Training data for masked words and next sentences, as rows for the model; a map-style dataset of torch.

    Args:
        folder: What `create-pretraining-data` made.
        epoch: With dynamic masking decides the masks, together with the seed of the data and the number of the row.
        verify: Whether to compare all shards with their checksums now.

    Raises:
        OSError: There are no complete data, or a shard is missing, damaged or of another size than the index says.
    """

    def __init__(self, folder: str | os.PathLike[str], *, epoch: int = 0, verify: bool = False) -> None:
        self.folder = Path(folder)
        #: What the folder holds.
        self.index = DataIndex.read(self.folder)
        self._ends = list(accumulate(shard.instances for shard in self.index.shards))
        self._vocabulary = Vocabulary.from_description(self.index.vocabulary)
        self._opened: OrderedDict[int, dict[str, npt.NDArray[Any]]] = OrderedDict()
        self.set_epoch(epoch)
        for shard in self.index.shards:
            self._check_there(shard)
        if verify:
            self.verify()

    def __getstate__(self) -> dict[str, Any]:
        # Mapped files can't be sent to another process, which opens its own.
        return {**self.__dict__, "_opened": OrderedDict()}

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def vocabulary(self) -> Vocabulary:
        """Special ids and size of the vocabulary."""
        return self._vocabulary

    def set_epoch(self, epoch: int) -> None:
        """Chooses the masks of an epoch, where masking is dynamic; before a loader begins the epoch.

        A loader that keeps its worker processes (`persistent_workers`) has copies, which would not hear of it.

        Args:
            epoch: From 0.
        """
        if epoch < 0:
            raise ValueError(f"epoch is {epoch}; it should be at least 0")
        self._epoch = epoch

    def __getitem__(self, number: int) -> Row:
        """One row: `input_ids`, `token_type_ids`, `masked_lm_labels` and `next_sentence_label`, see `row_of`."""
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Row]:
        """Several rows, as torch's loader asks for them."""
        return [row_of(instance) for instance in self.instances(numbers)]

    def instances(self, numbers: Sequence[int]) -> list[Instance]:
        """Gives instances as they are given to the model: masked, with places and labels.

        Args:
            numbers: From 0, or back from -1.

        Raises:
            IndexError: There is no such instance.
            OSError: A shard is missing or damaged.
        """
        places = [number + len(self) if number < 0 else number for number in numbers]
        for number, place in zip(numbers, places, strict=True):
            if not 0 <= place < len(self):
                raise IndexError(f"there is no instance {number}; there are {len(self)}")
        found = [self._stored(place) for place in places]
        if not self.index.dynamic_masking or not found:
            return found
        key = key_of(self.index.options.random_seed, 1, self._epoch)
        return mask_instances(found, places, key, self._vocabulary, self.index.options)

    def _stored(self, number: int) -> Instance:
        shard = bisect_right(self._ends, number)
        return instance_at(self._arrays(shard), number - (self._ends[shard - 1] if shard else 0))

    def _arrays(self, number: int) -> dict[str, npt.NDArray[Any]]:
        arrays = self._opened.get(number)
        if arrays is None:
            facts = self.index.shards[number]
            self._check_there(facts)
            arrays = map_arrays(self.folder / facts.file)
            if len(arrays["offsets"]) != facts.instances + 1 or len(arrays["ids"]) != facts.tokens:
                raise OSError(f"{self.folder / facts.file} is not the shard that {INDEX} tells of; make the data again")
            self._opened[number] = arrays
            if len(self._opened) > _OPEN:
                self._opened.popitem(last=False)
        else:
            self._opened.move_to_end(number)
        return arrays

    def _check_there(self, shard: ShardFacts) -> None:
        if not (self.folder / shard.file).is_file():
            raise FileNotFoundError(
                f"{self.folder / shard.file} is missing: it holds {shard.instances} of the {len(self)} instances. Copy "
                "it from where the data were made, or make them again"
            )

    def verify(self) -> None:
        """Reads all shards and compares them with their checksums.

        Raises:
            OSError: Shards are missing or damaged; the message names them.
        """
        bad = [
            shard.file
            for shard in self.index.shards
            if not (self.folder / shard.file).is_file() or sha256_of(self.folder / shard.file) != shard.sha256
        ]
        if bad:
            raise OSError(
                f"{self.folder}: {len(bad)} of {len(self.index.shards)} shards do not match their checksums: "
                f"{', '.join(bad[:10])}; copy them again, or make the data again"
            )
