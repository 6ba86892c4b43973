"""What a run ran on: without it, figures can't be read."""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import torch

from pytorch_transformers.training.throughput import matrix_product_rate

#: Distributions whose versions are recorded.
PACKAGES: Final = (
    "pytorch-transformers",
    "torch",
    "transformers",
    "sentence-transformers",
    "onnxruntime",
    "tokenizers",
    "tiktoken",
    "tensorflow-cpu",
    "numpy",
)
#: Parts of the processor that decide how fast matrix products are, as Linux names them.
FEATURES: Final = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16")


def record() -> dict[str, Any]:
    """Processor, threads, versions, and the measured rates of matrix products in 10^9 operations a second."""
    rates = {"float32": matrix_product_rate(torch.float32)}
    if has_bfloat16():
        rates["bfloat16"] = matrix_product_rate(torch.bfloat16)
    return {
        "processor": _processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "matrix_product_gflops": {name: round(rate / 1e9, 1) for name, rate in rates.items()},
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := installed(name))},
    }


def installed(name: str) -> str | None:
    """The version of a distribution, None when it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 matrices itself."""
    return {"avx512_bf16", "amx_bf16"} & set(_flags()) != set()


def _processor() -> dict[str, Any]:
    flags = _flags()
    return {"machine": platform.machine(), "features": [name for name in FEATURES if name in flags]}


def _flags() -> list[str]:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))), [])
