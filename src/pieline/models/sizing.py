"""How much memory and GPU time a model's job needs, from its entry of models.yaml.

Rough on purpose: enough for the job to start on a node that can finish it. A retry asks for more.
"""

import re

from pieline.core.errors import UserError
from pieline.models.entries import CheckpointEntry, ModelEntry
from pieline.models.llm import LLMEntry

MEGABYTE = 1_000_000
BYTES_PER_WEIGHT = {"float32": 4, "bfloat16": 2, "float16": 2}
TRAINING_BYTES_PER_WEIGHT = 16
"""In float32: the weight, its gradient and AdamW's two moments, four bytes each."""

INTERPRETER_MB = 4000
"""Python with torch, the dataset and its vectors."""
ACTIVATIONS_MB = 2000
"""A batch of 32 texts; training keeps those of every layer."""
TRAINING_ACTIVATIONS_MB = 6000
SMALL_MODEL_PARAMETERS = 50_000_000
"""Up to here a CPU embeds the studies' corpora in minutes, and a GPU's queue takes longer."""
UNKNOWN_PARAMETERS = 8_000_000_000
"""Taken for the size of a model whose entry does not say it: too much costs a place in the queue,
too little the job. Few that one GPU holds are larger."""

GPU = "NVIDIA A100"
"""What GPU times are estimated for, with the three numbers that follow."""
FLOPS = {"float32": 19.5e12, "bfloat16": 312e12, "float16": 312e12}
MEMORY_BYTES_PER_S = 2e12
EFFICIENCY = 0.3
"""Share of the card's peak and of its bandwidth that jobs reach."""
START_S = 60
"""Until a job with torch computes."""
LOADED_BYTES_PER_S = 1e9
VECTOR_LENGTHS = {50e6: 384, 400e6: 768, 1e9: 1024, 3e9: 2048, 5e9: 2560, float("inf"): 4096}
"""Dimension of the embeddings of models with fewer parameters than this."""


def parameter_count(text: str) -> int:
    """Number of parameters from the way model cards print it: '22.7M', '1.5B'.

    Raises:
        UserError: the text is no such number.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MB])", text.strip())
    if not found:
        raise UserError(
            f"{text!r} is no number of parameters",
            where="models.yaml: parameters",
            hint="write it as 110M or 1.5B",
        )
    return round(float(found[1]) * {"M": 1e6, "B": 1e9}[found[2]])


def asks_for_gpu(entry: CheckpointEntry) -> bool:
    """Whether a cluster should give a model's jobs a GPU.

    A large model's, and those of one of unknown size unless its entry says `needs_gpu: false`.
    """
    if not entry.parameters and "needs_gpu" in entry.model_fields_set:
        return bool(getattr(entry, "needs_gpu", False))
    return getattr(entry, "needs_gpu", False) or parameters_about(entry) > SMALL_MODEL_PARAMETERS


def gpu_memory_mb(entry: CheckpointEntry, *, training: bool = False) -> int:
    """GPU memory of a job that runs a model or trains it (in float32), in MB."""
    if training:
        per_weight, activations = TRAINING_BYTES_PER_WEIGHT, TRAINING_ACTIVATIONS_MB
    else:
        per_weight, activations = BYTES_PER_WEIGHT[entry.dtype], ACTIVATIONS_MB
    megabytes = parameters_about(entry) * per_weight // MEGABYTE + activations
    return -(-megabytes // 1000) * 1000


def host_memory_mb(entry: CheckpointEntry, *, training: bool = False) -> int:
    """Main memory of the same job, in MB: enough to load the model, or to compute without a GPU."""
    return max(8000, INTERPRETER_MB + gpu_memory_mb(entry, training=training))


def served_gpus(entry: LLMEntry) -> int:
    """GPUs that a cluster should give the server of a language model."""
    if entry.gpus is not None:
        return entry.gpus
    if entry.serves_with == "llama.cpp":
        return int(bool(entry.gpu_layers))
    return int(_largest_count(entry) > SMALL_MODEL_PARAMETERS)


def need_of(entry: ModelEntry) -> str:
    """What a run of a model takes, for readers: recorded answers, a key, a GPU or only time."""
    if isinstance(entry, LLMEntry) and entry.retired:
        return "answers that were recorded before the provider ended the model"
    if isinstance(entry, LLMEntry) and not entry.is_local:
        until = f" (the model ends on {entry.ends})" if entry.ends else ""
        return f"the key {entry.api_key_env}{until}"
    gpus = served_gpus(entry) if isinstance(entry, LLMEntry) else 0
    if gpus or (isinstance(entry, CheckpointEntry) and asks_for_gpu(entry)):
        return "a GPU, and weights from the hub"
    return "only time: this configuration leaves it out"


def served_gpu_memory_mb(entry: LLMEntry) -> int:
    """Memory of all these GPUs together, in MB: the weights, and a quarter for what is computed."""
    return (_weights_mb(entry) * 5 // 4 + ACTIVATIONS_MB) * bool(served_gpus(entry))


def served_host_memory_mb(entry: LLMEntry) -> int:
    """Main memory of the same job, in MB."""
    return max(8000, INTERPRETER_MB + _weights_mb(entry))


def _largest_count(entry: LLMEntry) -> int:
    """Number of parameters of a language model; of a mixture of experts all of them."""
    counts = re.findall(r"\d+(?:\.\d+)?\s*[MB]", entry.parameters or "")
    return max(map(parameter_count, counts), default=UNKNOWN_PARAMETERS)


def _weights_mb(entry: LLMEntry) -> int:
    bits = 8 * BYTES_PER_WEIGHT[entry.dtype or "bfloat16"]
    if found := re.search(r"\d+", entry.quantisation or ""):
        bits = int(found[0]) + (int(found[0]) < 16)  # with the scales of its blocks
    return _largest_count(entry) * bits // 8 // MEGABYTE


def parameters_about(entry: ModelEntry) -> int:
    """Number of parameters of any model, or what is assumed of a model that does not state it."""
    if isinstance(entry, LLMEntry):
        return _largest_count(entry)
    return parameter_count(entry.parameters) if entry.parameters else UNKNOWN_PARAMETERS


def vector_length(entry: ModelEntry) -> int:
    """About the dimension of a model's embeddings."""
    count = parameters_about(entry)
    return next(length for bound, length in VECTOR_LENGTHS.items() if count < bound)


def gpu_seconds(
    entry: ModelEntry, starts: int, read: float, learnt: float = 0, written: float = 0
) -> float:
    """Seconds that one of the assumed GPUs takes for a number of tokens.

    A token costs 2 operations per parameter where it is read and 6 where it is learnt from, which
    is done in float32. Writing a token reads all weights, once for all answers under way.

    Args:
        entry: the model.
        starts: how often it is loaded.
        read: tokens that go through it.
        learnt: tokens that it is trained on, times epochs.
        written: tokens that it writes.
    """
    parameters = parameters_about(entry)
    dtype = "float32" if learnt else getattr(entry, "dtype", None) or "bfloat16"
    weights = parameters * BYTES_PER_WEIGHT[dtype]
    slots = getattr(entry, "slots", None) or 1
    return (
        starts * (START_S + weights / LOADED_BYTES_PER_S)
        + parameters * (2 * read + 6 * learnt) / (FLOPS[dtype] * EFFICIENCY)
        + weights * written / (MEMORY_BYTES_PER_S * EFFICIENCY * slots)
    )
