"""Get answers from the recordings or, if they are not recorded, from the model."""

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pieline.core.errors import UserError, pluralize
from pieline.core.progress import Progress
from pieline.llm.answers import Answer, check_address, check_answering_model
from pieline.llm.costs import estimate
from pieline.llm.duplicates import check_duplicates
from pieline.llm.keys import api_base, api_key, expected_origin
from pieline.llm.obstacles import obstacles
from pieline.llm.questions import Question
from pieline.llm.recordings import (
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
from pieline.llm.spending import Budget, remaining_usd
from pieline.llm.truncation import FirstAnswers, has_text
from pieline.models.llm import LLMEntry
from pieline.models.llm_weights import require_digest

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
    limit_setting: str = "max_tokens",
    is_readable: Callable[[Answer], bool] = has_text,
) -> dict[str, Answer]:
    """Return one model's answers to questions, by key, in the order of the questions.

    - Mode `record` reads `recordings_path` and asks the questions without recorded answers. Each
      response with a text or token counts is synced to the disk before it is used, even if it
      reports a failure. An interrupted run loses only the requests in flight.
    - Mode `replay` never asks.
    - Mode `fresh` asks all questions again. It collects the answers in a file next to the
      recordings (`.fresh`) and, once that file is complete, replaces the recorded answers to these
      questions, which are kept in another file (`.replaced`). An interrupted fresh run resumes
      where it stopped.

    If all attempts at a question fail, the other questions are still asked, and then the run fails.
    The next run asks only the questions that are still unanswered. Once the recordings have as many
    failed responses to a question as `max_attempts`, it is not asked again: the last one counts
    as an unreadable answer if the model generated anything. Identical questions are asked once.

    Processes that query the same provider take turns, using a lock in the recordings folder, so
    that the limits apply to all processes together. A local model has its own server, which
    receives as many questions at once as its entry has slots.

    A response that names another model ends the run. The response is kept in a file next to the
    recordings (`.foreign`), and no run queries the model until that file is removed or the entry
    lists the name (`answers_as`). The spending cap applies to all runs with the same recordings
    folder (see `spending`). If the first answers of a run are all of no use, no more questions are
    asked (see `truncation`, `llm.stop_when_cut`).

    Each recorded answer names its run, which is the path of the file below the recordings folder.
    An answer of another run is rejected, and so are answers that are the same responses as those
    to the same questions in another file (see `duplicates`).

    Args:
        questions: Questions to this model (`make_question(spec, ...)`).
        spec: Entry of the model.
        settings: Settings for querying the model.
        recordings_path: Recordings file in `settings.recordings_folder`.
        progress: Whether to print the number of questions, the progress and the cost on stderr.
        server: Server of a local model that several calls share; None to start one if needed.
        limit_setting: Name of the setting that limits the length of the answers, for messages.
        is_readable: Whether an answer is readable.

    Raises:
        UserError: Answers are missing in mode `replay`; the model cannot be queried (see
            `obstacles`); the weights of a local model or their digest are missing; a request would
            differ from its question; the provider rejects the requests, or does not answer some
            questions; another model answered; all answers are of no use; the spending cap is
            reached; a question has two different answers;
            another process is writing the file; or the recordings file is damaged, a copy of
            another run's file or not in the recordings folder.
        ValueError: A question is to another model.
    """
    path = Path(recordings_path)
    unique = {question.key: question for question in questions}
    _check(unique.values(), spec, settings, path)
    run = run_name(path, settings.recordings_folder)
    target = path.with_name(path.name + FRESH_SUFFIX) if settings.mode == "fresh" else path
    answers = _answers(_recorded(target, unique, spec, settings, run), settings)
    missing = [question for key, question in unique.items() if key not in answers]
    if missing and settings.mode == "replay":
        raise _not_recorded(missing, spec, path)
    if missing:
        check_duplicates(run, settings.recordings_folder, unique, answers)
        answers |= _ask_missing(
            *(unique, spec, settings, target, run),
            server=server,
            first=FirstAnswers(spec, is_readable, limit_setting),
            progress=progress,
        )
    check_duplicates(run, settings.recordings_folder, unique, answers)
    if settings.mode == "fresh":
        _move_answers(path, target)
    return {key: answers[key] for key in unique}


