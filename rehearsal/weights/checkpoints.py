"""Write tiny, untrained checkpoints with reproducible bytes."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers.utils import logging as transformers_logging

from pieline.core.files import write_json
from rehearsal.weights import remote_code
from rehearsal.weights.anatomy import SIZES, Anatomy
from rehearsal.weights.vocabularies import tokenizer_of


def save_checkpoint(
    anatomy: Anatomy,
    folder: Path,
    *,
    words: tuple[str, ...] = (),
    pickled: bool = False,
    in_parts: bool = False,
) -> Path:
    """Write a tiny checkpoint with reproducible weights.

    Args:
        anatomy: Properties of the checkpoint.
        folder: Output folder, which is created if necessary.
        words: Words that are added to the vocabulary.
        pickled: Whether to write pickles instead of safetensors.
        in_parts: Whether to write several weight files and an index.

    Returns:
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_of(anatomy, words)
    _save_model(anatomy, folder, tokenizer, in_parts=in_parts)
    _save_tokenizer(anatomy, folder, tokenizer)
    if anatomy.pooling:
        _save_modules(anatomy, folder)
    if pickled:
        for path in sorted(folder.rglob("model*.safetensors*")):
            _pickle(path)
    return folder


def save_code(folder: Path) -> None:
    """Write the modeling code that checkpoints include or refer to, as remote_code.py."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(str(remote_code.__file__), folder / "remote_code.py")


def _save_model(anatomy: Anatomy, folder: Path, tokenizer: Tokenizer, *, in_parts: bool) -> None:
    family = anatomy.kind
    sizes = family.sizes if anatomy.family == "t5" else SIZES | family.sizes
    width = "d_model" if anatomy.family == "t5" else "hidden_size"
    config = family.config(
        **sizes | {width: anatomy.hidden} | anatomy.sizes,
        vocab_size=tokenizer.get_vocab_size(),
        pad_token_id=tokenizer.token_to_id(family.specials.get("pad", "")),
    )
    torch.manual_seed(7)
    name = family.model.replace("Model", family.head) if anatomy.with_head else family.model
    model = getattr(family.code, name)(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    model.to(getattr(torch, anatomy.dtype))
    size = sum(weight.nbytes for weight in model.state_dict().values())
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model.save_pretrained(folder, max_shard_size=size // 2 if in_parts else size)
    classes = {role: named for role, named in anatomy.repo_code.items() if role != "AutoTokenizer"}
    if family.code is remote_code:
        where = f"{anatomy.code_in}--" if anatomy.code_in else ""
        classes = {"AutoConfig": f"{where}remote_code.{family.config.__name__}"}
        classes |= {"AutoModel": f"{where}remote_code.{family.model}"}
        if not where:
            save_code(folder)
    _amend(folder / "config.json", {"auto_map": classes} if classes else {})


def _pickle(path: Path) -> None:
    """Replace a safetensors file with a pickle, or an index of such files with one of pickles."""
    place = path.with_name(path.name.replace("model", "pytorch_model", 1))
    if path.suffix == ".json":
        index = json.loads(path.read_text())
        named = {
            weight: file.replace("model", "pytorch_model", 1).replace(".safetensors", ".bin")
            for weight, file in index["weight_map"].items()
        }
        write_json(place.with_name("pytorch_model.bin.index.json"), index | {"weight_map": named})
    else:
        torch.save(load_file(path), place.with_suffix(".bin"))
    path.unlink()


def _save_tokenizer(anatomy: Anatomy, folder: Path, tokenizer: Tokenizer) -> None:
    family = anatomy.kind
    if anatomy.vocabulary_only:
        ranked = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        lines = "".join(f"{piece}\n" for piece, _ in ranked)
        (folder / "vocab.txt").write_text(lines, encoding="utf-8")
    else:
        tokenizer.save(str(folder / "tokenizer.json"))
    config: dict[str, Any] = {f"{role}_token": name for role, name in family.specials.items()}
    config |= {"tokenizer_class": family.tokenizer, "model_max_length": anatomy.max_length}
    config |= {"padding_side": "left"} if anatomy.left else {}
    if "AutoTokenizer" in anatomy.repo_code:
        config["auto_map"] = {"AutoTokenizer": [None, anatomy.repo_code["AutoTokenizer"]]}
    _amend(folder / "tokenizer_config.json", config | anatomy.tokenizer_flags)


def _save_modules(anatomy: Anatomy, folder: Path) -> None:
    """Write the files of sentence-transformers."""
    chain = ["Transformer", "Pooling"]
    chain += ["Dense"] * bool(anatomy.dense) + ["Normalize"] * anatomy.normalize
    paths = [f"{place}_{module}" if place else "" for place, module in enumerate(chain)]
    rows = [
        {"idx": place, "name": str(place), "path": path}
        | {"type": f"sentence_transformers.models.{module}"}
        for place, (path, module) in enumerate(zip(paths, chain, strict=True))
    ]
    write_json(folder / "modules.json", rows)
    modes = {"mean": "mean_tokens", "cls": "cls_token", "lasttoken": "lasttoken"}
    pooling = {f"pooling_mode_{mode}": name == anatomy.pooling for name, mode in modes.items()}
    _amend(folder / "1_Pooling/config.json", {"word_embedding_dimension": anatomy.hidden} | pooling)
    _amend(
        folder / "sentence_bert_config.json",
        {"max_seq_length": anatomy.max_length, "do_lower_case": False},
    )
    _amend(
        folder / "config_sentence_transformers.json",
        {"prompts": anatomy.prompts, "default_prompt_name": None},
    )
    if anatomy.dense:
        outputs, has_bias = anatomy.dense
        dense: dict[str, Any] = {
            "in_features": anatomy.hidden,
            "out_features": outputs,
            "bias": has_bias,
        }
        dense |= {"activation_function": "torch.nn.modules.linear.Identity"}
        _amend(folder / "2_Dense/config.json", dense)
        weights = {"linear.weight": torch.randn(outputs, anatomy.hidden)}
        weights |= {"linear.bias": torch.randn(outputs)} if has_bias else {}
        save_file(weights, folder / "2_Dense/model.safetensors")


def _amend(path: Path, fields: dict[str, Any]) -> None:
    """Write fields to a JSON file; if the file exists, keep its other fields."""
    present = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    write_json(path, present | fields)
