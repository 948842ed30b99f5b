"""Identify idioms by prompting (ID10M-JAM, section 4.2 and appendix C)."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from pieline.core.errors import UserError
from pieline.core.records import save_jsonl
from pieline.languages.matching import matches_pie
from pieline.languages.registry import get_language
from pieline.languages.spelling import normalize
from pieline.llm.answers import Answer
from pieline.llm.idioms import parse_idioms
from pieline.llm.obstacles import SCHEMA_SETTING, unsupported_reason
from pieline.llm.parsing import Parsed
from pieline.llm.prompts import Prompt, load_prompt
from pieline.llm.questions import Message, Question, make_question
from pieline.llm.task import Ask, PaperSize, Task
from pieline.models.llm import LLMEntry
from pieline.studies.jam.predictions.prompt_settings import (
    FEW_SHOT,
    Arranged,
    Context,
    FewShot,
    PromptSetting,
    ZeroShot,
)
from pieline.studies.jam.predictions.records import IdiomPrediction, IdiomSample
from pieline.studies.jam.raw.id10m import TaggedSentence, read_id10m
from pieline.studies.jam.records import PRINTED_COUNTS, JamSentence, load_sentences
from pieline.studies.jam.variants.projection import find_original

_INPUT_TOKENS = {"zero_shot": 257, SCHEMA_SETTING: 257, FEW_SHOT: 896}
"""Mean input tokens of a question on the paper's data, by setting."""
_SHORT_ANSWER_TOKENS = 25
"""Typical number of tokens of an answer that only names idioms."""
_LONG_ANSWER_TOKENS = 120
"""Typical number of tokens of an answer that also has candidates and explanations."""
ANSWER_SCHEMA: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "idioms",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {
                "idioms": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 60},
                    "maxItems": 3,
                }
            },
            "required": ["idioms"],
            "additionalProperties": False,
        },
    },
}
"""Response format that the provider enforces in the setting `zero_shot_schema`. The format limits
the lengths of texts and lists, because small models may otherwise never end a list."""


class Identification(Task):
    """Task that asks a model for the idioms in each sentence, and writes a prediction per sentence.

    The inputs are `sentences` and `prompt`. Few-shot prompting adds `example` (the template of an
    example) and `train` (the split from which examples are drawn). Neutral contexts add `neutral`
    (the sentences with neutral variants). The output is `predictions`.

    Attributes:
        setting: A setting of the paper (`zero_shot` or `few_shot_sc_cotbest`), `zero_shot_schema`
            or a custom setting. In `zero_shot_schema`, the provider enforces a response format, for
            models that are too small to follow the format in the prompt. Prompts can also define a
            response format, as in the authors' code (form: released).
        seed: Seed of the run, which also determines the examples.
        parameters: Request parameters of the setting.
    """

    setting: str
    seed: int
    parameters: ZeroShot | Arranged | FewShot

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return one question per sentence and sample."""
        sentences = self._load_sentences()
        examples = self._choose_examples(sentences)
        questions_by_id = questions_about(sentences, entry, self, examples)
        return [question for questions in questions_by_id.values() for question in questions]

    def likely_output_tokens(self) -> int:
        """Return the expected number of tokens of an answer."""
        answer_fields = load_prompt(self.inputs["prompt"]).about.get("answer", {})
        if self.setting == FEW_SHOT or len(answer_fields) > 1:
            return _LONG_ANSWER_TOKENS
        return _SHORT_ANSWER_TOKENS

    def paper_size(self) -> PaperSize:
        """Return the size of the task on the paper's data with the paper's prompts.

        The size is unknown for neutral contexts and for settings without a known prompt length.
        """
        if "neutral" in self.inputs or self.setting not in _INPUT_TOKENS:
            return PaperSize()
        language = Path(self.inputs["sentences"]).stem
        # Originals and variants; none for languages that are not in the paper.
        sentence_count = sum(PRINTED_COUNTS.get(language, ()))
        return PaperSize(
            questions=sentence_count * self.samples_per_sentence(),
            input_tokens=_INPUT_TOKENS[self.setting],
            max_tokens=self.parameters.max_tokens,
        )

    def samples_per_sentence(self) -> int:
        """Return the number of answers per sentence."""
        return self.parameters.samples if isinstance(self.parameters, FewShot) else 1

    def limit_setting(self) -> str:
        """Return the name of the setting that limits the length of the answers."""
        return f"jam.by_model.{self.model}.max_tokens.{self.setting}"

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask the model about every sentence, and write the predictions."""
        sentences = self._load_sentences()
        examples = self._choose_examples(sentences)
        questions_by_id = questions_about(sentences, entry, self, examples)
        answers = ask(
            [question for questions in questions_by_id.values() for question in questions]
        )
        few_shot = self.parameters if isinstance(self.parameters, FewShot) else None
        predictions = []
        for sentence in sentences:
            samples = [
                sample_of(answers[question.key]) for question in questions_by_id[sentence.id]
            ]
            prediction = combine(
                sentence.id, samples, language=sentence.language, few_shot=few_shot
            )
            predictions.append(prediction)
        save_jsonl(self.outputs["predictions"], predictions)

    def reading(self, answer: Answer) -> Parsed[list[str]]:
        """Return the idioms that an answer names."""
        return parse_idioms(answer)

    def _load_sentences(self) -> list[JamSentence]:
        return load_sentences(self.inputs.get("neutral") or self.inputs["sentences"])

    def _choose_examples(self, sentences: Sequence[JamSentence]) -> Sequence[TaggedSentence]:
        """Return the examples for few-shot prompting; empty for other settings.

        Without sentences, the examples are not needed and not chosen.
        """
        if not sentences or not isinstance(self.parameters, FewShot):
            return ()
        train_path = self.inputs["train"]
        modification_time = _modification_time(train_path)
        return _cached_examples(train_path, modification_time, self.parameters.examples, self.seed)


