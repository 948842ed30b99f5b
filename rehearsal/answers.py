"""Answers of the scripted provider: drawn by a seeded rule, in forms that models use.

The rule knows neither labels nor printed numbers, so the answers say nothing about a model. If the
sentence contains a known expression, most answers name it; some name other words, or nothing.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from pieline.core.files import read_json

SEED = 1
CONTEXT = "They were talking about it in the kitchen after a long week."
"""Neutral context of a requested variant."""


def _fenced(value: Any) -> str:
    return f"Here is my answer:\n```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


LISTS = (
    lambda idioms: _json({"idioms": idioms}),
    lambda idioms: _fenced({"idioms": idioms}),
    lambda idioms: f"idioms: [{', '.join(idioms)}]",
    lambda idioms: _json({"idiom": idioms[0] if idioms else None}),
    lambda idioms: _json(idioms) if idioms else "There are no idioms in this sentence.",
    lambda idioms: (
        f"candidates:\n- {idioms[0]}: used figuratively\nidioms: [{idioms[0]}]"
        if idioms
        else "candidates: none\nidioms: []"
    ),
)
"""Forms of a list of at most one idiom."""

OBJECTS = (_json, str, _fenced)
"""Forms of the four fields of IdioTS."""


def known_expressions(corpora: Path) -> list[str]:
    """Return the expressions of ID10M-JAM in a folder of corpora."""
    files = sorted((corpora / "id10m-jam").glob("*.json"))
    return sorted({pie for file in files for row in read_json(file) for pie in row["PIE"]})


def answer(model: str, turns: Sequence[str], seed: int | None, expressions: Sequence[str]) -> str:
    """Return a model's answer to a question.

    Args:
        model: Name of the model in the request.
        turns: Texts of the messages; the last one contains the sentence.
        seed: Sampling seed of the request.
        expressions: Known expressions.
    """
    random = Random(_json([SEED, model, seed, *turns]))  # noqa: S311 - no secret
    instruction, question = turns[0], turns[-1]
    labeled = re.search("^Sentence: (.*)", question)
    sentence = labeled[1] if labeled else question
    if '{"variants"' in question:
        return _json({"variants": [f"{CONTEXT} {sentence}"]})
    words = re.findall(r"[\w'’-]+", sentence)
    start = random.randrange(len(words))
    others = [" ".join(words[start : start + 3])]
    named = [item for item in expressions if item in sentence]
    idioms = random.choice([named or others, named, [], others])[:1]
    if "'hasIdiom'" not in instruction:
        return random.choice(LISTS)(idioms)
    fields = {
        "hasIdiom": bool(idioms),
        "idiom": "".join(idioms),
        "meaning": "To do what one must." if idioms else "",
        "explanation": "The words mean something else together." if idioms else "",
    }
    return random.choice(OBJECTS)(fields)
