"""The variants room of ID10M-JAM: hard variants that a model writes.

A model writes several variants of each original in one call, then the same model is asked a second
time as a validator that corrects or replaces them (section 3.3). Appendix G's neutral variants are
asked for in the same way without the adversarial rules.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pieline.core.errors import UserError
from pieline.core.files import read_json, write_json
from pieline.core.records import Frozen, load_jsonl, save_jsonl
from pieline.llm.answers import Answer
from pieline.llm.parsing import Outcome, Parsed, parse_object
from pieline.llm.prompts import Prompt, PromptFolder
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers
from pieline.llm.task import Ask, Task
from pieline.models.llm import LLMEntry, LLMSpec
from pieline.studies.jam.records import JamSentence, Original, Variant, as_sentence
from pieline.studies.jam.variants.projection import context_of, tokenise
from pieline.studies.jam.variants.validation import (
    CheckLimits,
    check_text,
    check_variants,
    make_variant,
)

GENERATE, REVIEW, NEUTRAL = (
    "generate_variants.jinja",
    "review_variants.jinja",
    "neutral_variants.jinja",
)
READINGS = {True: "figurative", False: "literal"}


class WrittenTexts(BaseModel):
    """What the writing model answers."""

    model_config = ConfigDict(extra="ignore")

    variants: list[str] = Field(min_length=1)


class TextReview(BaseModel):
    """What the validating model says of one text."""

    model_config = ConfigDict(extra="ignore")

    number: int
    verdict: Literal["valid", "corrected", "replaced"]
    text: str = Field(min_length=1)
    reason: str = ""


class TextReviews(BaseModel):
    """What the validating model answers."""

    model_config = ConfigDict(extra="ignore")

    reviews: list[TextReview] = Field(min_length=1)


class GenerationSettings(Frozen):
    """How variants are asked for.

    Attributes:
        count: variants of each original, in one call.
        temperature: of both calls.
        max_tokens: longest answer, reasoning included.
        seed: sent where the provider accepts one.
    """

    count: int = 5
    temperature: float = 1.0
    max_tokens: int = 16384
    seed: int | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What is sent with each question."""
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Generation:
    """Variants that a model wrote, and a report of both calls."""

    variants: list[Variant]
    report: dict[str, Any]


def generate_variants(
    originals: Sequence[Original],
    spec: LLMSpec,
    settings: GenerationSettings,
    prompts: PromptFolder,
    ask: Ask,
) -> Generation:
    """Have a model write variants of each original and then validate them (section 3.3).

    An unreadable answer of the first call gives no variants of that original. An unreadable answer
    of the second, or one that leaves a text out, leaves the text as written, with the flag
    `not_reviewed_by_model`. All this is in the report; nothing is asked again.

    Args:
        originals: the originals.
        spec: the model.
        settings: how to ask.
        prompts: the folder with the prompts.
        ask: asks, or reads recordings.

    Raises:
        UserError: a question got no answer in all its attempts; those had are recorded.
    """
    questions = writing_questions(originals, spec, settings, prompts)
    written = _parsed(questions, ask, WrittenTexts)
    texts = _texts(written, settings.count)
    review_questions = reviewing_questions(originals, texts, spec, settings, prompts)
    reviewed = _parsed(review_questions, ask, TextReviews)
    variants = [
        variant
        for item in originals
        if item.id in review_questions
        for variant in _reviewed_variants(item, texts[item.id], reviewed[item.id].value)
    ]
    return Generation(variants, _report(originals, written, reviewed, variants))


def writing_questions(
    originals: Sequence[Original],
    spec: LLMSpec,
    settings: GenerationSettings,
    prompts: PromptFolder,
) -> dict[str, Question]:
    """The first call for each original, by its id."""
    prompt = prompts.load(GENERATE)
    return {
        item.id: make_question(
            spec,
            prompt.messages(**_values(item), count=settings.count),
            settings.parameters,
            name=item.id,
        )
        for item in originals
    }


