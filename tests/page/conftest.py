"""A small run and its page, made once."""

from pathlib import Path

import pytest
from small_run import make_run


@pytest.fixture(scope="session")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results page of a small run; do not change it."""
    return make_run(tmp_path_factory.mktemp("small"))
