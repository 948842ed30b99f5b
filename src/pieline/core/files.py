"""Reading and writing files so that a crash leaves nothing half-written and bytes repeat."""

import codecs
import errno
import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from pieline.core.errors import UserError, to_user_error


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it to `path` when the block succeeds.

    On any exception the temporary file is removed and `path` stays as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        with _telling_a_full_disk(path):
            yield temporary
        # mkstemp makes files private; outputs follow the user's umask like any other file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Give a new folder to fill; if the block succeeds it becomes `path`, which must not exist."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as unfinished:
        complete = Path(unfinished) / path.name
        complete.mkdir()
        with _telling_a_full_disk(path):
            yield complete
        complete.replace(path)


_NO_ROOM = 1 << 20
"""Bytes; with fewer left a disk is full."""


@contextmanager
def _telling_a_full_disk(path: Path) -> Iterator[None]:
    """Raise the system's error where a library that writes `path` has one of its own.

    So torch.save and safetensors do.
    """
    try:
        yield
    except (OSError, UserError):
        raise
    except Exception as error:
        if shutil.disk_usage(path.parent).free < _NO_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise


def check_writable(folder: str | Path) -> None:
    """Write a little into a folder and take it away again.

    Raises:
        UserError: nothing can be written there.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(1 << 16))
    except OSError as error:
        error.filename = str(Path(folder).absolute())  # not that of the probe
        raise to_user_error(error) from None


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` atomically as UTF-8 with Unix line ends."""
    write_bytes(path, text.encode("utf-8"))


_HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of JSON that, alone, is no character."""

_CANONICAL = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text.

    Raises:
        ValueError: a NaN or infinity, which JSON cannot say.
    """
    return _CANONICAL.encode(value)


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys, atomically."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2, allow_nan=False)
    write_text(path, text + "\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        UserError: the file is missing, is not UTF-8 or is not JSON; names file and line.
    """
    text = read_text(path)
    try:
        return parse_json(text)
    except ValueError as error:
        told, where = str(error), str(path)
        if isinstance(error, json.JSONDecodeError):
            told, where = error.msg, f"{path}:{error.lineno}"
        hint = "repair the file or fetch it again"
        raise UserError(f"not JSON: {told}", where=where, hint=hint) from None


def parse_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none (nor are NaN, 1e999, half a surrogate pair, and a nesting that nobody
            can have meant).
    """
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if _HALF_A_PAIR.search(text):
        canonical_json(value).encode()
    return value


def _finite(text: str) -> float:
    return value if isfinite(value := float(text)) else _no_number(text)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file, newlines as they are; a byte order mark is no part of the text.

    Raises:
        UserError: the file is missing, cannot be read or is not UTF-8; names file and line.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise UserError("no such file", where=path, hint="check the path") from None
    except OSError as error:
        raise to_user_error(error) from None
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"not UTF-8 (byte 0x{data[error.start]:02x})",
            where=f"{path}:{line}",
            hint="save the file as UTF-8",
        ) from None


@contextmanager
def open_gzip(path: str | Path) -> Iterator[gzip.GzipFile]:
    """Write a gzip file atomically, without time stamp and name: same text, same bytes.

    Level 6, as gzip itself: 9 takes five times as long for a run and saves 7 % of its bytes.
    """
    with (
        atomic_path(path) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as stream,
    ):
        yield stream


_LARGE = 1 << 26
"""Bytes of a file that takes long to read."""


def sha256(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_of(data: bytes) -> str:
    """Hexadecimal SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def remembered_sha256(path: Path, memory: Path) -> str:
    """The same; of a large file it is computed once and kept in the file `memory`.

    It is computed anew when size or change time differ, which no program can set back.
    """
    state = path.stat()
    if state.st_size < _LARGE:
        return sha256(path)
    key = f"{path.absolute()} {state.st_size} {state.st_ctime_ns}"
    known = read_json(memory) if memory.exists() else {}
    if key not in known:
        # Read once more, as another process may have added to it meanwhile.
        digest = sha256(path)
        known = (read_json(memory) if memory.exists() else {}) | {key: digest}
        write_json(memory, known)
    return str(known[key])


def git_blob(path: str | Path) -> str:
    """Name that Git gives a file's content, as `git hash-object` prints it."""
    with Path(path).open("rb") as stream:
        header = b"blob %d\0" % os.fstat(stream.fileno()).st_size
        new = partial(hashlib.sha1, header, usedforsecurity=False)
        return hashlib.file_digest(stream, new).hexdigest()


def digests(paths: Iterable[str | Path]) -> dict[str, str]:
    """SHA-256 by path, for the record of what a result was computed from."""
    return {str(path): sha256(path) for path in sorted(map(str, paths))}
