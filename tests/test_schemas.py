"""schemas/ is up to date, and the shipped files conform to it."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from support import ROOT

from pieline.schemas import schemas


@pytest.mark.parametrize("name", sorted(schemas()))
def test_schema_files_are_current(name: str) -> None:
    written = (ROOT / "schemas" / name).read_text(encoding="utf-8")
    assert written == schemas()[name], "run: python -m pieline.schemas schemas"


@pytest.mark.parametrize(
    ("data", "schema"),
    [
        ("config.yaml", "config.schema.json"),
        ("models.yaml", "models.schema.json"),
        ("examples/chat_models.yaml", "models.schema.json"),
        ("examples/served_models.yaml", "models.schema.json"),
    ],
)
def test_shipped_files_conform_to_their_schema(data: str, schema: str) -> None:
    def read(path: Path) -> object:
        return yaml.safe_load(path.read_text(encoding="utf-8"))

    jsonschema.validate(read(ROOT / data), read(ROOT / "schemas" / schema))


@pytest.mark.parametrize("name", sorted(schemas()))
def test_every_setting_is_described(name: str) -> None:
    """An editor shows the description of a section's own definition for a bare reference."""
    schema = json.loads(schemas()[name])
    definitions = schema["$defs"]
    settings = {
        f"{place}.{field}": setting
        for place, section in {"": schema, **definitions}.items()
        for field, setting in section.get("properties", {}).items()
    }
    assert len(settings) > 100
    described = {
        field
        for field, setting in settings.items()
        if setting.get("description")
        or definitions.get(setting.get("$ref", "").rpartition("/")[2], {}).get("description")
    }
    assert settings.keys() == described
