"""schemas/ is up to date, and the shipped files conform to it."""

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
    ],
)
def test_shipped_files_conform_to_their_schema(data: str, schema: str) -> None:
    def read(path: Path) -> object:
        return yaml.safe_load(path.read_text(encoding="utf-8"))

    jsonschema.validate(read(ROOT / data), read(ROOT / "schemas" / schema))
