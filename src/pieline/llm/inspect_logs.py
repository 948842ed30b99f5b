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
"""Bytes of a member's local header, which ends with the lengths of its name and extra field."""
_FINISH_REASONS = {"max_tokens": "length", "model_length": "length", "content_filter": FILTERED}
"""Our finish reason by Inspect's stop reason, where the two differ."""
_KNOWN_TYPES = {"text", "reasoning"}
"""Types of content that are read; a log with any other content is rejected."""
_ATTACHMENT = "attachment://"
"""Prefix of a reference to a text that the log stores separately."""
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
"""Exceptions that reading a file raises if the file is not an Inspect AI log."""


def read_inspect_log(path: str | Path, ids: Sequence[str]) -> dict[str, Answer]:
    """Return the answers in an Inspect AI log by sample id, in the order of `ids`.

    Raises:
        UserError: The file is not an Inspect AI log, or a sample is missing, is unknown,
            failed or occurs more than once.
    """
    samples: dict[str, dict[str, Any]] = {}
    failed_ids = []
    try:
        for sample in _read_samples(Path(path)):
            sample_id = str(sample["id"])
            if sample_id in samples:
                raise UserError(f"sample {sample_id!r} occurs twice", where=path, hint=_RUN_AGAIN)
            samples[sample_id] = sample
            output = sample.get("output") or {}
            if sample.get("error") or output.get("error"):
                failed_ids.append(sample_id)
        line_of_id = dict.fromkeys(samples, 1)  # a log has no lines
        check_ids(line_of_id, ids, "sentences", where=path)
        if failed_ids:
            raise UserError(
                f"{pluralize(len(failed_ids), 'sample')} failed, for example {failed_ids[0]!r}",
                where=path,
                hint="run inspect eval-retry on the log",
            )
        return {sample_id: inspect_answer(samples[sample_id]) for sample_id in ids}
    except _DAMAGED as error:
        raise UserError(
            f"not an Inspect AI log: {error}",
            where=path,
            hint="use an .eval file (to convert a log, use `inspect log convert --to eval`)",
        ) from None


def inspect_answer(sample: dict[str, Any]) -> Answer:
    """Return the answer to a sample of an Inspect AI log.

    The key of the answer is a digest of the sample's id, the text and the stop reason, because the
    log does not contain the question as it was sent.

    Raises:
        ValueError: The sample has no output, or content of an unknown type.
    """
    choices = sample["output"].get("choices")
    if not choices:
        raise ValueError(f"sample {sample['id']!r} has no output")
    message = choices[0]["message"]
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    parts = content or []  # the content may be null
    unknown_types = {part["type"] for part in parts} - _KNOWN_TYPES
    if unknown_types:
        raise ValueError(f"sample {sample['id']!r} has content of type {min(unknown_types)!r}")

    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    attachments = sample.get("attachments") or {}
    for part in parts:
        part_text = part[part["type"]]  # the field has the name of the type
        part_text = attachments.get(part_text.removeprefix(_ATTACHMENT), part_text)
        is_refusal = part.get("refusal") is True
        if part["type"] != "text":
            if not is_refusal:
                thoughts.append(part_text)
        elif is_refusal:
            refusals.append(part_text)
        else:
            texts.append(part_text)
    text = "".join(texts) if texts else None
    stop_reason = choices[0].get("stop_reason")
    identity = json.dumps([sample["id"], text, stop_reason])
    finish_reason = _FINISH_REASONS.get(stop_reason, stop_reason)
    return Answer(
        key=sha256_of(identity.encode()),
        text=text,
        reasoning="\n".join(thoughts) if thoughts else None,
        refusal="".join(refusals) if refusals else None,
        finish_reason="tool_calls" if message.get("tool_calls") else finish_reason,
    )


def _read_samples(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the samples in a log, as parsed JSON in which scores may be NaN."""
    if zipfile.is_zipfile(path):
        for sample_json in _read_members(path):
            yield json.loads(sample_json)
        return
    with path.open("rb") as file:
        # 64 bytes are enough for a byte order mark and the white space before the first sign.
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"{"):
        raise ValueError("neither a zip archive nor a JSON object")
    yield from json.loads(path.read_text(encoding="utf-8-sig"))["samples"]


def _read_members(path: Path) -> Iterator[str]:
    """Yield the JSON text of each sample in a log that is a zip archive."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for member in archive.infolist():
            if not member.filename.startswith("samples/"):
                continue
            if member.compress_type != _ZSTANDARD:
                yield archive.read(member).decode()
                continue
            # zipfile does not report where the data begins: after the header, the name and an extra
            # field. The last four bytes of the header are the lengths of the latter two.
            file.seek(member.header_offset + _LOCAL_HEADER - 4)
            name_length, extra_length = struct.unpack("<HH", file.read(4))
            file.seek(name_length + extra_length, 1)
            packed = file.read(member.compress_size)
            reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
            yield reader.read().decode()
