"""Loading checkpoints with transformers: complete, finite and with their tokenizer, or an error."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from pieline.core.errors import UserError
from pieline.models.entries import CheckpointEntry
from pieline.models.hub import offline

_UNUSED = "pooler."
"""Weights of a layer that none of our models uses."""
_REPORTED: dict[str, Any] = {"output_loading_info": True, "ignore_mismatched_sizes": True}
"""Have `from_pretrained` report missing weights and those of another shape."""
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_MIN_VOCABULARY = 0.9
"""Smallest share of a model's embeddings that its tokenizer names; some models have spare ones."""


@contextmanager
def loading(entry: CheckpointEntry) -> Iterator[None]:
    """Turn whatever keeps the block from loading a checkpoint into one line.

    Raises:
        UserError: the checkpoint cannot be loaded; names it and what to do.
    """
    where = f"{entry.checkpoint} ({entry.source})"
    try:
        # The files are here by now; what a library asks the hub for in addition is not needed.
        with offline():
            yield
    except UserError:
        raise
    # Configuration files have hundreds of fields, and a library fails on each in its own way.
    except Exception as error:
        if "file named model.safetensors" in str(error):
            raise UserError(
                "there are no safetensors weights at this commit",
                where=where,
                hint="pin a commit that has them, or set pickled: true to have them converted once",
            ) from None
        if "peft" in str(error).lower():
            raise UserError(
                "it is an adapter (LoRA)",
                where=where,
                hint="name its base model here, and its folder as adapter",
            ) from None
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(
            f"cannot load the weights: {lines[0]}",
            where=where,
            hint="correct the entry, or delete these files and download them again",
        ) from error


def load_model(
    model_class: Any, location: str, where: str, *, new_head: bool = False, **options: Any
) -> Any:
    """Load a model of transformers with all its weights.

    Args:
        model_class: a class with `from_pretrained`.
        location: folder of the checkpoint.
        where: the checkpoint's name in error messages.
        new_head: for fine-tuning: weights above the base model may be missing, and are drawn.
        options: of `from_pretrained`.

    Raises:
        UserError: weights are missing, left over or not finite.
    """
    model, report = model_class.from_pretrained(location, **_REPORTED, **options)
    if new_head:
        inside = f"{model.base_model_prefix}."
        missing = {name for name in report["missing_keys"] if name.startswith(inside)}
        report = report | {"missing_keys": missing}
    require_complete(model, report, where)
    require_finite(model, where)
    return model


def require_all_weights(model: Any, location: str, where: str) -> None:
    """Check that all weights of a loaded model were in its folder, without reading them again.

    Raises:
        UserError: weights are missing or left over.
    """
    _, report = type(model).from_pretrained(
        location, config=model.config, device_map="meta", **_REPORTED
    )
    require_complete(model, report, where)


def require_complete(model: Any, report: dict[str, Any], where: str) -> None:
    """Check transformers' report on loading a model.

    Raises:
        UserError: weights of the architecture are missing, or weights of the base model are left
            over: the configuration has fewer layers than the checkpoint.
    """
    # A weight of another shape comes with both shapes.
    absent = {*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])}
    if missing := sorted(name for name in absent if _UNUSED not in name):
        raise UserError(
            f"{len(missing)} of the model's weights are missing or of another shape: {missing[0]}",
            where=where,
            hint="pin weights and code (revision, code_revision) that belong together",
        )
    prefix = f"{model.base_model_prefix}."
    parts = {name for name, _ in model.base_model.named_children()}
    left_over = sorted(
        name
        for name in report["unexpected_keys"]
        if name.removeprefix(prefix).partition(".")[0] in parts
        and name.endswith((".weight", ".bias"))
    )
    if left_over:
        raise UserError(
            f"{len(left_over)} of its weights have no place in the model: {left_over[0]}",
            where=where,
            hint="restore the checkpoint's own config.json",
        )


def require_finite(model: torch.nn.Module, where: str) -> None:
    """Check that no weight is infinite or not a number, and that embeddings differ.

    Raises:
        UserError: one is, or all rows of an embedding matrix are equal.
    """
    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise UserError(
                f"{name} has weights that are not finite numbers",
                where=where,
                hint="download the checkpoint again, or train it with a lower learning rate",
            )
        # Types of tokens are at most two, and may be alike.
        if "embed" in name and weight.dim() == 2 and len(weight) > 2 and _rows_are_equal(weight):
            raise UserError(
                f"{name} has equal rows", where=where, hint="download the checkpoint again"
            )


def _rows_are_equal(weight: torch.Tensor) -> bool:
    return torch.equal(weight[0], weight[-1]) and bool((weight == weight[0]).all())


def require_tokenizer(tokenizer: Any, model: Any, location: str, where: str) -> None:
    """Check that a checkpoint has a tokenizer, and that it is the model's.

    Raises:
        UserError: it has none (transformers makes an empty one), or one of another vocabulary.
    """
    if not any(path for name in _TOKENIZER_FILES for path in Path(location).glob(name)):
        raise UserError(
            "it has no tokenizer files",
            where=where,
            hint="copy tokenizer.json and tokenizer_config.json of the model it was trained from",
        )
    size, embeddings = len(tokenizer), model.get_input_embeddings().weight.shape[0]
    if not _MIN_VOCABULARY * embeddings <= size <= embeddings:
        raise UserError(
            f"its tokenizer has {size:,} tokens and its model embeds {embeddings:,}",
            where=where,
            hint="copy the tokenizer files of the model it was trained from",
        )
