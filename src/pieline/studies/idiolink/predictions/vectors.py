"""Storage of embeddings: npy files, their manifests, and shards of unfinished jobs."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pieline.core.code import code_digest
from pieline.core.files import atomic_path, canonical_json, sha256, write_json
from pieline.core.records import Record
from pieline.models.embedder import EmbedderEntry

Vectors = NDArray[np.float32]


class EmbeddingManifest(Record):
    """Origin of an npy file of embeddings.

    Attributes:
        checkpoint: Name of the model on the Hugging Face Hub.
        source: Source of the weights.
        revision: Commit on the Hub; null for weights from another source.
        dtype: Precision of the forward pass; the file itself is float32.
        weights: SHA-256 of the loaded files by name; empty for weights from the Hub, which the
            revision identifies.
        texts: SHA-256 of the file with the embedded records.
        rows: Number of embeddings.
        dimensions: Number of dimensions.
        vectors: SHA-256 of the npy file.
    """

    checkpoint: str
    source: str
    revision: str | None
    dtype: str
    weights: dict[str, str]
    texts: str
    rows: int
    dimensions: int
    vectors: str


class Shards:
    """Finished parts of an embedding job, stored next to its output.

    File names contain a key, so that jobs with another model, text file or code do not reuse parts.
    """

    def __init__(self, folder: str | Path, key: str) -> None:
        self._folder = Path(folder)
        self._key = key

    @classmethod
    def beside(
        cls, output: str | Path, entry: EmbedderEntry, *, weights: dict[str, str], texts: str
    ) -> "Shards":
        """Return the shards of the job that writes `output`; `weights` and `texts` are digests."""
        code = code_digest("pieline.studies.idiolink.predictions.embedding")
        described = canonical_json([entry.execution_spec(), weights, texts, code])
        key = hashlib.sha256(described.encode()).hexdigest()[:16]
        place = Path(output)
        return cls(place.parent / f".{place.stem}.shards", key)

    def part(self, name: str) -> "Shards":
        """Return the shards of one of the job's passes over the texts."""
        return Shards(self._folder, f"{self._key}-{name}")

    def load(self, number: int) -> tuple[Vectors, ...] | None:
        """Return the arrays of a part, or None if the part is not finished."""
        path = self._path(number)
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as arrays:
            return tuple(arrays[name] for name in sorted(arrays.files))

    def save(self, number: int, arrays: Sequence[Vectors]) -> None:
        """Save a finished part."""
        named_arrays = {f"array{place}": array for place, array in enumerate(arrays)}
        with atomic_path(self._path(number)) as temporary, temporary.open("wb") as stream:
            np.savez(stream, **named_arrays)  # type: ignore[arg-type] # named like no keyword

    def remove(self) -> None:
        """Delete all parts."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._key}-{number:05d}.npz"


def save_vectors(path: str | Path, vectors: Vectors) -> None:
    """Save embeddings as a float32 npy file, atomically."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, vectors.astype(np.float32, copy=False), allow_pickle=False)


def save_manifest(
    vectors: str | Path,
    entry: EmbedderEntry,
    *,
    revision: str | None,
    weights: dict[str, str],
    texts: str,
) -> None:
    """Save the manifest of an npy file next to it, with the extension .json."""
    rows, dimensions = np.load(vectors, mmap_mode="r").shape
    manifest = EmbeddingManifest(
        checkpoint=entry.checkpoint,
        source=entry.source,
        revision=revision,
        dtype=entry.dtype,
        weights=weights,
        texts=texts,
        rows=rows,
        dimensions=dimensions,
        vectors=sha256(vectors),
    )
    write_json(Path(vectors).with_suffix(".json"), manifest.model_dump())
