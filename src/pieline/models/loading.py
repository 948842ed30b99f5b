"""Load checkpoints with transformers, and check their weights and tokenizers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from pieline.core.errors import UserError
from pieline.core.files import check_lfs_pointers
from pieline.models.entries import CheckpointEntry
from pieline.models.hub import offline
from pieline.models.weights import weights_location

_UNUSED = "pooler."
"""Prefix of the weights of a layer that none of our models uses."""
_REPORTED: dict[str, Any] = {"output_loading_info": True, "ignore_mismatched_sizes": True}
"""Options that make `from_pretrained` report weights that are missing or have another shape."""
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_MIN_VOCABULARY = 0.9
"""Minimum ratio of vocabulary size to number of embeddings, some of which may be unused."""
_COLUMNS = 8
_MAX_UNUSED, _MAX_EMPTY = 0.1, 0.01
"""Maximum share of constant or repeated rows in embedding matrices and in other matrices.

In every matrix, the first share also applies to columns.
"""


@contextmanager
def loading(entry: CheckpointEntry) -> Iterator[None]:
    """Convert any error from loading a checkpoint in the block to a `UserError`.

    Raises:
        UserError: The checkpoint cannot be loaded.
    """
    where = f"{entry.checkpoint} ({entry.source})"
    try:
        # The files are already in place, so the libraries need not make requests.
        with offline():
            yield
    except UserError:
        raise
    # Configuration files have hundreds of fields, and libraries fail on them in many ways.
    except Exception as error:
        if "file named model.safetensors" in str(error):
            raise UserError(
                "there are no safetensors weights at this commit",
                where=where,
                hint="pin a commit that has them, or set pickled: true to convert a pickle once",
            ) from None
        if "peft" in str(error).lower():
            raise UserError(
                "it is an adapter (LoRA)",
                where=where,
                hint="use its base model as checkpoint, and its folder as adapter",
            ) from None
        lines = str(error).strip().splitlines() or [type(error).__name__]
        if lines[0].endswith(":"):  # a list follows
            lines = [" ".join(lines)]
        raise UserError(
            f"cannot load the weights: {lines[0]}",
            where=where,
            hint="fix the entry, or delete these files and download them again",
        ) from error


def load_model(
    model_class: Any, location: str, where: str, *, new_head: bool = False, **options: Any
) -> Any:
    """Load a transformers model with all its weights.

    Args:
        model_class: Class with `from_pretrained`.
        location: Folder of the checkpoint.
        where: Name of the checkpoint in error messages.
        new_head: Whether weights outside the base model may be missing, in which case they are
            initialized randomly for fine-tuning.
        options: Options of `from_pretrained`.

    Raises:
        UserError: Weights are missing, unexpected or not finite, or a matrix has many constant or
            repeated rows.
    """
    model, report = model_class.from_pretrained(location, **_REPORTED, **options)
    if new_head:
        inside = f"{model.base_model_prefix}."
        missing = {name for name in report["missing_keys"] if name.startswith(inside)}
        report = report | {"missing_keys": missing}
    require_complete(model, report, where)
    require_finite(model, where)
    return model


def load_with_tokenizer(
    model_class: Any,
    entry: CheckpointEntry,
    *,
    weights: str | Path | None = None,
    device: str | None = None,
    **options: Any,
) -> tuple[Any, Any]:
    """Load a transformers model in evaluation mode, with its tokenizer.

    Args:
        model_class: Class with `from_pretrained`.
        entry: Entry of the checkpoint.
        weights: Folder to load instead of the entry's weights.
        device: Device of the model; None for a GPU if there is one, else the CPU.
        options: Options of `load_model`.

    Returns:
        The model and its tokenizer.

    Raises:
        UserError: The checkpoint is missing, incomplete or invalid.
    """
    from transformers import AutoTokenizer

    location = str(weights or weights_location(entry))
    check_lfs_pointers(location)
    where = f"{entry.checkpoint} ({entry.source})"
    code: dict[str, Any] = {"trust_remote_code": entry.trust_remote_code}
    if entry.code_revision:
        code["code_revision"] = entry.code_revision
    with loading(entry):
        tokenizer = AutoTokenizer.from_pretrained(location, **code)
        model = load_model(model_class, location, where, **options, **code)
        require_tokenizer(tokenizer, model, location, where)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return model.to(place).eval(), tokenizer


def require_all_weights(model: Any, location: str, where: str) -> None:
    """Check that the folder of a loaded model has all its weights, without reading them again.

    Raises:
        UserError: Weights are missing or unexpected.
    """
    _, report = type(model).from_pretrained(
        location, config=model.config, device_map="meta", **_REPORTED
    )
    require_complete(model, report, where)


def require_complete(model: Any, report: dict[str, Any], where: str) -> None:
    """Check transformers' report on loading a model.

    Raises:
        UserError: Weights of the model are missing or have a different shape, or the checkpoint has
            weights that the base model lacks, such as those of additional layers.
    """
    # Each of the `mismatched_keys` is a tuple of the name and both shapes.
    absent = {*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])}
    if missing := sorted(name for name in absent if _UNUSED not in name):
        raise UserError(
            f"{len(missing)} of the model's weights are missing or have a different shape:"
            f" {missing[0]}",
            where=where,
            hint="pin matching weights and code (revision, code_revision)",
        )
    prefix = f"{model.base_model_prefix}."
    parts = {name for name, _ in model.base_model.named_children()}
    left_over = []
    for name in sorted(report["unexpected_keys"]):
        part = name.removeprefix(prefix).partition(".")[0]
        if part in parts and name.endswith((".weight", ".bias")):
            left_over.append(name)
    if left_over:
        raise UserError(
            f"{len(left_over)} of its weights do not exist in the model: {left_over[0]}",
            where=where,
            hint="restore the checkpoint's original config.json",
        )


def require_finite(model: torch.nn.Module, where: str) -> None:
    """Check that all weights are finite, and that matrices have no part left out by training.

    Such rows and columns are constant or equal to the previous one. Embedding matrices may have a
    few such rows, for tokens that do not occur in training.

    Raises:
        UserError: A weight is not finite, or a matrix has too many such rows.
    """
    for name, weight in model.named_parameters():
        # NaN would be both extremes. Testing all weights instead takes ten times as long.
        if weight.numel() and not torch.isfinite(torch.stack(torch.aminmax(weight))).all():
            raise UserError(
                f"{name} has weights that are not finite numbers",
                where=where,
                hint="download the checkpoint again, or train it with a lower learning rate",
            )
        # Two rows, such as those of token types, may be equal.
        if weight.dim() < 2 or len(weight) <= 2:
            continue
        matrix = weight.detach().flatten(1)
        most = _MAX_UNUSED if "embed" in name else _MAX_EMPTY
        for lines, part, share in ((matrix, "rows", most), (matrix.T, "columns", _MAX_UNUSED)):
            limit = len(lines) * share
            count = _empty_rows(lines, limit)
            if len(lines) > 2 and count > limit:
                raise UserError(
                    f"{count:,} of the {len(lines):,} {part} of {name} are constant or repeated",
                    where=where,
                    hint="download the checkpoint again, or copy it again from where it was"
                    " trained",
                )


def _empty_rows(matrix: torch.Tensor, at_most: float) -> int:
    """Return the number of rows that are constant or equal to the row before.

    All columns are read only if the number is above `at_most` in a few of them.
    """
    few = matrix[:, :: max(1, matrix.shape[1] // _COLUMNS)]
    count = _count_empty_rows(few)
    return count if count <= at_most or few.shape == matrix.shape else _count_empty_rows(matrix)


def _count_empty_rows(matrix: torch.Tensor) -> int:
    empty = torch.zeros(len(matrix), dtype=torch.bool, device=matrix.device)
    if matrix.shape[1] > 1:
        empty |= (matrix == matrix[:, :1]).all(dim=1)
    empty[1:] |= (matrix[1:] == matrix[:-1]).all(dim=1)
    return int(empty.sum())


def require_tokenizer(tokenizer: Any, model: Any, location: str, where: str) -> None:
    """Check that a checkpoint has a tokenizer that matches the model.

    Raises:
        UserError: The folder has no tokenizer (transformers would create an empty one), or the size
            of its vocabulary does not match the model.
    """
    if not any(path for name in _TOKENIZER_FILES for path in Path(location).glob(name)):
        raise UserError(
            "it has no tokenizer files",
            where=where,
            hint="copy tokenizer.json and tokenizer_config.json from the model that was fine-tuned",
        )
    size, embeddings = len(tokenizer), model.get_input_embeddings().weight.shape[0]
    if not _MIN_VOCABULARY * embeddings <= size <= embeddings:
        raise UserError(
            f"its tokenizer has {size:,} tokens, but its model has {embeddings:,} embeddings",
            where=where,
            hint="copy the tokenizer files from the model that was fine-tuned",
        )
