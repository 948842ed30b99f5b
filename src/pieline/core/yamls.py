"""Reading YAML with an error that names the line, and without silently merged duplicate keys."""

from pathlib import Path
from typing import Any

import yaml

from pieline.core.errors import UserError
from pieline.core.files import read_text


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that refuses a key that stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file.

    Raises:
        UserError: the file is missing, is not YAML, or has a key twice; names file and line.
    """
    try:
        return yaml.load(read_text(path), Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(
            f"not valid YAML: {error.problem}", where=f"{path}:{line}", mend="correct this line"
        ) from None
