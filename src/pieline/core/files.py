"""Read files, and write them atomically and reproducibly."""

import codecs
import errno
import gzip
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from pieline.core.errors import UserError, to_user_error


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `path` if the block succeeds.

    On an exception, the temporary file is removed and `path` is unchanged.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Files of tempfile are private; outputs should follow the user's umask.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with _report_full_disk(path):
            yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a new folder that is renamed to `path` if the block succeeds; `path` must not exist."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as unfinished:
        complete = Path(unfinished) / path.name
        complete.mkdir()
        with _report_full_disk(path):
            yield complete
        complete.replace(path)


_NO_ROOM = 1 << 20
"""Number of free bytes below which a disk counts as full."""


@contextmanager
def _report_full_disk(path: Path) -> Iterator[None]:
    """Convert an exception raised in the block to an `OSError` if the disk is full.

    torch.save and safetensors report a full disk with their own exception classes.
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
    """Check that files can be written to a folder.

    Raises:
        UserError: The folder is not writable.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(1 << 16))
    except OSError as error:
        error.filename = str(Path(folder).absolute())  # instead of the probe's path
        raise to_user_error(error) from None


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write bytes atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    """Write text atomically, as UTF-8 with Unix line endings."""
    write_bytes(path, text.encode("utf-8"))


_HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
"""JSON escape of a surrogate code point, which must not occur unpaired."""

_CANONICAL = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
)


def canonical_json(value: Any) -> str:
    """Return compact JSON with sorted keys, so that equal values produce equal text.

    Raises:
        ValueError: The value contains NaN or infinity.
    """
    return _CANONICAL.encode(value)


def indented_json(value: Any) -> str:
    """Return indented JSON with sorted keys and a final newline.

    Raises:
        ValueError: The value contains NaN or infinity.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2, allow_nan=False)
    return text + "\n"


def write_json(path: str | Path, value: Any) -> None:
    """Write indented JSON with sorted keys atomically.

    Raises:
        ValueError: The value contains NaN or infinity.
    """
    write_text(path, indented_json(value))


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        UserError: The file cannot be read, is not UTF-8 or is not accepted by `parse_json`.
    """
    text = read_text(path)
    try:
        return parse_json(text)
    except ValueError as error:
        message, where = str(error), str(path)
        if isinstance(error, json.JSONDecodeError):
            message, where = error.msg, f"{path}:{error.lineno}"
        hint = "repair the file or download it again"
        raise UserError(f"not JSON: {message}", where=where, hint=hint) from None


def parse_json(text: str) -> Any:
    """Parse JSON text.

    Raises:
        ValueError: The text is not JSON, or contains NaN, an infinite number, a duplicate key, an
            unpaired surrogate or excessive nesting.
    """
    try:
        value = json.loads(
            text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_once
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _HALF_A_PAIR.search(text):
        canonical_json(value).encode()
    return value


def _finite(text: str) -> float:
    return value if isfinite(value := float(text)) else _no_number(text)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON file, of whose duplicate keys Python would keep the last."""
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(key for key in keys if keys.count(key) > 1)!r}")
    return value


def files_below(folder: str | Path, *endings: str) -> list[Path]:
    """Return the files below a folder, including those in linked folders, sorted by path.

    Args:
        folder: The folder.
        endings: Extensions of the files; any if none is given.
    """
    walk = os.walk(folder, followlinks=True)
    found = (Path(where, name) for where, _, names in walk for name in names)
    return sorted(
        path for path in found if path.is_file() and (not endings or path.suffix in endings)
    )


_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
"""Start of a pointer, which Git checks out in place of a file that Git LFS has not downloaded."""


def check_lfs_pointers(*places: str | Path) -> None:
    """Check that files, and the files in folders, are not Git LFS pointers.

    Raises:
        UserError: A file is a pointer.
    """
    for place in map(Path, places):
        for path in files_below(place) if place.is_dir() else [place]:
            if path.is_file() and path.stat().st_size < _MAX_POINTER_BYTES:
                _check_lfs_pointer(path, path.read_bytes())


_MAX_POINTER_BYTES = 1024


def _check_lfs_pointer(path: str | Path, data: bytes) -> None:
    if data.startswith(_LFS_POINTER):
        raise UserError(
            "a Git LFS pointer instead of the file", where=path, hint="run `git lfs pull` there"
        )


GZIP_START = b"\x1f\x8b"
"""First bytes of a gzipped file."""


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file with its original line endings, without a byte order mark.

    A file is decompressed if its name ends in .gz.

    Raises:
        UserError: The file is missing, unreadable, not UTF-8 or a Git LFS pointer.
    """
    try:
        data = Path(path).read_bytes()
        if str(path).lower().endswith(".gz"):
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise UserError("no such file", where=path, hint="check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        problem = f"not a gzip file: {error}"
        raise UserError(problem, where=path, hint="compress the file again") from None
    except OSError as error:
        raise to_user_error(error) from None
    _check_lfs_pointer(path, data)
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        if data.startswith(GZIP_START):
            hint = f"rename it to {Path(path).name}.gz"
            raise UserError("the file is gzipped", where=path, hint=hint) from None
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"not UTF-8 (byte 0x{data[error.start]:02x})",
            where=f"{path}:{line}",
            hint="save the file as UTF-8",
        ) from None


def line_ending_note(path: str | Path) -> str:
    """Return a note for an error message if a file has Windows line endings, else ""."""
    with Path(path).open("rb") as stream:
        return " (the file has Windows line endings)" if b"\r\n" in stream.read(1 << 16) else ""


@contextmanager
def open_gzip(path: str | Path) -> Iterator[gzip.GzipFile]:
    """Open a gzip file for atomic writing; identical content produces byte-identical files.

    The header has neither timestamp nor file name. Uses compression level 6, the default of the
    gzip program, because level 9 takes five times as long and makes run files only 7% smaller.
    """
    with (
        atomic_path(path) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as stream,
    ):
        yield stream


_LARGE = 1 << 22
"""Minimum size, in bytes, of files whose digests are cached."""


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as a hexadecimal string."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of bytes as a hexadecimal string."""
    return hashlib.sha256(data).hexdigest()


def cached_sha256(path: Path, memory: Path) -> str:
    """Return the SHA-256 of a file; cache the digests of large files in the JSON file `memory`.

    The cache is keyed by path, size and ctime, which programs cannot set.
    """
    state = path.stat()
    if state.st_size < _LARGE:
        return sha256(path)
    key = f"{path.absolute()} {state.st_size} {state.st_ctime_ns}"
    known = read_json(memory) if memory.exists() else {}
    if key not in known:
        # Another process may have updated the file in the meantime.
        digest = sha256(path)
        known = (read_json(memory) if memory.exists() else {}) | {key: digest}
        write_json(memory, known)
    return str(known[key])


def git_blob(path: str | Path) -> str:
    """Return the Git object name of a file's content, as printed by `git hash-object`."""
    with Path(path).open("rb") as stream:
        header = b"blob %d\0" % os.fstat(stream.fileno()).st_size
        new = partial(hashlib.sha1, header, usedforsecurity=False)
        return hashlib.file_digest(stream, new).hexdigest()


def digests(paths: Iterable[str | Path]) -> dict[str, str]:
    """Return the SHA-256 of each file, by path."""
    return {str(path): sha256(path) for path in sorted(map(str, paths))}