def sample_of(answer: Answer) -> IdiomSample:
    """Parse an answer, and return it as a sample with the idioms that it names."""
    parsed = parse_idioms(answer)
    return IdiomSample(
        key=answer.key,
        outcome=parsed.outcome.value,
        rule=parsed.rule or answer.failure,
        idioms=None if parsed.value is None else tuple(parsed.value),
    )


def questions_about(
    sentences: Sequence[JamSentence],
    entry: LLMEntry,
    task: Identification,
    examples: Sequence[TaggedSentence] = (),
) -> dict[str, list[Question]]:
    """Return the questions about each sentence, by sentence id.

    Each sentence has one question per sample. Questions about the same sentence differ in the
    sample number and, if the provider accepts a seed, in the seed. Reasoning models are asked only
    zero-shot, without a temperature (section 4.3).

    Raises:
        UserError: The model does not support the setting.
    """
    if not is_asked(entry, task.setting):
        raise UserError(
            f"reasoning models do not support the setting {task.setting!r}",
            where=entry.label,
            hint="use zero_shot",
        )
    prompt = load_prompt(task.inputs["prompt"])
    prompt.check_shows("sentence", language="")
    request = _request_parameters(task, entry, prompt)
    seeds = _sample_seeds(task)
    example_messages = _example_messages(task.inputs["example"], examples) if examples else []
    context = task.parameters.context if isinstance(task.parameters, Arranged) else "first"
    texts = arrange_texts(sentences, context)
    questions: dict[str, list[Question]] = {}
    for sentence in sentences:
        prompt_messages = prompt.messages(
            sentence=texts[sentence.id].strip(), language=sentence.language.capitalize()
        )
        # The examples come before the last message, which shows the sentence.
        messages = (*prompt_messages[:-1], *example_messages, prompt_messages[-1])
        questions[sentence.id] = [
            make_question(
                entry, messages, {**request, "seed": seed}, sample=number, name=sentence.id
            )
            for number, seed in enumerate(seeds)
        ]
    return questions


def _request_parameters(task: Identification, entry: LLMEntry, prompt: Prompt) -> dict[str, Any]:
    """Return the parameters of a task's requests, without the seed.

    Raises:
        UserError: The model does not support a response format, and the setting enforces one.
    """
    response_format = ANSWER_SCHEMA if task.setting == SCHEMA_SETTING else prompt.response_format
    is_custom = task.setting not in get_args(PromptSetting)
    # A custom prompt describes its format in words, so a model that ignores the format is accepted.
    if response_format and not is_custom:
        # A prompt of the authors' code enforces its format, like the setting with a schema.
        obstacle = unsupported_reason(entry, SCHEMA_SETTING)
        if obstacle:
            raise UserError(obstacle, where=entry.label, hint="remove the model or the setting")
    request: dict[str, Any] = {
        "max_tokens": task.parameters.max_tokens,
        "response_format": response_format,
    }
    if not entry.reasoning:
        request["temperature"] = task.parameters.temperature
    return request


def _sample_seeds(task: Identification) -> list[int]:
    """Return a different seed for each sample; samples with the same seed would be identical."""
    sample_count = task.samples_per_sentence()
    if sample_count == 1:
        return [task.seed]
    # With up to 100 samples per sentence, different run seeds share no sample seeds.
    return [100 * task.seed + number for number in range(sample_count)]


