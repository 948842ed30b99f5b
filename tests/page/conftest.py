"""Fixtures of the results page's tests."""

from pathlib import Path

import pytest
from small_run import make_run


@pytest.fixture(scope="session")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the results page of a small run; tests must not change the page."""
    return make_run(tmp_path_factory.mktemp("small"))
