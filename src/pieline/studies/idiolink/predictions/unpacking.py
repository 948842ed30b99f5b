"""Conversion of GGUF and pickle weights to safetensors folders."""

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForCausalLM, AutoTokenizer

from pieline.core.files import atomic_folder
from pieline.models.checkpoint_settings import checkpoint_settings
from pieline.models.embedder import EmbedderEntry
from pieline.models.loading import load_model, loading, require_all_weights, require_finite
from pieline.models.weights import weights_location
from pieline.patches import parse_gguf_once
from pieline.studies.idiolink.predictions.encoders import (
    backbone_of,
    require_pooling_in_files,
    save_folder,
)


def unpack_weights(entry: EmbedderEntry, output: Path) -> None:
    """Convert GGUF or pickle weights to float32, and save them as a folder with safetensors files.

    The folder is written atomically. The conversion is a job of its own, because it takes tens of
    seconds, while loading the converted weights takes one second.

    Raises:
        UserError: The weights are unavailable or incomplete, or neither the entry nor the
            checkpoint defines the pooling.
    """
    where = f"{entry.checkpoint} ({entry.source})"
    location = weights_location(entry)
    with loading(entry):
        if entry.is_gguf:
            _unpack_gguf(Path(location), output, where)
        else:
            _unpack_pickle(entry, location, output, where)


def _unpack_pickle(entry: EmbedderEntry, location: str, output: Path, where: str) -> None:
    """Convert the pickle weights of a sentence-transformers model; save the model in `output`."""
    if entry.pooling == "checkpoint":
        require_pooling_in_files(location, where)
    # This call only checks that the checkpoint's settings agree with the entry.
    checkpoint_settings(entry, location, where)
    model = SentenceTransformer(
        location,
        device="cpu",
        # Pickles are read with torch.load(weights_only=True), which loads only tensors.
        model_kwargs={
            "dtype": torch.float32,
            "use_safetensors": False,
            # `require_all_weights` reports mismatches by name.
            "ignore_mismatched_sizes": True,
        },
    )
    require_all_weights(backbone_of(model), location, where)
    require_finite(model, where)
    save_folder(model, output)


def _unpack_gguf(path: Path, output: Path, where: str) -> None:
    """Convert the weights of a decoder from a GGUF file; save the model in `output`."""
    folder, file_name = str(path.parent), path.name
    with parse_gguf_once():
        loaded = load_model(
            AutoModelForCausalLM, folder, where, gguf_file=file_name, dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file_name)
    # transformers refuses to save models marked as quantized, even after conversion to float32.
    config_fields = {
        key: value for key, value in loaded.config.to_dict().items() if "quantization" not in key
    }
    plain_config = type(loaded.config).from_dict(config_fields)
    # The meta device avoids initializing weights that are then replaced.
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            plain_config, dtype=torch.float32
        )
    model.load_state_dict(loaded.state_dict(), assign=True)
    with atomic_folder(output) as complete:
        model.save_pretrained(complete)
        tokenizer.save_pretrained(complete)
