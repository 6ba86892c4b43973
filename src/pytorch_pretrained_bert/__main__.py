"""`python -m pytorch_pretrained_bert` is the command `pytorch_pretrained_bert`."""

from .commands import main

if __name__ == "__main__":
    raise SystemExit(main())
