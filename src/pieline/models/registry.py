"""What each model is: the entries of models.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from pieline.core.errors import UserError
from pieline.core.records import validated
from pieline.core.yamls import read_yaml
from pieline.models.bm25 import Bm25Entry
from pieline.models.causal_lm import CausalEntry
from pieline.models.embedder import EmbedderEntry
from pieline.models.encoder import EncoderEntry
from pieline.models.llm import LLMEntry

AnyEntry = Bm25Entry | CausalEntry | EmbedderEntry | EncoderEntry | LLMEntry
Entry = Annotated[AnyEntry, Field(discriminator="kind")]
ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(Entry)
Registry = dict[str, AnyEntry]


def load_registry(path: str | Path) -> Registry:
    """Read models.yaml: entries by name.

    Raises:
        UserError: names the file, the entry and the field that is wrong.
    """
    raw = read_yaml(path)
    if not isinstance(raw, Mapping):
        raise UserError("not a mapping of model names to entries", where=path, mend="see its head")
    mend = "see schemas/models.schema.json"
    return {
        name: validated(ENTRY, fields, where=f"{path}: {name}", mend=mend)
        for name, fields in raw.items()
    }


def registry_schema() -> dict[str, Any]:
    """JSON schema of models.yaml, for editors."""
    schema = ENTRY.json_schema()
    definitions = schema.pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "models.yaml: what each model is",
        "type": "object",
        "additionalProperties": schema,
        "$defs": definitions,
    }
