"""The adaptive softmax of Transformer-XL under the module name of the published package."""

from .models.transfo_xl.adaptive_softmax import ProjectedAdaptiveLogSoftmax

__all__ = ["ProjectedAdaptiveLogSoftmax"]