def _ask_missing(
    unique: dict[str, Question],
    spec: LLMEntry,
    settings: LLMSettings,
    target: Path,
    run: str,
    *,
    server: Server | None,
    first: FirstAnswers,
    progress: bool,
) -> dict[str, Answer]:
    """Ask the questions that have no answer in `target`, and return all answers by key."""
    for obstacle in obstacles(spec, settings):
        raise obstacle
    key = api_key(spec)
    report: Callable[[str], None] = _print_line if progress else lambda text: None
    with ExitStack() as stack:
        # Runs that share a recordings file take turns.
        stack.enter_context(
            lock(
                target.parent,
                f"{target.name}.turn",
                lambda: report(f"waiting for another run that is asking {spec.label}"),
            )
        )
        _accept_foreign(target, spec)
        recorder = stack.enter_context(recording(target, run))
        if not spec.is_local:
            # One process at a time queries a provider, so that the limits apply to all processes.
            name = "".join(letter if letter.isalnum() else "-" for letter in spec.provider)
            stack.enter_context(
                lock(
                    settings.recordings_folder,
                    f"provider-{name}",
                    lambda: report(f"waiting for another run that is asking {spec.provider}"),
                )
            )
        # Another run may have recorded answers in the meantime.
        recorded = _recorded(target, unique, spec, settings, run)
        answers = _answers(recorded, settings)
        missing = [question for name, question in unique.items() if name not in answers]
        if not missing:
            return answers
        for name, own in recorded.items():
            for answer in own:
                first.add(unique[name], answer)
        if settings.stop_when_cut and first.are_useless:
            raise first.error(missing)
        report(_announcement(unique, spec, answers, settings))
        if spec.is_local:
            server = server or stack.enter_context(Server(spec))
            address = server.address(settings.start_timeout_s, report)
        else:
            address = api_base(spec, settings)

        from pieline.llm.asking import QuestionRun
        from pieline.llm.transport import Transport

        bar = stack.enter_context(
            Progress(total=len(missing), desc=spec.label, unit="questions", shown=progress)
        )

        async def asked_answers() -> tuple[dict[str, Answer], Budget]:
            transport = Transport(
                spec, api_key=key, api_base=address, timeout_s=settings.timeout(spec)
            )
            failed = 0

            def update(answer: Answer | None) -> None:
                nonlocal failed
                failed += answer is None
                cost = f", ${asking.budget.booked_usd:.4f}" if spec.paid else ""
                bar.set_postfix_str(f"{failed} failed{cost}", refresh=False)
                bar.update()

            asking = QuestionRun(
                *(spec, settings, recorder, missing, update), first=first, recorded=recorded
            )
            try:
                return await asking.run(transport), asking.budget
            finally:
                for note in asking.budget.notes():
                    report(note)

        try:
            asked, budget = asyncio.run(asked_answers())
        except UserError:
            if server and (end := server.end()):
                raise end from None
            raise
        bar.close()
        report(_summary(asked, spec, budget.booked_usd) + budget.possibly_billed)
    return answers | asked


def _accept_foreign(target: Path, spec: LLMEntry) -> None:
    """Make paid answers of another model recordings, once the entry lists that model.

    Raises:
        UserError: The entry does not list it, so nothing more is paid.
    """
    foreign = foreign_file(target)
    check_answering_model(read_answers(foreign).values(), spec, foreign)
    _move_answers(target, foreign)


def _recorded(
    path: Path, unique: dict[str, Question], spec: LLMEntry, settings: LLMSettings, run: str
) -> dict[str, list[Answer]]:
    """Return the recorded responses to questions by key (see `read_responses`).

    Raises:
        UserError: An answer names another model, server or run (old recordings may name none), or
            a question has two different answers.
    """
    responses = read_responses(path, unique.keys(), run=run)
    everything = [answer for own in responses.values() for answer in own]
    stated = (answer for answer in everything if answer.returned_model is not None)
    check_answering_model(stated, spec, path)
    check_address(everything, spec, expected_origin(spec, settings), path)
    return responses


def _answers(responses: Mapping[str, Sequence[Answer]], settings: LLMSettings) -> dict[str, Answer]:
    """Return the responses that count as answers; a replay uses failures as they are."""
    attempts = 1 if settings.mode == "replay" else settings.max_attempts
    return {key: own[-1] for key, own in responses.items() if counted(own, attempts)}


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
        old = {
            key: replaced
            for key, own in raw_lines(path).items()
            if key in new and (replaced := [raw for raw in own if raw not in new[key]])
        }
        set_aside(path, old)
        write_lines(path, joined(raw_lines(path), new))
        fresh.unlink()


def _announcement(
    unique: dict[str, Question],
    spec: LLMEntry,
    answers: dict[str, Answer],
    settings: LLMSettings,
) -> str:
    expected = estimate(unique.values(), spec, answers)
    cost = ""
    if spec.paid:
        most = "unbounded" if expected.usd is None else f"at most about ${expected.usd:.4f}"
        cost = f", {most}"
        left = remaining_usd(settings)
        if expected.usd and left < expected.usd:
            cost += f" (llm.max_cost_usd leaves ${left:.4f})"
    dropped = sorted({name for question in unique.values() for name in question.dropped})
    not_sent = f"; unsupported parameters, not sent: {', '.join(dropped)}" if dropped else ""
    return (
        f"{spec.label}: {pluralize(expected.questions, 'question')}, {expected.recorded} recorded,"
        f" {expected.to_ask} to ask{cost}{not_sent}"
    )


def _summary(asked: dict[str, Answer], spec: LLMEntry, usd: float) -> str:
    answers = asked.values()
    origins = dict.fromkeys(answer.address for answer in answers if answer.address)
    place = f" from {', '.join(origins)}" if origins else ""
    text = (
        f"{spec.label}: {pluralize(len(asked), 'answer')}{place},"
        f" {sum(answer.input_tokens or 0 for answer in answers)} tokens in,"
        f" {sum(answer.output_tokens or 0 for answer in answers)} out"
    )
    return f"{text}, ${usd:.4f}" if spec.paid else text


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
