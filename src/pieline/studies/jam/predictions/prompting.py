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
"""Mean input tokens of a question by setting."""
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
"""Response format that the provider enforces in the setting `zero_shot_schema`. Lengths are limited
because small models may otherwise never end a list."""


class Identification(Task):
    """Task that asks a model for the idioms of each sentence; one prediction per sentence.

    `inputs` has `sentences` and `prompt`. Few-shot prompting adds `example` (the template of the
    examples) and `train` (the split that they are drawn from); a neutral context adds `neutral`
    (the sentences with neutral variants). The only output is `predictions`.

    Attributes:
        setting: `zero_shot` and `few_shot_sc_cotbest` are the paper's settings. In
            `zero_shot_schema`, the provider also enforces a response format, for models that are
            too small to follow one in the prompt. Other settings are user-defined. A prompt can
            also define a response format itself, as the authors' code's prompts do.
        seed: Seed of the run; also used to choose examples.
        parameters: Request parameters of the setting.
    """

    setting: str
    seed: int
    parameters: ZeroShot | Arranged | FewShot

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return one question per sentence and sample."""
        sentences = self._sentences()
        groups = questions_about(sentences, entry, self, self._examples(sentences))
        return [question for group in groups.values() for question in group]

    def likely_output_tokens(self) -> int:
        """Estimate the output tokens per answer; candidates and explanations require more."""
        fields = load_prompt(self.inputs["prompt"]).about.get("answer", {})
        return 120 if self.setting == FEW_SHOT or len(fields) > 1 else 25

    def paper_size(self) -> PaperSize:
        """Return the size on the paper's data with the paper's prompts."""
        if "neutral" in self.inputs or self.setting not in _INPUT_TOKENS:
            return PaperSize()
        language = Path(self.inputs["sentences"]).stem
        sentences = sum(PRINTED_COUNTS.get(language, ()))
        samples = self.parameters.samples if isinstance(self.parameters, FewShot) else 1
        tokens = _INPUT_TOKENS[self.setting]
        return PaperSize(sentences * samples, tokens, self.parameters.max_tokens)

    def limit_setting(self) -> str:
        """Return the name of the setting that limits the length of the answers."""
        return f"jam.by_model.{self.model}.max_tokens.{self.setting}"

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask about every sentence and write the predictions."""
        sentences = self._sentences()
        examples = self._examples(sentences)
        few_shot = self.parameters if isinstance(self.parameters, FewShot) else None
        questions = questions_about(sentences, entry, self, examples)
        answers = ask([question for group in questions.values() for question in group])
        predictions = []
        for sentence in sentences:
            samples = [sample_of(answers[question.key]) for question in questions[sentence.id]]
            predictions.append(
                combine(sentence.id, samples, language=sentence.language, few_shot=few_shot)
            )
        save_jsonl(self.outputs["predictions"], predictions)

    def reading(self, answer: Answer) -> Parsed[list[str]]:
        """Parse the idioms named by an answer."""
        return parse_idioms(answer)

    def _sentences(self) -> list[JamSentence]:
        return load_sentences(self.inputs.get("neutral") or self.inputs["sentences"])

    def _examples(self, sentences: Sequence[JamSentence]) -> Sequence[TaggedSentence]:
        """Choose the examples for few-shot prompting; other settings have none."""
        if not sentences or not isinstance(self.parameters, FewShot):
            return ()
        train = self.inputs["train"]
        count = self.parameters.examples
        return _cached_examples(train, _modification_time(train), count, self.seed)


def sample_of(answer: Answer) -> IdiomSample:
    """Convert an answer to a sample."""
    parsed = parse_idioms(answer)
    idioms = None if parsed.value is None else tuple(parsed.value)
    return IdiomSample(
        key=answer.key,
        outcome=parsed.outcome.value,
        rule=parsed.rule or answer.failure,
        idioms=idioms,
    )


