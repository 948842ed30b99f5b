"""API keys and addresses: read from the environment variables that an entry names.

Keys are shown nowhere.
"""

import json
import os
from base64 import b64encode
from urllib.parse import quote

from pieline.core.errors import UserError
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry

NO_KEY = "unused"
"""Sent where no key is needed, so that litellm does not look for one in the environment."""

_SHORTEST_SECRET = 8


def api_key(spec: LLMEntry) -> str:
    """Return the key for a model; `NO_KEY` if it needs none.

    Raises:
        UserError: the environment variable that the entry names is not set.
    """
    if spec.api_key_env is None:
        return NO_KEY
    return _from_environment(spec.api_key_env, spec)


def api_base(spec: LLMEntry, settings: LLMSettings) -> str | None:
    """Return a model's own address; null for the provider's.

    That of its entry, else that of `llm.api_bases`.

    Raises:
        UserError: the environment variable that the entry names is not set.
    """
    if spec.api_base_env:
        return _from_environment(spec.api_base_env, spec)
    return spec.api_base or settings.gateway(spec)


def _from_environment(name: str, spec: LLMEntry) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise UserError(
            f"the environment variable {name} is not set",
            where=spec.label,
            hint="set it, or use recorded answers with llm.mode: replay",
        )
    return value


def redact(text: str, spec: LLMEntry) -> str:
    """Replace the model's key by the name of its environment variable.

    It is found as it is, escaped and encoded (hexadecimal, base64). A value of fewer than 8
    characters is no key (but a placeholder) and would take words apart.
    """
    secret = os.environ.get(spec.api_key_env or "", "").strip()
    if len(secret) >= _SHORTEST_SECRET:
        raw = secret.encode()
        packed = b64encode(raw).decode().rstrip("=")
        forms = [secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]]
        forms += [raw.hex(), raw.hex().upper(), packed, packed.translate(str.maketrans("+/", "-_"))]
        for form in forms:
            text = text.replace(form, f"[{spec.api_key_env}]")
    return text
