"""A model that a stand-in serves, and what the stand-in tells of itself."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from pieline.models.llm import LLMEntry
from pieline.models.weights import folder_digest

STANDIN = Path(__file__).with_name("standin_server.py")


def weights(folder: Path) -> Path:
    """What a folder of weights has, as far as anyone looks before the server does."""
    place = folder / "weights"
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text('{"eos_token_id": 2}')
    (place / "model.safetensors").write_text("weights")
    (place / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    return place


def served(folder: Path, how: str = "", **fields: Any) -> LLMEntry:
    """A model that the stand-in serves, as a command of the user's own."""
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
        "repeatable": False,
        "litellm_id": "openai/served",
        "provider": "local",
        "accepts": ["seed"],
    }
    return LLMEntry.model_validate({**entry, **fields})


def notes(folder: Path) -> list[dict[str, Any]]:
    """What each start of the stand-in has noted."""
    return [json.loads(line) for line in (folder / "notes").read_text().splitlines()]
