"""Keep the answers of a renamed entry, and set answers aside so that they are asked again."""

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
    entry_of,
    foreign_file,
    merge_lines,
    raw_lines,
    read_lines,
    read_responses,
    recording,
    run_name,
    set_aside,
    with_entry,
    write_lines,
)
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import rename_file
from pieline.models.llm import LLMEntry

ANY = "any"
"""Outcome of every answer; the others are those of `Outcome`."""


def reask(files: Iterable[Path], outcome: str) -> dict[Path, int]:
    """Set answers with an outcome aside (see `set_aside`), so that the next run asks them again.

    Returns:
        The number of questions to ask again, by file.

    Raises:
        UserError: A line is damaged, or a run is writing a file.
    """
    counts = {}
    for path in files:
        chosen = [key for key, own in read_responses(path).items() if _has(own[-1], outcome)]
        if chosen:
            with recording(path):
                lines = raw_lines(path)
                set_aside(path, {key: lines[key] for key in chosen})
            counts[path] = len(chosen)
    return counts


def _has(answer: Answer, outcome: str) -> bool:
    unreadable = answer_text(answer)[1]
    return outcome == ANY or (unreadable is not None and unreadable.outcome.value == outcome)


def rename(old: str, new: str, entry: LLMEntry, settings: LLMSettings) -> dict[Path, int]:
    """Give the recordings of one name in models.yaml to another, and return the answers by file.

    Files of the old name are moved, and files that were copied for the new name are corrected.

    Args:
        old: Earlier name of the entry.
        new: Name of the entry now.
        entry: Entry of the new name.
        settings: Settings for querying the model.

    Raises:
        UserError: There are no such recordings, the entry would ask another question (model, body,
            roles, parameters) or at another address, or a question has two different answers. In
            all of these cases, nothing is changed.
    """
    folder = settings.recordings_folder
    sources: dict[Path, list[Path]] = {}
    for path in recording_files(folder):
        run = run_name(path, folder)
        if entry_of(run) == old:
            sources.setdefault(folder / f"{with_entry(run, new)}.jsonl", []).append(path)
        elif entry_of(run) == new and any(entry_of(line.run) == old for line in read_lines(path)):
            sources.setdefault(path, []).append(path)
    if not sources:
        raise UserError(f"no recordings of {old}", where=folder, hint="check the name")
    renamed = {}
    for target, paths in sources.items():
        run = run_name(target, folder)
        lines: dict[str, list[bytes]] = {}
        files = dict.fromkeys([*paths, target] if target.exists() else paths)
        for path in files:
            for line in read_lines(path):
                _check(line, run, old, entry, settings)
                lines = merge_lines(lines, {line.key: [_renamed(line, run)]})
        check_conflicts(lines, target)
        renamed[target] = lines
    for target, lines in renamed.items():
        with recording(target):
            write_lines(target, lines)
        for path in sources[target]:
            _move_rest(path, target, folder)
    return {target: sum(map(len, lines.values())) for target, lines in renamed.items()}


def _check(line: Line, run: str, old: str, entry: LLMEntry, settings: LLMSettings) -> None:
    """Raise a `UserError` unless the entry would ask the recorded question."""
    answer, question = line.check(), line.question()
    if line.run not in ("", run, with_entry(run, old)):
        raise line.fault(f"recorded for the run {line.run}")
    asked = make_question(entry, question.messages, question.parameters, sample=question.sample)
    if asked.key != question.key:
        raise UserError(
            f"{entry.label} would ask another question (litellm_id, body, roles or parameters)",
            where=f"{line.path}:{line.number}",
            hint="copy these fields from the earlier entry",
        )
    check_address([answer], entry, expected_origin(entry, settings), line.path)


def _renamed(line: Line, run: str) -> bytes:
    if not line.run:
        return line.raw.strip() + b"\n"
    return (canonical_json({**line.value, "run": run}) + "\n").encode()


def _move_rest(path: Path, target: Path, folder: Path) -> None:
    """Remove a renamed file, and rename the files next to it and its open reservations."""
    if path == target:
        return
    rename_file(folder, path, target)
    path.unlink()
    for rest in (foreign_file(path), path.with_name(path.name + REPLACED_SUFFIX)):
        moved = target.with_name(target.name + rest.suffix)
        if rest.exists() and not moved.exists():
            rest.rename(moved)
        elif rest.exists() and rest.read_bytes() == moved.read_bytes():
            rest.unlink()
    if path.parent != target.parent and not [*path.parent.glob("[!.]*")]:
        for leftover in path.parent.glob(".locks/*"):
            leftover.unlink()
        for empty in (path.parent / ".locks", path.parent):
            if empty.exists():
                empty.rmdir()
