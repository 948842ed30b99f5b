"""Idiom identification by prompting, in two settings (ID10M-JAM, section 4.2 and appendix C)."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from pieline.core.errors import UserError
from pieline.core.records import save_jsonl
from pieline.languages.matching import matches_pie
from pieline.languages.registry import find
from pieline.languages.spelling import normalise
from pieline.llm.answers import Answer
from pieline.llm.idioms import parse_idioms
from pieline.llm.obstacles import SCHEMA_SETTING, unsupported_reason
from pieline.llm.parsing import Parsed
from pieline.llm.prompts import load_prompt
from pieline.llm.questions import Message, Question, make_question
from pieline.llm.task import Ask, Task
from pieline.models.llm import LLMEntry
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.contexts import arranged_texts
from pieline.studies.jam.predictions.prompt_examples import Example, choose_examples
from pieline.studies.jam.predictions.prompt_settings import (
    Arranged,
    FewShot,
    PromptSetting,
    ZeroShot,
)
from pieline.studies.jam.predictions.records import IdiomPrediction, IdiomSample
from pieline.studies.jam.raw.id10m import TaggedSentence, read_id10m
from pieline.studies.jam.records import JamSentence

FEW_SHOT: PromptSetting = "few_shot_sc_cotbest"
"""The setting that shows examples and takes a vote."""

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
"""What the setting `zero_shot_schema` has the provider enforce. Bounded: a small model may never
end a list."""


class Identification(Task):
    """The idioms that a model names in each sentence; one prediction per sentence.

    `inputs` are `sentences` and `prompt`, and for few-shot prompting `example` (the template of the
    examples) and `train` (the split that they are drawn from), and for a neutral context `neutral`
    (the sentences with neutral variants). The only output is `predictions`.

    Attributes:
        setting: `zero_shot` and `few_shot_sc_cotbest` are the paper's; `zero_shot_schema` is the
            plain prompt with the form of the answer enforced by the provider, for models too small
            to keep to a form that the prompt only hints at; any other is the user's own. The prompt
            itself may have the form enforced, as those of the released code do.
        seed: of the run; chooses the examples too.
        parameters: of the setting.
    """

    setting: str
    seed: int
    parameters: ZeroShot | Arranged | FewShot

    def questions(self, entry: LLMEntry) -> list[Question]:
        """One question per sentence, or as many as there are samples."""
        sentences = self._sentences()
        groups = questions_about(sentences, entry, self, self._examples(sentences))
        return [question for group in groups.values() for question in group]

    def likely_output_tokens(self) -> int:
        """A list of at most a few words; with several fields also candidates and explanations."""
        fields = load_prompt(self.inputs["prompt"]).about.get("answer", {})
        return 120 if self.setting == FEW_SHOT or len(fields) > 1 else 25

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Ask about every sentence and write which idioms the answers name."""
        sentences = self._sentences()
        examples = self._examples(sentences)
        few_shot = self.parameters if isinstance(self.parameters, FewShot) else None
        lacking = sum(example.lacks_candidate for example in examples)
        if few_shot and few_shot.examples == "contrastive" and lacking:
            print(
                f"{lacking} of the examples show no candidate: the train split has too few"
                " sentences without an idiom in which a PIE is used literally",
                file=sys.stderr,
            )
        questions = questions_about(sentences, entry, self, examples)
        answers = ask([question for group in questions.values() for question in group])
        predictions = []
        for sentence in sentences:
            samples = [sample_of(answers[asked.key]) for asked in questions[sentence.id]]
            predictions.append(
                combine(sentence.id, samples, language=sentence.language, few_shot=few_shot)
            )
        save_jsonl(self.outputs["predictions"], predictions)

    def reading(self, answer: Answer) -> Parsed[list[str]]:
        """The idioms that it names."""
        return parse_idioms(answer)

    def _sentences(self) -> list[JamSentence]:
        return load_sentences(self.inputs.get("neutral") or self.inputs["sentences"])

    def _examples(self, sentences: Sequence[JamSentence]) -> Sequence[Example]:
        """The examples that few-shot prompting shows, in the language of the sentences."""
        if not sentences or not isinstance(self.parameters, FewShot):
            return ()
        train = self.inputs["train"]
        return _chosen(train, _changed(train), self.parameters, sentences[0].language, self.seed)


