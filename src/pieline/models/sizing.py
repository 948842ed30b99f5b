"""Estimate the memory of a model's jobs from its entry in models.yaml.

The estimates are rough: they only need to be high enough to schedule a job on a node that can
finish the job. A retry of the job requests more memory.
"""

import math
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
"""Memory of the activations of 32 texts."""
TRAINING_ACTIVATIONS_MB = 6000
"""Memory of the activations of 32 texts in training, which keeps the activations of all layers."""
_MIN_HOST_MEMORY_MB = 8000
SMALL_MODEL_PARAMETERS = 50_000_000
"""Number of parameters up to which a CPU embeds the corpora before a GPU would be available."""
CPU_MODEL_PARAMETERS = 1_000_000_000
"""Number of parameters up to which embedding the corpora on a CPU takes at most two hours."""
CPU_MINUTES_PER_PARAMETER = 1e-7
"""CPU time on one core to embed IdioLink's test split in all query modes, in float32.

`benchmarks/idiolink/embedding_minutes.py` measured 2 minutes in the shape of MiniLM (22.7M
parameters), 11 of BERT-base (109M), 37 of XLM-R-large (560M) and 60 of Qwen3-0.6B (596M).
"""
UNKNOWN_PARAMETERS = 8_000_000_000
"""Assumed number of parameters of a model whose entry states none.

Few models that fit on one GPU are larger. Overestimating the size delays a job; underestimating
it kills the job.
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

    Only models with at most `SMALL_MODEL_PARAMETERS` parameters need none. A model of unknown size
    gets a GPU.
    """
    return estimated_parameters(entry) > SMALL_MODEL_PARAMETERS


def needs_gpu(entry: CheckpointEntry) -> bool:
    """Return whether a CPU is too slow to train an encoder or to embed IdioLink's test split."""
    is_trained = isinstance(entry, EncoderEntry)
    max_parameters = SMALL_MODEL_PARAMETERS if is_trained else CPU_MODEL_PARAMETERS
    return estimated_parameters(entry) > max_parameters


def gpu_memory_mb(entry: CheckpointEntry, *, training: bool = False) -> int:
    """Return the GPU memory for running a model or, if `training`, for training it in float32.

    The result is in MB, and is rounded up to the next GB.
    """
    if training:
        bytes_per_weight, activations_mb = TRAINING_BYTES_PER_WEIGHT, TRAINING_ACTIVATIONS_MB
    else:
        bytes_per_weight, activations_mb = BYTES_PER_WEIGHT[entry.dtype], ACTIVATIONS_MB
    weights_mb = estimated_parameters(entry) * bytes_per_weight // MEGABYTE
    return math.ceil((weights_mb + activations_mb) / 1000) * 1000


def host_memory_mb(entry: CheckpointEntry, *, training: bool = False) -> int:
    """Return the main memory in MB of a job that runs or trains a model, on a GPU or the CPU."""
    return max(_MIN_HOST_MEMORY_MB, INTERPRETER_MB + gpu_memory_mb(entry, training=training))


def server_gpus(entry: LLMEntry) -> int:
    """Return the number of GPUs that a cluster should assign to a language model's server."""
    if entry.gpus is not None:
        return entry.gpus
    if entry.serves_with == "llama.cpp":
        return 0
    return 1 if _largest_count(entry) > SMALL_MODEL_PARAMETERS else 0


def describe_requirement(entry: ModelEntry) -> str:
    """Describe what is needed to run a model: recorded answers, an API key, a GPU or only time.

    The text does not depend on the current date, because tables contain it.
    """
    if isinstance(entry, LLMEntry):
        return _llm_requirement(entry)
    if not isinstance(entry, CheckpointEntry) or entry.source != "hub":
        return "only time: this configuration leaves it out"
    weights_bytes = estimated_parameters(entry) * BYTES_PER_WEIGHT[entry.dtype]
    weights = f"{_format_gigabytes(weights_bytes)} of weights"
    if needs_gpu(entry):
        is_trained = isinstance(entry, EncoderEntry)
        memory_gb = gpu_memory_mb(entry, training=is_trained) // 1000
        time = "2 hours per language" if is_trained else "half an hour"
        return f"about {time} on a GPU with {memory_gb} GB, and {weights} from the hub"
    minutes = round(estimated_parameters(entry) * CPU_MINUTES_PER_PARAMETER)
    return (
        f"only time: about {minutes} minutes on a CPU, with {host_memory_mb(entry) // 1000} GB of"
        f" memory and {weights} from the hub"
    )


