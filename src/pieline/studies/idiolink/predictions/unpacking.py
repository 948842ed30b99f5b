"""Unpacking weights that come as one GGUF file or as a pickle into a safetensors folder."""

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from pieline.core.files import atomic_folder
from pieline.models.embedder import EmbedderEntry
from pieline.models.loading import load_model, loading, require_all_weights, require_finite
from pieline.models.weights import weights_location
from pieline.patches import parse_gguf_once
from pieline.studies.idiolink.predictions.checkpoint_checks import require_pooling_in_files


def unpack_weights(entry: EmbedderEntry, output: Path) -> None:
    """Write weights that come as GGUF or as a pickle as a safetensors folder (float32).

    Unpacking takes tens of seconds and loading the folder one, so it is a step of its own. The
    folder appears only when it is complete.

    Raises:
        UserError: the weights cannot be had or are not complete, or the entry leaves the pooling to
            files that the checkpoint lacks.
    """
    where = f"{entry.checkpoint} ({entry.source})"
    location = weights_location(entry)
    with loading(entry):
        if entry.is_gguf:
            _unpack_gguf(Path(location), output, where)
            return
        if entry.pooling == "checkpoint":
            require_pooling_in_files(location, where)
        # It takes seconds to import.
        from sentence_transformers import SentenceTransformer

        from pieline.studies.idiolink.predictions.encoders import backbone_of, save_folder

        model = SentenceTransformer(
            location,
            device="cpu",
            # Nothing but tensors is read of a pickle: torch.load(weights_only=True).
            model_kwargs={
                "dtype": torch.float32,
                "use_safetensors": False,
                "ignore_mismatched_sizes": True,
            },
        )
        require_all_weights(backbone_of(model), location, where)
        require_finite(model, where)
        save_folder(model, output)


def _unpack_gguf(path: Path, output: Path, where: str) -> None:
    folder, name = str(path.parent), path.name
    with parse_gguf_once():
        loaded = load_model(
            AutoModelForCausalLM, folder, where, gguf_file=name, dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    # transformers refuses to save what it marks as quantised, though it holds plain float32 by now.
    plain_config = type(loaded.config).from_dict(
        {key: value for key, value in loaded.config.to_dict().items() if "quantization" not in key}
    )
    # Nothing is drawn for weights that are taken from elsewhere.
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            plain_config, dtype=torch.float32
        )
    model.load_state_dict(loaded.state_dict(), assign=True)
    with atomic_folder(output) as complete:
        model.save_pretrained(complete)
        tokenizer.save_pretrained(complete)