def sample_of(answer: Answer) -> IdiomSample:
    """What one answer names."""
    read = parse_idioms(answer)
    named = None if read.value is None else tuple(read.value)
    return IdiomSample(key=answer.key, outcome=read.outcome.value, rule=read.rule, idioms=named)


def questions_about(
    sentences: Sequence[JamSentence],
    entry: LLMEntry,
    task: Identification,
    examples: Sequence[Example] = (),
) -> dict[str, list[Question]]:
    """The questions about each sentence, by its id; the prompt shows the examples.

    A reasoning model is asked without a temperature, and only zero-shot (section 4.3). Samples
    of one sentence differ in their number and, where the provider accepts one, in their seed.

    Raises:
        UserError: a setting that is not for this model.
    """
    if not is_asked(entry, task.setting):
        raise UserError(
            f"this model is not asked in the setting {task.setting!r}",
            where=entry.label,
            hint="ask it zero_shot",
        )
    prompt = load_prompt(task.inputs["prompt"])
    prompt.check_shows("sentence", language="")
    enforced = ANSWER_SCHEMA if task.setting == SCHEMA_SETTING else prompt.response_format
    # A prompt of the user's own says in words what it asks for, so it can go without.
    must_enforce = enforced and task.setting in get_args(PromptSetting)
    if must_enforce and (lack := unsupported_reason(entry, SCHEMA_SETTING)):
        raise UserError(lack, where=entry.label, hint="leave the model or the setting out")
    wanted: dict[str, Any] = {
        "max_tokens": task.parameters.max_tokens,
        "response_format": enforced,
    }
    if not entry.reasoning:
        wanted["temperature"] = task.parameters.temperature
    seeds = [task.seed]
    if isinstance(task.parameters, FewShot) and (samples := task.parameters.samples) > 1:
        # One seed for all samples would make them one and the same answer.
        seeds = [100 * task.seed + number for number in range(samples)]
    shown = _turns(task.inputs["example"], examples) if examples else []
    context = task.parameters.context if isinstance(task.parameters, Arranged) else "first"
    texts = arranged_texts(sentences, context)
    questions = {}
    for sentence in sentences:
        messages = prompt.messages(
            sentence=texts[sentence.id].strip(), language=sentence.language.capitalize()
        )
        # The examples are between the system's turn and the question.
        turns = (*messages[:-1], *shown, messages[-1])
        questions[sentence.id] = [
            make_question(entry, turns, wanted | {"seed": seed}, sample=number, name=sentence.id)
            for number, seed in enumerate(seeds)
        ]
    return questions


def _turns(template: str, examples: Iterable[Example]) -> list[Message]:
    """Turns of the examples: a sentence, then the answer that is wanted."""
    prompt = load_prompt(template)
    prompt.check_shows("sentence", idioms=["break the ice"], literal_pie=None)
    return [
        turn
        for sentence, literal_pie in examples
        for turn in prompt.messages(
            sentence=sentence.text.strip(), idioms=sentence.idioms, literal_pie=literal_pie
        )
    ]


@lru_cache(maxsize=64)
def _chosen(path: str, changed: int, few_shot: FewShot, language: str, seed: int) -> list[Example]:
    """The examples from a split as it was `changed` last, chosen once for all models."""
    return choose_examples(
        _train_split(path, changed),
        idiomatic=few_shot.idiomatic_examples,
        literal=few_shot.literal_examples,
        seed=seed,
        language=language,
        examples=few_shot.examples,
    )


@lru_cache(maxsize=4)
def _train_split(path: str, changed: int) -> list[TaggedSentence]:
    """The split as it was `changed` last, read once for the tasks of all models and seeds."""
    return read_id10m(path, split="train")


