"""`python -m pytorch_transformers` is the command `pytorch_transformers`."""

from .cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
