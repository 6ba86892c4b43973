"""Text files are UTF-8 whatever the platform's encoding is (known fault B7)."""

import os
import subprocess
import sys
from pathlib import Path

from .server import HubServer

# Run in a process of its own, where the platform's encoding is ASCII and leaving it to the platform is an error.
# Only for our modules: the library that makes our imports lazy opens its stub file without an encoding.
_PROGRAM = r"""
import sys, warnings
from pathlib import Path
warnings.filterwarnings("error", category=EncodingWarning, module="pytorch_transformers")
import torch
from pytorch_transformers.checkpoint.read import find_weights, read_weights
from pytorch_transformers.checkpoint.save import save_sharded
from pytorch_transformers.files import write_json, write_text
from pytorch_transformers.hub import locate

folder, repo, url = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
write_json(folder / "config.json", {"name": "\u6a21\u578b \xe9"})
write_text(folder / "vocab.txt", "\u6a21\n\U0001f600\n")
assert locate(folder, shortcuts={}).file("vocab.txt").read_bytes() == "\u6a21\n\U0001f600\n".encode()
try:
    locate("no-\xe9", shortcuts={})
except OSError as error:
    assert "\xe9" in str(error)
for _ in range(2):  # download, then from the cache
    assert locate(repo, shortcuts={}, cache_dir=folder / "hub").file("vocab.txt").read_bytes() == "\u6a21".encode()
    assert locate(url, shortcuts={}, cache_dir=folder / "plain").chosen.read_bytes() == "\u6a21".encode()
locate(repo, shortcuts={}, cache_dir=folder / "hub", local_files_only=True).file("absent.txt")
state = {"\xe9": torch.ones(4), "b": torch.ones(4)}
save_sharded(state, folder, 16)
assert set(read_weights(find_weights(locate(folder, shortcuts={})))) == set(state)
"""


def test_b7_files_are_utf8_whatever_the_platform_says(hub_server: HubServer, tmp_path: Path) -> None:
    hub_server.add("someone/model", "vocab.txt", "模".encode())
    url = hub_server.add_plain("%E6%A8%A1.txt", "模".encode())
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-X", "warn_default_encoding", "-c", _PROGRAM, str(tmp_path), "someone/model", url]
    done = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert (tmp_path / "config.json").read_text(encoding="utf-8") == '{\n  "name": "模型 é"\n}\n'
