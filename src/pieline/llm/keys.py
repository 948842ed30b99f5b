"""Read API keys and addresses, and redact keys, which must never be printed or stored."""

import json
import os
from base64 import b64encode
from urllib.parse import quote

from pieline.core.errors import UserError
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry

NO_KEY = "unused"
"""Placeholder for models without a key, so that litellm does not search the environment for one."""

_SHORTEST_SECRET = 8


def api_key(spec: LLMEntry) -> str:
    """Return the API key of a model, or `NO_KEY` if its entry names no environment variable.

    Raises:
        UserError: The environment variable that the entry names is not set.
    """
    if spec.api_key_env is None:
        return NO_KEY
    return _from_environment(spec.api_key_env, spec)


def api_base(spec: LLMEntry, settings: LLMSettings) -> str | None:
    """Return the custom address of a model, from its entry or from `llm.api_bases`.

    Returns None for the provider's default address.

    Raises:
        UserError: The environment variable that the entry names is not set.
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
    """Replace the API key in a text with the name of its environment variable.

    The key is replaced in plain, escaped, hexadecimal and base64 form. Values of fewer than 8
    characters count as placeholders and are not replaced, because that would damage other words.
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
