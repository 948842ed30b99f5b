"""Pack and safely unpack reproducible `.tar.zst` archives."""

import io
import tarfile
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import zstandard

from pieline.core.errors import UserError
from pieline.core.files import atomic_path

GIB = 1 << 30

MOST_UNPACKED = 8 * GIB
"""Default limit on the total size of the files in an archive, in bytes."""

REFUSED = "download it again, or do not use it"
"""Hint for an archive that is invalid or contains something that is not allowed."""

_MAX_HEADER_BYTES = 1 << 24
"""Limit on the number of bytes outside file contents, such as tar headers."""
_MAX_FIRST_FILE_BYTES = 1 << 28
"""Limit on the size of the first file in bytes, when only the first file is read."""
_COMPRESSION_LEVEL = 12
_CHUNK_BYTES = 1 << 16
_END_MARKER = bytes(2 * tarfile.BLOCKSIZE)
"""Bytes at the end of every complete tar file."""


def pack(archive: str | Path, members: Iterable[tuple[str, bytes]]) -> None:
    """Write files to an archive in the given order; owners and times are not stored.

    Args:
        archive: Path of the archive, written atomically.
        members: Name and content of each file.
    """
    packer = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL, write_checksum=True)
    with (
        atomic_path(archive) as temporary,
        temporary.open("wb") as packed,
        packer.stream_writer(packed) as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def unpack(
    archive: str | Path,
    place: str | Path,
    *,
    allowed: Callable[[str], bool],
    most_bytes: int = MOST_UNPACKED,
    if_larger: str = REFUSED,
) -> list[str]:
    """Extract all files of an archive and return their names.

    Args:
        archive: Path of the archive, which may come from an untrusted source.
        place: Folder to extract to.
        allowed: Function that returns whether a name is allowed. Names must also satisfy
            `is_plain`.
        most_bytes: Limit on the total size of the unpacked files, in bytes.
        if_larger: Hint for archives that exceed this limit.

    Raises:
        UserError: The archive is invalid or too large, has a duplicate or disallowed name, or
            contains an entry that is neither a regular file nor a folder (folders are skipped).
            Files that were extracted before the error remain in `place` and must not be used.
    """
    names_by_normalized_name: dict[str, str] = {}
    remaining_bytes = most_bytes

    def refusal(problem: str, hint: str = REFUSED) -> UserError:
        return UserError(problem, where=archive, hint=hint)

    with Path(archive).open("rb") as packed:
        stream = _Unpacked(packed)
        try:
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
                for member in tar:
                    name = member.name
                    if member.isdir() and is_plain(name):
                        continue
                    if not (member.isreg() and is_plain(name) and allowed(name)):
                        raise refusal(f"contains {name!r}, which is not allowed")
                    if normalize_name(name) in names_by_normalized_name:
                        raise refusal(f"contains the file {name} twice")
                    names_by_normalized_name[normalize_name(name)] = name
                    remaining_bytes -= member.size
                    if remaining_bytes < 0:
                        problem = f"unpacks to more than {_format_size(most_bytes)}"
                        raise refusal(problem, if_larger)
                    # The stream may contain headers, and the content that headers announce.
                    stream.readable_bytes += member.size
                    tar.extract(member, place, filter="data")
            # Read the rest of the stream, so that `stream.end` contains the end of the archive.
            while stream.read(_CHUNK_BYTES):
                pass
        except (tarfile.TarError, zstandard.ZstdError) as error:
            raise refusal(f"not a complete .tar.zst file: {error}") from None
    if stream.end != _END_MARKER:
        raise refusal("not a complete .tar.zst file: it is truncated")
    return list(names_by_normalized_name.values())


def first_member(archive: str | Path, name: str) -> bytes:
    """Return the content of an archive's first file, whose name must be `name`.

    Raises:
        UserError: The archive is invalid, or the first file has another name or is too large.
    """
    try:
        with Path(archive).open("rb") as packed:
            stream = _Unpacked(packed)
            stream.readable_bytes += _MAX_FIRST_FILE_BYTES
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
                member = tar.next()
                if member and member.isreg() and member.name == name:
                    return bytes(tar.extractfile(member).read())
    except (tarfile.TarError, zstandard.ZstdError) as error:
        raise UserError(f"not a .tar.zst file: {error}", where=archive, hint=REFUSED) from None
    raise UserError(f"its first file is not {name}", where=archive, hint=REFUSED)


def is_plain(name: str) -> bool:
    """Return whether a name is, on every file system, a relative path without hidden parts."""
    if not name.isprintable() or "\\" in name or ":" in name:
        return False
    parts = normalize_name(name).split("/")
    return all(part and not part.startswith(".") for part in parts)


def normalize_name(name: str) -> str:
    """Return the same text for all names that are equal on a case-insensitive file system."""
    return unicodedata.normalize("NFC", name).casefold()


class _Unpacked:
    """Decompressed tar stream of an archive, with a limit on the bytes that can be read.

    Attributes:
        readable_bytes: Number of bytes that may still be read.
        end: Last bytes that were read, as many as an end marker has.
    """

    def __init__(self, packed: BinaryIO) -> None:
        unpacker = zstandard.ZstdDecompressor()
        self._stream = unpacker.stream_reader(packed, read_across_frames=True)
        self.readable_bytes = _MAX_HEADER_BYTES
        self.end = b""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; an empty result means that the stream has ended.

        Raises:
            ReadError: More than `readable_bytes` were read.
        """
        data = self._stream.read(size)
        self.readable_bytes -= len(data)
        if self.readable_bytes < 0:
            raise tarfile.ReadError("its headers are too large")
        self.end = (self.end + data)[-len(_END_MARKER) :]
        return data


def _format_size(size_in_bytes: int) -> str:
    if size_in_bytes >= GIB // 100:
        return f"{size_in_bytes / GIB:g} GiB"
    return f"{size_in_bytes:,} bytes"