def _changed(path: str) -> int:
    return Path(path).stat().st_mtime_ns if Path(path).exists() else 0


def prompt_file(setting: str) -> str:
    """Name of the template of a setting."""
    return f"{setting.removesuffix('_schema')}.jinja"


def is_asked(spec: LLMEntry, setting: str) -> bool:
    """Whether the study asks a model so: reasoning models only zero-shot (section 4.3)."""
    return setting != FEW_SHOT or not spec.reasoning


def combine(
    identifier: str,
    samples: Sequence[IdiomSample],
    *,
    language: str,
    few_shot: FewShot | None = None,
) -> IdiomPrediction:
    """One prediction from the answers to one sentence.

    Without `few_shot` the one answer is the prediction. Else a vote is taken (self-consistency):

    - `majority` (section 4.2): an answer selects at most one idiom, so of several that it names
      only the first counts. What two answers name is the same PIE as scoring matches it
      (`matches_pie`); the form that most answers agree with stands for all, of equal ones that of
      the first answer. A PIE is kept with `min_votes` answers.
    - `half`: every idiom that an answer names counts, by its spelling, and is kept if half of
      the readable answers have it.
    - `first`: the first answer alone counts, with every idiom that it names.

    With fewer readable answers than votes needed nothing could be kept, so nothing is known: the
    prediction then has the commonest outcome of the unreadable ones.

    Args:
        identifier: of the sentence.
        samples: its answers, at least one.
        language: of the sentence.
        few_shot: how votes are counted.
    """
    votes = few_shot.votes if few_shot else "first"
    counted = samples[:1] if votes == "first" else samples
    readable = [item.idioms for item in counted if item.idioms is not None]
    needed = max(1, -(-len(readable) // 2))
    if few_shot and votes == "majority":
        needed = few_shot.min_votes
    if len(readable) < needed:
        failed = Counter(item.outcome for item in counted if item.idioms is None)
        outcome = failed.most_common(1)[0][0]
        return IdiomPrediction(id=identifier, outcome=outcome, idioms=None, samples=tuple(samples))
    if votes == "majority":
        kept = _agreed([idioms[0] for idioms in readable if idioms], needed, language)
    else:
        kept = _repeated(readable, needed)
    fine = any(item.outcome == "ok" for item in counted)
    return IdiomPrediction(
        id=identifier,
        outcome="ok" if fine else "repaired",
        idioms=tuple(kept),
        samples=tuple(samples),
    )


def _agreed(named: list[str], needed: int, language: str) -> list[str]:
    """Idioms that enough answers name, in whatever form; `named` has at most one of each answer."""
    kept = []
    while named:
        voters = {text: [one for one in named if _same_pie(one, text, language)] for text in named}
        best = max(named, key=lambda text: len(voters[text]))
        if len(voters[best]) < needed:
            break
        kept.append(best)
        named = [text for text in named if text not in voters[best]]
    return kept


def _same_pie(one: str, other: str, language: str) -> bool:
    """Whether two texts name the same PIE.

    Scoring knows the PIE that a longer text holds. Here it may be a mere part of one, as "ice" is
    of "break the ice", so only a text with two content words counts as held.
    """
    first = matches_pie(one, other, language=language)
    second = matches_pie(other, one, language=language)
    held = set(normalise(other if first else one).split()) - find(language).stop_words
    return (first and second) or ((first or second) and len(held) > 1)


def _repeated(answers: Sequence[Sequence[str]], needed: int) -> list[str]:
    """Idioms that enough answers name by the same words, as the first of them spells them."""
    spelled: dict[str, str] = {}
    votes: Counter[str] = Counter()
    for idioms in answers:
        votes.update({normalise(text) for text in idioms} - {""})
        for text in idioms:
            spelled.setdefault(normalise(text), text)
    return [text for form, text in spelled.items() if form and votes[form] >= needed]
