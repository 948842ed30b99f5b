"""Fixtures for the tests of pieline.llm."""

from pathlib import Path

import pytest
from llm_cases import KEY


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty recordings folder, and set an API key in the environment."""
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    return tmp_path / "recordings"
