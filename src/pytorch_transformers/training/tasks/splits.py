"""Where the training, development and test data of a task are: files of their own, or a folder with known names."""

from collections.abc import Mapping
from pathlib import Path


class Splits:
    """The files of a task.

    Args:
        files: Split (train, dev, test) -> its file, None where none is given.
        data_dir: Folder of the files that are not given.
        names: Split -> name of its file there.

    Raises:
        ValueError: Neither a file nor a folder is given.
    """

    def __init__(
        self,
        files: Mapping[str, Path | None],
        data_dir: Path | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        names = names or {}
        if data_dir is None and not any(files.values()):
            folder = f"data_dir (--data_dir), a folder with {', '.join(names.values())}, or " if names else ""
            raise ValueError(f"no data: give {folder}files ({', '.join(f'--{split}_file' for split in files)})")
        self._files, self._data_dir, self._names = dict(files), data_dir, names

    def __str__(self) -> str:
        """A short name of the data, for the record."""
        return str(self._data_dir or next(path for path in self._files.values() if path))

    def given(self, split: str) -> bool:
        """Whether there is such data."""
        if self._files[split] is not None:
            return True
        return self._data_dir is not None and (self._data_dir / self._names[split]).exists()

    def path(self, split: str) -> Path:
        """The file of a split.

        Raises:
            ValueError: None is given.
            FileNotFoundError: The folder does not have it.
        """
        path = self._files[split]
        if path is not None:
            return path
        if self._data_dir is None:
            raise ValueError(f"{split}_file: missing (--{split}_file)")
        path = self._data_dir / self._names[split]
        if not path.exists():
            raise FileNotFoundError(
                f"{path}: there is no such file; data_dir has {', '.join(self._names.values())}, "
                f"or give the file (--{split}_file)"
            )
        return path
