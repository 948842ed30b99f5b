"""Generate hard and neutral variants with a language model.

In a first call, the model writes several hard variants of an original. In a second call, the same
model validates these variants, and corrects or replaces invalid ones (section 3.3). For a neutral
variant (appendix G), there is only the first call, and its prompt has no adversarial rules.
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
from pieline.studies.jam.variants.projection import added_context, count_words
from pieline.studies.jam.variants.validation import (
    check_text,
    check_variants,
    make_variant,
)

GENERATE = "generate_variants.jinja"
REVIEW = "review_variants.jinja"
NEUTRAL_PROMPT = "neutral_variants.jinja"
VARIANT_TOKENS = 80
"""Approximate output tokens per variant and call: the mean of 60 (writing) and 100 (validation)."""
WRITTEN = 5
"""Number of variants that the model writes per original, in one call (section 3.3)."""


class WrittenVariants(BaseModel):
    """Answer of the writing model: the texts of the variants of one original."""

    variants: list[str] = Field(min_length=1)


class TextReview(BaseModel):
    """Verdict of the validating model on the text of one variant."""

    number: int
    verdict: Literal["valid", "corrected", "replaced"]
    text: str = Field(min_length=1)
    reason: str = ""


class TextReviews(BaseModel):
    """Answer of the validating model: reviews of the variants of one original."""

    reviews: list[TextReview] = Field(min_length=1)


class GenerationSettings(Frozen):
    """Request parameters of the calls that write or review variants.

    Attributes:
        temperature: Sampling temperature.
        max_tokens: Maximum number of tokens of an answer, including reasoning.
    """

    temperature: float = 1.0
    max_tokens: int


@dataclass(frozen=True)
class VariantWriting:
    """Model, request parameters and prompt folder of the calls that write or review variants."""

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
        """Return a question about an original.

        Args:
            prompt: Prompt of the question.
            original: The original.
            name: Name of the question in error messages.
            sample: Number that distinguishes questions with the same text.
            **values: Variables of the prompt that the original does not determine.
        """
        if original.is_figurative:
            usage, opposite_usage = "figurative", "literal"
        else:
            usage, opposite_usage = "literal", "figurative"
        values |= {
            "pie": ", ".join(" ".join(pie.split()) for pie in original.pies),
            "language": original.language.capitalize(),
            "reading": usage,
            "opposite": opposite_usage,
            "is_figurative": original.is_figurative,
        }
        prompt.check_shows("sentence", **values)
        messages = prompt.messages(sentence=original.sentence, **values)
        parameters = self.settings.model_dump()
        return make_question(self.spec, messages, parameters, sample=sample, name=name)


def generate_variants(
    originals: Sequence[Original], writing: VariantWriting, ask: Ask
) -> tuple[list[Variant], dict[str, Any]]:
    """Have a model write variants of each original and then validate the variants (section 3.3).

    If the answer to the first call is unreadable, the original has no variants. If the answer to
    the second call is unreadable or omits a variant, the variant is kept as written with the flag
    `not_reviewed_by_model`. No question is repeated.

    Returns:
        The variants, and a report that counts unreadable answers and verdicts.

    Raises:
        UserError: A question fails in all attempts. Answers received before are recorded.
    """
    writing_answers = _ask_and_parse(_writing_questions(originals, writing), ask, WrittenVariants)
    texts_by_original = _get_texts(writing_answers, count=WRITTEN)
    reviewing_questions = _reviewing_questions(originals, texts_by_original, writing)
    reviewing_answers = _ask_and_parse(reviewing_questions, ask, TextReviews)
    variants: list[Variant] = []
    for original in originals:
        # Originals without a readable first answer were not reviewed, and have no variants.
        if original.id in reviewing_answers:
            texts, reviews = texts_by_original[original.id], reviewing_answers[original.id].value
            variants += _apply_model_reviews(original, texts, reviews)
    report = {
        "originals": len(originals),
        "written": _count_outcomes(writing_answers),
        "reviewed": _count_outcomes(reviewing_answers),
        "variants": len(variants),
        "model_verdicts": dict(Counter(str(variant.model_verdict) for variant in variants)),
    }
    return variants, report


def _writing_questions(
    originals: Sequence[Original], writing: VariantWriting
) -> dict[str, Question]:
    """Return the questions of the first call, by id of the original."""
    prompt = load_prompt(writing.prompts / GENERATE)
    return {
        original.id: writing.question(prompt, original, name=original.id, count=WRITTEN)
        for original in originals
    }


def _reviewing_questions(
    originals: Sequence[Original],
    texts_by_original: Mapping[str, Sequence[str]],
    writing: VariantWriting,
) -> dict[str, Question]:
    """Return the questions of the second call, by id of the original.

    `texts_by_original` maps the id of an original to the texts to review. An original without texts
    has no question.
    """
    prompt = load_prompt(writing.prompts / REVIEW)
    questions = {}
    for original in originals:
        texts = texts_by_original.get(original.id)
        if texts:
            questions[original.id] = writing.question(
                prompt, original, name=f"{original.id} (validation)", variants=texts
            )
    return questions


def questions_ahead(
    originals: Sequence[Original],
    writing: VariantWriting,
    read_recorded: Callable[[Collection[str]], Mapping[str, Answer]],
) -> list[Question]:
    """Return the questions of both calls for every original, to estimate costs in advance.

    If the answer to the first call is not recorded, the second question shows the original in place
    of each variant. If the answer is recorded but unreadable, there is no second question.

    Args:
        originals: The originals.
        writing: Model, request parameters and prompts.
        read_recorded: Function that takes keys of questions, and returns the recorded answers by
            key.
    """
    writing_questions = _writing_questions(originals, writing)
    answers = read_recorded([question.key for question in writing_questions.values()])
    recorded = {
        original_id: parse_object(answers[question.key], WrittenVariants)
        for original_id, question in writing_questions.items()
        if question.key in answers
    }
    texts_by_original = _get_texts(recorded, count=WRITTEN)
    for original in originals:
        if original.id not in recorded:
            texts_by_original[original.id] = [original.sentence] * WRITTEN
    reviewing_questions = _reviewing_questions(originals, texts_by_original, writing)
    return [*writing_questions.values(), *reviewing_questions.values()]


def confusing_variants(path: str | Path) -> list[str]:
    """Return the ids of all variants that a model misjudged, even if it misjudged the original too.

    According to section 4.1, only variants of correctly judged originals can confuse a model.
    However, GPT-4o mini flips on about 24 English variants (Table 3), while the paper rewrites 58
    variants. A run consistent with Tables 3, 5 and 6 misjudges 58 variants in total. Therefore, the
    ablation counts all misjudged variants, as Table 6 does (`confusion_as_printed`).

    `path` is the path of the run's metric file.
    """
    misjudged_ids = []
    for original in read_json(path)["judged"]:
        for variant_id, is_correct in original["variants"].items():
            if not is_correct:
                misjudged_ids.append(variant_id)
    return misjudged_ids


def sample_neutral_variants(
    sentences: Sequence[JamSentence], confusing_ids: Collection[str], path: str | Path
) -> list[JamSentence]:
    """Return the sample's neutral variants for the confusing hard variants (appendix G).

    The sample has at most one neutral text per original. All confusing variants of an original get
    this text.

    Args:
        sentences: Originals and hard variants.
        confusing_ids: Ids of the confusing hard variants (see `confusing_variants`).
        path: Path of a JSON object that maps the id of an original to its neutral text. Each text
            ends with the original.
    """
    neutral_texts = read_json(path)
    original_by_id = {sentence.id: sentence for sentence in sentences if sentence.is_original}
    neutral_variants = []
    for sentence in sentences:
        original = original_by_id[sentence.original_id]
        if sentence.id in confusing_ids and original.id in neutral_texts:
            text, number = neutral_texts[original.id], sentence.variant_number
            variant = make_variant(original, text, number=number, source="sample")
            neutral_variants.append(as_sentence(variant))
    return neutral_variants


def generate_neutral_variants(
    sentences: Sequence[JamSentence],
    confusing_ids: Collection[str],
    writing: VariantWriting,
    ask: Ask,
) -> tuple[list[JamSentence], dict[str, Any]]:
    """Have a model write a neutral variant for each confusing hard variant (appendix G).

    A neutral variant has the id and number of the hard variant, and a context of similar length.
    `confusing_ids` are the ids of the hard variants (see `confusing_variants`).

    Returns:
        The neutral variants in dataset order, and a report of counts and flags. A hard variant has
            no neutral variant if the answer is unreadable or lacks the original sentence.
    """
    questions = neutral_questions(sentences, confusing_ids, writing)
    answers = _ask_and_parse(questions, ask, WrittenVariants)
    texts_by_variant = _get_texts(answers, count=1)
    original_by_id = {sentence.id: sentence for sentence in sentences if sentence.is_original}
    neutral_variants = []
    flags_by_variant = {}
    for sentence in sentences:
        texts = texts_by_variant.get(sentence.id)
        if not texts:
            continue
        original = original_by_id[sentence.original_id]
        flags = check_text(original, texts[0])
        if flags:
            flags_by_variant[sentence.id] = list(flags)
        if "original_missing" not in flags:
            number = sentence.variant_number
            variant = make_variant(original, texts[0], number=number, source="generated")
            neutral_variants.append(as_sentence(variant))
    report = {
        "asked": len(questions),
        "variants": len(neutral_variants),
        **_count_outcomes(answers),
        "flags": flags_by_variant,
    }
    return neutral_variants, report


def replace_with_neutral(
    sentences: Sequence[JamSentence], neutral_variants: Iterable[JamSentence]
) -> list[JamSentence]:
    """Return the sentences with a neutral variant in place of each hard variant.

    The original's text replaces a hard variant that has no neutral variant.
    """
    neutral_by_id = {variant.id: variant for variant in neutral_variants}
    original_by_id = {sentence.id: sentence for sentence in sentences if sentence.is_original}
    new_sentences = []
    for sentence in sentences:
        if sentence.id in neutral_by_id:
            new_sentences.append(neutral_by_id[sentence.id])
        else:
            # This copies an original unchanged.
            own_ids = sentence.model_dump(include={"id", "original_id", "variant_number"})
            original = original_by_id[sentence.original_id]
            new_sentences.append(original.model_copy(update=own_ids))
    return new_sentences


def neutral_questions(
    sentences: Sequence[JamSentence], confusing_ids: Collection[str], writing: VariantWriting
) -> dict[str, Question]:
    """Return the questions that ask for neutral variants, by id of the confusing hard variant."""
    original_by_id = {sentence.id: sentence for sentence in sentences if sentence.is_original}
    prompt = load_prompt(writing.prompts / NEUTRAL_PROMPT)
    questions = {}
    for sentence in sentences:
        if sentence.is_original or sentence.id not in confusing_ids:
            continue
        original = original_by_id[sentence.original_id]
        context = added_context(original.sentence, sentence.sentence)
        # If the contexts of two variants have the same length, their prompts are identical. The
        # sample number then keeps their answers apart.
        questions[sentence.id] = writing.question(
            prompt,
            original,
            name=f"{sentence.id} (neutral)",
            sample=sentence.variant_number,
            count=1,
            context_words=count_words(context),
        )
    return questions


class _VariantTask(Task):
    """Base class of tasks that write `variants` and a `report`."""

    generation: GenerationSettings

    def reading(self, answer: Answer) -> Parsed[Any]:
        """Return the texts of the variants that an answer contains."""
        return parse_object(answer, WrittenVariants)

    def limit_setting(self) -> str:
        """Return the name of the setting that limits the length of the answers."""
        return "jam.variants.max_tokens"

    def _writing(self, entry: LLMEntry, prompt: str) -> VariantWriting:
        """Return the model, request parameters and prompt folder of the calls.

        `prompt` is the name of a prompt among the inputs; the folder of this prompt is used.
        """
        return VariantWriting(entry, self.generation, Path(self.inputs[prompt]).parent)

    def _save(self, variants: Iterable[BaseModel], report: Mapping[str, Any]) -> None:
        save_jsonl(self.outputs["variants"], variants)
        write_json(self.outputs["report"], {**report, "model": self.model})


class HardVariants(_VariantTask):
    """Task that generates and validates hard variants of each original (section 3.3).

    The inputs are `originals` and the prompts `generate` and `review`. The outputs are `variants`
    and `report`.
    """

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return the questions of both calls for each original (see `questions_ahead`)."""
        return questions_ahead(
            self._originals(),
            self._writing(entry, "generate"),
            lambda keys: read_answers(self.recordings, keys),
        )

    def likely_output_tokens(self) -> int:
        """Return the expected tokens of an answer, which covers all variants of an original."""
        return VARIANT_TOKENS * WRITTEN

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Generate, validate and check the variants, and write the variants and a report."""
        originals = self._originals()
        variants, report = generate_variants(originals, self._writing(entry, "generate"), ask)
        self._save(check_variants(originals, variants), report)

    def reading(self, answer: Answer) -> Parsed[Any]:
        """Return the reviews in an answer to the second call, or the texts in any other answer."""
        reviews = parse_object(answer, TextReviews)
        return reviews if reviews.outcome.is_readable else super().reading(answer)

    def _originals(self) -> list[Original]:
        return load_jsonl(self.inputs["originals"], Original)


class NeutralVariants(_VariantTask):
    """Task that generates a neutral variant for each confusing hard variant (appendix G).

    The inputs are `dataset`, `metrics` (of the confused model) and `prompt`. The outputs are
    `variants` and `report`.
    """

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return one question for each hard variant that gets a neutral variant."""
        sentences, ids_to_rewrite = self._load_dataset()
        writing = self._writing(entry, "prompt")
        return list(neutral_questions(sentences, ids_to_rewrite, writing).values())

    def likely_output_tokens(self) -> int:
        """Return the expected tokens of an answer, which contains one variant."""
        return VARIANT_TOKENS

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Generate the neutral variants, and write the variants and a report."""
        sentences, ids_to_rewrite = self._load_dataset()
        writing = self._writing(entry, "prompt")
        variants, report = generate_neutral_variants(sentences, ids_to_rewrite, writing, ask)
        self._save(variants, report)

    def _load_dataset(self) -> tuple[list[JamSentence], list[str]]:
        """Return the sentences of the dataset, and the ids of the confusing hard variants."""
        sentences = load_jsonl(self.inputs["dataset"], JamSentence)
        return sentences, confusing_variants(self.inputs["metrics"])


class NeutralContexts(NeutralVariants):
    """Task that replaces every hard variant of the dataset with a neutral variant.

    The inputs are `dataset` and `prompt`. The outputs are `variants` and `report`.
    """

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Generate all neutral variants, and write the dataset with these variants and a report."""
        sentences, ids_to_rewrite = self._load_dataset()
        writing = self._writing(entry, "prompt")
        variants, report = generate_neutral_variants(sentences, ids_to_rewrite, writing, ask)
        self._save(replace_with_neutral(sentences, variants), report)

    def _load_dataset(self) -> tuple[list[JamSentence], list[str]]:
        """Return the sentences of the dataset, and the ids of all hard variants."""
        sentences = load_jsonl(self.inputs["dataset"], JamSentence)
        return sentences, [sentence.id for sentence in sentences if not sentence.is_original]


