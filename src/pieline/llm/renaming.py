"""Keep the answers of a renamed entry, and set answers aside so that a run asks again."""

from collections.abc import Iterable
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.llm.answers import Answer, check_address
from pieline.llm.archive import recording_files
from pieline.llm.keys import expected_origin
from pieline.llm.parsing import answer_text
from pieline.llm.questions import make_question
from pieline.llm.recordings import (
    REPLACED_SUFFIX,
    Line,
    check_conflicts,
    count_lines,
    foreign_file,
    raw_lines,
    read_lines,
    read_responses,
    recording,
    run_name,
    set_aside,
    sort_lines,
    with_entry,
    write_lines,
)
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import move_reservations
from pieline.models.llm import LLMEntry

ANY = "any"
"""Value that stands for all outcomes in `reask`, besides the values of `Outcome`."""


def reask(files: Iterable[Path], outcome: str) -> dict[Path, int]:
    """Set aside the answers that have this outcome, so that the next run asks again.

    Args:
        files: Recordings files.
        outcome: Value of an `Outcome`, or `ANY`.

    Returns:
        The number of questions to ask again, by file.

    Raises:
        UserError: A line is damaged, or a run is writing a file.
    """
    question_counts = {}
    for path in files:
        keys = [
            key
            for key, responses in read_responses(path).items()
            if _has_outcome(responses[-1], outcome)
        ]
        if not keys:
            continue
        with recording(path):
            lines = raw_lines(path)
            set_aside(path, {key: lines[key] for key in keys})
        question_counts[path] = len(keys)
    return question_counts


def _has_outcome(answer: Answer, outcome: str) -> bool:
    """Return whether an answer is unreadable with this outcome; always True for `ANY`."""
    if outcome == ANY:
        return True
    _, unreadable = answer_text(answer)
    return unreadable is not None and unreadable.outcome.value == outcome


def rename(old: str, new: str, entry: LLMEntry, settings: LLMSettings) -> dict[Path, int]:
    """Assign the recordings of a model's old name to its new name in models.yaml.

    Files of the old name are moved, and files that were copied for the new name are corrected.

    Args:
        old: Old name of the entry.
        new: New name of the entry.
        entry: Entry of the new name.
        settings: Settings for querying the model.

    Returns:
        The number of answers in each file of the new name.

    Raises:
        UserError: There are no recordings of the old name, the entry would ask another question
            (model, body, roles, parameters) or at another address, or a question has two different
            answers. In all of these cases, nothing is changed.
    """
    folder = settings.recordings_folder
    sources = _find_sources(old, new, folder)
    if not sources:
        raise UserError(f"no recordings of {old}", where=folder, hint="check the name")
    # Check all files before anything is changed.
    lines_by_target = {}
    for target, paths in sources.items():
        run = run_name(target, folder)
        files = [*paths]
        # A file that was copied for the new name is its own target.
        if target.exists() and target not in files:
            files.append(target)
        lines_by_key: dict[str, list[bytes]] = {}
        for path in files:
            for line in read_lines(path):
                if line.run and with_entry(line.run, old, new) != run:
                    raise line.fault(f"recorded for the run {line.run}")
                _check_question(line, entry, settings)
                lines_by_key.setdefault(line.key, []).append(_with_run(line, run))
        lines = sort_lines(lines_by_key)
        check_conflicts(lines, target)
        lines_by_target[target] = lines
    for target, lines in lines_by_target.items():
        with recording(target):
            write_lines(target, lines)
        for path in sources[target]:
            _finish_move(path, target, folder)
    return {target: count_lines(lines) for target, lines in lines_by_target.items()}


def _find_sources(old: str, new: str, folder: Path) -> dict[Path, list[Path]]:
    """Return the files with recordings of the old name, by their path under the new name.

    A file that was copied for the new name, but whose lines still state the old name, keeps its
    path.
    """
    sources: dict[Path, list[Path]] = {}
    for path in recording_files(folder):
        run = run_name(path, folder)
        new_run = with_entry(run, old, new)
        if new_run != run:
            target = folder / f"{new_run}.jsonl"
            sources.setdefault(target, []).append(path)
        elif new in run.split("/") and any(old in line.run.split("/") for line in read_lines(path)):
            sources.setdefault(path, []).append(path)
    return sources


def _check_question(line: Line, entry: LLMEntry, settings: LLMSettings) -> None:
    """Raise a `UserError` unless the entry would ask the recorded question at the same address.

    Args:
        line: Line of a recordings file.
        entry: Entry of the new name.
        settings: Settings for querying the model.
    """
    answer, question = line.check(), line.question()
    new_question = make_question(
        entry, question.messages, question.parameters, sample=question.sample
    )
    if new_question.key != question.key:
        raise UserError(
            f"{entry.label} would ask another question (litellm_id, body, roles or parameters)",
            where=f"{line.path}:{line.number}",
            hint="copy these fields from the earlier entry",
        )
    check_address([answer], entry, expected_origin(entry, settings), line.path)


def _with_run(line: Line, run: str) -> bytes:
    """Return a line with `run` as the name of its run; unchanged if the line names no run."""
    if not line.run:
        return line.raw.strip() + b"\n"
    return (canonical_json({**line.value, "run": run}) + "\n").encode()


def _finish_move(path: Path, target: Path, folder: Path) -> None:
    """Remove a file whose lines were moved to `target`, and move what belongs to the file.

    The open reservations of the file are moved, and the files next to it with answers of other
    models and with replaced answers.
    """
    if path == target:
        return
    move_reservations(folder, path, target)
    path.unlink()
    for file in (foreign_file(path), path.with_name(path.name + REPLACED_SUFFIX)):
        new_file = target.with_name(target.name + file.suffix)
        if file.exists() and not new_file.exists():
            file.rename(new_file)
        elif file.exists() and file.read_bytes() == new_file.read_bytes():
            file.unlink()
    has_visible_files = any(path.parent.glob("[!.]*"))
    if path.parent != target.parent and not has_visible_files:
        _remove_folder(path.parent)


def _remove_folder(folder: Path) -> None:
    """Remove a folder that contains only lock files."""
    locks = folder / ".locks"
    for lock_file in locks.glob("*"):
        lock_file.unlink()
    if locks.exists():
        locks.rmdir()
    folder.rmdir()
