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

_UNUSED_LAYER = "pooler."
"""Prefix of the weights of a layer that none of our models uses."""
_REPORT_OPTIONS: dict[str, Any] = {"output_loading_info": True, "ignore_mismatched_sizes": True}
"""Options that make `from_pretrained` report weights that are missing or have another shape."""
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_MIN_VOCABULARY_SHARE = 0.9
"""Minimum ratio of tokens to embeddings. It is below 1 because models may have spare embeddings."""
_SAMPLED_COLUMNS = 8
_MAX_UNTRAINED_ROWS = 0.01
"""Maximum share of rows of a matrix that are constant or equal to the row before."""
_MAX_UNTRAINED_TOKENS = 0.1
"""Like `_MAX_UNTRAINED_ROWS`, but for embedding matrices, which have rows for unused tokens."""
_MAX_UNTRAINED_COLUMNS = 0.1
"""Maximum share of columns of a matrix that are constant or equal to the column before."""


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
        starts_list = lines[0].endswith(":")
        message = " ".join(lines) if starts_list else lines[0]
        raise UserError(
            f"cannot load the weights: {message}",
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
        new_head: Whether weights outside the base model may be missing. Missing weights are
            initialized randomly for fine-tuning.
        options: Options of `from_pretrained`.

    Raises:
        UserError: Weights are missing, unexpected or not finite, or a matrix has many constant or
            repeated rows.
    """
    model, report = model_class.from_pretrained(location, **_REPORT_OPTIONS, **options)
    if new_head:
        prefix = f"{model.base_model_prefix}."
        missing_in_base = {name for name in report["missing_keys"] if name.startswith(prefix)}
        report = report | {"missing_keys": missing_in_base}
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
        weights: Folder to load; None for the entry's weights.
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
    code_options: dict[str, Any] = {"trust_remote_code": entry.trust_remote_code}
    if entry.code_revision:
        code_options["code_revision"] = entry.code_revision
    with loading(entry):
        tokenizer = AutoTokenizer.from_pretrained(location, **code_options)
        model = load_model(model_class, location, where, **options, **code_options)
        require_tokenizer(tokenizer, model, location, where)
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return model.to(device).eval(), tokenizer


def require_all_weights(model: Any, location: str, where: str) -> None:
    """Check that a folder has all weights of a loaded model, without reading their values.

    Raises:
        UserError: Weights are missing or unexpected.
    """
    _, report = type(model).from_pretrained(
        location, config=model.config, device_map="meta", **_REPORT_OPTIONS
    )
    require_complete(model, report, where)


def require_complete(model: Any, report: dict[str, Any], where: str) -> None:
    """Check in transformers' report that a model and its checkpoint have the same weights.

    Args:
        model: The loaded model.
        report: Loading information of `from_pretrained`.
        where: Name of the checkpoint in error messages.

    Raises:
        UserError: Weights of the model are missing or have a different shape, or the checkpoint has
            weights of layers that the base model lacks.
    """
    # Each of the `mismatched_keys` is a tuple of the name and both shapes.
    mismatched = [name for name, *_ in report["mismatched_keys"]]
    absent = {*report["missing_keys"], *mismatched}
    missing = sorted(name for name in absent if _UNUSED_LAYER not in name)
    if missing:
        raise UserError(
            f"{len(missing)} of the model's weights are missing or have a different shape:"
            f" {missing[0]}",
            where=where,
            hint="pin matching weights and code (revision, code_revision)",
        )
    # Weights of other parts, such as a head of another task, are not used.
    prefix = f"{model.base_model_prefix}."
    parts_of_model = {name for name, _ in model.base_model.named_children()}
    unexpected = []
    for name in sorted(report["unexpected_keys"]):
        part = name.removeprefix(prefix).partition(".")[0]
        if part in parts_of_model and name.endswith((".weight", ".bias")):
            unexpected.append(name)
    if unexpected:
        raise UserError(
            f"{len(unexpected)} of its weights do not exist in the model: {unexpected[0]}",
            where=where,
            hint="restore the checkpoint's original config.json",
        )


def require_finite(model: torch.nn.Module, where: str) -> None:
    """Check that all weights are finite, and that training changed all parts of each matrix.

    A row or column counts as untrained if all its values are equal, or if it equals the row or
    column before. Embedding matrices may have more untrained rows than other matrices, because some
    tokens do not occur in training.

    Raises:
        UserError: A weight is not finite, or a matrix has too many untrained rows or columns.
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
        max_rows = _MAX_UNTRAINED_TOKENS if "embed" in name else _MAX_UNTRAINED_ROWS
        _require_trained_rows(matrix, max_rows, f"rows of {name}", where)
        _require_trained_rows(matrix.T, _MAX_UNTRAINED_COLUMNS, f"columns of {name}", where)


def _require_trained_rows(
    matrix: torch.Tensor, max_share: float, description: str, where: str
) -> None:
    """Raise a `UserError` if more than the fraction `max_share` of a matrix's rows is untrained."""
    if len(matrix) <= 2:  # a matrix with one or two columns, which may be equal
        return
    max_untrained = len(matrix) * max_share
    untrained = _count_untrained_rows(_sample_columns(matrix))
    if untrained > max_untrained:
        # Rows that are equal in the sample may differ in other columns.
        untrained = _count_untrained_rows(matrix)
    if untrained > max_untrained:
        raise UserError(
            f"{untrained:,} of the {len(matrix):,} {description} are constant or repeated",
            where=where,
            hint="download the checkpoint again, or copy it again from where it was trained",
        )


def _sample_columns(matrix: torch.Tensor) -> torch.Tensor:
    """Return about eight evenly spaced columns of a matrix, because reading all takes longer."""
    return matrix[:, :: max(1, matrix.shape[1] // _SAMPLED_COLUMNS)]


def _count_untrained_rows(matrix: torch.Tensor) -> int:
    """Return the number of rows that are constant or equal to the row before."""
    is_untrained = torch.zeros(len(matrix), dtype=torch.bool, device=matrix.device)
    if matrix.shape[1] > 1:
        is_untrained |= (matrix == matrix[:, :1]).all(dim=1)
    is_untrained[1:] |= (matrix[1:] == matrix[:-1]).all(dim=1)
    return int(is_untrained.sum())


def require_tokenizer(tokenizer: Any, model: Any, location: str, where: str) -> None:
    """Check that a checkpoint has a tokenizer that matches the model.

    Raises:
        UserError: The folder has no tokenizer (transformers would create an empty one), or the size
            of its vocabulary does not match the model.
    """
    if not any(list(Path(location).glob(pattern)) for pattern in _TOKENIZER_FILES):
        raise UserError(
            "it has no tokenizer files",
            where=where,
            hint="copy tokenizer.json and tokenizer_config.json from the model that was fine-tuned",
        )
    tokens, embeddings = len(tokenizer), model.get_input_embeddings().weight.shape[0]
    if not _MIN_VOCABULARY_SHARE * embeddings <= tokens <= embeddings:
        raise UserError(
            f"its tokenizer has {tokens:,} tokens, but its model has {embeddings:,} embeddings",
            where=where,
            hint="copy the tokenizer files from the model that was fine-tuned",
        )
