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
    """Yield a temporary folder that is renamed to `path` if the block succeeds.

    `path` must not exist.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as unfinished:
        complete = Path(unfinished) / path.name
        complete.mkdir()
        with _report_full_disk(path):
            yield complete
        complete.replace(path)


_FULL_BELOW_BYTES = 1 << 20
"""Number of free bytes below which a disk counts as full."""


@contextmanager
def _report_full_disk(path: Path) -> Iterator[None]:
    """Convert a library's exception in the block to an `OSError` if the disk is full.

    torch.save and safetensors report a full disk with exception classes of their own.
    """
    try:
        yield
    except (OSError, UserError):
        raise
    except Exception as error:
        if shutil.disk_usage(path.parent).free < _FULL_BELOW_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise


_PROBE_BYTES = 1 << 16
"""Size of the file that checks whether a folder is writable and its disk is not full."""


def check_writable(folder: str | Path) -> None:
    """Check that files can be written to a folder.

    Raises:
        UserError: The folder is not writable, or its disk is full.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
    except OSError as error:
        error.filename = str(Path(folder).absolute())  # instead of the path of the probe
        raise to_user_error(error) from None


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write bytes to a file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    """Write text to a file atomically, as UTF-8 with the line endings in the text."""
    write_bytes(path, text.encode("utf-8"))


_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
"""Start of the JSON escape of a surrogate code point, which must not occur unpaired."""

_CANONICAL = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
)


def canonical_json(value: Any) -> str:
    """Return a value as compact JSON with sorted keys, so that equal values produce equal text.

    Raises:
        ValueError: The value contains NaN or infinity.
    """
    return _CANONICAL.encode(value)


def indented_json(value: Any) -> str:
    """Return a value as indented JSON with sorted keys and a final newline.

    Raises:
        ValueError: The value contains NaN or infinity.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2, allow_nan=False)
    return text + "\n"


def write_json(path: str | Path, value: Any) -> None:
    """Write a value to a file atomically, as indented JSON with sorted keys.

    Raises:
        ValueError: The value contains NaN or infinity.
    """
    write_text(path, indented_json(value))


def read_json(path: str | Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        UserError: The file cannot be read, is not UTF-8 or is not accepted by `parse_json`.
    """
    text = read_text(path)
    hint = "repair the file or download it again"
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}"
        raise UserError(f"not JSON: {error.msg}", where=where, hint=hint) from None
    except ValueError as error:
        raise UserError(f"not JSON: {error}", where=path, hint=hint) from None