def _example_messages(template_path: str, examples: Iterable[TaggedSentence]) -> list[Message]:
    """Return messages that show the sentence and the expected answer of each example."""
    template = load_prompt(template_path)
    template.check_shows("sentence", idioms=["break the ice"])
    messages: list[Message] = []
    for example in examples:
        messages += template.messages(sentence=example.text.strip(), idioms=example.idioms)
    return messages


@lru_cache(maxsize=64)
def _cached_examples(
    path: str, modification_time: int, count: int, seed: int
) -> list[TaggedSentence]:
    """Choose examples from the train split once for all models.

    The modification time of the file is part of the cache's key, so the examples of an edited file
    are chosen again.
    """
    return choose_examples(_cached_train_split(path, modification_time), count, seed=seed)


@lru_cache(maxsize=4)
def _cached_train_split(path: str, modification_time: int) -> list[TaggedSentence]:
    """Read the train split once for all runs.

    The modification time of the file is part of the cache's key, so an edited file is read again.
    """
    return read_id10m(path, split="train")


def _modification_time(path: str) -> int:
    """Return the modification time of a file in nanoseconds; 0 if the file is missing."""
    return Path(path).stat().st_mtime_ns if Path(path).exists() else 0


def is_asked(entry: LLMEntry, setting: str) -> bool:
    """Return whether the study asks a model in a setting.

    Reasoning models are not asked in the few-shot setting.
    """
    return setting != FEW_SHOT or not entry.reasoning


def combine(
    identifier: str,
    samples: Sequence[IdiomSample],
    *,
    language: str,
    few_shot: FewShot | None = None,
) -> IdiomPrediction:
    """Combine the answers to one sentence into a prediction.

    Without `few_shot` or with the votes `first`, only the first answer counts, with all its idioms.
    With the votes `majority`, the answers vote on PIEs (see `_predict_by_majority`).

    Args:
        identifier: Sentence id.
        samples: Answers to the sentence, at least one.
        language: Language of the sentence.
        few_shot: Parameters of the few-shot setting; None for other settings.
    """
    if few_shot is not None and few_shot.votes == "majority":
        needed_votes = few_shot.samples // 2 + 1
        return _predict_by_majority(identifier, samples, needed_votes, language)
    idioms = samples[0].idioms
    return IdiomPrediction(
        id=identifier,
        outcome=samples[0].outcome,
        idioms=None if idioms is None else tuple(_remove_repetitions(idioms)),
        samples=tuple(samples),
    )


def _predict_by_majority(
    identifier: str, samples: Sequence[IdiomSample], needed_votes: int, language: str
) -> IdiomPrediction:
    """Predict the PIEs that enough answers name (self-consistency, section 4.2).

    Only the first idiom of each answer counts, because an answer should select at most one idiom.
    With fewer readable answers than needed votes, the prediction is missing, and its outcome is the
    most common outcome of the unreadable answers.
    """
    readable = [sample for sample in samples if sample.idioms is not None]
    if len(readable) < needed_votes:
        failures = Counter(sample.outcome for sample in samples if sample.idioms is None)
        outcome = failures.most_common(1)[0][0]
        return IdiomPrediction(id=identifier, outcome=outcome, idioms=None, samples=tuple(samples))
    first_idioms = [sample.idioms[0] for sample in readable if sample.idioms]
    return IdiomPrediction(
        id=identifier,
        outcome="ok" if any(sample.outcome == "ok" for sample in readable) else "repaired",
        idioms=tuple(_elect(first_idioms, needed_votes, language)),
        samples=tuple(samples),
    )


def _elect(votes: Sequence[str], needed_votes: int, language: str) -> list[str]:
    """Return the PIEs with at least `needed_votes` votes; a vote is an idiom that an answer names.

    Different wordings of a PIE count as votes for the same PIE (see `_is_same_pie`). The PIE is
    returned in the wording that matches the most votes or, if several do, in the earliest one.
    """
    elected = []
    remaining = list(votes)
    while remaining:
        votes_by_wording = {
            idiom: [vote for vote in remaining if _is_same_pie(vote, idiom, language)]
            for idiom in remaining
        }
        winner = max(remaining, key=lambda idiom: len(votes_by_wording[idiom]))
        if len(votes_by_wording[winner]) < needed_votes:
            break
        elected.append(winner)
        remaining = [vote for vote in remaining if vote not in votes_by_wording[winner]]
    return elected


