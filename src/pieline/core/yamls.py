"""Read YAML strictly; error messages state the line."""

import re
from collections.abc import Hashable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.records import validated

_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_AMBIGUOUS_NUMBER = re.compile(
    r"[-+]?("
    r"0[\d_xXbB][\da-fA-F_]*"  # octal, hexadecimal or binary
    r"|\d[\d_]*([_:][\d_]+)+(\.\d*)?"  # with underscores, or sexagesimal
    r")"
)
_NUL_OR_SURROGATE = re.compile("[\0\ud800-\udfff]")


def is_ambiguous(text: str) -> bool:
    """Return whether programs disagree on the value of a number, such as 010, 1:30 or 1_000.

    YAML 1.1 reads these numbers as 8, 90 and 1000.
    """
    return bool(_AMBIGUOUS_NUMBER.fullmatch(text))


class _StrictLoader(yaml.SafeLoader):
    """Safe loader that rejects duplicate keys, ambiguous numbers and invalid characters."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping; raise a `ConstructorError` for a duplicate key."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                break  # rejected by the base class
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key!r}", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """Construct a value; raise a `ConstructorError` for an ambiguous number or invalid text."""
        if _NUL_OR_SURROGATE.search(str(node.value)):
            raise yaml.constructor.ConstructorError(
                None, None, "contains NUL or an unpaired surrogate", node.start_mark
            )
        if node.tag in _NUMBER_TAGS and is_ambiguous(str(node.value)):
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"ambiguous number {node.value} (quote it if it is text)",
                node.start_mark,
            )
        return super().construct_scalar(node)


def read_yaml(path: str | Path) -> Any:
    """Return the content of a YAML file.

    Raises:
        UserError: The file cannot be read, is not valid YAML or has a duplicate key; the message
            states the location.
    """
    return parse_yaml(read_text(path), where=path)


def parse_yaml(text: str, *, where: str | Path, lines_above: int = 0) -> Any:
    """Return the value that YAML text contains.

    Args:
        text: YAML text.
        where: File that contains the text, for error messages.
        lines_above: Number of lines in the file above the text.

    Raises:
        UserError: The text is not valid YAML or has a duplicate key; the message states the
            location.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line_from_zero = error.problem_mark.line if error.problem_mark else 0
        problem = error.problem
        where = f"{where}:{lines_above + line_from_zero + 1}"
    except yaml.reader.ReaderError as error:
        problem = f"{error.reason} (character 0x{error.character:02x})"
    except (ValueError, RecursionError) as error:  # invalid date or number, or deep nesting
        problem = str(error)
    raise UserError(f"not valid YAML: {problem}", where=where, hint="correct this line")


def read_settings(path: str | Path) -> dict[str, Any]:
    """Return the settings in a configuration file; empty for an empty file.

    Raises:
        UserError: The file cannot be read, is not valid YAML, or contains anything other than
            a mapping with string keys.
    """
    hint = "write one `key: value` per line (docs/configuration.md)"
    return validated(dict[str, Any], read_yaml(path) or {}, where=path, hint=hint)


def read_mapping(path: str | Path, *, hint: str) -> dict[str, Any]:
    """Return the mapping in a YAML file, whose keys must be strings.

    Raises:
        UserError: The file cannot be read, is not valid YAML, or contains anything else.
    """
    return validated(dict[str, Any], read_yaml(path), where=path, hint=hint)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two configuration layers recursively; values of `above` take precedence."""
    merged = deepcopy(dict(below))
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged
