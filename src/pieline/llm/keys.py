"""Read API keys and addresses, and redact keys, which must never be printed or stored."""

import math
import os
import re
from base64 import b32encode, b64encode
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlsplit

from pieline.core.errors import UserError
from pieline.llm.settings import LLMSection
from pieline.models.llm import LLMEntry, check_url

NO_KEY = "unused"
"""Placeholder for models without a key, so that litellm does not search the environment for one."""

DEFAULT_ADDRESSES = {
    "anthropic": "https://api.anthropic.com",
    "cerebras": "https://api.cerebras.ai/v1",
    "codestral": "https://codestral.mistral.ai/v1",
    "dashscope": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "deepinfra": "https://api.deepinfra.com/v1/openai",
    "deepseek": "https://api.deepseek.com/beta",
    "fireworks_ai": "https://api.fireworks.ai/inference/v1",
    "friendliai": "https://api.friendli.ai/serverless/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "groq": "https://api.groq.com/openai/v1",
    "hyperbolic": "https://api.hyperbolic.xyz/v1",
    "lambda_ai": "https://api.lambda.ai/v1",
    "meta_llama": "https://api.llama.com/compat/v1",
    "minimax": "https://api.minimax.io/v1",
    "mistral": "https://api.mistral.ai/v1",
    "moonshot": "https://api.moonshot.ai/v1",
    "nebius": "https://api.studio.nebius.ai/v1",
    "novita": "https://api.novita.ai/v3/openai",
    "nscale": "https://inference.api.nscale.com/v1",
    "nvidia_nim": "https://integrate.api.nvidia.com/v1",
    "openai": "https://api.openai.com/v1",
    "perplexity": "https://api.perplexity.ai",
    "sambanova": "https://api.sambanova.ai/v1",
    "together_ai": "https://api.together.ai/v1",
    "vercel_ai_gateway": "https://ai-gateway.vercel.sh/v1",
    "xai": "https://api.x.ai/v1",
    "zai": "https://api.z.ai/api/paas/v4",
}
"""Address of each provider by litellm's prefix.

litellm would read the address from the environment first (`OPENAI_BASE_URL`, ...), so a variable
that was set for another program could send questions and the key to another server.
"""

_SHORTEST_SECRET = 8
"""Minimum number of characters of a key; shorter values are placeholders."""
_LINE_BREAK = r"(?:\s|\\+[nr])*"
"""Pattern of line breaks that an encoder may insert at any position."""

_URL_SAFE = {"+": "-", "/": "_"}
"""Characters of URL-safe base64 by the characters of base64 that they replace."""

_HTML_NAMES = {
    "&": "amp",
    "<": "lt",
    ">": "gt",
    '"': "quot",
    "'": "apos",
    "/": "sol",
    "+": "plus",
    "=": "equals",
}
"""Names of characters in HTML."""


def api_key(spec: LLMEntry) -> str:
    """Return the API key of a model, or `NO_KEY` if its entry names no environment variable.

    Raises:
        UserError: The environment variable that the entry names is not set, or its value cannot be
            a key.
    """
    if spec.api_key_env is None:
        return NO_KEY
    key = _from_environment(spec.api_key_env, spec)
    is_printable_ascii = re.fullmatch("[!-~]+", key)
    if not is_printable_ascii or key.startswith(('"', "'")) or key.endswith(('"', "'")):
        # The message must not contain any part of the key.
        raise UserError(
            f"the environment variable {spec.api_key_env} is not a key: it contains quotation"
            " marks, spaces, line breaks or other characters that no key has",
            where=spec.label,
            hint="copy the key again",
        )
    return key


def api_base(spec: LLMEntry, settings: LLMSection) -> str:
    """Return the address at which a model is queried.

    The address is read from the model's entry, else from `llm.api_bases`, else from
    `DEFAULT_ADDRESSES`. No environment variable changes the address, unless the entry names the
    variable.

    Raises:
        UserError: The environment variable that the entry names is not set or contains no URL, or
            the address of the provider is not known.
    """
    prefix = spec.litellm_id.partition("/")[0]
    base = spec.api_base or settings.gateway(spec) or DEFAULT_ADDRESSES.get(prefix, "")
    if base.startswith("$"):
        variable = base.removeprefix("$")
        try:
            return check_url(_from_environment(variable, spec))
        except ValueError as error:
            raise UserError(
                f"the environment variable {variable} {error}",
                where=spec.label,
                hint="set it to the address of the server",
            ) from None
    if not base:
        raise UserError(
            f"the address of {prefix} is not known",
            where=spec.label,
            hint="set api_base in its entry in models.yaml, or llm.api_bases",
        )
    return base


