"""Read API keys and addresses, and redact keys, which must never be printed or stored."""

import os
import re
from base64 import b32encode, b64encode
from collections.abc import Callable, Iterator
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

litellm would read it from the environment first (`OPENAI_BASE_URL`, ...), so a variable that was
set for another program could send questions and the key to another server.
"""

_SHORTEST_SECRET = 8
_LINE_BREAK = r"(?:\s|\\+[nr])*"


def api_key(spec: LLMEntry) -> str:
    """Return the API key of a model, or `NO_KEY` if its entry names no environment variable.

    Raises:
        UserError: The environment variable that the entry names is not set, or its value cannot be
            a key.
    """
    if spec.api_key_env is None:
        return NO_KEY
    key = _from_environment(spec.api_key_env, spec)
    # The message must not contain any part of the key.
    if not re.fullmatch("[!-~]+", key) or key[0] in "\"'" or key[-1] in "\"'":
        raise UserError(
            f"the environment variable {spec.api_key_env} is not a key: it contains quotation"
            " marks, spaces, line breaks or other characters that no key has",
            where=spec.label,
            hint="copy the key again",
        )
    return key


def api_base(spec: LLMEntry, settings: LLMSection) -> str:
    """Return the address at which a model is queried.

    The address is that of the model's entry, `llm.api_bases` or `DEFAULT_ADDRESSES`. No environment
    variable changes it except the one that the entry names.

    Raises:
        UserError: The environment variable that the entry names is not set or has no URL, or the
            address of the provider is not known.
    """
    prefix = spec.litellm_id.partition("/")[0]
    base = spec.api_base or settings.gateway(spec) or DEFAULT_ADDRESSES.get(prefix, "")
    if base.startswith("$"):
        try:
            return check_url(_from_environment(base[1:], spec))
        except ValueError as error:
            raise UserError(
                f"the environment variable {base[1:]} {error}",
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

    It is not known for local models and if the environment variable of the entry is not set.
    """
    if spec.is_local:
        return None
    try:
        return origin(api_base(spec, settings))
    except UserError:
        return None


def origin(url: str) -> str:
    """Return the scheme, host and port of a URL, without user name and default port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = None if parts.port == {"http": 80, "https": 443}.get(parts.scheme) else parts.port
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")


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

    The key is replaced in plain, hexadecimal, decimal, base64 and base32 form, also if other bytes
    precede it in the encoded text, and with any characters escaped (URL, JSON, HTML). Values of
    fewer than 8 characters count as placeholders and are not replaced, because that would damage
    other words.
    """
    secret = os.environ.get(spec.api_key_env or "", "").strip()
    if len(secret) < _SHORTEST_SECRET:
        return text
    return _forms(secret).sub(f"[{spec.api_key_env}]", text)


@lru_cache(maxsize=16)
def _forms(secret: str) -> re.Pattern[str]:
    """Return a pattern that matches a secret in all forms."""
    forms = ["".join(map(_escaped, secret))]
    packed: list[str] = []
    for encoding in ("utf-8", "utf-16-le"):
        raw = secret.encode(encoding, "surrogateescape")
        hexadecimal = r"(?:%|\\+x|[ :-]|,? ?0x)?".join(f"{byte:02x}" for byte in raw)
        forms += [f"(?i:{hexadecimal})", r"\s*,\s*".join(map(str, raw))]
        packed += _packed(raw, b64encode, 6)
    packed += [each for once in packed[:3] for each in _packed(once.encode(), b64encode, 6)]
    packed += _packed(secret.encode("utf-8", "surrogateescape"), b32encode, 5)
    for text in packed:
        # Letters and digits are not escaped: patterns that begin with a character are fast.
        characters = (each if each.isalnum() else _escaped(each) for each in text)
        forms.append(_LINE_BREAK.join(characters) + "[A-Za-z0-9+/_-]?=*")
    return re.compile("|".join(forms))


def _packed(raw: bytes, encode: Callable[[bytes], bytes], bits: int) -> Iterator[str]:
    """Yield the characters that encode these bytes, for each position within a larger text.

    Characters that also encode other bytes are left out.
    """
    for before in range(3 if bits == 6 else 5):
        packed = encode(bytes(before) + raw).decode()
        yield packed[-(-before * 8 // bits) : (before + len(raw)) * 8 // bits]


def _escaped(character: str) -> str:
    """Return a pattern that matches a character, plain or escaped."""
    url_safe = {"+": "-", "/": "_"}.get(character, "")
    named = {
        **{"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"},
        **{"/": "sol", "+": "plus", "=": "equals"},
    }.get(character)
    code = ord(character)
    percent = "".join(
        f"%(?:25)*{byte:02x}" for byte in character.encode("utf-8", "surrogateescape")
    )
    forms = [rf"\\*{re.escape(character)}", f"(?i:{percent})", rf"(?i:\\+u{code:04x})"]
    forms += [rf"(?i:\\+x{code:02x})", f"&#0*{code};", f"(?i:&#x0*{code:x};)"]
    forms += [re.escape(url_safe)] if url_safe else []
    forms += [f"&{named};"] if named else []
    return f"(?:{'|'.join(forms)})"
