"""Get answers from the recordings or, if they are not recorded, from the model.

If all attempts at a question fail, the other questions are still asked, and then the run fails. The
next run asks only the questions that are still unanswered. Once the recordings have `max_attempts`
failed responses to a question, the question is not asked again: the last response counts as an
unreadable answer if the model generated anything.

Processes that query the same provider take turns, using a lock in the recordings folder, so that
the limits apply to all processes together. A local model has its own server, which receives as many
questions at once as its entry has slots.

A response that names another model ends the run. The response is kept in a file next to the
recordings (`.foreign`), and no run queries the model until that file is removed or the model's
entry lists the other name (`answers_as`). The spending cap applies to all runs with the same
recordings folder (see `spending`). If the first answers of a run are all of no use, no more
questions are asked (see `truncation`, `llm.stop_when_cut`).

Each recorded answer names its run, which is the path of the recordings file below the recordings
folder. An answer of another run is rejected. Answers are also rejected if another file contains the
same responses to the same questions (see `duplicates`).
"""

import asyncio
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pieline.core.errors import UserError, pluralize
from pieline.core.progress import Progress
from pieline.llm.answers import Answer, check_address, check_answering_model
from pieline.llm.costs import estimate
from pieline.llm.duplicates import check_duplicates
from pieline.llm.keys import api_base, api_key, expected_origin
from pieline.llm.obstacles import obstacles
from pieline.llm.questions import Question
from pieline.llm.recordings import (
    Recorder,
    counts_as_answer,
    foreign_file,
    lock,
    merge_lines,
    raw_lines,
    read_answers,
    read_responses,
    recording,
    run_name,
    set_aside,
    write_lines,
)
from pieline.llm.server import Server
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import remaining_usd
from pieline.llm.truncation import FirstAnswers
from pieline.models.llm import LLMEntry
from pieline.models.llm_weights import require_digest

if TYPE_CHECKING:
    from pieline.llm.asking import QuestionRun

FRESH_SUFFIX = ".fresh"
"""Suffix of the file next to the recordings in which mode `fresh` collects its answers."""

_SHOWN_NAMES = 3
"""Maximum number of unanswered questions that an error message names."""


def ask(
    questions: Iterable[Question],
    spec: LLMEntry,
    settings: LLMSettings,
    recordings_path: str | Path,
    progress: bool = True,
    *,
    server: Server | None = None,
    first_answers: FirstAnswers | None = None,
) -> dict[str, Answer]:
    """Return one model's answers to questions, by key, in the order of the questions.

    - Mode `record` reads `recordings_path` and asks the questions without recorded answers. Each
      response with a text or token counts is synced to the disk before the response is used, even
      if it reports a failure. An interrupted run loses only the requests in flight.
    - Mode `replay` never asks.
    - Mode `fresh` asks all questions again, and collects the new answers in a file next to the
      recordings (`.fresh`). Once that file is complete, the new answers replace the recorded
      answers to these questions, which are kept in another file (`.replaced`). An interrupted fresh
      run resumes where it stopped.

    Identical questions are asked once. The docstring of the module describes failures, limits and
    wrong answers.

    Args:
        questions: Questions to this model (`make_question(spec, ...)`).
        spec: Entry of the model.
        settings: Settings for querying the model.
        recordings_path: Recordings file in `settings.recordings_folder`.
        progress: Whether to print the number of questions, the progress and the cost on stderr.
        server: Server of a local model that several calls share; None to start one if needed.
        first_answers: Judge of the run's first answers (default: an answer with a text is of use).

    Raises:
        UserError: Answers are missing in mode `replay`; the model cannot be queried (see
            `obstacles`); the weights of a local model or their digest are missing; a request would
            differ from its question; the provider rejects the requests, or does not answer some
            questions; another model answered; all answers are of no use; the spending cap is
            reached; a question has two different answers; another process is writing the file; or
            the recordings file is damaged, a copy of another run's file or not in the recordings
            folder.
        ValueError: A question is to another model.
    """
    path = Path(recordings_path)
    questions_by_key = {question.key: question for question in questions}
    _validate_arguments(questions_by_key.values(), spec, settings, path)
    target = path.with_name(path.name + FRESH_SUFFIX) if settings.mode == "fresh" else path
    run = run_name(path, settings.recordings_folder)
    question_set = _QuestionSet(questions_by_key, spec, settings, target, run)
    answers = question_set.answers(question_set.recorded())
    missing = question_set.without(answers)
    if missing and settings.mode == "replay":
        raise _missing_answers_error(missing, spec, path)
    if missing:
        check_duplicates(run, settings.recordings_folder, questions_by_key, answers)
        answers = _ask_missing(
            question_set, first_answers or FirstAnswers(spec), server, progress=progress
        )
    check_duplicates(run, settings.recordings_folder, questions_by_key, answers)
    if settings.mode == "fresh":
        _move_answers(path, target)
    return {key: answers[key] for key in questions_by_key}


