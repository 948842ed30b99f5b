"""Import functions and classes that declarations name as `module:name`.

Because of the names, reading a declaration does not load the modules of these objects.
"""

import importlib
from typing import Any

from pieline.core.errors import UserError


def import_object(path: str) -> Any:
    """Import the object that is named as `module:name`.

    Raises:
        UserError: The module or the name does not exist.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(str(error), where=path, hint="correct the study's declaration") from None
