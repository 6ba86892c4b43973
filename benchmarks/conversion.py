"""A TensorFlow checkpoint of BERT-base size, with its optimizer slots, to a folder with PyTorch weights.

Each turn is a fresh process; imports aren't timed, though TensorFlow's take longer than our whole conversion. The other
side is what a user would write: read the variables with TensorFlow, transpose the kernels, save with torch.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file
from torch import Tensor

from pytorch_transformers import BertConfig, BertForPreTraining
from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle
from pytorch_transformers.models.original import save_original

from .harness import MismatchError, Plan, Result, alternate_processes, ratios

ROUNDS: Final = 9
_SLOTS: Final = ("adam_m", "adam_v")
#: Both sides: memory is counted from after the imports.
_FRAME: Final = """
import json, os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import torch
from benchmarks.memory import Peak
{imports}

prefix, config, out = sys.argv[1], sys.argv[2], sys.argv[3] + "/{name}"
memory = Peak()
started = time.perf_counter()
{work}
seconds = time.perf_counter() - started
print(json.dumps({{"seconds": seconds, "peak": memory.bytes() / float(sys.argv[4]), "out": out}}))
"""
_OURS: Final = _FRAME.format(
    name="ours",
    imports="""
from pytorch_transformers.models.bert import FAMILY
from pytorch_transformers.models.conversion import convert
""",
    work="convert(FAMILY, prefix, out, config=config)",
)
_THEIRS: Final = _FRAME.format(
    name="theirs",
    imports="import tensorflow as tf",
    work="""
reader = tf.train.load_checkpoint(prefix)
state = {}
for name in reader.get_variable_to_shape_map():
    if not name.endswith(("/adam_m", "/adam_v")) and name != "global_step":
        value = torch.from_numpy(reader.get_tensor(name))
        state[name] = value.t().contiguous() if name.endswith("/kernel") else value
torch.save(state, out)
""",
)


def run(plan: Plan, folder: Path) -> Iterator[Result]:
    """Measure time and peak memory of a conversion.

    Raises:
        MismatchError: The two sides don't give the same weights.
        ModuleNotFoundError: TensorFlow is not installed.
    """
    import importlib.util

    if importlib.util.find_spec("tensorflow") is None:
        raise ModuleNotFoundError("the package tensorflow is not installed; `make bench` installs it")
    prefix = folder / "bert-base-tf" / "bert_model.ckpt"
    size = _make(prefix)
    ours, theirs = alternate_processes(
        _OURS,
        _THEIRS,
        plan.rounds(ROUNDS),
        str(prefix),
        str(prefix.with_name("bert_config.json")),
        str(folder),
        str(size),
    )
    check = _compare(Path(ours[0]["out"]), Path(theirs[0]["out"]))
    note = f"{size / 1e6:.0f} MB of weights, and twice as much of slots"
    subject = "convert, BERT-base from TensorFlow"
    yield Result(
        subject, "TensorFlow and torch.save", "times as fast", ratios(ours, theirs, "seconds"), check, 1.0, note=note
    )
    peaks = tuple(found["peak"] for found in ours)
    yield Result(subject, "size of the weights", "times at the peak", peaks, "", 1.3, at_most=True, note=note)
    yield Result(subject, "peak memory of TensorFlow", "times as small", ratios(ours, theirs, "peak"), "")


class _WithSlots(Mapping[str, Tensor]):
    """The variables of a checkpoint, and two slots beside each."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._names = [*bundle, *(f"{name}/{slot}" for name in bundle for slot in _SLOTS), "global_step"]

    def __getitem__(self, name: str) -> Tensor:
        if name == "global_step":
            return torch.tensor(1)
        weight, _, slot = name.rpartition("/")
        return self._bundle.read(weight).mul(1e-3) if slot in _SLOTS else self._bundle.read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _make(prefix: Path) -> int:
    """Write the checkpoint if it isn't there; the size of its weights in bytes."""
    plain = prefix.with_name("plain.ckpt")
    if not prefix.with_name(f"{prefix.name}.index").exists():
        torch.manual_seed(0)
        model = BertForPreTraining(BertConfig())
        save_original(model, plain)
        write_bundle(prefix, _WithSlots(Bundle(plain)))
        model.config.to_json_file(prefix.with_name("bert_config.json"))
    return sum(variable.nbytes for variable in Bundle(plain).values())


def _compare(ours: Path, theirs: Path) -> str:
    """Compare the files: the other side keeps TensorFlow's names, so values are paired by what they are.

    Raises:
        MismatchError: A tensor of one side is not in the other.
    """
    our = load_file(ours / "model.safetensors")
    their = torch.load(theirs, weights_only=True, mmap=True)

    def digests(state: Mapping[str, Tensor]) -> list[tuple[tuple[int, ...], float, float]]:
        weights = torch.arange(1, 1009, dtype=torch.float64)  # a permuted tensor has another weighted sum
        found = []
        for tensor in state.values():
            flat = tensor.double().flatten()
            padded = torch.nn.functional.pad(flat, (0, -len(flat) % len(weights))).view(-1, len(weights))
            found.append((tuple(tensor.shape), float(flat.sum()), float(padded.sum(0) @ weights)))
        return sorted(found)

    if digests(our) != digests(their):
        raise MismatchError("convert: the two sides wrote different weights")
    return f"{len(our)} tensors equal"