def _ask_and_parse(
    questions: Mapping[str, Question], ask: Ask, answer_class: type[Any]
) -> dict[str, Parsed[Any]]:
    """Ask questions, and return the parsed answer to each question, by the keys of `questions`.

    `answer_class` is the pydantic model of an answer.
    """
    answers = ask(list(questions.values())) if questions else {}
    return {
        name: parse_object(answers[question.key], answer_class)
        for name, question in questions.items()
    }


def _get_texts(answers: Mapping[str, Parsed[Any]], *, count: int) -> dict[str, list[str]]:
    """Return the first `count` nonblank texts of each readable answer, by the keys of `answers`."""
    texts_by_name = {}
    for name, answer in answers.items():
        if answer.value is not None:
            nonblank_texts = [text.strip() for text in answer.value.variants if text.strip()]
            texts_by_name[name] = nonblank_texts[:count]
    return texts_by_name


def _apply_model_reviews(
    original: Original, texts: Sequence[str], answer: TextReviews | None
) -> list[Variant]:
    """Return the variants of an original with the verdicts and texts of the validating model.

    Args:
        original: The original.
        texts: Texts of the variants, as written by the model.
        answer: Answer of the validating model; None if the answer is unreadable.
    """
    reviews = answer.reviews if answer else []
    review_by_number = {review.number: review for review in reviews}
    variants = []
    for number, text in enumerate(texts, start=1):
        review = review_by_number.get(number)
        final_text = text
        fields: dict[str, Any]
        if review is None:
            fields = {"model_verdict": "unknown", "flags": ("not_reviewed_by_model",)}
        else:
            fields = {"model_verdict": review.verdict, "note": review.reason}
            # Keep a valid text as written, because the validating model may copy it with changes.
            if review.verdict != "valid":
                final_text = review.text.strip() or text
        variants.append(
            make_variant(original, final_text, number=number, source="generated", **fields)
        )
    return variants


def _count_outcomes(answers: Mapping[str, Parsed[Any]]) -> dict[str, Any]:
    """Return the number of answers per outcome, and why each unreadable answer is unreadable."""
    return {
        "outcomes": dict(Counter(str(answer.outcome) for answer in answers.values())),
        "unreadable": {
            name: f"{answer.outcome}: {answer.reason}"
            for name, answer in answers.items()
            if not answer.outcome.is_readable
        },
    }