@dataclass(frozen=True)
class _QuestionSet:
    """Questions of a run to one model, and the file for their answers.

    Attributes:
        questions: Questions by key.
        spec: Entry of the model.
        settings: Settings for querying the model.
        path: File in which the answers are recorded.
        run: Name of the run (`run_name`).
    """

    questions: Mapping[str, Question]
    spec: LLMEntry
    settings: LLMSettings
    path: Path
    run: str

    def recorded(self) -> dict[str, list[Answer]]:
        """Return the recorded responses to the questions, by key (see `read_responses`).

        Raises:
            UserError: An answer names another model, server or run, or a question has two different
                answers. (Old recordings may name no model, server or run.)
        """
        responses_by_key = read_responses(self.path, self.questions.keys(), run=self.run)
        responses: list[Answer] = []
        for responses_to_question in responses_by_key.values():
            responses += responses_to_question
        naming_a_model = [response for response in responses if response.returned_model is not None]
        check_answering_model(naming_a_model, self.spec, self.path)
        check_address(responses, self.spec, expected_origin(self.spec, self.settings), self.path)
        return responses_by_key

    def answers(self, responses_by_key: Mapping[str, Sequence[Answer]]) -> dict[str, Answer]:
        """Return the responses that count as answers (see `counts_as_answer`), by key."""
        # A replay does not ask again, so a failed response counts without further attempts.
        attempts = 1 if self.settings.mode == "replay" else self.settings.max_attempts
        return {
            key: responses[-1]
            for key, responses in responses_by_key.items()
            if counts_as_answer(responses, attempts)
        }

    def without(self, answered: Collection[str]) -> list[Question]:
        """Return the questions whose keys are not in `answered`."""
        return [question for key, question in self.questions.items() if key not in answered]


def _ask_missing(
    question_set: _QuestionSet,
    first_answers: FirstAnswers,
    server: Server | None,
    *,
    progress: bool,
) -> dict[str, Answer]:
    """Ask the questions that have no recorded answer, and return all answers by key."""
    spec, settings = question_set.spec, question_set.settings
    obstacle = next(obstacles(spec, settings), None)
    if obstacle:
        raise obstacle
    secret = api_key(spec)
    report: Callable[[str], None] = _print_line if progress else lambda line: None
    with ExitStack() as stack:
        recorder = stack.enter_context(_take_turn(question_set, report))
        # Another run may have recorded answers in the meantime.
        recorded = question_set.recorded()
        answers = question_set.answers(recorded)
        missing = question_set.without(answers)
        if not missing:
            return answers
        _judge_recorded_answers(question_set, recorded, missing, first_answers)
        report(_announcement(question_set, answers))
        if spec.is_local:
            server = server or stack.enter_context(Server(spec))
            address = server.address(settings.start_timeout_s, report)
        else:
            address = api_base(spec, settings)

        # Imported only here, because asking needs libraries that take time to load.
        from pieline.llm.asking import QuestionRun

        run = QuestionRun(
            spec, settings, recorder, missing, first_answers=first_answers, recorded=recorded
        )
        bar = stack.enter_context(
            Progress(total=len(missing), desc=spec.label, unit="questions", shown=progress)
        )
        try:
            asyncio.run(_send_questions(run, question_set, secret, address, bar))
        except UserError:
            # If our server ended, the reason is more helpful than the failed request.
            exit_error = server.exit_error() if server else None
            if exit_error:
                raise exit_error from None
            raise
        finally:
            for note in run.budget.notes():
                report(note)
        bar.close()
        report(_summary(run, spec))
    return {**answers, **run.answers}


def _judge_recorded_answers(
    question_set: _QuestionSet,
    recorded: Mapping[str, Sequence[Answer]],
    missing: Collection[Question],
    first_answers: FirstAnswers,
) -> None:
    """Add the recorded responses to the first answers of the run.

    Raises:
        UserError: The recorded answers show that further answers would be of no use.
    """
    for key, responses in recorded.items():
        for response in responses:
            first_answers.add(question_set.questions[key], response)
    if question_set.settings.stop_when_cut and first_answers.are_useless:
        raise first_answers.error(missing)


@contextmanager
def _take_turn(question_set: _QuestionSet, report: Callable[[str], None]) -> Iterator[Recorder]:
    """Wait for other runs, and open the recordings file as its only writer.

    Waits until no other run uses the file or, unless the model is local, queries the provider.
    """
    spec, path = question_set.spec, question_set.path
    message = "waiting for another run that is asking"
    # Runs that share a recordings file take turns.
    with lock(path.parent, f"{path.name}.turn", partial(report, f"{message} {spec.label}")):
        _accept_foreign_answers(path, spec)
        with recording(path, question_set.run) as recorder:
            if spec.is_local:
                yield recorder
                return
            # One process at a time queries a provider, so that the limits apply to all processes.
            provider = "".join(letter if letter.isalnum() else "-" for letter in spec.provider)
            folder = question_set.settings.recordings_folder
            on_wait = partial(report, f"{message} {spec.provider}")
            with lock(folder, f"provider-{provider}", on_wait):
                yield recorder


