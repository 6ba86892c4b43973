"""The interface of `pytorch_pretrained_bert` 0.6.2, on the models of `pytorch_transformers`.

The names of the package are listed in `__init__.pyi`, which type checkers read and which `lazy_loader` turns into
imports at first use: `import pytorch_pretrained_bert` itself loads neither torch nor any model.
"""

import lazy_loader

#: The version whose interface this is; programs compare it. That of the distribution is `pytorch_transformers`'.
__version__ = "0.6.2"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