def questions_about(
    sentences: Sequence[JamSentence],
    entry: LLMEntry,
    task: Identification,
    examples: Sequence[TaggedSentence] = (),
) -> dict[str, list[Question]]:
    """Return the questions about each sentence, by sentence id.

    Reasoning models are asked without a temperature, and only zero-shot (section 4.3). The samples
    of a sentence differ in their sample number and, if the provider accepts a seed, in their seed.

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
    request = _request(task, entry, prompt)
    seeds = _seeds(task)
    example_messages = _example_messages(task.inputs["example"], examples) if examples else []
    context = task.parameters.context if isinstance(task.parameters, Arranged) else "first"
    texts = arranged_texts(sentences, context)
    questions: dict[str, list[Question]] = {}
    for sentence in sentences:
        name = sentence.id
        *before, question = prompt.messages(
            sentence=texts[name].strip(), language=sentence.language.capitalize()
        )
        messages = (*before, *example_messages, question)
        questions[name] = [
            make_question(entry, messages, request | {"seed": seed}, sample=number, name=name)
            for number, seed in enumerate(seeds)
        ]
    return questions


def _request(task: Identification, entry: LLMEntry, prompt: Prompt) -> dict[str, Any]:
    """Return the parameters of a task's requests, without the seed.

    Raises:
        UserError: The model does not support the response format that the setting enforces.
    """
    enforced = ANSWER_SCHEMA if task.setting == SCHEMA_SETTING else prompt.response_format
    # A custom prompt describes its format in words, so it also works without enforcement.
    must_enforce = enforced and task.setting in get_args(PromptSetting)
    if must_enforce and (obstacle := unsupported_reason(entry, SCHEMA_SETTING)):
        raise UserError(obstacle, where=entry.label, hint="remove the model or the setting")
    request: dict[str, Any] = {
        "max_tokens": task.parameters.max_tokens,
        "response_format": enforced,
    }
    if not entry.reasoning:
        request["temperature"] = task.parameters.temperature
    return request


def _seeds(task: Identification) -> list[int]:
    """Return the seed of each sample; a shared seed would make all samples identical."""
    samples = task.parameters.samples if isinstance(task.parameters, FewShot) else 1
    if samples == 1:
        return [task.seed]
    return [100 * task.seed + number for number in range(samples)]


def _example_messages(template: str, examples: Iterable[TaggedSentence]) -> list[Message]:
    """Return the messages of the examples; each example is a sentence, then the expected answer."""
    prompt = load_prompt(template)
    prompt.check_shows("sentence", idioms=["break the ice"])
    messages: list[Message] = []
    for sentence in examples:
        messages += prompt.messages(sentence=sentence.text.strip(), idioms=sentence.idioms)
    return messages


@lru_cache(maxsize=64)
def _cached_examples(path: str, modified: int, count: int, seed: int) -> list[TaggedSentence]:
    """Choose examples once for all models; `modified` invalidates the cache."""
    return choose_examples(_train_split(path, modified), count, seed=seed)


@lru_cache(maxsize=4)
def _train_split(path: str, modified: int) -> list[TaggedSentence]:
    """Read the training split once; another time of modification invalidates the cache."""
    return read_id10m(path, split="train")


def _modification_time(path: str) -> int:
    return Path(path).stat().st_mtime_ns if Path(path).exists() else 0


def is_asked(spec: LLMEntry, setting: str) -> bool:
    """Return whether the study uses a setting for a model; reasoning models do not run few-shot."""
    return setting != FEW_SHOT or not spec.reasoning


def combine(
    identifier: str,
    samples: Sequence[IdiomSample],
    *,
    language: str,
    few_shot: FewShot | None = None,
) -> IdiomPrediction:
    """Combine the answers to one sentence into a prediction.

    Without `few_shot`, the only answer is the prediction. Otherwise, the answers vote
    (self-consistency):

    - `majority` (section 4.2): Only the first idiom of each answer counts, because an answer
      selects at most one. `_same_pie` decides whether two idioms are the same PIE. The wording that
      matches the most answers represents the PIE (the earliest if tied). A PIE needs more than half
      of all answers.
    - `first`: Only the first answer counts, with all its idioms.

    If there are fewer readable answers than required votes, the prediction is unknown, and its
    outcome is the most common outcome of the unreadable answers.

    Args:
        identifier: Sentence id.
        samples: Answers to the sentence, at least one.
        language: Language of the sentence.
        few_shot: Voting parameters; None if there is no vote.
    """
    votes = few_shot.votes if few_shot else "first"
    counted = samples[:1] if votes == "first" else samples
    readable = [item.idioms for item in counted if item.idioms is not None]
    needed = few_shot.samples // 2 + 1 if few_shot and votes == "majority" else 1
    if len(readable) < needed:
        failed = Counter(item.outcome for item in counted if item.idioms is None)
        outcome = failed.most_common(1)[0][0]
        return IdiomPrediction(id=identifier, outcome=outcome, idioms=None, samples=tuple(samples))
    if votes == "majority":
        selected = _agreed([idioms[0] for idioms in readable if idioms], needed, language)
    else:
        selected = _distinct(readable[0])
    any_ok = any(item.outcome == "ok" for item in counted)
    return IdiomPrediction(
        id=identifier,
        outcome="ok" if any_ok else "repaired",
        idioms=tuple(selected),
        samples=tuple(samples),
    )


def _agreed(named: list[str], needed: int, language: str) -> list[str]:
    """Return the idioms that at least `needed` answers name, in any wording.

    `named` has at most one idiom per answer.
    """
    agreed = []
    while named:
        votes = {text: _wordings_of(text, named, language) for text in named}
        best = max(named, key=lambda text: len(votes[text]))
        if len(votes[best]) < needed:
            break
        agreed.append(best)
        named = [text for text in named if text not in votes[best]]
    return agreed


def _wordings_of(idiom: str, named: Sequence[str], language: str) -> list[str]:
    return [text for text in named if _same_pie(text, idiom, language)]


def _same_pie(one: str, other: str, language: str) -> bool:
    """Return whether two texts name the same PIE.

    Unlike in scoring, the PIE is unknown, and the shorter text may be only part of a PIE ("ice" in
    "break the ice"). Therefore, a match in only one direction requires that the shorter text has at
    least two content words.
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


