"""Users' own models in a rehearsal."""

from pathlib import Path

import pytest
from support import ROOT

from pieline.config import RehearsalSettings
from pieline.core.files import read_text, write_text
from pieline.models.registry import load_registry
from rehearsal import rehearsal
from rehearsal.rehearsal import Rehearsal

OWN = (
    "mine: {kind: llm, label: Mine, licence: MIT, source: api, provider: openai,"
    " litellm_id: openai/mine, api_key_env: MY_KEY, accepts: [seed]}\n"
)


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rehearsal:
    """Prepare a rehearsal of a project with the user's own model, without writing stand-ins."""
    for name in ("write_corpora", "common_words", "write_weights"):
        monkeypatch.setattr(rehearsal, name, lambda *arguments, **named: None)
    write_text(tmp_path / "models.yaml", read_text(ROOT / "models.yaml"))
    write_text(tmp_path / "models.local.yaml", OWN)
    prepared_rehearsal = Rehearsal(RehearsalSettings(), tmp_path, tmp_path / "standins")
    prepared_rehearsal.prepare()
    return prepared_rehearsal


def test_own_models_and_their_keys_are_excluded(prepared: Rehearsal) -> None:
    papers = set(load_registry(ROOT / "models.yaml"))
    assert set(load_registry(prepared.root / "models.yaml")) - papers == {"mine"}
    registry = load_registry(prepared.models)
    assert set(registry) == papers - {"mine"}
    assert "MY_KEY" not in prepared.environment(registry)
