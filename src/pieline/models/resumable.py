"""Resume an interrupted training run after its last complete epoch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pieline.core.files import atomic_path


class ResumableTraining:
    """State of a training run, which is saved after each epoch and restored after an interruption.

    The state is saved to a file, the checkpoint. A checkpoint with a different key is ignored and
    overwritten, and so is an invalid file. The caller deletes the checkpoint after saving the final
    weights.

    Args:
        path: Path of the checkpoint; None disables checkpoints.
        key: Digest of all data and settings that determine the trained weights.
        model: Model to train.
        optimizer: Optimizer of the training.
        schedule: Learning rate schedule of the training.

    Attributes:
        epochs: Reports of the finished epochs.
        kept_epoch: Number (from 1) of the epoch whose weights are kept; 0 if no weights are kept.
        memory: Additional state that the caller sets after an epoch and needs for the next epoch.
    """

    def __init__(
        self,
        path: str | Path | None,
        key: str,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: torch.optim.lr_scheduler.LRScheduler,
    ) -> None:
        self._path = Path(path) if path else None
        self._key = key
        self._model, self._optimizer, self._schedule = model, optimizer, schedule
        self._kept: dict[str, torch.Tensor] = {}
        self.epochs: list[Mapping[str, float]] = []
        self.kept_epoch = 0
        self.memory: Any = None
        if self._path:
            # Remove the partial files of a run that was killed while writing a checkpoint.
            for unfinished in self._path.parent.glob(f".{self._path.name}.*.part"):
                unfinished.unlink()
        self._resume()

    def finish_epoch(self, report: Mapping[str, float], *, keep: bool) -> None:
        """Record that an epoch is finished, and write the checkpoint.

        Args:
            report: Report of the epoch.
            keep: Whether to keep the model's current weights, instead of those kept before.
        """
        self.epochs.append(report)
        if keep:
            self.kept_epoch = len(self.epochs)
            self._kept = {
                name: tensor.detach().cpu().clone()
                for name, tensor in self._model.state_dict().items()
            }
        if self._path:
            with atomic_path(self._path) as temporary:
                torch.save(self._state(), temporary)

    def load_kept(self) -> None:
        """Restore the kept weights in the model."""
        self._model.load_state_dict(self._kept)

    def _state(self) -> dict[str, Any]:
        """Return the content of a checkpoint of the current state."""
        return {
            "key": self._key,
            "epochs": [dict(report) for report in self.epochs],
            "kept": (self.kept_epoch, self._kept),
            "memory": self.memory,
            "weights": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
        }

    def _resume(self) -> None:
        """Restore the state from the checkpoint if it exists and has the same key."""
        if not (self._path and self._path.is_file()):
            return
        try:
            checkpoint = torch.load(self._path, map_location="cpu", weights_only=True)
        except Exception:  # torch raises various errors for files that are not checkpoints
            return
        if not isinstance(checkpoint, dict) or checkpoint.get("key") != self._key:
            return
        self._model.load_state_dict(checkpoint["weights"])
        self._optimizer.load_state_dict(checkpoint["optimizer"])
        self._schedule.load_state_dict(checkpoint["schedule"])
        self.epochs, self.memory = checkpoint["epochs"], checkpoint["memory"]
        self.kept_epoch, self._kept = checkpoint["kept"]
