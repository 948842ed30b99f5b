"""Estimate the memory of a model's jobs from its entry in models.yaml.

The estimates are rough: they only need to be high enough to schedule a job on a node that can
finish the job. A retry requests more.
"""

import re

from pieline.core.errors import UserError
from pieline.models.entries import CheckpointEntry, EncoderEntry, ModelEntry
from pieline.models.llm import LLMEntry

MEGABYTE = 1_000_000
BYTES_PER_WEIGHT = {"float32": 4, "bfloat16": 2, "float16": 2}
TRAINING_BYTES_PER_WEIGHT = 16
"""Bytes of a float32 weight, its gradient and AdamW's two moments, at four bytes each."""

INTERPRETER_MB = 4000
"""Memory of Python with torch, the dataset and its vectors."""
ACTIVATIONS_MB = 2000
"""Memory of the activations of 32 texts; in training, the activations of all layers are kept."""
TRAINING_ACTIVATIONS_MB = 6000
SMALL_MODEL_PARAMETERS = 50_000_000
"""Size up to which embedding the corpora on a CPU is faster than waiting for a GPU."""
CPU_MODEL_PARAMETERS = 1_000_000_000
"""Size up to which embedding the corpora on a CPU takes at most two hours."""
CPU_MINUTES_PER_PARAMETER = 1e-7
"""CPU time on one core to embed IdioLink's test split in all query modes, in float32.

`benchmarks/idiolink/embedding_minutes.py` measured 2 minutes in the shape of MiniLM (22.7M
parameters), 11 of BERT-base (109M), 37 of XLM-R-large (560M) and 60 of Qwen3-0.6B (596M).
"""
UNKNOWN_PARAMETERS = 8_000_000_000
"""Assumed size of a model whose entry states none; few models that fit on one GPU are larger.

Overestimating the size delays a job; underestimating it kills the job.
"""


def parameter_count(text: str) -> int:
    """Parse a number of parameters as printed on model cards, such as '22.7M' or '1.5B'.

    Raises:
        UserError: The text has another format.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MB])", text.strip())
    if not match:
        raise UserError(
            f"{text!r} is not a number of parameters",
            where="models.yaml: parameters",
            hint="write it as 110M or 1.5B",
        )
    return round(float(match[1]) * {"M": 1e6, "B": 1e9}[match[2]])


def uses_gpu(entry: CheckpointEntry) -> bool:
    """Return whether a cluster should assign a GPU to a model's jobs.

    Models with more than `SMALL_MODEL_PARAMETERS` get a GPU, and so do models of unknown size.
    """
    return estimated_parameters(entry) > SMALL_MODEL_PARAMETERS


def needs_gpu(entry: CheckpointEntry) -> bool:
    """Return whether a model is too slow on a CPU: to train, or to embed IdioLink's test split."""
    most = SMALL_MODEL_PARAMETERS if isinstance(entry, EncoderEntry) else CPU_MODEL_PARAMETERS
    return estimated_parameters(entry) > most


