"""BERT, OpenAI GPT, GPT-2 and Transformer-XL in PyTorch.

The names of the package are listed in `__init__.pyi`, which type checkers read and which `lazy_loader` turns into
imports at first use: `import pytorch_transformers` itself loads neither torch nor any model.
"""

import lazy_loader

__version__ = "2.0.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
