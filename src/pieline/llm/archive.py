"""A folder of recordings as a whole: list, verify, merge, and ship it as one file."""

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import zstandard

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, write_bytes
from pieline.llm.answers import Answer
from pieline.llm.recordings import (
    answer_in,
    canonical_bytes,
    parse_line,
    question_in,
    read_lines,
    recording,
    replace,
)
from pieline.llm.wire import misfit

_LEVEL = 12


@dataclass(frozen=True)
class Summary:
    """What one file of recordings holds.

    Attributes:
        path: the file.
        models: checkpoints that were asked.
        answers: how many.
        hand_written: those that no model gave (sample recordings).
        input_tokens, output_tokens: sums over the answers whose tokens were counted.
    """

    path: Path
    models: tuple[str, ...]
    answers: int
    hand_written: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Merged:
    """What a merge did: answers that were new, and keys that had another answer already."""

    added: int
    conflicts: tuple[str, ...]


def recording_files(folder: str | Path) -> list[Path]:
    """Files of recordings in a folder and below, sorted; a file is itself."""
    folder = Path(folder)
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise UserError("no such folder", where=folder, mend="check the path")
    return sorted(file for file in folder.rglob("*.jsonl") if not file.name.startswith("."))


def summarise(path: str | Path) -> Summary:
    """Count what a file of recordings holds.

    Raises:
        UserError: a damaged line.
    """
    path = Path(path)
    answers: dict[str, Answer] = {}
    models: set[str] = set()
    for line in read_lines(path):
        if "key" in line.value and line.value["key"] not in answers:
            answers[line.value["key"]] = answer_in(line, path)
            models.add(str(line.value["question"].get("model")))
    return Summary(
        path,
        tuple(sorted(models)),
        len(answers),
        sum(answer.origin == "hand-written" for answer in answers.values()),
        sum(answer.input_tokens or 0 for answer in answers.values()),
        sum(answer.output_tokens or 0 for answer in answers.values()),
    )


def verify(path: str | Path) -> list[str]:
    """Problems of a file, each as `file:line: what`; none if all answers are under their question.

    Found are: lines that are no recordings, keys that are not the digest of their question, shared
    texts that are not those of their digest or are missing, answers with unknown fields, bodies
    that were sent and are not their question's, and two answers under one key.
    """
    path = Path(path)
    problems: list[str] = []
    texts: dict[str, str] = {}
    seen: dict[str, str] = {}
    for number, raw in enumerate(path.read_bytes().split(b"\n"), 1):
        value = parse_line(raw)
        if value is None:
            if raw:
                problems.append(f"{path}:{number}: not a line of recordings")
            continue
        problem = _problem(value, texts, seen)
        if problem:
            problems.append(f"{path}:{number}: {problem}")
    return problems


def _problem(value: dict[str, Any], texts: dict[str, str], seen: dict[str, str]) -> str | None:
    """What is wrong with a line; remembers its text or answer."""
    if "text" in value:
        digest = hashlib.sha256(str(value["content"]).encode("utf-8")).hexdigest()
        texts[str(value["text"])] = str(value["content"])
        return None if digest == value["text"] else "the text is not the one of its digest"
    try:
        question = question_in(value, texts)
        kept = Answer(key=value["key"], **value["answer"]).sent
    except KeyError as error:
        return f"lacks {error}"
    except (TypeError, AttributeError, ValueError, UserError) as error:
        return f"not a question and its answer ({str(error).splitlines()[0]})"
    if question.key != value["key"]:
        return "the key is not the digest of the question"
    answer = canonical_json(value["answer"])
    if seen.setdefault(question.key, answer) != answer:
        return "another answer stands under the same key"
    return misfit(question, kept) if kept else None


