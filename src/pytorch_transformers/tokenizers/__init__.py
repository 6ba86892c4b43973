"""Tokenizers: the algorithms, each once, and the base that the families build on. Knows no model family.

The readable algorithms are `basic.py` and `wordpiece.py`; `rust.py` runs the same ones in the `tokenizers` library.
`pipeline.py` finds special and added tokens, `assemble.py`, `truncation.py` and `padding.py` make rows of ids, and
`base.py` is what users call.
"""
