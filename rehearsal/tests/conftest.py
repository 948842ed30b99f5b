"""Fixtures of the rehearsal's tests."""

import pytest


@pytest.fixture(autouse=True)
def _no_mirror_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests name their data themselves, whatever the user's environment says."""
    monkeypatch.delenv("PIELINE_MIRROR", raising=False)
