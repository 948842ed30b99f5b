"""Checks that an embedder is loaded as it was trained, where the libraries are silent."""

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
    """Check that a checkpoint has sentence-transformers files; the library would invent a pooling.

    Raises:
        UserError: it has none.
    """
    if not any(Path(location, name).exists() for name in ("modules.json", "config.json")):
        raise UserError("it has no config.json", where=where, hint="name the folder that has it")
    if not Path(location, "modules.json").exists():
        raise UserError(
            "it has no modules.json, so nothing says how its tokens become a vector",
            where=where,
            hint="name the pooling in the model's entry",
        )


def end_token_in_files(tokenizer: PreTrainedTokenizerBase, location: str) -> str | None:
    """The end-of-sequence token, if the tokenizer's files ask for one behind each input.

    transformers 5 ignores `add_eos_token` wherever there is a tokenizer.json.
    """
    found = Path(location, "tokenizer_config.json")
    if not found.exists():
        return None
    asked = json.loads(found.read_text(encoding="utf-8")).get("add_eos_token")
    return str(tokenizer.eos_token) if asked else None


def end_inputs_with(tokenizer: Any, token: str, where: str) -> None:
    """Have a fast tokenizer end every input with a token, truncated ones too, if it does not yet.

    Raises:
        UserError: the token is not in the vocabulary, or inputs end with another one.
    """
    number = tokenizer.convert_tokens_to_ids(token)
    if number is None or (number == tokenizer.unk_token_id and token != tokenizer.unk_token):
        raise UserError(
            f"its vocabulary has no {token!r}",
            where=where,
            hint="correct end_token in the model's entry",
        )
    present = last_token(tokenizer)
    if present == number:
        return
    if present is not None:
        raise UserError(
            f"its tokenizer ends inputs with {tokenizer.convert_ids_to_tokens(present)!r}, "
            f"not with {token!r}",
            where=where,
            hint="name the token that ended them in training as end_token in the model's entry",
        )
    inner = tokenizer.backend_tokenizer
    steps = [inner.post_processor] if inner.post_processor else []
    # What the step before put in front of a text reaches this one as the first of a pair.
    ending = processors.TemplateProcessing(
        single=f"$A {token}", pair=f"$A:0 $B:0 {token}:0", special_tokens=[(token, number)]
    )
    inner.post_processor = processors.Sequence([*steps, ending])
    if last_token(tokenizer) != number:
        raise UserError(
            f"its tokenizer cannot be made to end inputs with {token!r}",
            where=where,
            hint="use a checkpoint whose tokenizer.json does",
        )


def last_token(tokenizer: Any) -> int | None:
    """The special token that ends inputs, None if the last word does."""
    whole = tokenizer("a")["input_ids"]
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    return int(whole[-1]) if whole[-1:] != bare[-1:] else None


def require_bidirectional(model: "SentenceTransformer", where: str) -> None:
    """Check that the first token's vector depends on a later one.

    Raises:
        UserError: it does not; attention is causal.
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
            "its tokens see only those before them, although its entry says `bidirectional`",
            where=where,
            hint="use a version of transformers that its code was written for, or its stock class",
        )
