"""What all models share, under the module name of the published package."""

from .files import CONFIG_NAME, WEIGHTS_NAME
from .hub.paths import cached_path
from .models.base import PreTrainedModel
from .models.config import PretrainedConfig
from .nn.pruning import prune_linear_layer

__all__ = ["CONFIG_NAME", "WEIGHTS_NAME", "PreTrainedModel", "PretrainedConfig", "cached_path", "prune_linear_layer"]
