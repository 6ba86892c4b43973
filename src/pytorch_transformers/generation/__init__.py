"""Text generation, once for every causal model: options, scores, the loop, and from text to text.

A model needs what `protocol.CausalModel` lists and nothing else; `engine.Generation` is the loop over it. The layer
knows no family, so models import it and give `generate` and `stream` to their users.
"""

from .options import GenerationOptions
from .results import FinishReason, GenerationOutput, NewToken
from .text import GeneratedText, TextGenerator

__all__ = ["FinishReason", "GeneratedText", "GenerationOptions", "GenerationOutput", "NewToken", "TextGenerator"]