def reviewing_questions(
    originals: Sequence[Original],
    texts: Mapping[str, Sequence[str]],
    spec: LLMSpec,
    settings: GenerationSettings,
    prompts: PromptFolder,
) -> dict[str, Question]:
    """The second call for each original with texts, by its id."""
    prompt = prompts.load(REVIEW)
    return {
        item.id: make_question(
            spec,
            prompt.messages(**_values(item), variants=texts[item.id]),
            settings.parameters,
            name=f"{item.id} (validation)",
        )
        for item in originals
        if texts.get(item.id)
    }


def questions_ahead(
    originals: Sequence[Original],
    spec: LLMSpec,
    settings: GenerationSettings,
    prompts: PromptFolder,
    recorded: Callable[[Collection[str]], Mapping[str, Answer]],
) -> list[Question]:
    """Both calls of every original, to estimate what generation costs before anything is asked.

    Where the first answer is not recorded the second call is not known yet: one of about its length
    stands for it, with the original in place of each text.

    Args:
        originals: the originals.
        spec: the model.
        settings: how to ask.
        prompts: the folder with the prompts.
        recorded: gives the recorded answers for keys.
    """
    questions = writing_questions(originals, spec, settings, prompts)
    answers = recorded([question.key for question in questions.values()])
    parsed = {
        name: parse_object(answers[question.key], WrittenTexts)
        for name, question in questions.items()
        if question.key in answers
    }
    texts = {item.id: [item.sentence] * settings.count for item in originals}
    texts |= {name: [] for name in parsed}
    texts |= _texts(parsed, settings.count)
    return [
        *questions.values(),
        *reviewing_questions(originals, texts, spec, settings, prompts).values(),
    ]


def confusing_variants(path: str | Path) -> list[str]:
    """Ids of the variants that confused a model: its original was judged rightly, it was not.

    Args:
        path: metric file of the model, whose `judged` holds the decisions.

    Raises:
        UserError: the file has no such decisions.
    """
    try:
        return [
            name
            for original in read_json(path)["judged"]
            if original["correct"]
            for name, correct in original["variants"].items()
            if not correct
        ]
    except (KeyError, TypeError, AttributeError):
        mend = "name a metric file of ID10M-JAM"
        raise UserError("no judged variants", where=path, mend=mend) from None


def sample_neutral_variants(
    sentences: Sequence[JamSentence], confusing: Collection[str], path: str | Path
) -> list[JamSentence]:
    """The sample's neutral variant of the original of each confusing hard variant (appendix G).

    The sample has one neutral text for each original, so siblings that confuse share it.

    Args:
        sentences: the dataset.
        confusing: ids of hard variants that confused a model.
        path: JSON object of neutral texts by original id; each ends with its original.

    Raises:
        UserError: the file is no such object, or a text does not hold its original.
    """
    texts = read_json(path)
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise UserError("not an object of texts", where=path, mend="map originals to texts")
    originals = {item.id: item for item in sentences if item.is_original}
    made = []
    for item in sentences:
        original = originals[item.original_id]
        if item.id not in confusing or original.id not in texts:
            continue
        text = texts[original.id]
        if "original_missing" in check_text(original, text):
            mend = "end the text with its original"
            raise UserError(f"no original in {original.id!r}", where=path, mend=mend)
        variant = make_variant(original, text, number=item.variant_number, source="sample")
        made.append(as_sentence(variant))
    return made


