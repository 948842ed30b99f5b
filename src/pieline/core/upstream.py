"""Copy raw files from a mirror folder or download them, and check their digests."""

import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Literal

import tenacity
from pydantic import Field

from pieline.core.errors import UserError
from pieline.core.files import (
    atomic_path,
    check_lfs_pointers,
    git_blob,
    line_ending_note,
    read_text,
    sha256,
    write_text,
)
from pieline.core.progress import Progress
from pieline.core.records import Frozen, validated
from pieline.core.yamls import read_mapping

BY_COUNTS = "The data were verified by the printed counts, not by a digest."
SELF_VERIFIED = "equal by the verification of the data"
"""Reason why a count that verifies the data is not compared with the printed count."""
_CHUNK_BYTES = 1 << 16
_TIMEOUT_SECONDS = 60.0
_ATTEMPTS = 5
_FIRST_WAIT_SECONDS = 1.0
"""Time before the second attempt; each later attempt waits twice as long as the previous one."""
_TEMPORARY_STATUS = {408, 425, 429, 500, 502, 503, 504}


class UpstreamFile(Frozen):
    """A public file: the URL, and the known digests of the content that the papers used."""

    url: str | None = Field(
        pattern=r"^https?://", description="null if the file can only come from a mirror folder"
    )
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    git_blob: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{40}$",
        description="name of the content in a Git repository (`git hash-object`)",
    )

    @property
    def identity(self) -> str:
        """A known digest of the content, with its type; empty if no digest is known."""
        if self.sha256:
            return f"SHA-256 {self.sha256}"
        return f"Git object {self.git_blob}" if self.git_blob else ""

    def mismatch(self, path: str | Path) -> str:
        """Describe how a file differs from the known digests; return "" if the digests match."""
        for kind, expected, digest_of in (
            ("SHA-256", self.sha256, sha256),
            ("Git object", self.git_blob, git_blob),
        ):
            if expected and (actual := digest_of(path)) != expected:
                return f"{kind} is {actual}, expected {expected}{line_ending_note(path)}"
        return ""


class Verification(Frozen):
    """Result of checking whether a raw file is the one that a paper used.

    Attributes:
        verified: How the file was verified: by digest or, if no digest is known, by the counts in
            the paper; None if the file differs or was not checked.
        problem: Difference from the paper's file; empty if none was found.
    """

    verified: Literal["digest", "counts"] | None = None
    problem: str = ""

    @property
    def data_note(self) -> str:
        """Note for tables if the data is verified only by counts or has a problem, else ""."""
        if self.verified == "counts":
            return BY_COUNTS
        return f"not verified as the public data: {self.problem}" if self.problem else ""


NOT_VERIFIED = Verification()


def load_upstream(path: str | Path) -> dict[str, UpstreamFile]:
    """Return the public files in data/upstream.yaml, by their names in results/raw/ and in mirrors.

    Raises:
        UserError: data/upstream.yaml cannot be read, or an entry is invalid; the message states the
            location.
    """
    return {
        name: validated(UpstreamFile, fields, where=f"{path}: {name}", hint="correct it")
        for name, fields in read_mapping(path, hint="see the top of the file").items()
    }


def copy_file(
    source: str | Path,
    output: str | Path,
    *,
    hint: str,
    upstream: UpstreamFile | None = None,
    name: str = "",
) -> None:
    """Copy a raw file, and check that the file has the known digest, if there is one.

    Args:
        source: File in a mirror or sample folder.
        output: Target path, written atomically.
        hint: Hint for the error message about a missing file.
        upstream: Public file that the source must match, or None to accept any content.
        name: Name of the public file. If no digest of the public file is known, the name and the
            actual digest are printed on stderr.

    Raises:
        UserError: The file is missing or has another digest.
    """
    if not Path(source).is_file():
        raise UserError("no such file", where=source, hint=hint)
    check_lfs_pointers(source)
    with atomic_path(output) as temporary:
        shutil.copyfile(source, temporary)
        if upstream:
            problem = upstream.mismatch(temporary)
            if problem:
                raise UserError(problem, where=source, hint="replace the file in the mirror")
            if not upstream.identity:
                _print_unknown_digest(name, temporary, f"copied from {source}")


