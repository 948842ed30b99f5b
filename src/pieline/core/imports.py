"""Functions and classes that a declaration only names, so that reading it loads none of them."""

import importlib
from typing import Any

from pieline.core.errors import UserError


def import_object(path: str, *, hint: str = "correct the study's declaration") -> Any:
    """What `module:name` names.

    Raises:
        UserError: there is no such module, or nothing of that name in it.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(str(error), where=path, hint=hint) from None
