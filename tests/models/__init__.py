"""Tests of the models: a NumPy forward, a battery for every family, and each family's own tests."""

import pytest

# The asserts of the shared modules are shown with their values, as those of test files are.
pytest.register_assert_rewrite(f"{__name__}.battery", f"{__name__}.compare")
