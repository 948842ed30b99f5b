"""Get answers from the recordings or, if they are not recorded, from the model.

If all attempts at a question fail, the other questions are still asked, and then the run fails. The
next run asks only the questions that are still unanswered. Once the recordings have as many failed
responses to a question as `max_attempts`, it is not asked again: the last one counts as an
unreadable answer if the model generated anything.

Processes that query the same provider take turns, using a lock in the recordings folder, so that
the limits apply to all processes together. A local model has its own server, which receives as many
questions at once as its entry has slots.

A response that names another model ends the run. The response is kept in a file next to the
recordings (`.foreign`), and no run queries the model until that file is removed or the entry lists
the name (`answers_as`). The spending cap applies to all runs with the same recordings folder (see
`spending`). If the first answers of a run are all of no use, no more questions are asked (see
`truncation`, `llm.stop_when_cut`).

Each recorded answer names its run, which is the path of the file below the recordings folder. An
answer of another run is rejected, and so are answers that are the same responses as those to the
same questions in another file (see `duplicates`).
"""

import asyncio
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
    counted,
    foreign_file,
    joined,
    lock,
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


def ask(
    questions: Iterable[Question],
    spec: LLMEntry,
    settings: LLMSettings,
    recordings_path: str | Path,
    progress: bool = True,
    *,
    server: Server | None = None,
    first: FirstAnswers | None = None,
) -> dict[str, Answer]:
    """Return one model's answers to questions, by key, in the order of the questions.

    - Mode `record` reads `recordings_path` and asks the questions without recorded answers. Each
      response with a text or token counts is synced to the disk before it is used, even if it
      reports a failure. An interrupted run loses only the requests in flight.
    - Mode `replay` never asks.
    - Mode `fresh` asks all questions again. It collects the answers in a file next to the
      recordings (`.fresh`). Once that file is complete, they replace the recorded answers to these
      questions, which are kept in another file (`.replaced`). An interrupted fresh run resumes
      where it stopped.

    Identical questions are asked once. See the module for failures, limits and wrong answers.

    Args:
        questions: Questions to this model (`make_question(spec, ...)`).
        spec: Entry of the model.
        settings: Settings for querying the model.
        recordings_path: Recordings file in `settings.recordings_folder`.
        progress: Whether to print the number of questions, the progress and the cost on stderr.
        server: Server of a local model that several calls share; None to start one if needed.
        first: Judge of the run's first answers (default: an answer with a text is of use).

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
    unique = {question.key: question for question in questions}
    _check(unique.values(), spec, settings, path)
    target = path.with_name(path.name + FRESH_SUFFIX) if settings.mode == "fresh" else path
    run = run_name(path, settings.recordings_folder)
    asked = _QuestionSet(unique, spec, settings, target, run)
    answers = asked.answers(asked.recorded())
    missing = asked.without(answers)
    if missing and settings.mode == "replay":
        raise _not_recorded(missing, spec, path)
    if missing:
        check_duplicates(run, settings.recordings_folder, unique, answers)
        answers = _ask_missing(asked, first or FirstAnswers(spec), server, progress)
    check_duplicates(run, settings.recordings_folder, unique, answers)
    if settings.mode == "fresh":
        _move_answers(path, target)
    return {key: answers[key] for key in unique}


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
        """Return the recorded responses to the questions by key (see `read_responses`).

        Raises:
            UserError: An answer names another model, server or run (old recordings may name none),
                or a question has two different answers.
        """
        responses = read_responses(self.path, self.questions.keys(), run=self.run)
        answers = [answer for own in responses.values() for answer in own]
        stated = (answer for answer in answers if answer.returned_model is not None)
        check_answering_model(stated, self.spec, self.path)
        check_address(answers, self.spec, expected_origin(self.spec, self.settings), self.path)
        return responses

    def answers(self, responses: Mapping[str, Sequence[Answer]]) -> dict[str, Answer]:
        """Return the responses that count as answers; a replay uses failures as they are."""
        attempts = 1 if self.settings.mode == "replay" else self.settings.max_attempts
        return {key: own[-1] for key, own in responses.items() if counted(own, attempts)}

    def without(self, answers: Collection[str]) -> list[Question]:
        """Return the questions whose keys are not in `answers`."""
        return [question for key, question in self.questions.items() if key not in answers]


def _ask_missing(
    asked: _QuestionSet, first: FirstAnswers, server: Server | None, progress: bool
) -> dict[str, Answer]:
    """Ask the questions that have no recorded answer, and return all answers by key."""
    spec, settings = asked.spec, asked.settings
    for obstacle in obstacles(spec, settings):
        raise obstacle
    key = api_key(spec)
    report: Callable[[str], None] = _print_line if progress else lambda text: None
    with ExitStack() as stack:
        recorder = stack.enter_context(_turn(asked, report))
        # Another run may have recorded answers in the meantime.
        recorded = asked.recorded()
        answers = asked.answers(recorded)
        missing = asked.without(answers)
        if not missing:
            return answers
        for name, responses in recorded.items():
            for response in responses:
                first.add(asked.questions[name], response)
        if settings.stop_when_cut and first.are_useless:
            raise first.error(missing)
        report(_announcement(asked, answers))
        if spec.is_local:
            server = server or stack.enter_context(Server(spec))
            address = server.address(settings.start_timeout_s, report)
        else:
            address = api_base(spec, settings)

        from pieline.llm.asking import QuestionRun

        run = QuestionRun(spec, settings, recorder, missing, first=first, recorded=recorded)
        bar = stack.enter_context(
            Progress(total=len(missing), desc=spec.label, unit="questions", shown=progress)
        )
        try:
            asyncio.run(_run(run, asked, key, address, bar))
        except UserError:
            if server and (end := server.end()):
                raise end from None
            raise
        finally:
            for note in run.budget.notes():
                report(note)
        bar.close()
        report(_summary(run, spec))
    return answers | run.answers


@contextmanager
def _turn(asked: _QuestionSet, report: Callable[[str], None]) -> Iterator[Recorder]:
    """Open the recordings once no other run uses the file or queries the provider of an API."""
    spec, path = asked.spec, asked.path

    def on_taken(what: str) -> Callable[[], None]:
        return lambda: report(f"waiting for another run that is asking {what}")

    # Runs that share a recordings file take turns.
    with lock(path.parent, f"{path.name}.turn", on_taken(spec.label)):
        _accept_foreign(path, spec)
        with recording(path, asked.run) as recorder:
            if spec.is_local:
                yield recorder
                return
            # One process at a time queries a provider, so that the limits apply to all processes.
            name = "".join(letter if letter.isalnum() else "-" for letter in spec.provider)
            folder = asked.settings.recordings_folder
            with lock(folder, f"provider-{name}", on_taken(spec.provider)):
                yield recorder


async def _run(
    run: "QuestionRun", asked: _QuestionSet, key: str, address: str, bar: Progress
) -> None:
    """Send the questions of a run to an address, and show the progress."""
    from pieline.llm.transport import Transport

    def show_progress() -> None:
        cost = f", ${run.budget.booked_usd:.4f}" if asked.spec.paid else ""
        bar.set_postfix_str(f"{run.failed} failed{cost}", refresh=False)
        bar.update()

    timeout_s = asked.settings.timeout(asked.spec)
    transport = Transport(asked.spec, api_key=key, api_base=address, timeout_s=timeout_s)
    await run.run(transport, show_progress)


def _accept_foreign(target: Path, spec: LLMEntry) -> None:
    """Add paid answers of another model to the recordings, once the entry lists that model.

    Raises:
        UserError: The entry does not list it, so nothing more is paid.
    """
    foreign = foreign_file(target)
    check_answering_model(read_answers(foreign).values(), spec, foreign)
    _move_answers(target, foreign)


def _check(
    questions: Iterable[Question], spec: LLMEntry, settings: LLMSettings, path: Path
) -> None:
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


def _not_recorded(missing: list[Question], spec: LLMEntry, path: Path) -> UserError:
    names = list(dict.fromkeys(question.name or question.key[:12] for question in missing))
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    are = "is" if len(missing) == 1 else "are"
    return UserError(
        f"{pluralize(len(missing), 'answer')} of {spec.label} {are} not recorded ({shown})",
        where=path,
        hint="import recordings, or ask with llm.mode: record",
    )


def _move_answers(path: Path, fresh: Path) -> None:
    """Move the answers in `fresh` to `path`, where they replace answers to the same questions.

    The replaced answers are kept (see `set_aside`). Safe to repeat after a crash. Does nothing if
    `fresh` does not exist.
    """
    if not fresh.exists():
        return
    with recording(path), recording(fresh):
        new = raw_lines(fresh)
        old = {}
        for key, own in raw_lines(path).items():
            if replaced := [raw for raw in own if key in new and raw not in new[key]]:
                old[key] = replaced
        set_aside(path, old)
        write_lines(path, joined(raw_lines(path), new))
        fresh.unlink()


def _announcement(asked: _QuestionSet, answers: dict[str, Answer]) -> str:
    """Return a line that states the number of questions and the maximum cost."""
    spec = asked.spec
    expected = estimate(asked.questions.values(), spec, answers)
    cost = ""
    if spec.paid:
        most = "unbounded" if expected.usd is None else f"at most about ${expected.usd:.4f}"
        cost = f", {most}"
        left = remaining_usd(asked.settings)
        if expected.usd and left < expected.usd:
            cost += f" (llm.max_cost_usd leaves ${left:.4f})"
    dropped = sorted({name for question in asked.questions.values() for name in question.dropped})
    not_sent = f"; unsupported parameters, not sent: {', '.join(dropped)}" if dropped else ""
    return (
        f"{spec.label}: {pluralize(expected.questions, 'question')}, {expected.recorded} recorded,"
        f" {expected.to_ask} to ask{cost}{not_sent}"
    )


def _summary(run: "QuestionRun", spec: LLMEntry) -> str:
    """Return a line that states the number of answers, their tokens and their cost."""
    answers = run.answers.values()
    origins = dict.fromkeys(answer.address for answer in answers if answer.address)
    place = f" from {', '.join(origins)}" if origins else ""
    cost = f", ${run.budget.booked_usd:.4f}" if spec.paid else ""
    return (
        f"{spec.label}: {pluralize(len(answers), 'answer')}{place},"
        f" {sum(answer.input_tokens or 0 for answer in answers)} tokens in,"
        f" {sum(answer.output_tokens or 0 for answer in answers)} out{cost}"
        f"{run.budget.possibly_billed}"
    )


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