def _is_same_pie(one: str, other: str, language: str) -> bool:
    """Return whether two texts name the same PIE.

    If only one text contains the other text, the shorter text must have at least two content words.
    Otherwise, the shorter text may be only a part of the PIE ("ice" in "break the ice").
    """
    contains_other = matches_pie(one, other, language=language)
    is_contained = matches_pie(other, one, language=language)
    if contains_other and is_contained:
        return True
    if not contains_other and not is_contained:
        return False
    shorter = other if contains_other else one
    content_words = set(normalize(shorter).split()) - get_language(language).stop_words
    return len(content_words) > 1


def _remove_repetitions(idioms: Sequence[str]) -> list[str]:
    """Return the nonblank idioms without repetitions, each in its first spelling."""
    first_spellings: dict[str, str] = {}
    for idiom in idioms:
        normalized = normalize(idiom)
        if normalized:
            first_spellings.setdefault(normalized, idiom)
    return list(first_spellings.values())


def arrange_texts(sentences: Sequence[JamSentence], context: Context) -> dict[str, str]:
    """Return the text to show to a model, by sentence id.

    Only variants in which the original can be located are changed:

    - `first`, `neutral`: Variants are unchanged; neutral variants are read from another file.
    - `last`: The context follows the original.
    - `none`: The original is shown without the context.
    - `other`: The context of another original's variant replaces the context. The other context
      with the most similar number of words is used, so that only the topic changes.
    """
    texts = {sentence.id: sentence.sentence for sentence in sentences}
    if context in ("first", "neutral"):
        return texts
    parts_by_id = _split_variants(sentences)
    for variant_id, parts in parts_by_id.items():
        if context == "last":
            texts[variant_id] = f"{parts.original} {parts.context}".strip()
        elif context == "none":
            texts[variant_id] = parts.original
        else:  # other
            other_contexts = [
                other.context
                for other in parts_by_id.values()
                if other.original_id != parts.original_id
            ]
            new_context = _similar_in_length(parts.context, other_contexts)
            texts[variant_id] = f"{new_context} {parts.original}".strip()
    return texts


class _VariantParts(NamedTuple):
    """Parts of a variant's text.

    Attributes:
        original_id: Id of the original.
        context: Added context.
        original: Text of the original as it occurs in the variant.
    """

    original_id: str
    context: str
    original: str


def _split_variants(sentences: Sequence[JamSentence]) -> dict[str, _VariantParts]:
    """Return the parts of each variant in which the original can be located, by variant id."""
    texts = {sentence.id: sentence.sentence for sentence in sentences}
    parts_by_id = {}
    for sentence in sentences:
        if sentence.is_original or sentence.original_id not in texts:
            continue
        text = sentence.sentence
        span = find_original(texts[sentence.original_id], text)
        if span:
            context, original = text[: span.start].strip(), text[span.start :].strip()
            parts_by_id[sentence.id] = _VariantParts(sentence.original_id, context, original)
    return parts_by_id


def _similar_in_length(context: str, other_contexts: Sequence[str]) -> str:
    """Return the other context whose number of words is closest to that of a context.

    If there is no other context, the context itself is returned.
    """
    length = len(context.split())
    return min(other_contexts, key=lambda other: abs(len(other.split()) - length), default=context)


def choose_examples(
    sentences: Sequence[TaggedSentence], count: int, *, seed: int
) -> list[TaggedSentence]:
    """Choose `count` examples with an idiom and `count` without one, in random order (section 4.2).

    Examples are sampled like rows of a pandas data frame, as in the authors' code. On ID10M's train
    split, the result is the paper's examples.

    Raises:
        UserError: There are too few sentences with or without an idiom.
    """
    examples: list[TaggedSentence] = []
    for has_idiom in (True, False):
        candidates = [sentence for sentence in sentences if bool(sentence.spans) == has_idiom]
        if len(candidates) < count:
            kind = "with" if has_idiom else "without"
            raise UserError(
                f"only {len(candidates)} sentences {kind} an idiom ({count} examples requested)",
                where="train split",
                hint="reduce the number of examples",
            )
        examples += _sample_like_pandas(candidates, count, seed)
    random.Random(seed).shuffle(examples)  # noqa: S311 - not for secrets
    return examples


def _sample_like_pandas(
    candidates: Sequence[TaggedSentence], count: int, seed: int
) -> list[TaggedSentence]:
    """Return the sentences that `DataFrame.sample(count, random_state=seed)` would choose."""
    import numpy as np

    generator = np.random.RandomState(seed)  # used by pandas, with a sequence that never changes
    return [candidates[index] for index in generator.choice(len(candidates), count, replace=False)]
