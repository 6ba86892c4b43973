"""The other published name of `run_lm_finetuning.py`, which see."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).with_name("run_lm_finetuning.py")), run_name="__main__")
