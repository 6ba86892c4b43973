"""Tokenizers: the algorithms, each once, and the base that the families build on. Knows no model family.

The readable algorithms are `basic.py` and `wordpiece.py`; `rust.py` runs the same ones in the `tokenizers` library.
Byte pairs: `bpe.py` joins symbols, `byte_level.py` and `standardize.py` make them of text as GPT-2 and OpenAI GPT do,
`joiner.py` is both ways to ids (Python's and the library's), `bpe_tokenizer.py` the base of the two.
`pipeline.py` finds special and added tokens, `assemble.py`, `truncation.py` and `padding.py` make rows of ids, and
`base.py` is what users call.
"""