def merge(target: str | Path, source: str | Path) -> Merged:
    """Add the answers of `source` that `target` lacks; where both have one, `target`'s stays.

    Raises:
        UserError: a damaged line in either file; nothing is changed then.
    """
    target, source = Path(target), Path(source)
    if not source.is_file():
        raise UserError("no such file", where=source, mend="check the path")
    return _merge(target, [line.value for line in read_lines(source)])


def _merge(target: Path, values: list[dict[str, Any]]) -> Merged:
    with recording(target):
        own = [line.value for line in read_lines(target)]
        answers = {value["key"]: value["answer"] for value in reversed(own) if "key" in value}
        new = {value["key"]: value["answer"] for value in reversed(values) if "key" in value}
        data = canonical_bytes(own + values)
        if data != target.read_bytes():
            replace(target, data)
    conflicts = sorted(key for key in new.keys() & answers if new[key] != answers[key])
    return Merged(len(new.keys() - answers), tuple(conflicts))


def export_folder(folder: str | Path, archive: str | Path) -> int:
    """Write all recordings of a folder to one `.jsonl.zst` file; the number of answers in it.

    Equal recordings give equal bytes. Each file is a line `{"file": "<relative path>"}` followed by
    its canonical lines. The ledger is not part of it.

    Raises:
        UserError: a file that `verify` finds fault with.
    """
    folder = Path(folder)
    answers = 0
    packed = io.BytesIO()
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with packer.stream_writer(packed, closefd=False) as stream:
        for path in recording_files(folder):
            _refuse_faulty(path)
            lines = canonical_bytes(line.value for line in read_lines(path))
            answers += lines.count(b'\n{"answer"') + lines.startswith(b'{"answer"')
            name = path.relative_to(folder).as_posix() if path != folder else path.name
            stream.write((canonical_json({"file": name}) + "\n").encode("utf-8") + lines)
    write_bytes(archive, packed.getvalue())
    return answers


def import_archive(archive: str | Path, folder: str | Path) -> dict[str, Merged]:
    """Merge an exported file into a folder: what was added, by relative path.

    Raises:
        UserError: not such a file, or one with a faulty line; nothing is changed then.
    """
    archive, folder = Path(archive), Path(folder)
    files: dict[str, list[dict[str, Any]]] = {}
    texts: dict[str, str] = {}
    seen: dict[str, str] = {}
    for number, raw in _archived_lines(archive):
        where = f"{archive}:{number}"
        name = _file_name(raw, where)
        if name is not None:
            files[name], texts, seen = [], {}, {}
            continue
        value = parse_line(raw)
        problem = "not a line of recordings" if value is None else _problem(value, texts, seen)
        if value is None or problem or not files:
            raise UserError(problem or "no file named before", where=where, mend="fetch it again")
        files[next(reversed(files))].append(value)
    return {name: _merge(folder / name, values) for name, values in files.items()}


def _archived_lines(archive: Path) -> Iterator[tuple[int, bytes]]:
    unpacking = zstandard.ZstdDecompressor().decompressobj()
    try:
        data = unpacking.decompress(archive.read_bytes())
    except FileNotFoundError:
        raise UserError("no such file", where=archive, mend="check the path") from None
    except zstandard.ZstdError as error:
        raise UserError(f"not a whole zstd file: {error}", where=archive) from None
    if not unpacking.eof or not data.endswith(b"\n"):
        raise UserError("the file is cut off", where=archive, mend="fetch it again")
    return iter(enumerate(data.split(b"\n")[:-1], 1))


def _file_name(raw: bytes, where: str) -> str | None:
    """The relative path that a `{"file": ...}` line names, null for any other line."""
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.keys() != {"file"}:
        return None
    name = PurePosixPath(str(value["file"]))
    if name.is_absolute() or ".." in name.parts or name.suffix != ".jsonl":
        raise UserError(f"names the file {value['file']!r}", where=where, mend="do not use it")
    return str(name)


def _refuse_faulty(path: Path) -> None:
    problems = verify(path)
    if problems:
        raise UserError(problems[0], mend="see `pieline recordings verify`")