def generate_neutral_variants(
    sentences: Sequence[JamSentence],
    confusing: Collection[str],
    *,
    spec: LLMSpec,
    settings: GenerationSettings,
    prompts: PromptFolder,
    ask: Ask,
) -> tuple[list[JamSentence], dict[str, Any]]:
    """Have a model write one neutral variant for each confusing one (appendix G).

    A neutral variant has the id and number of the hard one; its context should be about as long.

    Args:
        sentences: the dataset.
        confusing: ids of hard variants that confused a model.
        spec: the model that writes.
        settings: how to ask; `count` plays no part.
        prompts: the folder with the prompts.
        ask: asks, or reads recordings.

    Returns:
        The neutral variants in the dataset's order, without those whose answer could not be read
        or lacks the original sentence; and a report.

    Raises:
        UserError: a confusing variant that the dataset does not have.
    """
    originals = {item.id: item for item in sentences if item.is_original}
    questions = neutral_questions(sentences, confusing, spec, settings, prompts)
    written = _parsed(questions, ask, WrittenTexts)
    variants = [
        make_variant(
            originals[item.original_id],
            value.variants[0].strip(),
            number=item.variant_number,
            source="generated",
        )
        for item in sentences
        if item.id in written
        and (value := written[item.id].value) is not None
        and value.variants[0].strip()
    ]
    flags = {item.id: check_text(originals[item.original_id], item.sentence) for item in variants}
    usable = [item for item in variants if "original_missing" not in flags[item.id]]
    report = {
        "asked": len(questions),
        "outcomes": _outcomes(written.values()),
        "unreadable": _unreadable(written),
        "variants": len(usable),
        "flags": {name: list(found) for name, found in flags.items() if found},
    }
    return [as_sentence(item) for item in usable], report


def neutral_questions(
    sentences: Sequence[JamSentence],
    confusing: Collection[str],
    spec: LLMSpec,
    settings: GenerationSettings,
    prompts: PromptFolder,
) -> dict[str, Question]:
    """What is asked for the neutral variant of each confusing one, by its id.

    Raises:
        UserError: a confusing variant that the dataset does not have.
    """
    originals = {item.id: item for item in sentences if item.is_original}
    chosen = [item for item in sentences if not item.is_original and item.id in confusing]
    if unknown := sorted(set(confusing) - {item.id for item in chosen}):
        mend = "take predictions and dataset of one run"
        raise UserError(f"no variant {unknown[0]!r} in the dataset", mend=mend)
    prompt = prompts.load(NEUTRAL)
    return {
        item.id: _neutral_question(item, originals[item.original_id], spec, settings, prompt)
        for item in chosen
    }


class HardVariants(Task):
    """Variants that a model writes of each original and then validates (section 3.3).

    `inputs` are `originals` and the prompts `generate` and `review`, outputs `variants` and
    `report`.
    """

    generation: GenerationSettings
    checks: CheckLimits

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Both calls of each original (see `questions_ahead`)."""
        return questions_ahead(
            self._originals(),
            entry,
            self.generation,
            self._prompts(),
            lambda keys: read_answers(self.recordings, keys),
        )

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Have variants written and validated, check them, and write them with a report."""
        originals = self._originals()
        made = generate_variants(originals, entry, self.generation, self._prompts(), ask)
        variants = check_variants(originals, made.variants, limits=self.checks)
        save_jsonl(self.outputs["variants"], variants)
        write_json(self.outputs["report"], made.report | {"model": self.model})

    def _originals(self) -> list[Original]:
        return load_jsonl(self.inputs["originals"], Original)

    def _prompts(self) -> PromptFolder:
        return PromptFolder(Path(self.inputs["generate"]).parent)


