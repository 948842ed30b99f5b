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
"""Default limit on the unpacked size in bytes."""

REFUSED = "download it again, or do not use it"

_MOST_OF_HEADERS = 1 << 24
"""Limit on the number of bytes outside file contents, such as those of tar headers."""
_MOST_OF_FIRST = 1 << 28
"""Limit on the first file's size in bytes when only the first file is read."""
_LEVEL = 12
_END = bytes(2 * tarfile.BLOCKSIZE)
"""End-of-archive marker of a tar file."""


def pack(archive: str | Path, members: Iterable[tuple[str, bytes]]) -> None:
    """Write files to an archive in the given order, without owners or times.

    Args:
        archive: Path of the archive, written atomically.
        members: Name and content of each file.
    """
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
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
        most_bytes: Limit on the total size of the unpacked files.
        if_larger: Hint for archives that exceed this limit.

    Raises:
        UserError: The archive is invalid or too large, has a duplicate or disallowed name, or
            contains anything except regular files and folders (which are skipped). Files extracted
            before the error remain in `place` and must not be used.
    """
    names: dict[str, str] = {}
    remaining = most_bytes

    def refuse(what: str, hint: str = REFUSED) -> UserError:
        return UserError(what, where=archive, hint=hint)

    with Path(archive).open("rb") as packed:
        stream = _Unpacked(packed)
        try:
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
                for member in tar:
                    name = member.name
                    if member.isdir() and is_plain(name):
                        continue
                    if not (member.isreg() and is_plain(name) and allowed(name)):
                        raise refuse(f"contains {name!r}, which is not allowed")
                    if normalize_name(name) in names:
                        raise refuse(f"contains the file {name} twice")
                    names[normalize_name(name)] = name
                    remaining -= member.size
                    if remaining < 0:
                        raise refuse(f"unpacks to more than {_size(most_bytes)}", if_larger)
                    stream.allowed += member.size
                    tar.extract(member, place, filter="data")
            while stream.read(1 << 16):
                pass
        except (tarfile.TarError, zstandard.ZstdError) as error:
            raise refuse(f"not a complete .tar.zst file: {error}") from None
    if stream.end != _END:
        raise refuse("not a complete .tar.zst file: it is truncated")
    return list(names.values())


def first_member(archive: str | Path, name: str) -> bytes:
    """Return the content of an archive's first file, whose name must be `name`.

    Raises:
        UserError: The archive is invalid, or its first file has another name or is too large.
    """
    try:
        with Path(archive).open("rb") as packed:
            stream = _Unpacked(packed)
            stream.allowed += _MOST_OF_FIRST
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
                member = tar.next()
                if member and member.isreg() and member.name == name:
                    return bytes(tar.extractfile(member).read())
    except (tarfile.TarError, zstandard.ZstdError) as error:
        raise UserError(f"not a .tar.zst file: {error}", where=archive, hint=REFUSED) from None
    raise UserError(f"its first file is not {name}", where=archive, hint=REFUSED)


def is_plain(name: str) -> bool:
    """Return whether a name is, on every file system, a relative path without hidden parts."""
    parts = normalize_name(name).split("/")
    return (
        not any(part.startswith(".") or not part for part in parts)
        and name.isprintable()
        and not set(name) & {"\\", ":"}
    )


def normalize_name(name: str) -> str:
    """Return a form of a name that is equal for names that collide if case is ignored."""
    return unicodedata.normalize("NFC", name).casefold()


class _Unpacked:
    """Decompressed tar stream of an archive, limited to `allowed` further bytes."""

    def __init__(self, packed: BinaryIO) -> None:
        unpacker = zstandard.ZstdDecompressor()
        self._stream = unpacker.stream_reader(packed, read_across_frames=True)
        self.allowed = _MOST_OF_HEADERS
        self.end = b""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, or none at the end of the stream.

        Raises:
            ReadError: More bytes than allowed were read.
        """
        data = self._stream.read(size)
        self.allowed -= len(data)
        if self.allowed < 0:
            raise tarfile.ReadError("its headers are too large")
        self.end = (self.end + data)[-len(_END) :]
        return data


def _size(size: int) -> str:
    return f"{size / GIB:g} GiB" if size >= GIB // 100 else f"{size:,} bytes"
