"""Checks, missing from the libraries, that embedders are loaded as they were trained."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import processors
from transformers import PreTrainedTokenizerBase

from pieline.core.errors import UserError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def require_pooling_in_files(location: str, where: str) -> None:
    """Check that a checkpoint defines its pooling; otherwise the library guesses it.

    Raises:
        UserError: modules.json is missing.
    """
    if not any(Path(location, name).exists() for name in ("modules.json", "config.json")):
        raise UserError(
            "config.json is missing", where=where, hint="use the folder that contains it"
        )
    if not Path(location, "modules.json").exists():
        raise UserError(
            "modules.json is missing, so the pooling is undefined",
            where=where,
            hint="set `pooling` in the model's entry",
        )


def end_token_in_files(tokenizer: PreTrainedTokenizerBase, location: str) -> str | None:
    """Return the end-of-sequence token if the tokenizer's files enable it, otherwise None.

    transformers 5 ignores `add_eos_token` if there is a tokenizer.json.
    """
    config = Path(location, "tokenizer_config.json")
    if not config.exists():
        return None
    adds_end_token = json.loads(config.read_text(encoding="utf-8")).get("add_eos_token")
    return str(tokenizer.eos_token) if adds_end_token and tokenizer.eos_token else None


def end_inputs_with(tokenizer: Any, token: str, where: str) -> None:
    """Make a fast tokenizer end every input with a token, including truncated inputs.

    Raises:
        UserError: The token is not in the vocabulary, inputs end with another special token, or
            the tokenizer cannot be configured.
    """
    number = tokenizer.convert_tokens_to_ids(token)
    if number is None or (number == tokenizer.unk_token_id and token != tokenizer.unk_token):
        raise UserError(
            f"end token {token!r} is not in the vocabulary",
            where=where,
            hint="correct `end_token` in the model's entry",
        )
    present = last_token(tokenizer)
    if present == number:
        return
    if present is not None:
        raise UserError(
            f"the tokenizer ends inputs with {tokenizer.convert_ids_to_tokens(present)!r}, "
            f"not with {token!r}",
            where=where,
            hint="set `end_token` in the model's entry to the token used in training",
        )
    inner = tokenizer.backend_tokenizer
    steps = [inner.post_processor] if inner.post_processor else []
    # A prefix added by a previous step arrives here as the first sequence of a pair.
    ending = processors.TemplateProcessing(
        single=f"$A {token}", pair=f"$A:0 $B:0 {token}:0", special_tokens=[(token, number)]
    )
    inner.post_processor = processors.Sequence([*steps, ending])
    if last_token(tokenizer) != number:
        raise UserError(
            f"the tokenizer cannot be configured to end inputs with {token!r}",
            where=where,
            hint="use a checkpoint whose tokenizer.json adds it",
        )


def last_token(tokenizer: Any) -> int | None:
    """Return the id of the special token that ends inputs, or None if there is none."""
    with_specials = tokenizer("a")["input_ids"]
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    return int(with_specials[-1]) if with_specials[-1:] != bare[-1:] else None


def require_bidirectional(model: "SentenceTransformer", where: str) -> None:
    """Check that attention is bidirectional: the first token's vector depends on later tokens.

    Raises:
        UserError: Attention is causal.
    """
    tokens = model.tokenizer("one two three four five", return_tensors="pt").to(model.device)
    changed = tokens["input_ids"].clone()
    changed[0, 1:] = changed[0, 1:].flip(0)
    with torch.inference_mode():
        first, other = (
            model[0](dict(tokens, input_ids=ids))["token_embeddings"][0, 0]
            for ids in (tokens["input_ids"], changed)
        )
    if torch.equal(first, other):
        raise UserError(
            "attention is causal, although the model's entry sets `bidirectional`",
            where=where,
            hint="use a transformers version that supports the model's code, or the built-in class",
        )
