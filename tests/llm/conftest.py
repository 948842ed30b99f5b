"""What the tests of the LLM layer share."""

from pathlib import Path

import pytest
from llm_cases import KEY


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty recordings folder, and an API key in the environment."""
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    return tmp_path / "recordings"
