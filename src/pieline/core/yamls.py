"""Reading YAML with an error that names the line, and without silently merged duplicate keys."""

import re
from collections.abc import Hashable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.records import validated


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that refuses a key that occurs twice in a mapping, and what is no character."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                break  # refused below
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} occurs twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        if re.search("[\0\ud800-\udfff]", str(node.value)):
            raise yaml.constructor.ConstructorError(
                None, None, "a NUL or half a surrogate pair", node.start_mark
            )
        return super().construct_scalar(node)


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file.

    Raises:
        UserError: the file is missing, is not YAML, or has a key twice; names file and line.
    """
    return parse_yaml(read_text(path), where=path)


def parse_yaml(text: str, *, where: str | Path, above: int = 0) -> Any:
    """Parse the YAML of a file (`where`), in which `above` other lines come before it.

    Raises:
        UserError: it is not YAML, or has a key twice; names file and line.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        problem, where = error.problem, f"{where}:{above + line + 1}"
    except yaml.reader.ReaderError as error:
        problem = f"{error.reason} (character 0x{error.character:02x})"
    except (ValueError, RecursionError) as error:  # no such date or number; a deep nesting
        problem = str(error)
    raise UserError(f"not valid YAML: {problem}", where=where, hint="correct this line")


def read_mapping(path: str | Path, *, hint: str) -> dict[str, Any]:
    """Read a YAML file of things by their name.

    Raises:
        UserError: as `read_yaml`, or it is no mapping or has a key that is no text.
    """
    return validated(dict[str, Any], read_yaml(path), where=path, hint=hint)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return one layer of a configuration on top of another; mappings are merged key by key."""
    merged = deepcopy(dict(below))
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged
