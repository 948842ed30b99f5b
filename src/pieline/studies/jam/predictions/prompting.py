"""Identify idioms by prompting (ID10M-JAM, section 4.2 and appendix C)."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from pieline.core.errors import UserError
from pieline.core.records import save_jsonl
from pieline.languages.matching import matches_pie
from pieline.languages.registry import get_language
from pieline.languages.spelling import normalize
from pieline.llm.answers import Answer
from pieline.llm.idioms import parse_idioms
from pieline.llm.obstacles import SCHEMA_SETTING, unsupported_reason
from pieline.llm.parsing import Parsed
from pieline.llm.prompts import load_prompt
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
        setting: `zero_shot` and `few_shot_sc_cotbest` are the paper's; `zero_shot_schema` is the
            plain prompt with a response format enforced by the provider, for models too small to
            follow a format described in the prompt; other settings are user-defined. A prompt can
            also define a response format itself, as the released code's prompts do.
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
        """Return the size on the paper's data with its prompts; the file names the language."""
        sentences = sum(PRINTED_COUNTS.get(Path(self.inputs["sentences"]).stem, ()))
        if "neutral" in self.inputs or self.setting not in _INPUT_TOKENS:
            return PaperSize()
        samples = self.parameters.samples if isinstance(self.parameters, FewShot) else 1
        tokens = _INPUT_TOKENS[self.setting]
        return PaperSize(sentences * samples, tokens, self.parameters.max_tokens)

    def limit_setting(self) -> str:
        """Return the names of the settings that limit the length of the answers."""
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
        """Choose few-shot examples in the language of the sentences; other settings have none."""
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

    Reasoning models are queried without a temperature, and only zero-shot (section 4.3). Samples of
    one sentence have different sample numbers and, if the provider accepts a seed, different seeds.

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
    enforced = ANSWER_SCHEMA if task.setting == SCHEMA_SETTING else prompt.response_format
    # A custom prompt describes its format in words, so it also works without enforcement.
    must_enforce = enforced and task.setting in get_args(PromptSetting)
    if must_enforce and (lack := unsupported_reason(entry, SCHEMA_SETTING)):
        raise UserError(lack, where=entry.label, hint="remove the model or the setting")
    parameters: dict[str, Any] = {
        "max_tokens": task.parameters.max_tokens,
        "response_format": enforced,
    }
    if not entry.reasoning:
        parameters["temperature"] = task.parameters.temperature
    seeds = [task.seed]
    if isinstance(task.parameters, FewShot) and (samples := task.parameters.samples) > 1:
        # A shared seed would make all samples identical.
        seeds = [100 * task.seed + number for number in range(samples)]
    example_turns = _turns(task.inputs["example"], examples) if examples else []
    context = task.parameters.context if isinstance(task.parameters, Arranged) else "first"
    texts = arranged_texts(sentences, context)
    questions = {}
    for sentence in sentences:
        messages = prompt.messages(
            sentence=texts[sentence.id].strip(), language=sentence.language.capitalize()
        )
        # Insert the examples between the system message and the question.
        turns = (*messages[:-1], *example_turns, messages[-1])
        questions[sentence.id] = [
            make_question(
                entry, turns, parameters | {"seed": seed}, sample=number, name=sentence.id
            )
            for number, seed in enumerate(seeds)
        ]
    return questions


def _turns(template: str, examples: Iterable[TaggedSentence]) -> list[Message]:
    """Return the messages of the examples; each example is a sentence, then the expected answer."""
    prompt = load_prompt(template)
    prompt.check_shows("sentence", idioms=["break the ice"])
    return [
        turn
        for sentence in examples
        for turn in prompt.messages(sentence=sentence.text.strip(), idioms=sentence.idioms)
    ]


@lru_cache(maxsize=64)
def _cached_examples(path: str, modified: int, count: int, seed: int) -> list[TaggedSentence]:
    """Choose examples once for all models; `modified` invalidates the cache."""
    return choose_examples(_train_split(path, modified), count, seed=seed)


@lru_cache(maxsize=4)
def _train_split(path: str, modified: int) -> list[TaggedSentence]:
    """Read the split once for all models and seeds; `modified` invalidates the cache."""
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

    Without `few_shot`, the only answer is the prediction. Otherwise the answers vote
    (self-consistency):

    - `majority` (section 4.2): Only the first idiom of each answer counts, because an answer
      selects at most one. `_same_pie` decides whether two idioms are the same PIE. The wording that
      matches the most answers represents the PIE; ties go to the earliest. A PIE needs more than
      half of all answers.
    - `first`: Only the first answer counts, with all its idioms.

    If there are fewer readable answers than required votes, the prediction is unknown and gets the
    most common outcome of the unreadable answers.

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
    fine = any(item.outcome == "ok" for item in counted)
    return IdiomPrediction(
        id=identifier,
        outcome="ok" if fine else "repaired",
        idioms=tuple(selected),
        samples=tuple(samples),
    )


def _agreed(named: list[str], needed: int, language: str) -> list[str]:
    """Return the idioms that at least `needed` answers name, in any wording.

    `named` has at most one idiom per answer.
    """
    agreed = []
    while named:
        voters = {text: [one for one in named if _same_pie(one, text, language)] for text in named}
        best = max(named, key=lambda text: len(voters[text]))
        if len(voters[best]) < needed:
            break
        agreed.append(best)
        named = [text for text in named if text not in voters[best]]
    return agreed


def _same_pie(one: str, other: str, language: str) -> bool:
    """Return whether two texts name the same PIE.

    Unlike in scoring, the PIE is unknown, and the shorter text may be only part of a PIE ("ice" in
    "break the ice"). Therefore, a match in only one direction requires that the shorter text has at
    least two content words.
    """
    first = matches_pie(one, other, language=language)
    second = matches_pie(other, one, language=language)
    shorter = set(normalize(other if first else one).split()) - get_language(language).stop_words
    return (first and second) or ((first or second) and len(shorter) > 1)


def _distinct(idioms: Sequence[str]) -> list[str]:
    """Return the idioms of an answer without repetitions, each in its first spelling."""
    spelled: dict[str, str] = {}
    for text in idioms:
        spelled.setdefault(normalize(text), text)
    return [text for form, text in spelled.items() if form]


def arranged_texts(sentences: Sequence[JamSentence], context: Context) -> dict[str, str]:
    """Return the text to show to a model, by sentence id.

    Originals, variants in which the original cannot be located, and all texts for "first" and
    "neutral" are unchanged. "other" replaces the context of a variant with the context of another
    original's variant. Of these contexts, the one with the most similar number of words is chosen
    (the first if tied), so that the topic changes but the length hardly does.
    """
    texts = {item.id: item.sentence for item in sentences}
    if context in ("first", "neutral"):  # neutral variants are read from a separate file
        return texts
    parts: dict[str, tuple[str, str]] = {}
    for item in sentences:
        if item.is_original or item.original_id not in texts:
            continue
        text, original = item.sentence, texts[item.original_id]
        if place := find_original(original, text):
            parts[item.id] = text[: place.start].strip(), text[place.start :].strip()
    owners = {item.id: item.original_id for item in sentences}
    for name, (own_context, target) in parts.items():
        others = [part[0] for other, part in parts.items() if owners[other] != owners[name]]
        new_context = {"last": own_context, "none": "", "other": own_context}[context]
        if context == "other" and others:
            length = len(own_context.split())
            new_context = min(others, key=lambda text: abs(len(text.split()) - length))
        order = (target, new_context) if context == "last" else (new_context, target)
        texts[name] = " ".join(filter(None, order))
    return texts


def choose_examples(
    sentences: Sequence[TaggedSentence], count: int, *, seed: int
) -> list[TaggedSentence]:
    """Choose `count` examples with an idiom and as many without, in random order (section 4.2).

    The method is that of the released code, which calls pandas' `sample` for each kind with the
    run's seed; on ID10M's train split, it selects the paper's examples.

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
