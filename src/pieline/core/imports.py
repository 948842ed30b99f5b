"""Import functions and classes that declarations name as `module:name`.

Such a name lets a program read a declaration without loading the module of the named object.
"""

import importlib
from typing import Any

from pieline.core.errors import UserError


def import_object(path: str) -> Any:
    """Import a module, and return the object in it that `module:name` refers to.

    Raises:
        UserError: The module or the name does not exist.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(str(error), where=path, hint="correct the study's declaration") from None