def gpu_memory_mb(entry: CheckpointEntry, *, training: bool = False) -> int:
    """Return the GPU memory in MB for running a model, or for training it in float32."""
    if training:
        per_weight, activations = TRAINING_BYTES_PER_WEIGHT, TRAINING_ACTIVATIONS_MB
    else:
        per_weight, activations = BYTES_PER_WEIGHT[entry.dtype], ACTIVATIONS_MB
    megabytes = estimated_parameters(entry) * per_weight // MEGABYTE + activations
    return -(-megabytes // 1000) * 1000


def host_memory_mb(entry: CheckpointEntry, *, training: bool = False) -> int:
    """Return the main memory in MB of a job that runs or trains a model, on a GPU or the CPU."""
    return max(8000, INTERPRETER_MB + gpu_memory_mb(entry, training=training))


def server_gpus(entry: LLMEntry) -> int:
    """Return the number of GPUs that a cluster should assign to a language model's server."""
    if entry.gpus is not None:
        return entry.gpus
    if entry.serves_with == "llama.cpp":
        return 0
    return int(_largest_count(entry) > SMALL_MODEL_PARAMETERS)


def describe_requirement(entry: ModelEntry) -> str:
    """Describe what is needed to run a model: recorded answers, an API key, a GPU or only time.

    The text is the same on every day, because tables contain it.
    """
    if isinstance(entry, LLMEntry):
        return _llm_requirement(entry)
    if not isinstance(entry, CheckpointEntry) or entry.source != "hub":
        return "only time: this configuration leaves it out"
    weights = (
        f"{_gigabytes(estimated_parameters(entry) * BYTES_PER_WEIGHT[entry.dtype])} of weights"
    )
    if needs_gpu(entry):
        trained = isinstance(entry, EncoderEntry)
        memory = gpu_memory_mb(entry, training=trained) // 1000
        time = "2 hours per language" if trained else "half an hour"
        return f"about {time} on a GPU with {memory} GB, and {weights} from the hub"
    minutes = round(estimated_parameters(entry) * CPU_MINUTES_PER_PARAMETER)
    return (
        f"only time: about {minutes} minutes on a CPU, with {host_memory_mb(entry) // 1000} GB of"
        f" memory and {weights} from the hub"
    )


def _llm_requirement(entry: LLMEntry) -> str:
    if entry.retired:
        return "answers that were recorded before the provider ended the model"
    if not entry.is_local:
        until = f", until the model ends on {entry.ends}" if entry.ends else ""
        return f"the key {entry.api_key_env}{until}"
    weights = f"{_gigabytes(_weights_mb(entry) * MEGABYTE)} of weights from the hub"
    if not (gpus := server_gpus(entry)):
        return f"only time: {weights}"
    memory = -(-server_gpu_memory_mb(entry) // 1000)
    where = f"{'a GPU' if gpus == 1 else f'{gpus} GPUs'} with {memory} GB, and {weights}"
    fits_a_laptop = _largest_count(entry) <= UNKNOWN_PARAMETERS
    return f"{where}; without a GPU, a GGUF file, not compared" if fits_a_laptop else where


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size < 1e10 else f"{size / 1e9:.0f} GB"


def server_gpu_memory_mb(entry: LLMEntry) -> int:
    """Return the total GPU memory in MB of a language model's server; 0 without a GPU.

    The estimate is 125% of the weights plus `ACTIVATIONS_MB`.
    """
    if not server_gpus(entry):
        return 0
    return _weights_mb(entry) * 5 // 4 + ACTIVATIONS_MB


def server_host_memory_mb(entry: LLMEntry) -> int:
    """Return the main memory in MB of the job that runs a language model's server."""
    return max(8000, INTERPRETER_MB + _weights_mb(entry))


def _largest_count(entry: LLMEntry) -> int:
    """Return the largest parameter count in the entry, which includes inactive experts.

    If the entry states no count, return `UNKNOWN_PARAMETERS`.
    """
    counts = re.findall(r"\d+(?:\.\d+)?\s*[MB]", entry.parameters or "")
    return max(map(parameter_count, counts), default=UNKNOWN_PARAMETERS)


def _weights_mb(entry: LLMEntry) -> int:
    bits = 8 * BYTES_PER_WEIGHT[entry.dtype or "bfloat16"]
    # GGUF files state their quantization at the end of their names, such as Q4_K_M or F16.
    if entry.is_gguf and (match := re.search(r"[QF](\d+)[^.-]*\.gguf$", str(entry.path))):
        bits = int(match[1]) + (int(match[1]) < 16)  # an additional bit for the scales of blocks
    return _largest_count(entry) * bits // 8 // MEGABYTE


def estimated_parameters(entry: ModelEntry) -> int:
    """Return a model's parameter count, or `UNKNOWN_PARAMETERS` if its entry states none."""
    if isinstance(entry, LLMEntry):
        return _largest_count(entry)
    return parameter_count(entry.parameters) if entry.parameters else UNKNOWN_PARAMETERS
