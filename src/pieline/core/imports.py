"""Import functions and classes that declarations refer to by name.

Referring to objects by name avoids loading their modules whenever a declaration is read.
"""

import importlib
from typing import Any

from pieline.core.errors import UserError


def import_object(path: str) -> Any:
    """Import the object that `module:name` refers to.

    Raises:
        UserError: The module or the name does not exist.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(str(error), where=path, hint="correct the study's declaration") from None
