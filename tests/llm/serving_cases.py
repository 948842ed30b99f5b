"""Entries of models served by a stand-in, and access to the stand-in's notes."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from pieline.models.llm import LLMEntry
from pieline.models.llm_weights import folder_digest

STANDIN = Path(__file__).with_name("standin_server.py")


def weights(folder: Path) -> Path:
    """Create a folder that passes all checks of weights before the server starts."""
    place = folder / "weights"
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text('{"eos_token_id": 2}')
    (place / "model.safetensors").write_text("weights")
    (place / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    return place


def served(folder: Path, how: str = "", **fields: Any) -> LLMEntry:
    """Return the entry of a model that the stand-in serves through a custom command."""
    words = [sys.executable, str(STANDIN), str(folder / "notes"), "--how", how]
    place = weights(folder)
    entry = {
        "kind": "llm",
        "label": "Served",
        "licence": "none",
        "source": "folder",
        "path": place,
        "weights_sha256": folder_digest(place),
        "server": f"{shlex.join(words)} --weights {{checkpoint}} --gpus={{gpus}} --port {{port}}",
        "litellm_id": "openai/served",
        "provider": "local",
        "accepts": ["seed"],
    }
    return LLMEntry.model_validate({**entry, **fields})


def notes(folder: Path) -> list[dict[str, Any]]:
    """Return the notes of each start of the stand-in."""
    return [json.loads(line) for line in (folder / "notes").read_text().splitlines()]