def _distinct(idioms: Sequence[str]) -> list[str]:
    """Return the idioms of an answer without repetitions, each in its first spelling."""
    spelled: dict[str, str] = {}
    for text in idioms:
        spelled.setdefault(normalize(text), text)
    return [text for form, text in spelled.items() if form]


def arranged_texts(sentences: Sequence[JamSentence], context: Context) -> dict[str, str]:
    """Return the text to show to a model, by sentence id.

    Originals, and variants in which the original cannot be located, are unchanged; so are all texts
    for "first" and "neutral". "other" replaces the context of a variant with the context of another
    original's variant. Of these contexts, the one with the most similar number of words is chosen
    (the first if tied), so that the topic changes but the length hardly does.
    """
    texts = {item.id: item.sentence for item in sentences}
    if context in ("first", "neutral"):  # neutral variants are read from a separate file
        return texts
    parts = _parts_of_variants(sentences)
    for name, part in parts.items():
        if context == "last":
            texts[name] = f"{part.original} {part.context}".strip()
        elif context == "none":
            texts[name] = part.original
        else:
            others = [each.context for each in parts.values() if each.owner != part.owner]
            new_context = _similar_in_length(part.context, others)
            texts[name] = f"{new_context} {part.original}".strip()
    return texts


class _VariantParts(NamedTuple):
    """Texts of a variant: the added context, and the original as it occurs in the variant.

    `owner` is the id of the original.
    """

    owner: str
    context: str
    original: str


def _parts_of_variants(sentences: Sequence[JamSentence]) -> dict[str, _VariantParts]:
    """Return the parts of the variants in which the original can be located, by variant id."""
    texts = {item.id: item.sentence for item in sentences}
    parts = {}
    for item in sentences:
        if item.is_original or item.original_id not in texts:
            continue
        text = item.sentence
        if place := find_original(texts[item.original_id], text):
            context, original = text[: place.start].strip(), text[place.start :].strip()
            parts[item.id] = _VariantParts(item.original_id, context, original)
    return parts


def _similar_in_length(context: str, others: Sequence[str]) -> str:
    """Return the other context with the most similar number of words; `context` without others."""
    length = len(context.split())
    return min(others, key=lambda text: abs(len(text.split()) - length), default=context)


def choose_examples(
    sentences: Sequence[TaggedSentence], count: int, *, seed: int
) -> list[TaggedSentence]:
    """Choose `count` examples with an idiom and as many without, in random order (section 4.2).

    As in the authors' code, pandas' `sample` chooses each kind with the run's seed. On ID10M's
    train split, this selects the paper's examples.

    Raises:
        UserError: There are too few sentences with or without an idiom.
    """
    chosen: list[TaggedSentence] = []
    for has_idiom in (True, False):
        group = [item for item in sentences if bool(item.spans) == has_idiom]
        if len(group) < count:
            kind = "with" if has_idiom else "without"
            raise UserError(
                f"only {len(group)} sentences {kind} an idiom ({count} examples requested)",
                where="train split",
                hint="reduce the number of examples",
            )
        chosen += _sample(group, count, seed)
    random.Random(seed).shuffle(chosen)  # noqa: S311 - not for secrets
    return chosen


def _sample(group: Sequence[TaggedSentence], count: int, seed: int) -> list[TaggedSentence]:
    """Replicate `DataFrame.sample(count, random_state=seed)`."""
    import numpy as np

    draw = np.random.RandomState(seed)  # used by pandas; its sequence never changes
    return [group[number] for number in draw.choice(len(group), count, replace=False)]
