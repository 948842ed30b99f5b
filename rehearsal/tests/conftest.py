"""Fixtures of the rehearsal's tests."""

import pytest


@pytest.fixture(autouse=True)
def _no_mirror_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the mirror in the user's environment."""
    monkeypatch.delenv("PIELINE_MIRROR", raising=False)