def parse_json(text: str) -> Any:
    """Return the value that JSON text contains.

    Raises:
        ValueError: The text is not JSON, or contains NaN, an infinite number, a duplicate key, an
            unpaired surrogate or excessive nesting.
    """
    try:
        value = json.loads(
            text,
            parse_constant=_reject_constant,
            parse_float=_parse_finite_number,
            object_pairs_hook=_object_with_unique_keys,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _SURROGATE_ESCAPE.search(text):
        canonical_json(value).encode()  # raises a ValueError for unpaired surrogates
    return value


def _parse_finite_number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        _reject_constant(text)
    return number


def _reject_constant(text: str) -> NoReturn:
    """Raise a `ValueError` for a number that is NaN or infinite."""
    raise ValueError(f"{text} is not a number")


def _object_with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dictionary, given the keys and values in the file.

    Raises:
        ValueError: A key occurs more than once; Python would keep only the last value.
    """
    json_object: dict[str, Any] = {}
    for key, value in pairs:
        if key in json_object:
            raise ValueError(f"duplicate key {key!r}")
        json_object[key] = value
    return json_object


def files_below(folder: str | Path, *endings: str) -> list[Path]:
    """Return the files below a folder, including those in linked folders, sorted by path.

    Args:
        folder: The folder.
        endings: Extensions that the files may have; without this argument, all files are returned.
    """
    files: list[Path] = []
    for parent, _, names in os.walk(folder, followlinks=True):
        for name in names:
            path = Path(parent, name)
            if endings and path.suffix not in endings:
                continue
            if path.is_file():
                files.append(path)
    return sorted(files)


_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
"""Start of a pointer, which Git checks out in place of a file that Git LFS has not downloaded."""
_MAX_POINTER_BYTES = 1024
"""Size that no Git LFS pointer reaches, so that larger files need not be read."""


def check_lfs_pointers(*paths: str | Path) -> None:
    """Check that files, and all files in folders, are not Git LFS pointers.

    Args:
        paths: Files and folders; missing files are ignored.

    Raises:
        UserError: A file is a Git LFS pointer.
    """
    for path in map(Path, paths):
        files = files_below(path) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and file.stat().st_size < _MAX_POINTER_BYTES:
                _check_lfs_pointer(file, file.read_bytes())


def _check_lfs_pointer(path: str | Path, data: bytes) -> None:
    """Raise a `UserError` if the content of a file, `data`, is a Git LFS pointer."""
    if data.startswith(_LFS_POINTER):
        raise UserError(
            "a Git LFS pointer instead of the file", where=path, hint="run `git lfs pull` there"
        )


GZIP_START = b"\x1f\x8b"
"""First bytes of a gzipped file."""


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file; keep the line endings, and remove a byte order mark.

    If the file name ends in .gz, the file is decompressed.

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


_INSPECTED_BYTES = 1 << 16
"""Number of bytes at the beginning of a file in which Windows line endings are searched."""


def line_ending_note(path: str | Path) -> str:
    """Return a note for an error message about a file with Windows line endings, else ""."""
    with Path(path).open("rb") as stream:
        beginning = stream.read(_INSPECTED_BYTES)
    return " (the file has Windows line endings)" if b"\r\n" in beginning else ""


@contextmanager
def open_gzip(path: str | Path) -> Iterator[gzip.GzipFile]:
    """Open a gzip file for atomic writing; identical content produces byte-identical files.

    The gzip header contains neither a timestamp nor a file name. The compression level is 6, the
    default of the gzip program, because level 9 takes five times as long and makes rankings only 7%
    smaller.
    """
    with (
        atomic_path(path) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as stream,
    ):
        yield stream


_MIN_CACHED_BYTES = 1 << 22
"""Minimum size of the files whose digests are cached."""


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as a hexadecimal string."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of bytes as a hexadecimal string."""
    return hashlib.sha256(data).hexdigest()


def cached_sha256(path: Path, cache: Path) -> str:
    """Return the SHA-256 of a file; the digests of large files are cached in a JSON file.

    The cache is keyed by path, size and ctime. Programs cannot set the ctime, in contrast to the
    modification time.

    Args:
        path: File to hash.
        cache: JSON file, which is created if it does not exist.
    """
    state = path.stat()
    if state.st_size < _MIN_CACHED_BYTES:
        return sha256(path)
    key = f"{path.absolute()} {state.st_size} {state.st_ctime_ns}"
    cached_digests = read_json(cache) if cache.exists() else {}
    if key not in cached_digests:
        digest = sha256(path)
        # Read the cache again, because another process may have extended it in the meantime.
        cached_digests = read_json(cache) if cache.exists() else {}
        cached_digests[key] = digest
        write_json(cache, cached_digests)
    return str(cached_digests[key])


def git_blob(path: str | Path) -> str:
    """Return the Git object name of a file's content, as printed by `git hash-object`."""
    with Path(path).open("rb") as stream:
        # Git hashes a header with the size of the file, and then the content.
        header = b"blob %d\0" % os.fstat(stream.fileno()).st_size
        return hashlib.file_digest(
            stream, lambda: hashlib.sha1(header, usedforsecurity=False)
        ).hexdigest()


def digests(paths: Iterable[str | Path]) -> dict[str, str]:
    """Return the SHA-256 of each file, by path."""
    names = sorted(str(path) for path in paths)
    return {name: sha256(name) for name in names}
