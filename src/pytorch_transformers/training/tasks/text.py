"""BERT goes on with its pre-training on a text: data are made of it on the way, and need no command of their own."""

import os
from pathlib import Path
from typing import Any

from ...data.pretraining import InstanceOptions, create_pretraining_data
from ..task import Source
from .pretrain import MaskedWords, Place


class MaskedText(MaskedWords):
    """Masked words and next sentences of text files, one sentence a line, blank lines between documents.

    Words are masked anew in each epoch. A run that is given again finds its data.

    Args:
        text: The files: paths and patterns divided by commas.
        folder: For the data, see `create_pretraining_data`.
        options: How inputs are made of the text.
        dev_data: What `create_pretraining_data` made of other text, to evaluate on.
    """

    def __init__(
        self, *, text: str, folder: str | os.PathLike[str], options: InstanceOptions, dev_data: Place | None = None
    ) -> None:
        super().__init__(data=Path(folder), dev_data=dev_data)
        self._text, self._folder, self._options = text, folder, options

    def prepare(self, tokenizer: Any, source: Source, *, training: bool) -> None:
        """Make the data, and open them; the first process does it before the others."""
        if training:
            create_pretraining_data(self._text, tokenizer, self._folder, self._options, dynamic_masking=True)
        super().prepare(tokenizer, source, training=training)
