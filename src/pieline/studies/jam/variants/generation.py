"""Generate hard variants with a language model.

The model writes several variants of each original in one call; in a second call, the same model
validates them and corrects or replaces them (section 3.3). The neutral variants of appendix G are
generated in the same way without the adversarial rules.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from pieline.core.files import read_json, write_json
from pieline.core.records import Frozen, load_jsonl, save_jsonl
from pieline.llm.answers import Answer
from pieline.llm.parsing import Parsed, parse_object
from pieline.llm.prompts import Prompt, load_prompt
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers
from pieline.llm.task import Ask, Task
from pieline.models.llm import LLMEntry
from pieline.studies.jam.records import JamSentence, Original, Variant, as_sentence
from pieline.studies.jam.variants.projection import added_context, tokenize
from pieline.studies.jam.variants.validation import (
    check_text,
    check_variants,
    make_variant,
)

GENERATE, REVIEW, NEUTRAL_PROMPT = (
    "generate_variants.jinja",
    "review_variants.jinja",
    "neutral_variants.jinja",
)
VARIANT_TOKENS = 80
"""Approximate output tokens per variant and call: the mean of 60 (writing) and 100 (validation)."""
WRITTEN = 5
"""Variants written per original, in one call (section 3.3)."""
READINGS = {True: "figurative", False: "literal"}
"""Names of the usages in the prompts, by whether a usage is figurative."""


class WrittenVariants(BaseModel):
    """Answer of the writing model."""

    variants: list[str] = Field(min_length=1)


class TextReview(BaseModel):
    """Verdict of the validating model on one text."""

    number: int
    verdict: Literal["valid", "corrected", "replaced"]
    text: str = Field(min_length=1)
    reason: str = ""


class TextReviews(BaseModel):
    """Answer of the validating model."""

    reviews: list[TextReview] = Field(min_length=1)


class GenerationSettings(Frozen):
    """Request parameters of all calls that write or review variants.

    Attributes:
        temperature: Sampling temperature.
        max_tokens: Maximum answer length, including reasoning.
    """

    temperature: float = 1.0
    max_tokens: int


@dataclass(frozen=True)
class VariantWriting:
    """Model, parameters and prompt folder for questions about originals."""

    spec: LLMEntry
    settings: GenerationSettings
    prompts: Path

    def question(
        self,
        prompt: Prompt,
        original: Original | JamSentence,
        *,
        name: str,
        sample: int = 0,
        **values: Any,
    ) -> Question:
        """Return a question about an original; the prompt gets common variables and `values`."""
        values |= {
            "pie": ", ".join(" ".join(pie.split()) for pie in original.pies),
            "language": original.language.capitalize(),
            "reading": READINGS[original.is_figurative],
            "opposite": READINGS[not original.is_figurative],
            "is_figurative": original.is_figurative,
        }
        prompt.check_shows("sentence", **values)
        messages = prompt.messages(sentence=original.sentence, **values)
        parameters = self.settings.model_dump()
        return make_question(self.spec, messages, parameters, sample=sample, name=name)


def generate_variants(
    originals: Sequence[Original], writing: VariantWriting, ask: Ask
) -> tuple[list[Variant], dict[str, Any]]:
    """Have a model write variants of each original and then validate them (section 3.3).

    An unreadable answer to the first call yields no variants of that original. If an answer to the
    second call is unreadable or omits a text, the text is kept as written with the flag
    `not_reviewed_by_model`. No question is repeated.

    Returns:
        The variants, and a report that counts unreadable answers and verdicts.

    Raises:
        UserError: A question fails in all attempts; answers received so far are recorded.
    """
    written = _parsed(_writing_questions(originals, writing), ask, WrittenVariants)
    texts = _texts(written, WRITTEN)
    reviewed = _parsed(_reviewing_questions(originals, texts, writing), ask, TextReviews)
    variants: list[Variant] = []
    for item in originals:
        if item.id in reviewed:
            variants += _reviewed_variants(item, texts[item.id], reviewed[item.id].value)
    return variants, {
        "originals": len(originals),
        "written": _count_outcomes(written),
        "reviewed": _count_outcomes(reviewed),
        "variants": len(variants),
        "model_verdicts": dict(Counter(str(item.model_verdict) for item in variants)),
    }


def _writing_questions(
    originals: Sequence[Original], writing: VariantWriting
) -> dict[str, Question]:
    """Return the question of the first call for each original, by id."""
    prompt = load_prompt(writing.prompts / GENERATE)
    return {
        item.id: writing.question(prompt, item, name=item.id, count=WRITTEN) for item in originals
    }


def _reviewing_questions(
    originals: Sequence[Original], texts: Mapping[str, Sequence[str]], writing: VariantWriting
) -> dict[str, Question]:
    """Return the question of the second call for each original with texts, by id."""
    prompt = load_prompt(writing.prompts / REVIEW)
    return {
        item.id: writing.question(
            prompt, item, name=f"{item.id} (validation)", variants=texts[item.id]
        )
        for item in originals
        if texts.get(item.id)
    }


def questions_ahead(
    originals: Sequence[Original],
    writing: VariantWriting,
    recorded: Callable[[Collection[str]], Mapping[str, Answer]],
) -> list[Question]:
    """Return the questions of both calls for every original, to estimate costs in advance.

    `recorded` looks up recorded answers by key. If the first answer is not recorded, the original
    stands for each text in the second question. If the first answer is recorded but unreadable,
    there is no second question.
    """
    questions = _writing_questions(originals, writing)
    answers = recorded([question.key for question in questions.values()])
    parsed = {
        name: parse_object(answers[question.key], WrittenVariants)
        for name, question in questions.items()
        if question.key in answers
    }
    texts = {item.id: [item.sentence] * WRITTEN for item in originals}
    for name in parsed:
        texts[name] = []
    texts |= _texts(parsed, WRITTEN)
    reviewing = _reviewing_questions(originals, texts, writing)
    return list(questions.values()) + list(reviewing.values())


def confusing_variants(path: str | Path) -> list[str]:
    """Return the ids of variants that a model misjudged, whether or not it misjudged the original.

    `path` is the path of the run's metric file. According to section 4.1, only variants of
    correctly judged originals can confuse a model. However, GPT-4o mini flips on about 24 English
    variants (Table 3), while the paper rewrites 58. A run consistent with Tables 3, 5 and 6
    misjudges 58 variants in total, so the ablation counts all misjudged variants, as Table 6 does
    (`confusion_as_printed`).
    """
    confusing = []
    for original in read_json(path)["judged"]:
        confusing += [name for name, correct in original["variants"].items() if not correct]
    return confusing


def sample_neutral_variants(
    sentences: Sequence[JamSentence], confusing: Collection[str], path: str | Path
) -> list[JamSentence]:
    """Return the sample's neutral variants for the confusing hard variants (appendix G).

    The sample has one neutral text per original, which all confusing variants of the original
    share. `path` is the path of a JSON object that maps ids of originals to neutral texts, each of
    which ends with its original.
    """
    texts = read_json(path)
    originals = {item.id: item for item in sentences if item.is_original}
    variants = []
    for item in sentences:
        original = originals[item.original_id]
        if item.id not in confusing or original.id not in texts:
            continue
        variant = make_variant(
            original, texts[original.id], number=item.variant_number, source="sample"
        )
        variants.append(as_sentence(variant))
    return variants


def generate_neutral_variants(
    sentences: Sequence[JamSentence], confusing: Collection[str], writing: VariantWriting, ask: Ask
) -> tuple[list[JamSentence], dict[str, Any]]:
    """Have a model write a neutral variant for each confusing variant (appendix G).

    A neutral variant has the id and number of the hard variant and a context of similar length.

    Returns:
        The neutral variants in dataset order, except those whose answer is unreadable or lacks the
            original sentence; and a report of counts and flags.
    """
    questions = neutral_questions(sentences, confusing, writing)
    written = _parsed(questions, ask, WrittenVariants)
    texts = _texts(written, 1)
    originals = {item.id: item for item in sentences if item.is_original}
    usable, flags = [], {}
    for item in sentences:
        for text in texts.get(item.id, []):
            original = originals[item.original_id]
            problems = check_text(original, text)
            if problems:
                flags[item.id] = list(problems)
            if "original_missing" not in problems:
                number = item.variant_number
                variant = make_variant(original, text, number=number, source="generated")
                usable.append(as_sentence(variant))
    counts = {"asked": len(questions), "variants": len(usable)}
    return usable, {**counts, **_count_outcomes(written), "flags": flags}


def with_neutral(
    sentences: Sequence[JamSentence], neutral: Iterable[JamSentence]
) -> list[JamSentence]:
    """Replace each hard variant with its neutral variant, or with its original if it has none."""
    replacements = {item.id: item for item in neutral}
    originals = {item.id: item for item in sentences if item.is_original}
    replaced = []
    for item in sentences:
        replacement = replacements.get(item.id)
        if replacement is None:
            ids = item.model_dump(include={"id", "original_id", "variant_number"})
            replacement = originals[item.original_id].model_copy(update=ids)
        replaced.append(replacement)
    return replaced


def neutral_questions(
    sentences: Sequence[JamSentence], confusing: Collection[str], writing: VariantWriting
) -> dict[str, Question]:
    """Return the questions for neutral variants, by id of the confusing variant."""
    originals = {item.id: item for item in sentences if item.is_original}
    prompt = load_prompt(writing.prompts / NEUTRAL_PROMPT)
    questions = {}
    for item in sentences:
        if item.is_original or item.id not in confusing:
            continue
        original = originals[item.original_id]
        context = added_context(original.sentence, item.sentence)
        # Variants of one original have nearly identical prompts; the sample number separates their
        # answers.
        questions[item.id] = writing.question(
            prompt,
            original,
            name=f"{item.id} (neutral)",
            sample=item.variant_number,
            count=1,
            context_words=sum(token[0].isalnum() for token in tokenize(context)),
        )
    return questions


class _VariantTask(Task):
    """A task that writes `variants` and a `report`."""

    generation: GenerationSettings

    def reading(self, answer: Answer) -> Parsed[Any]:
        """Parse the texts of an answer."""
        return parse_object(answer, WrittenVariants)

    def limit_setting(self) -> str:
        """Return the name of the setting that limits the length of the answers."""
        return "jam.variants.max_tokens"

    def _writing(self, entry: LLMEntry, prompt: str) -> VariantWriting:
        return VariantWriting(entry, self.generation, Path(self.inputs[prompt]).parent)

    def _save(self, variants: Iterable[BaseModel], report: Mapping[str, Any]) -> None:
        save_jsonl(self.outputs["variants"], variants)
        write_json(self.outputs["report"], {**report, "model": self.model})


class HardVariants(_VariantTask):
    """Task that generates and validates variants of each original (section 3.3).

    `inputs` are `originals` and the prompts `generate` and `review`; `outputs` are `variants` and
    `report`.
    """

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return the questions of both calls for each original (see `questions_ahead`)."""
        return questions_ahead(
            self._originals(),
            self._writing(entry, "generate"),
            lambda keys: read_answers(self.recordings, keys),
        )

    def likely_output_tokens(self) -> int:
        """Estimate the output tokens of an answer, which has all variants of an original."""
        return VARIANT_TOKENS * WRITTEN

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Generate, validate and check the variants, and write them with a report."""
        originals = self._originals()
        made, report = generate_variants(originals, self._writing(entry, "generate"), ask)
        self._save(check_variants(originals, made), report)

    def reading(self, answer: Answer) -> Parsed[Any]:
        """Parse the reviews from the second call, or the texts from the first."""
        reviews = parse_object(answer, TextReviews)
        return reviews if reviews.outcome.is_readable else super().reading(answer)

    def _originals(self) -> list[Original]:
        return load_jsonl(self.inputs["originals"], Original)


class NeutralVariants(_VariantTask):
    """Task that generates a neutral variant for each confusing hard variant (appendix G).

    `inputs` are the `dataset`, the confused model's `metrics` and the `prompt`; `outputs` are
    `variants` and `report`.
    """

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return one question for each hard variant to rewrite."""
        sentences, confusing = self._dataset()
        writing = self._writing(entry, "prompt")
        return list(neutral_questions(sentences, confusing, writing).values())

    def likely_output_tokens(self) -> int:
        """Estimate the output tokens of an answer, which has one variant."""
        return VARIANT_TOKENS

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Generate the variants and write them with a report."""
        sentences, confusing = self._dataset()
        writing = self._writing(entry, "prompt")
        variants, report = generate_neutral_variants(sentences, confusing, writing, ask)
        self._save(variants, report)

    def _dataset(self) -> tuple[list[JamSentence], list[str]]:
        """Load the dataset and the ids of the hard variants to rewrite: those that confused."""
        sentences = load_jsonl(self.inputs["dataset"], JamSentence)
        return sentences, confusing_variants(self.inputs["metrics"])


class NeutralContexts(NeutralVariants):
    """Task that replaces every hard variant of the dataset with a neutral one.

    `inputs` are the `dataset` and the `prompt`; `outputs` are `variants` and `report`.
    """

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Generate all neutral variants, and write the dataset with them."""
        sentences, variants = self._dataset()
        writing = self._writing(entry, "prompt")
        neutral, report = generate_neutral_variants(sentences, variants, writing, ask)
        self._save(with_neutral(sentences, neutral), report)

    def _dataset(self) -> tuple[list[JamSentence], list[str]]:
        """Load the dataset and the ids of all its hard variants."""
        sentences = load_jsonl(self.inputs["dataset"], JamSentence)
        return sentences, [item.id for item in sentences if not item.is_original]