class NeutralVariants(Task):
    """A neutral variant of each hard one that confused a model (appendix G).

    `inputs` are the `dataset`, the confused model's `metrics` and the `prompt`, outputs `variants`
    and `report`.
    """

    generation: GenerationSettings

    def questions(self, entry: LLMEntry) -> list[Question]:
        """One question for each variant that confused the model."""
        questions = neutral_questions(
            self._sentences(),
            confusing_variants(self.inputs["metrics"]),
            entry,
            self.generation,
            self._prompts(),
        )
        return list(questions.values())

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Have the variants written and write them with a report."""
        variants, report = generate_neutral_variants(
            self._sentences(),
            confusing_variants(self.inputs["metrics"]),
            spec=entry,
            settings=self.generation,
            prompts=self._prompts(),
            ask=ask,
        )
        save_jsonl(self.outputs["variants"], variants)
        write_json(self.outputs["report"], report | {"model": self.model})

    def _sentences(self) -> list[JamSentence]:
        return load_jsonl(self.inputs["dataset"], JamSentence)

    def _prompts(self) -> PromptFolder:
        return PromptFolder(Path(self.inputs["prompt"]).parent)


def _values(original: Original | JamSentence) -> dict[str, Any]:
    """What every prompt is filled in with."""
    return {
        "sentence": original.sentence,
        "pie": ", ".join(" ".join(pie.split()) for pie in original.pies),
        "language": original.language.capitalize(),
        "reading": READINGS[original.is_figurative],
        "opposite": READINGS[not original.is_figurative],
        "is_figurative": original.is_figurative,
    }


def _neutral_question(
    variant: JamSentence,
    original: JamSentence,
    spec: LLMSpec,
    settings: GenerationSettings,
    prompt: Prompt,
) -> Question:
    context = context_of(original.sentence, variant.sentence) or ""
    words = sum(token[0].isalnum() for token in tokenise(context))
    # Siblings ask nearly the same: the sample number keeps their answers apart.
    return make_question(
        spec,
        prompt.messages(**_values(original), count=1, context_words=words),
        settings.parameters,
        sample=variant.variant_number,
        name=f"{variant.id} (neutral)",
    )


def _parsed(
    questions: Mapping[str, Question], ask: Ask, record: type[Any]
) -> dict[str, Parsed[Any]]:
    """What the answers to named questions say.

    Raises:
        UserError: a question got no answer in all its attempts.
    """
    answers = ask(list(questions.values())) if questions else {}
    failed = {
        name: answers[question.key].error
        for name, question in questions.items()
        if answers[question.key].error
    }
    if failed:
        # Going on would make a smaller dataset of a passing fault.
        name, error = next(iter(failed.items()))
        mend = "run again, nothing is asked twice"
        raise UserError(f"{len(failed)} questions got no answer: {error}", where=name, mend=mend)
    return {
        name: parse_object(answers[question.key], record) for name, question in questions.items()
    }


def _texts(written: Mapping[str, Parsed[Any]], count: int) -> dict[str, list[str]]:
    """The texts of each readable answer, by original."""
    return {
        name: [text.strip() for text in item.value.variants if text.strip()][:count]
        for name, item in written.items()
        if item.value is not None
    }


def _reviewed_variants(
    original: Original, texts: Sequence[str], reviews: TextReviews | None
) -> list[Variant]:
    """The variants of one original after the validating model's answer."""
    by_number = {review.number: review for review in reviews.reviews} if reviews else {}
    variants = []
    for number, text in enumerate(texts, start=1):
        review = by_number.get(number)
        fields: dict[str, Any] = {"number": number, "source": "generated"}
        if review is None:
            fields |= {"model_verdict": "unknown", "flags": ("not_reviewed_by_model",)}
        else:
            fields |= {"model_verdict": review.verdict, "note": review.reason}
        # A text called valid stays as it was written, whatever the validator copied.
        changed = review is not None and review.verdict != "valid"
        final = review.text.strip() if review and changed else text
        variants.append(make_variant(original, final or text, **fields))
    return variants


def _report(
    originals: Sequence[Original],
    written: Mapping[str, Parsed[Any]],
    reviewed: Mapping[str, Parsed[Any]],
    variants: Iterable[Variant],
) -> dict[str, Any]:
    rows = list(variants)
    return {
        "originals": len(originals),
        "written": {"outcomes": _outcomes(written.values()), "unreadable": _unreadable(written)},
        "reviewed": {"outcomes": _outcomes(reviewed.values()), "unreadable": _unreadable(reviewed)},
        "variants": len(rows),
        "model_verdicts": dict(sorted(Counter(str(item.model_verdict) for item in rows).items())),
    }


def _outcomes(parsed: Iterable[Parsed[Any]]) -> dict[str, int]:
    counts = Counter(item.outcome for item in parsed)
    return {str(outcome): counts[outcome] for outcome in Outcome if counts[outcome]}


def _unreadable(parsed: Mapping[str, Parsed[Any]]) -> dict[str, str]:
    """Outcome and reason of each answer that could not be read, by name."""
    return {
        name: f"{item.outcome}: {item.reason}"
        for name, item in parsed.items()
        if not item.outcome.is_readable
    }
