"""Loading a text-embedding model as its entry of models.yaml says."""

import tempfile
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer

from pieline.core.errors import UserError
from pieline.core.files import sha256
from pieline.models.embedder import EmbedderEntry
from pieline.models.weights import loading, weights_location
from pieline.studies.idiolink.predictions.pooling import LatentAttentionPooling


def unpack_gguf(gguf: Path, output: Path) -> None:
    """Write the weights and tokenizer of a GGUF file as a safetensors folder (float32).

    Unpacking takes tens of seconds and loading the folder one, so it is a step of its own. The
    folder appears only when it is complete.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, name = str(gguf.parent), gguf.name
    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    # transformers refuses to save what it marks as quantised, though it holds plain float32 by now.
    plain_config = type(loaded.config).from_dict(
        {key: value for key, value in loaded.config.to_dict().items() if "quantization" not in key}
    )
    model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
        plain_config, dtype=torch.float32
    )
    model.load_state_dict(loaded.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as unfinished:
        complete = Path(unfinished) / output.name
        model.save_pretrained(complete)
        tokenizer.save_pretrained(complete)
        complete.replace(output)


def load_encoder(
    entry: EmbedderEntry,
    *,
    weights: str | Path | None = None,
    device: str | None = None,
    dtype: str | None = None,
) -> SentenceTransformer:
    """Load a model for evaluation.

    Args:
        entry: its entry of models.yaml.
        weights: folder to load instead of the entry's own (unpacked or fine-tuned weights).
        device: torch device; by default the GPU if there is one.
        dtype: precision; by default the entry's.

    Raises:
        UserError: the weights cannot be had; names the checkpoint and what to do.
    """
    location = str(weights) if weights else weights_location(entry)
    model_kwargs = {"dtype": getattr(torch, dtype or entry.dtype), "use_safetensors": True}
    if entry.attention:
        model_kwargs["attn_implementation"] = entry.attention
    revision = entry.revision if location == entry.checkpoint else None
    with loading(entry):
        if entry.pooling == "checkpoint":
            model = SentenceTransformer(
                location,
                device=device,
                revision=revision,
                trust_remote_code=entry.trust_remote_code,
                model_kwargs=model_kwargs,
            )
        else:
            shared = {"revision": revision, "trust_remote_code": entry.trust_remote_code}
            backbone = Transformer(
                location,
                model_kwargs=model_kwargs | shared,
                processor_kwargs=shared,
                config_kwargs=shared,
            )
            if entry.pooling == "latent":
                folder = _weights_folder(location, revision)
                pooling = LatentAttentionPooling.from_folder(folder).to(model_kwargs["dtype"])
            else:
                pooling = Pooling(backbone.get_embedding_dimension(), pooling_mode=entry.pooling)
            model = SentenceTransformer(modules=[backbone, pooling, Normalize()], device=device)
    if entry.bidirectional:
        # Passed to from_pretrained it would be dropped silently: no decoder's config declares it.
        backbone_of(model).config.is_causal = False
    model.max_seq_length = entry.max_length
    tokenizer = model.tokenizer
    if not tokenizer.is_fast:
        raise UserError(
            "its tokenizer cannot tell which characters a token covers",
            where=f"{entry.checkpoint} ({entry.source})",
            mend="use a checkpoint with a tokenizer.json",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if entry.pooling == "lasttoken":
        tokenizer.padding_side = "left"
    return model.eval()


def backbone_of(model: SentenceTransformer) -> Any:
    """The transformers model under the pooling."""
    first: Any = model[0]
    return first.auto_model


def loaded_revision(model: SentenceTransformer) -> str | None:
    """The commit of the hub that a model was loaded from; None for weights of a folder."""
    revision: str | None = getattr(backbone_of(model).config, "_commit_hash", None)
    return revision


def weights_digests(entry: EmbedderEntry, weights: str | Path | None = None) -> dict[str, str]:
    """SHA-256 by name of the files that `load_encoder` reads, where they lie in a folder.

    Args:
        entry: the model's entry.
        weights: folder that is loaded instead of the entry's own.
    """
    folder = Path(weights or weights_location(entry))
    if not folder.is_dir():
        return {}
    return {
        path.relative_to(folder).as_posix(): sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in {".json", ".safetensors", ".txt", ".model"}
    }


def _weights_folder(location: str, revision: str | None) -> str:
    """A folder with the weights' files, downloaded if they are on the hub."""
    if Path(location).is_dir():
        return location
    from huggingface_hub import snapshot_download

    return snapshot_download(location, revision=revision, allow_patterns=["*.safetensors"])
