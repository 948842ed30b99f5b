"""Storage of embeddings: npy files, and the finished parts of unfinished jobs."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pieline.core.code import code_digest
from pieline.core.files import atomic_path, canonical_json
from pieline.models.embedder import EmbedderEntry

Vectors = NDArray[np.float32]


class Shards:
    """Finished parts of an embedding job, stored in a folder next to the job's output.

    File names contain a key, so that a job with another model, text file or code does not reuse the
    parts.
    """

    def __init__(self, folder: str | Path, key: str) -> None:
        self._folder = Path(folder)
        self._key = key

    @classmethod
    def beside(
        cls, output: str | Path, entry: EmbedderEntry, *, weights: dict[str, str], texts: str
    ) -> "Shards":
        """Return the shards of the job that writes `output`.

        Args:
            output: Path of the job's output.
            entry: Entry of the model.
            weights: Digests of the model's weights, by file name.
            texts: Digest of the file of texts.
        """
        code = code_digest("pieline.studies.idiolink.predictions.embedding")
        inputs_of_job = canonical_json([entry.execution_spec(), weights, texts, code])
        key = hashlib.sha256(inputs_of_job.encode()).hexdigest()[:16]
        path = Path(output)
        return cls(path.parent / f".{path.stem}.shards", key)

    def part(self, name: str) -> "Shards":
        """Return the shards for one group of the job's texts; `name` is the name of the group."""
        return Shards(self._folder, f"{self._key}-{name}")

    def load(self, number: int) -> tuple[Vectors, ...] | None:
        """Return the arrays of the shard `number`, or None if the shard is not finished."""
        path = self._path(number)
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as arrays:
            return tuple(arrays[name] for name in sorted(arrays.files))

    def save(self, number: int, arrays: Sequence[Vectors]) -> None:
        """Save the arrays of the shard `number`, atomically."""
        # `load` sorts the arrays by name.
        named_arrays = {f"array{index}": array for index, array in enumerate(arrays)}
        with atomic_path(self._path(number)) as temporary, temporary.open("wb") as stream:
            np.savez(stream, **named_arrays)  # type: ignore[arg-type] # named like no keyword

    def remove(self) -> None:
        """Delete the folder with all shards, including shards with other keys."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._key}-{number:05d}.npz"


def save_vectors(path: str | Path, vectors: Vectors) -> None:
    """Save embeddings as a float32 npy file, atomically."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, vectors.astype(np.float32, copy=False), allow_pickle=False)
