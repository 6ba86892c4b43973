"""What all tests of blocks share."""

from models import conftest

one_thread = conftest.one_thread