def _parsed(
    questions: Mapping[str, Question], ask: Ask, record: type[Any]
) -> dict[str, Parsed[Any]]:
    """Ask named questions and parse the answers."""
    answers = ask(list(questions.values())) if questions else {}
    return {
        name: parse_object(answers[question.key], record) for name, question in questions.items()
    }


def _texts(written: Mapping[str, Parsed[Any]], count: int) -> dict[str, list[str]]:
    """Return the first `count` nonblank texts of each readable answer, by the answer's name."""
    return {
        name: [text.strip() for text in item.value.variants if text.strip()][:count]
        for name, item in written.items()
        if item.value is not None
    }


def _reviewed_variants(
    original: Original, texts: Sequence[str], reviews: TextReviews | None
) -> list[Variant]:
    """Apply the validating model's answer to the variants of one original."""
    by_number = {review.number: review for review in reviews.reviews} if reviews else {}
    variants = []
    for number, text in enumerate(texts, start=1):
        review = by_number.get(number)
        fields: dict[str, Any] = {"number": number, "source": "generated"}
        final = text
        if review is None:
            fields |= {"model_verdict": "unknown", "flags": ("not_reviewed_by_model",)}
        else:
            fields |= {"model_verdict": review.verdict, "note": review.reason}
            # Keep a valid text as written, because the validator may copy it with changes.
            if review.verdict != "valid":
                final = review.text.strip() or text
        variants.append(make_variant(original, final, **fields))
    return variants


def _count_outcomes(parsed: Mapping[str, Parsed[Any]]) -> dict[str, Any]:
    """Count the outcomes of answers, and list the reasons for unreadable ones."""
    return {
        "outcomes": dict(Counter(str(item.outcome) for item in parsed.values())),
        "unreadable": {
            name: f"{item.outcome}: {item.reason}"
            for name, item in parsed.items()
            if not item.outcome.is_readable
        },
    }
