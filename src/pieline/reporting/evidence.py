"""Read metric files, and check the files from which the metrics were computed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pieline.core.conditions import digest_of
from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_json, sha256
from pieline.core.sidecars import MAKE_AGAIN, Digests, check_digests, check_made

Json = dict[str, Any]
KEY_SHOWN = 12
"""Number of characters of a recorded answer's key that the page shows."""
T = TypeVar("T")


@dataclass
class Pool:
    """Collects the texts behind several metric files, so that the page contains each text once.

    Attributes:
        texts: Fields of each text, by dataset file and by id.
    """

    texts: dict[str, dict[str, Json]] = field(default_factory=dict)
    _loaded: dict[tuple[str, str], Any] = field(default_factory=dict)

    def read(self, path: str, load: Callable[[str], T]) -> T:
        """Return `load(path)`, or the cached result if `load` has already read the file."""
        key = (path, f"{load.__module__}.{load.__qualname__}")
        if key not in self._loaded:
            self._loaded[key] = load(path)
        content: T = self._loaded[key]
        return content

    def add(self, path: str, name: str, make: Callable[[], Json]) -> None:
        """Add the text `name` of a dataset file, as `make` returns it, unless the pool has it.

        Args:
            path: Path of the dataset file.
            name: Id of the text in the dataset file.
            make: Function that returns the fields of the text.
        """
        texts = self.texts.setdefault(path, {})
        if name not in texts:
            texts[name] = make()


@dataclass(frozen=True)
class MetricFile:
    """A metric file: its path, SHA-256 and fields."""

    path: str
    digest: str
    fields: Json

    @property
    def inputs(self) -> dict[str, str]:
        """SHA-256 of each file from which the metrics were computed, by path."""
        return dict(self.fields["computed_from"])

    @property
    def conditions_digest(self) -> str | None:
        """Digest of the conditions stated in the file; None if the file states no conditions."""
        conditions = self.fields.get("conditions")
        return conditions and digest_of(canonical_json(conditions))

    def predictions(self, ending: str) -> list[str]:
        """Return the paths of the input files in results/predictions that end with `ending`."""
        return [
            path
            for path in self.inputs
            if path.startswith("results/predictions/") and path.endswith(ending)
        ]


def load_metric_file(path: str | Path) -> MetricFile:
    """Read a metric file of any study.

    Raises:
        UserError: The file does not list the files from which it was computed.
    """
    fields = read_json(path)
    if not isinstance(fields, dict) or not isinstance(fields.get("computed_from"), dict):
        raise UserError("no field 'computed_from'", where=path, hint="recreate the file")
    return MetricFile(str(path), sha256(path), fields)


def check_metrics(
    paths: Iterable[str], expected_digests: Mapping[str, str], known: Digests | None = None
) -> None:
    """Check that metric files match the current configuration.

    Args:
        paths: Paths of the metric files.
        expected_digests: Digest of the expected conditions of each metric file, by path. Metric
            files without an entry may have been computed under any conditions.
        known: Digests of files that were already read, by path.

    Raises:
        UserError: A metric file was changed or copied, one of its inputs is missing or has a
            different digest, or the file was computed under different conditions. The hint contains
            the command that recreates the file.
    """
    known = Digests() if known is None else known
    for metric in map(load_metric_file, paths):
        check_made([metric.path], known)
        changed = f"is not the file that {metric.path} was computed from"
        hint = MAKE_AGAIN.format(metric.path)
        check_digests(metric.inputs, changed=changed, hint=hint, known=known)
        expected_digest = expected_digests.get(metric.path)
        if expected_digest is not None and expected_digest != metric.conditions_digest:
            raise UserError(
                "computed with settings or a model that differ from the configuration",
                where=metric.path,
                hint=hint,
            )


def input_of(metric: MetricFile, ending: str) -> str:
    """Return the path of the first input of a metric file whose path ends with `ending`.

    Raises:
        UserError: No input ends with `ending`.
    """
    paths = [path for path in metric.inputs if path.endswith(ending)]
    if not paths:
        raise UserError(f"no input *{ending}", where=metric.path, hint="recreate the file")
    return paths[0]
