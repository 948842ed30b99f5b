"""List, download and locate checkpoints on the Hugging Face Hub."""

import glob
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx2
import tenacity
from huggingface_hub import (
    DryRunFileInfo,
    constants,
    get_cached_repo_tree,
    get_token,
    snapshot_download,
)
from huggingface_hub.errors import (
    CachedRepoTreeNotFoundError,
    DryRunError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils.tqdm import tqdm

from pieline.core.errors import UserError
from pieline.core.progress import Progress
from pieline.models.entries import ModelEntry

T = TypeVar("T")

_ATTEMPTS = 5
"""Number of attempts to download a checkpoint."""

HUB_TIMEOUT_S = 10.0
"""Seconds after which a job considers the Hub unreachable."""

DOWNLOAD_HINT = (
    "run `snakemake --cores 1 weights` with the options of this run on a machine with network"
    " access and the same HF_HOME"
)
"""Hint in errors about weights that are missing from the cache."""

_NOT_LOADED = (
    "*.onnx*", "*.gguf", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.pt", "*.pth", "*.ckpt",
    "onnx/*", "openvino/*", "coreml/*", "original/*", "consolidated*.safetensors",
    "*.md", "*.png", "*.jpg", "*.jpeg", "*.gif", "*.pdf", ".gitattributes",
)  # fmt: skip
"""Patterns of files that are never loaded: weights in other formats, texts and images."""


class HiddenBar(tqdm):
    """Progress bar for huggingface_hub that shows nothing."""

    def __init__(self, *arguments: Any, name: str | None = None, **options: Any):
        self.name = name
        super().__init__(*arguments, **options | {"disable": True})  # type: ignore[no-untyped-call]


class UnreachableError(UserError):
    """The Hub does not respond, or `HF_HUB_OFFLINE` is set."""


class Listing(NamedTuple):
    """Files of a repository that are needed to load a checkpoint.

    Attributes:
        commit: Commit of the repository.
        sizes: Size in bytes by file name.
        missing: Bytes of the files that are not in the cache.
    """

    commit: str
    sizes: dict[str, int]
    missing: int


@dataclass(frozen=True)
class HubCheckpoint:
    """Weights or code in a repository on the Hub.

    Attributes:
        repository: Name of the repository.
        revision: Pinned commit; None for the main branch as it was when first downloaded.
        pickled: Whether the weights are loaded from a pickle.
        only: Pattern of the files to load; None for all files in supported formats.
    """

    repository: str
    revision: str | None = None
    pickled: bool = False
    only: str | None = None

    def __str__(self) -> str:
        return f"{self.repository} at {self.revision[:8] if self.revision else 'main'}"

    def needed(self, names: Iterable[str]) -> list[str]:
        """Return the names of the files to load, given the names of all files in the repository."""
        if self.only:
            return [name for name in names if fnmatch(name, self.only)]
        skipped = self._skipped()
        loaded = [name for name in names if not any(fnmatch(name, pattern) for pattern in skipped)]
        if "model.safetensors" in loaded:
            # Some repositories also have the same weights in shards.
            return [name for name in loaded if not fnmatch(name, "model-*-of-*.safetensors")]
        return loaded

    def cached(self) -> Listing | None:
        """Return the files of the checkpoint if all of them are in the cache, else None."""
        try:
            tree = get_cached_repo_tree(self.repository, revision=self.revision)
        except CachedRepoTreeNotFoundError:
            return None
        all_sizes = {file.path: file.size for file in tree}
        sizes = {name: all_sizes[name] for name in self.needed(all_sizes)}
        try:
            commit = self._folder(sizes).name
        except LocalEntryNotFoundError:
            return None
        return Listing(commit, sizes, missing=0)

    def request_listing(self, *, timeout_s: float = 30.0) -> Listing:
        """Request the names and sizes of the files from the Hub.

        Raises:
            UnreachableError: The Hub does not respond in time, or HF_HUB_OFFLINE is set.
            UserError: The repository or commit does not exist, access is denied, the Hub returns
                another error, or the repository has no weights in a supported format.
        """
        files = self._request_files(timeout_s)
        files_by_name = {file.filename: file for file in files}
        loaded = [files_by_name[name] for name in self.needed(files_by_name)]
        listing = Listing(
            files[0].commit_hash if files else "",
            {file.filename: file.file_size or 0 for file in loaded},
            sum(file.file_size or 0 for file in loaded if file.will_download),
        )
        weights_pattern = "*.bin" if self.pickled else "*.safetensors"
        has_weights = any(fnmatch(name, weights_pattern) for name in listing.sizes)
        if not self.only and not has_weights:
            raise UserError(
                f"there are no {'pickled' if self.pickled else 'safetensors'} weights at this"
                " commit",
                where=str(self),
                hint="pin a commit that has them, or set pickled: true to convert a pickle",
            )
        return listing

    def _request_files(self, timeout_s: float) -> list[DryRunFileInfo]:
        """Request information on all files from the Hub, and convert errors to a `UserError`."""
        if constants.is_offline_mode():
            raise UnreachableError("HF_HUB_OFFLINE is set", where=str(self), hint=DOWNLOAD_HINT)
        try:
            return _call_with_timeout(timeout_s, self._dry_run)
        except GatedRepoError:
            reason = "the account of HF_TOKEN has not" if get_token() else "HF_TOKEN is not set"
            page = f"{constants.ENDPOINT}/{self.repository}"
            raise UserError(
                f"downloading it requires accepting its license ({reason})",
                where=str(self),
                hint=f"accept it at {page} and set HF_TOKEN to a token of that account",
            ) from None
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            missing = "commit" if isinstance(error, RevisionNotFoundError) else "repository"
            raise UserError(
                f"the hub has no such {missing}",
                where=str(self),
                hint="fix the model's entry, or set HF_TOKEN if the repository is private",
            ) from None
        except HfHubHTTPError as error:
            message = f"{error.response.status_code} {error.server_message or ''}".strip()
            hint = "check HF_TOKEN and HF_ENDPOINT, or try again later"
            raise UserError(f"the hub answers {message}", where=str(self), hint=hint) from None
        except (httpx2.HTTPError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise UnreachableError(
                f"{constants.ENDPOINT} cannot be reached ({reason})",
                where=str(self),
                hint=DOWNLOAD_HINT,
            ) from None

    def download(self, listing: Listing) -> Path:
        """Download the files that the cache lacks.

        After network errors and errors of the server, the download is tried again. An interrupted
        download keeps the files that are complete.

        Returns:
            Path of the snapshot's folder.

        Raises:
            UserError: The download fails, for example because the disk is full.
        """
        with Progress(total=listing.missing, desc=str(self), unit="B", unit_scale=True) as progress:

            class ByteCounter(HiddenBar):
                """Progress bar for huggingface_hub that updates `progress` instead."""

                def update(self, n: float | None = 1) -> None:
                    if self.name == "huggingface_hub.snapshot_download":
                        progress.update(n)

            call_with_retries = tenacity.Retrying(
                stop=tenacity.stop_after_attempt(_ATTEMPTS),
                wait=tenacity.wait_exponential(),
                retry=tenacity.retry_if_exception(_is_temporary),
                reraise=True,
            )
            try:
                return call_with_retries(
                    self._folder, listing.sizes, local_files_only=False, tqdm_class=ByteCounter
                )
            except (httpx2.HTTPError, OSError, RuntimeError) as error:
                reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
                raise UserError(
                    f"the download was interrupted: {reason or type(error).__name__}",
                    where=str(self),
                    hint="run the same command again to resume it",
                ) from None

    def snapshot(self) -> Path:
        """Download missing files, and return the path of the snapshot in the cache.

        If the cache has all files, no request is made. If the Hub does not respond, a snapshot in
        the cache is used even though files may be missing.

        Raises:
            UnreachableError: The cache has no snapshot and the Hub does not respond.
            UserError: `request_listing` or `download` fails.
        """
        cached_files = self.cached()
        if cached_files:
            return self._folder(cached_files.sizes)
        try:
            return self.download(self.request_listing(timeout_s=HUB_TIMEOUT_S))
        except UnreachableError as error:
            try:
                return self._folder()
            except LocalEntryNotFoundError:
                what = f"incomplete in {constants.HF_HUB_CACHE}, and {error.what}"
                raise UnreachableError(what, where=error.where, hint=error.hint) from None

    def _folder(self, names: Iterable[str] | None = None, **options: Any) -> Path:
        """Return the folder of the snapshot in the cache, by default without a request to the Hub.

        Args:
            names: Files that must be in the folder; None: any files.
            options: Options of `snapshot_download`.

        Raises:
            LocalEntryNotFoundError: A file is missing, and no request is allowed.
        """
        options = {"revision": self.revision, "local_files_only": True} | options
        if names is not None:
            options["allow_patterns"] = [glob.escape(name) for name in names]
        return Path(snapshot_download(self.repository, **options))

    def _dry_run(self) -> list[DryRunFileInfo]:
        """Request information on the files, without downloading them."""
        try:
            return snapshot_download(
                self.repository,
                revision=self.revision,
                allow_patterns=self.only,
                ignore_patterns=None if self.only else self._skipped(),
                dry_run=True,
                tqdm_class=HiddenBar,
            )
        except (DryRunError, LocalEntryNotFoundError) as error:
            # The cause is the error of the request.
            raise error.__cause__ or error from None

    def _skipped(self) -> list[str]:
        """Return the patterns of files that are never loaded from this checkpoint."""
        return [*_NOT_LOADED, "*.safetensors" if self.pickled else "*.bin"]


def hub_checkpoint(entry: ModelEntry) -> HubCheckpoint | None:
    """Return the checkpoint of an entry whose source is the Hub; None for other entries."""
    if getattr(entry, "source", None) != "hub":
        return None
    fields = vars(entry)
    return HubCheckpoint(
        fields.get("repository") or fields["checkpoint"],
        fields.get("revision"),
        pickled=bool(fields.get("pickled")),
        only=str(fields["path"]) if fields.get("path") else None,
    )


def unpinned_error(entry: ModelEntry) -> UserError | None:
    """Return an error if the entry of a language model on the Hub pins no commit, else None."""
    fields = vars(entry)
    if fields.get("kind") != "llm" or fields.get("source") != "hub" or fields.get("revision"):
        return None
    repository = fields["repository"]
    return UserError(
        "no commit is pinned",
        where=repository,
        hint=f"add a commit from https://huggingface.co/{repository}/commits/main, with all"
        f" 40 digits, as revision to the entry of {fields['label']}",
    )


def remote_code_checkpoints(
    entry: ModelEntry, find_file: Callable[[str], Path | None]
) -> list[HubCheckpoint]:
    """Return the other repositories from which a checkpoint loads code.

    The list is empty unless the entry has `trust_remote_code`.

    Args:
        entry: Entry of models.yaml.
        find_file: Function that maps the name of a file of the checkpoint to the file's path, or to
            None if there is no such file.
    """
    if not getattr(entry, "trust_remote_code", False):
        return []
    repositories: set[str] = set()
    for name in ("config.json", "tokenizer_config.json"):
        path = find_file(name)
        if path:
            classes = json.loads(path.read_text(encoding="utf-8")).get("auto_map")
            # A class in another repository is written as "owner/name--module.Class".
            repositories.update(re.findall(r'"([\w.-]+/[\w.-]+)--', json.dumps(classes)))
    revision = getattr(entry, "code_revision", None)
    return [HubCheckpoint(name, revision, only="*.py") for name in sorted(repositories)]


@contextmanager
def offline() -> Iterator[None]:
    """Prevent huggingface_hub from making requests in the block."""
    was_offline = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = was_offline


def _is_temporary(error: BaseException) -> bool:
    """Return whether a download that failed with this error may succeed if it is repeated."""
    if isinstance(error, HfHubHTTPError):
        is_limited = error.response.status_code == httpx2.codes.TOO_MANY_REQUESTS
        return is_limited or error.response.is_server_error
    # The library raises LocalEntryNotFoundError if it cannot request a file's metadata.
    return isinstance(error, httpx2.TransportError | LocalEntryNotFoundError)


def _call_with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Run a call in a thread, because DNS lookups have no timeout, and return the call's result.

    Raises:
        TimeoutError: The call takes longer than `seconds`.
    """
    result: Future[T] = Future()

    def run_call() -> None:
        try:
            result.set_result(call())
        except Exception as error:
            result.set_exception(error)

    threading.Thread(target=run_call, daemon=True).start()
    try:
        return result.result(timeout=seconds)
    except TimeoutError:
        raise TimeoutError(f"no answer in {seconds:g} s") from None