async def _send_questions(
    run: "QuestionRun", question_set: _QuestionSet, secret: str, address: str, bar: Progress
) -> None:
    """Send the questions of a run to `address`, using the key `secret`, and show the progress."""
    from pieline.llm.transport import Transport

    spec = question_set.spec

    def show_progress() -> None:
        cost = f", ${run.budget.booked_usd:.4f}" if spec.paid else ""
        bar.set_postfix_str(f"{run.failed} failed{cost}", refresh=False)
        bar.update()

    timeout_s = question_set.settings.timeout(spec)
    transport = Transport(spec, api_key=secret, api_base=address, timeout_s=timeout_s)
    await run.run(transport, show_progress)


def _accept_foreign_answers(path: Path, spec: LLMEntry) -> None:
    """Move the answers in the `.foreign` file of a recordings file to the recordings file.

    Raises:
        UserError: The model's entry does not accept the model that answered, so no run may ask
            further questions.
    """
    foreign = foreign_file(path)
    check_answering_model(read_answers(foreign).values(), spec, foreign)
    _move_answers(path, foreign)


def _validate_arguments(
    questions: Iterable[Question], spec: LLMEntry, settings: LLMSettings, path: Path
) -> None:
    """Raise an error for invalid arguments of `ask` (see `ask`)."""
    for question in questions:
        if question.model != spec.checkpoint:
            raise ValueError(f"the question is for {question.model}, not for {spec.checkpoint}")
    require_digest(spec)
    if settings.recordings_folder.resolve() not in path.resolve().parents:
        raise UserError(
            "the file is not in the recordings folder",
            where=path,
            hint=f"choose a path in {settings.recordings_folder}, or set llm.recordings_folder",
        )


def _missing_answers_error(missing: list[Question], spec: LLMEntry, path: Path) -> UserError:
    """Return the error for questions without a recorded answer in mode `replay`."""
    names = list(dict.fromkeys(question.name or question.key[:12] for question in missing))
    shown = ", ".join(names[:_SHOWN_NAMES]) + (", ..." if len(names) > _SHOWN_NAMES else "")
    are = "is" if len(missing) == 1 else "are"
    return UserError(
        f"{pluralize(len(missing), 'answer')} of {spec.label} {are} not recorded ({shown})",
        where=path,
        hint="import recordings, or ask with llm.mode: record",
    )


def _move_answers(path: Path, source: Path) -> None:
    """Move the answers in `source` to `path`, where they replace answers to the same questions.

    The replaced answers are kept (see `set_aside`). This function does nothing if `source` does not
    exist, and is safe to repeat after a crash.
    """
    if not source.exists():
        return
    with recording(path), recording(source):
        source_lines = raw_lines(source)
        replaced_lines = {}
        for key, old_lines in raw_lines(path).items():
            if key not in source_lines:
                continue
            replaced = [raw for raw in old_lines if raw not in source_lines[key]]
            if replaced:
                replaced_lines[key] = replaced
        set_aside(path, replaced_lines)
        write_lines(path, merge_lines(raw_lines(path), source_lines))
        source.unlink()


def _announcement(question_set: _QuestionSet, answers: dict[str, Answer]) -> str:
    """Return a line that states the number of a run's questions and their maximum cost."""
    spec, questions = question_set.spec, question_set.questions.values()
    expected = estimate(questions, spec, answers)
    cost = ""
    if spec.paid:
        max_cost = "unbounded" if expected.usd is None else f"at most about ${expected.usd:.4f}"
        left_usd = remaining_usd(question_set.settings)
        may_exceed_cap = expected.usd is not None and left_usd < expected.usd
        left = f" (llm.max_cost_usd leaves ${left_usd:.4f})" if may_exceed_cap else ""
        cost = f", {max_cost}{left}"
    dropped = sorted({name for question in questions for name in question.dropped})
    not_sent = f"; unsupported parameters, not sent: {', '.join(dropped)}" if dropped else ""
    return (
        f"{spec.label}: {pluralize(expected.questions, 'question')}, {expected.recorded} recorded,"
        f" {expected.to_ask} to ask{cost}{not_sent}"
    )


def _summary(run: "QuestionRun", spec: LLMEntry) -> str:
    """Return a line that states the number, tokens and cost of the answers that a run received."""
    answers = run.answers.values()
    servers = dict.fromkeys(answer.address for answer in answers if answer.address)
    from_servers = f" from {', '.join(servers)}" if servers else ""
    cost = f", ${run.budget.booked_usd:.4f}" if spec.paid else ""
    return (
        f"{spec.label}: {pluralize(len(answers), 'answer')}{from_servers},"
        f" {sum(answer.input_tokens or 0 for answer in answers)} tokens in,"
        f" {sum(answer.output_tokens or 0 for answer in answers)} out{cost}"
        f"{run.budget.possibly_billed}"
    )


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