def _llm_requirement(entry: LLMEntry) -> str:
    """Describe what is needed to query a language model (see `describe_requirement`)."""
    if entry.retired:
        return "answers that were recorded before the provider ended the model"
    if not entry.is_local:
        until = f", until the model ends on {entry.ends}" if entry.ends else ""
        return f"the key {entry.api_key_env}{until}"
    weights = f"{_format_gigabytes(_weights_mb(entry) * MEGABYTE)} of weights from the hub"
    gpus = server_gpus(entry)
    if not gpus:
        return f"only time: {weights}"
    memory_gb = math.ceil(server_gpu_memory_mb(entry) / 1000)
    hardware = "a GPU" if gpus == 1 else f"{gpus} GPUs"
    # A model without a stated size also counts as small enough for a laptop.
    fits_a_laptop = _largest_count(entry) <= UNKNOWN_PARAMETERS
    alternative = "; without a GPU, a GGUF file, not compared" if fits_a_laptop else ""
    return f"{hardware} with {memory_gb} GB, and {weights}{alternative}"


def _format_gigabytes(size: int) -> str:
    """Format a number of bytes in GB, with one decimal below 10 GB."""
    decimals = 1 if size < 1e10 else 0
    return f"{size / 1e9:.{decimals}f} GB"


def server_gpu_memory_mb(entry: LLMEntry) -> int:
    """Return the memory in MB that a language model's server needs on all its GPUs together.

    The estimate is 125% of the weights plus `ACTIVATIONS_MB`. It is 0 for a server without a GPU.
    """
    if not server_gpus(entry):
        return 0
    return _weights_mb(entry) * 5 // 4 + ACTIVATIONS_MB


def server_host_memory_mb(entry: LLMEntry) -> int:
    """Return the main memory in MB of the job that runs a language model's server."""
    return max(_MIN_HOST_MEMORY_MB, INTERPRETER_MB + _weights_mb(entry))


def _largest_count(entry: LLMEntry) -> int:
    """Return the largest number in the entry's `parameters`, or else `UNKNOWN_PARAMETERS`.

    For a mixture of experts ("17B active 109B overall"), this number includes the inactive experts.
    """
    counts = re.findall(r"\d+(?:\.\d+)?\s*[MB]", entry.parameters or "")
    return max((parameter_count(count) for count in counts), default=UNKNOWN_PARAMETERS)


def _weights_mb(entry: LLMEntry) -> int:
    """Return the size in MB of a language model's weights."""
    return _largest_count(entry) * _bits_per_weight(entry) // 8 // MEGABYTE


def _bits_per_weight(entry: LLMEntry) -> int:
    """Return the bits per weight, by a GGUF file's name (Q4_K_M, F16) or by the entry's dtype."""
    name_of_gguf = str(entry.path) if entry.is_gguf else ""
    quantization = re.search(r"[QF](\d+)[^.-]*\.gguf$", name_of_gguf)
    if not quantization:
        return 8 * BYTES_PER_WEIGHT[entry.dtype or "bfloat16"]
    bits = int(quantization[1])
    # Quantized weights need about one more bit for the scales of blocks.
    return bits + 1 if bits < 16 else bits


def estimated_parameters(entry: ModelEntry) -> int:
    """Return a model's parameter count, or `UNKNOWN_PARAMETERS` if its entry states none."""
    if isinstance(entry, LLMEntry):
        return _largest_count(entry)
    return parameter_count(entry.parameters) if entry.parameters else UNKNOWN_PARAMETERS
