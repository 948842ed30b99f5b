"""Read answers from Inspect AI logs.

A log is a zip archive with one JSON file per sample (`.eval`), or one JSON file with all samples.
"""

import json
import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import zstandard

from pieline.core.errors import UserError, pluralize
from pieline.core.files import sha256_of
from pieline.core.records import check_ids
from pieline.llm.answers import FILTERED, Answer

_ZSTANDARD = 93
"""Compression method that zipfile does not support before Python 3.14."""
_LOCAL_HEADER = 30
_FINISH = {"max_tokens": "length", "model_length": "length", "content_filter": FILTERED}
"""litellm's finish reason by Inspect's stop reason, where the two differ."""
_READ = {"text", "reasoning"}
"""Types of content that are read; a log with any other content is rejected."""
_ATTACHED = "attachment://"
_RUN_AGAIN = "run the task again, without --limit and --epochs"


_DAMAGED = (
    OSError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zstandard.ZstdError,
)
"""Exceptions of a file that is not an Inspect AI log."""


def read_inspect_log(path: str | Path, ids: Sequence[str]) -> dict[str, Answer]:
    """Return the answers in an Inspect AI log by sample id, in the order of `ids`.

    Raises:
        UserError: The file is not an Inspect AI log, or a sample is missing, unknown, failed or
            duplicated.
    """
    samples: dict[str, dict[str, Any]] = {}
    failed = []
    try:
        for sample in _samples(Path(path)):
            name = str(sample["id"])
            if name in samples:
                raise UserError(f"sample {name!r} occurs twice", where=path, hint=_RUN_AGAIN)
            samples[name] = sample
            if sample.get("error") or (sample.get("output") or {}).get("error"):
                failed.append(name)
        check_ids(dict.fromkeys(samples, 1), ids, "sentences", where=path)
        if failed:
            problem = f"{pluralize(len(failed), 'sample')} failed, for example {failed[0]!r}"
            raise UserError(problem, where=path, hint="run inspect eval-retry on the log")
        return {name: inspect_answer(samples[name]) for name in ids}
    except _DAMAGED as error:
        raise UserError(
            f"not an Inspect AI log: {error}",
            where=path,
            hint="use an .eval file (to convert a log, use `inspect log convert --to eval`)",
        ) from None


def inspect_answer(sample: dict[str, Any]) -> Answer:
    """Return the answer in a sample's field `output`, with a digest of its content as its key.

    Raises:
        ValueError: The sample has no output.
    """
    output = sample["output"]
    if not (choices := output.get("choices")):
        raise ValueError(f"sample {sample['id']!r} has no output")
    message = choices[0]["message"]
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    attached = sample.get("attachments") or {}

    def joined(kind: str, field: str, separator: str = "", *, refused: bool = False) -> str | None:
        texts = [
            part[field]
            for part in parts
            if part["type"] == kind and (part.get("refusal") is True) == refused
        ]
        texts = [attached.get(text.removeprefix(_ATTACHED), text) for text in texts]
        return separator.join(texts) if texts else None

    if unknown := sorted({part["type"] for part in parts} - _READ):
        raise ValueError(f"sample {sample['id']!r} has content of type {unknown[0]!r}")
    finish = choices[0].get("stop_reason")
    text, reasoning = joined("text", "text"), joined("reasoning", "reasoning", "\n")
    identity = json.dumps([sample["id"], text, finish])
    return Answer(
        key=sha256_of(identity.encode()),
        text=text,
        reasoning=reasoning,
        refusal=joined("text", "text", refused=True),
        finish_reason="tool_calls" if message.get("tool_calls") else _FINISH.get(finish, finish),
    )


def _samples(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the samples in a log, whose scores may be NaN."""
    if zipfile.is_zipfile(path):
        yield from map(json.loads, _members(path))
        return
    with path.open("rb") as file:
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"{"):
        raise ValueError("neither a zip archive nor a JSON object")
    yield from json.loads(path.read_text(encoding="utf-8-sig"))["samples"]


def _members(path: Path) -> Iterator[str]:
    """Yield the JSON text of each sample in a log."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for member in archive.infolist():
            if not member.filename.startswith("samples/"):
                continue
            if member.compress_type != _ZSTANDARD:
                yield archive.read(member).decode()
                continue
            file.seek(member.header_offset + _LOCAL_HEADER - 4)
            name_length, extra_length = struct.unpack("<HH", file.read(4))
            file.seek(name_length + extra_length, 1)
            packed = file.read(member.compress_size)
            reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
            yield reader.read().decode()
