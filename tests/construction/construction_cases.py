"""Synthetic MAGPIE rows, texts and scripted models for the construction tests."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support import ROOT

from pieline.llm.answers import Answer
from pieline.llm.prompts import load_prompt
from pieline.llm.questions import Question
from pieline.models.llm import LLMEntry
from pieline.studies.idiolink.datasets.reading import LooseText
from pieline.studies.idiolink.originals.pairs import Pair
from pieline.studies.idiolink.originals.pie_filter import LabelCounts
from pieline.studies.idiolink.variants.generation import GeneratedText, Role

PAIR = Pair(pie="spill the beans", pie_number=7, domain="Food")
SPEC = LLMEntry(
    kind="llm",
    label="scripted",
    licence="none",
    source="api",
    litellm_id="openai/scripted",
    provider="scripted",
    api_base="http://127.0.0.1:9",
    accepts=frozenset({"temperature"}),
)
PROMPTS = ROOT / "prompts" / "idiolink"


def row(**changes: Any) -> dict[str, Any]:
    """Return an occurrence in MAGPIE's format."""
    return {
        "confidence": 1.0,
        "context": ["One .", "Two .", "She spilt the beans .", "Four .", "Five ."],
        "document_id": "A01",
        "genre": "W fict prose",
        "id": 1,
        "idiom": "spill the beans",
        "judgment_count": 3,
        "label": "i",
        "label_distribution": {"?": 0.0, "f": 0.0, "i": 1.0, "l": 0.0, "o": 0.0},
        "non_standard_usage_explanations": [],
        "offsets": [[4, 9], [10, 13], [14, 19]],
        "sentence_no": "12",
        "split": "training",
        "variant_type": "inflection",
    } | changes


def write_rows(path: Path, rows: Sequence[Any]) -> Path:
    """Write a MAGPIE file."""
    path.write_text("".join(f"{json.dumps(item)}\n" for item in rows), encoding="utf-8")
    return path


def counts(
    *, idiomatic: int, literal: int, other: int = 0, confidence: float = 1.0, confident: int = -1
) -> LabelCounts:
    """Return the counts of one PIE; by default all idiomatic and literal ones are confident."""
    labels = Counter(i=idiomatic, l=literal, f=other)
    enough = labels if confident < 0 else Counter(i=confident)
    return LabelCounts(labels, enough, least_confidence=confidence)


def writer(attempts: int = 3) -> Role:
    """Return a writer of documents."""
    return Role(
        "scripted", SPEC, load_prompt(PROMPTS / "documents.jinja"), {"temperature": 1}, attempts
    )


def judge(runs: int = 3) -> Role:
    """Return a validator."""
    return Role("scripted", SPEC, load_prompt(PROMPTS / "validate.jinja"), {"temperature": 1}, runs)


def scripted(
    turns: Callable[[Question], Mapping[str, Any]],
) -> Callable[[Sequence[Question]], dict[str, Answer]]:
    """Return a model that answers with a function; `.asked` lists the questions."""

    def ask(questions: Sequence[Question]) -> dict[str, Answer]:
        asked.extend(questions)
        return {
            question.key: Answer(
                key=question.key, **({"finish_reason": "stop"} | dict(turns(question)))
            )
            for question in questions
        }

    asked: list[Question] = []
    ask.asked = asked  # type: ignore[attr-defined]
    return ask


def good_texts() -> dict[str, list[str]]:
    """Return the marked texts of one pair, as in a writer's answer."""
    return {
        "literal": [f"Cook {n} [[spilled the beans]] on the floor." for n in range(4)],
        "idiomatic": [f"Chef {n} [[spilled the beans]] about the recipe." for n in range(2)],
        "simplification": [f"Chef {n} [[told the secret]] about the recipe." for n in range(2)],
        "sense": [f"Baker {n} [[revealed what was secret]]." for n in range(2)],
    }


def text(name: str = "007_s08_lit_01", **changes: Any) -> GeneratedText:
    """Return a generated text."""
    fields = {
        "id": name,
        "sentence": "The cook spilled the beans on the floor.",
        "pie": "spill the beans",
        "span": "spilled the beans",
        "subject": "Food",
        "is_gold": False,
        "usage": "literal",
        "answer_key": "0" * 64,
    }
    return GeneratedText.model_validate(fields | changes)


def loose(name: str = "007_s08_lit_01", **changes: Any) -> LooseText:
    """Return a text in the released format, which may be invalid."""
    fields = {
        "id": name,
        "sentence": "The cook spilled the beans on the floor.",
        "idiom": "spill the beans",
        "span": "spilled the beans",
        "subject": "Food",
        "usage": "literal",
        "is_gold": False,
        "split": "test",
        "collection": "documents",
    }
    return LooseText.model_validate(fields | changes)