def expected_origin(spec: LLMEntry, settings: LLMSection) -> str | None:
    """Return the origin (see `origin`) of the server that should answer; None if it is not known.

    The origin of a local model is never known. The origin of another model is not known if
    `api_base` raises an error.
    """
    if spec.is_local:
        return None
    try:
        return origin(api_base(spec, settings))
    except UserError:
        return None


def origin(url: str) -> str:
    """Return the scheme, host and port of a URL, without user name and default port."""
    split_url = urlsplit(url)
    scheme, port = split_url.scheme, split_url.port
    host = split_url.hostname or ""
    if ":" in host:  # an IPv6 address
        host = f"[{host}]"
    default_port = {"http": 80, "https": 443}.get(scheme)
    if port is None or port == default_port:
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{port}"


def _from_environment(name: str, spec: LLMEntry) -> str:
    """Return the value of an environment variable that the entry of a model names.

    Raises:
        UserError: The variable is not set or is blank.
    """
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

    The key is replaced in plain, hexadecimal, decimal, base64 and base32 form, also if other bytes
    precede the key in the encoded text, and also if characters are escaped (URL, JSON, HTML).
    Values of fewer than 8 characters are placeholders. They are not replaced, because they may be
    parts of other words.
    """
    secret = os.environ.get(spec.api_key_env or "", "").strip()
    if len(secret) < _SHORTEST_SECRET:
        return text
    return _pattern_of_secret(secret).sub(f"[{spec.api_key_env}]", text)


@lru_cache(maxsize=16)
def _pattern_of_secret(secret: str) -> re.Pattern[str]:
    """Return a pattern that matches a secret in all forms (see `redact`)."""
    patterns = ["".join(_escaped_character(character) for character in secret)]
    utf8 = secret.encode("utf-8", "surrogateescape")
    utf16 = secret.encode("utf-16-le", "surrogateescape")
    for raw in (utf8, utf16):
        # Bytes may be separated: %61%62, \x61\x62, 61:62, 0x61, 0x62.
        hexadecimal = r"(?:%|\\+x|[ :-]|,? ?0x)?".join(f"{byte:02x}" for byte in raw)
        decimal = r"\s*,\s*".join(str(byte) for byte in raw)
        patterns += [f"(?i:{hexadecimal})", decimal]
    base64_of_utf8 = _base64_texts(utf8)
    encoded_texts = [*base64_of_utf8, *_base64_texts(utf16)]
    for encoded in base64_of_utf8:
        encoded_texts += _base64_texts(encoded.encode())  # encoded twice
    encoded_texts += _base32_texts(utf8)
    patterns += [_pattern_of_encoded(encoded) for encoded in encoded_texts]
    return re.compile("|".join(patterns))


def _pattern_of_encoded(encoded: str) -> str:
    """Return a pattern that matches a base64 or base32 text."""
    # Letters and digits are matched only as they are: a pattern that begins with one is fast.
    characters = [
        character if character.isalnum() else _escaped_character(character) for character in encoded
    ]
    # A last character may also encode bits of the bytes after the secret; padding may follow.
    return _LINE_BREAK.join(characters) + "[A-Za-z0-9+/_-]?=*"


def _base64_texts(raw: bytes) -> list[str]:
    """Return the base64 characters of `raw` for each offset of `raw` in a group of 3 bytes."""
    return [_encoded_after(offset, raw, b64encode, bits_per_character=6) for offset in range(3)]


def _base32_texts(raw: bytes) -> list[str]:
    """Return the base32 characters of `raw` for each offset of `raw` in a group of 5 bytes."""
    return [_encoded_after(offset, raw, b32encode, bits_per_character=5) for offset in range(5)]


def _encoded_after(
    offset: int, raw: bytes, encode: Callable[[bytes], bytes], *, bits_per_character: int
) -> str:
    """Return the characters that encode only bytes of `raw` if `offset` other bytes precede it."""
    encoded = encode(bytes(offset) + raw).decode()
    first_character = math.ceil(offset * 8 / bits_per_character)
    end = (offset + len(raw)) * 8 // bits_per_character
    return encoded[first_character:end]


def _escaped_character(character: str) -> str:
    """Return a pattern that matches a character, plain or escaped (URL, JSON, HTML)."""
    code = ord(character)
    utf8 = character.encode("utf-8", "surrogateescape")
    percent_encoded = "".join(f"%(?:25)*{byte:02x}" for byte in utf8)
    patterns = [
        rf"\\*{re.escape(character)}",
        f"(?i:{percent_encoded})",
        rf"(?i:\\+u{code:04x})",
        rf"(?i:\\+x{code:02x})",
        f"&#0*{code};",
        f"(?i:&#x0*{code:x};)",
    ]
    if character in _URL_SAFE:
        patterns.append(re.escape(_URL_SAFE[character]))
    if character in _HTML_NAMES:
        patterns.append(f"&{_HTML_NAMES[character]};")
    return f"(?:{'|'.join(patterns)})"
