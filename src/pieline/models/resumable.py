"""A training that goes on after its last whole epoch, and the weights that it keeps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pieline.core.files import atomic_path


class ResumableTraining:
    """The state of a training between two epochs.

    A checkpoint of another training (another key), or a file that is none, is ignored and
    overwritten. The caller deletes the file once the weights are safe.

    Args:
        path: of the checkpoint; None keeps none.
        key: digest of all that decides the weights.
        model: that is trained.
        optimizer, schedule: that move its weights.

    Attributes:
        epochs: what is reported of each finished epoch.
        kept_epoch: number (from 1) of the epoch whose weights are kept.
        memory: anything else that the next epoch needs.
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
            # What a kill in the middle of writing left.
            for unfinished in self._path.parent.glob(f".{self._path.name}.*.part"):
                unfinished.unlink()
        self._resume()

    def finish_epoch(self, report: Mapping[str, float], *, keep: bool) -> None:
        """Note an epoch, keep its weights if they are wanted, and write the checkpoint."""
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
        """Give the model the weights that are kept."""
        self._model.load_state_dict(self._kept)

    def _state(self) -> dict[str, Any]:
        return {
            "key": self._key,
            "epochs": list(map(dict, self.epochs)),
            "kept": (self.kept_epoch, self._kept),
            "memory": self.memory,
            "weights": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
        }

    def _resume(self) -> None:
        if not (self._path and self._path.is_file()):
            return
        try:
            found = torch.load(self._path, map_location="cpu", weights_only=True)
        except Exception:  # torch raises what it likes for a file that is no checkpoint
            return
        if not isinstance(found, dict) or found.get("key") != self._key:
            return
        self._model.load_state_dict(found["weights"])
        self._optimizer.load_state_dict(found["optimizer"])
        self._schedule.load_state_dict(found["schedule"])
        self.epochs, self.memory = found["epochs"], found["memory"]
        self.kept_epoch, self._kept = found["kept"]