def download(
    upstream: UpstreamFile, output: str | Path, *, name: str, digests: str | Path | None = None
) -> None:
    """Download a public file, and write the file only if the download is complete and unaltered.

    After a temporary failure, the download is continued where it broke off, up to four times.

    If no digest is known, the first download records the actual digest in the folder `digests`, and
    later downloads must have the recorded digest; every download prints the digest on stderr. If
    `digests` is None, no digest is recorded or printed.

    Raises:
        UserError: The file has no public URL, the download fails or is incomplete, or the digest
            differs from the known or recorded digest.
    """
    if upstream.url is None:
        raise UserError(
            "no public URL is known", where=name, hint="set mirror to a folder that contains it"
        )
    digest_file = Path(digests, f"{name}.sha256") if digests and not upstream.identity else None
    is_first_download = digest_file is not None and not digest_file.exists()
    if digest_file and not is_first_download:
        expected = upstream.model_copy(update={"sha256": read_text(digest_file).strip()})
        if_changed = (
            "the file changed upstream since the first download;"
            f" delete {digest_file} to accept the new one"
        )
    else:
        expected = upstream
        if_changed = "the file changed upstream"
    if_offline = f"check the network, or save the file as {name} in a folder and set mirror to it"
    try:
        with atomic_path(output) as temporary:
            _fetch(upstream.url, temporary, name)
            if problem := expected.mismatch(temporary):
                raise UserError(problem, where=upstream.url, hint=if_changed)
            if digest_file:
                relation = "the same as at"
                if is_first_download:
                    write_text(digest_file, f"{sha256(temporary)}\n")
                    relation = "recorded as that of"
                remark = f"{relation} the first download in {digest_file}"
                _print_unknown_digest(name, temporary, remark)
    except urllib.error.HTTPError as error:
        raise UserError(f"HTTP status {error.code}", where=upstream.url, hint=if_offline) from None
    except (urllib.error.URLError, OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"cannot download: {reason}", where=upstream.url, hint=if_offline) from None


def _fetch(url: str, path: Path, name: str) -> None:
    """Download a URL to a file, with retries after temporary failures."""

    def report(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        print(f"{name}: {error}; next attempt in {state.upcoming_sleep:g} s", file=sys.stderr)

    attempts = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_ATTEMPTS),
        wait=tenacity.wait_exponential(multiplier=_FIRST_WAIT_SECONDS),
        retry=tenacity.retry_if_exception(_is_temporary),
        before_sleep=report,
        reraise=True,
    )
    with Progress(total=None, desc=name, unit="B", unit_scale=True) as progress:
        transfer = _Transfer(url, path, progress)
        attempts(transfer.attempt)


class _Transfer:
    """A download that continues where an earlier attempt broke off."""

    def __init__(self, url: str, path: Path, progress: Progress) -> None:
        self._url, self._path, self._progress = url, path, progress
        self._version = ""

    def attempt(self) -> None:
        """Download the file, or only the missing part if the server still has the same version.

        Raises:
            OSError: The connection fails or breaks off.
            HTTPException: The response is invalid.
        """
        request = urllib.request.Request(self._url)  # noqa: S310
        if self._version and self._path.exists():
            request.add_header("Range", f"bytes={self._path.stat().st_size}-")
            # With this header, the server sends the whole file if the version has changed.
            request.add_header("If-Range", self._version)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
            is_continued = response.status == HTTPStatus.PARTIAL_CONTENT
            bytes_before = self._path.stat().st_size if is_continued else 0
            entity_tag = response.headers.get("ETag") or ""
            # Weak tags (W/) do not identify the exact bytes.
            self._version = "" if entity_tag.startswith("W/") else entity_tag
            bytes_sent = response.headers.get("Content-Length")
            total = bytes_before + int(bytes_sent) if bytes_sent else None
            self._progress.total, self._progress.n = total, bytes_before
            with self._path.open("ab" if is_continued else "wb") as stream:
                while chunk := response.read(_CHUNK_BYTES):
                    stream.write(chunk)
                    self._progress.update(len(chunk))
        size = self._path.stat().st_size
        if total is not None and size != total:
            raise ConnectionError(f"the connection ended after {size} of {total} bytes")


def _is_temporary(error: BaseException) -> bool:
    """Return whether a download that failed with this error may succeed in a later attempt."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in _TEMPORARY_STATUS
    return isinstance(error, OSError | HTTPException)


def is_released(paths: Mapping[str, str | Path], upstream: Mapping[str, UpstreamFile]) -> bool:
    """Return whether all raw files have the known digests of the public files.

    Args:
        paths: Path of each raw file, by name of the public file.
        upstream: Public files by name. If a digest is not known, the result is False.
    """
    for name, path in paths.items():
        public_file = upstream.get(name)
        if public_file is None or not public_file.identity or public_file.mismatch(path):
            return False
    return True


def verify(
    name: str, path: str | Path, upstream: Mapping[str, UpstreamFile], *, problem: str
) -> Verification:
    """Verify a raw file by its digest or, if no digest is known, by the counts in the paper.

    Args:
        name: Name of the public file.
        path: Path of the raw file.
        upstream: Public files by name.
        problem: Difference between the counts in the file and the printed counts; empty if the
            counts agree.
    """
    if is_released({name: path}, upstream):
        return Verification(verified="digest")
    if name in upstream:
        # A wrong size or digest explains the difference between the counts.
        problem = upstream[name].mismatch(path) or problem
    return Verification(problem=problem) if problem else Verification(verified="counts")


def _print_unknown_digest(name: str, path: Path, remark: str) -> None:
    """Warn that no digest of a public file is known; print the actual digest and a remark on it."""
    print(f"{name}: no digest is known; SHA-256 is {sha256(path)}, {remark}", file=sys.stderr)
