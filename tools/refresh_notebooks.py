"""Run the notebooks and store what they show; the tests run them the same way.

    python tools/refresh_notebooks.py              all of them
    python tools/refresh_notebooks.py a.ipynb      one of them

Surprising: the kernel is the interpreter that runs this file, whatever kernels are installed, and talks over sockets
in a temporary folder, so that no port is opened and nothing is written to the home of the person who runs it. What
depends on the machine or the moment (times, versions, counters) isn't stored.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[1] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def main(argv: Sequence[str] | None = None) -> int:
    """Refresh the notebooks that a command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", nargs="*", type=Path, default=sorted(FOLDER.glob("*.ipynb")))
    for path in parser.parse_args(argv).notebook:
        write(execute(path, path.parent), path)
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


def execute(path: Path, folder: Path, seconds: int = 120, **environment: str) -> NotebookNode:
    """Run a notebook and return it as it is stored.

    Args:
        path: The notebook; the file isn't changed.
        folder: Where its code runs.
        seconds: Limit for each cell.
        **environment: Variables for its code, beside those there are.

    Raises:
        CellExecutionError: A cell raised an error.
    """
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory(prefix="kernel-") as scratch:  # short: names of sockets are limited
        manager = _manager(Path(scratch), environment)
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=seconds,
            record_timing=False,
            coalesce_streams=True,  # how a text arrives in pieces depends on the moment
            resources={"metadata": {"path": str(folder)}},
        )
        client.owns_km = True  # so that the kernel ends with the run, also after an error
        client.execute()
    return stripped(notebook)


def _manager(scratch: Path, environment: dict[str, str]) -> AsyncKernelManager:
    """A kernel of this interpreter, which keeps its files in `scratch`."""
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3",
        "language": "python",
        "env": {"IPYTHONDIR": str(scratch / "ipython"), **environment},
    }
    kernel = scratch / "kernels" / "python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(kernel.parent)]),
        connection_file=str(scratch / "connection.json"),
        transport="ipc",
        ip=str(scratch / "socket"),
    )


def stripped(notebook: NotebookNode) -> NotebookNode:
    """The same notebook without what differs from run to run."""
    notebook.metadata = METADATA
    number = 0
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            number += 1
            cell.execution_count = number
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = number
    return notebook


def write(notebook: NotebookNode, path: Path) -> None:
    """Store a notebook, checked against the format."""
    nbformat.validate(notebook)
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    raise SystemExit(main())
