"""Warnings that are worth saying once in a process."""

import functools
import logging

logger = logging.getLogger(__name__)


@functools.cache
def warn_once(message: str) -> None:
    """Log `message` as a warning, the first time only; `warn_once.cache_clear()` starts anew."""
    logger.warning(message)
