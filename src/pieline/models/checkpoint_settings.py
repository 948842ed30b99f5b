"""Read the settings in a checkpoint's sentence-transformers files, and compare them with its entry.

Only JSON files are read, so that a contradiction is reported before any weights are loaded.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pieline.core.errors import UserError
from pieline.core.files import read_json
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import Override

if TYPE_CHECKING:
    # Not imported at run time, so that changes to it do not rerun embedding jobs.
    from pieline.models.rankers import LateInteractionEntry, RerankerEntry

FOLLOWED, OVERRIDDEN, REFUSED, NO_EFFECT = "followed", "entry", "refused", "no effect"

_MODEL, _TRANSFORMER = "config_sentence_transformers.json", "sentence_bert_config.json"
FIELDS: Mapping[str, Mapping[str, str]] = {
    _MODEL: {
        "prompts": FOLLOWED,
        "truncate_dim": FOLLOWED,
        "requirements": FOLLOWED,
        "similarity_fn_name": REFUSED,
        "default_prompt_name": REFUSED,
        "model_type": REFUSED,
        "__version__": NO_EFFECT,
    },
    _TRANSFORMER: {
        "do_lower_case": FOLLOWED,
        "model_kwargs": FOLLOWED,
        "model_args": FOLLOWED,
        "processor_kwargs": FOLLOWED,
        "tokenizer_args": FOLLOWED,
        "config_kwargs": FOLLOWED,
        "config_args": FOLLOWED,
        "max_seq_length": OVERRIDDEN,
        "transformer_task": REFUSED,
        "modality_config": REFUSED,
        "module_output_name": REFUSED,
        "processing_kwargs": REFUSED,
        "query_length": REFUSED,
        "document_length": REFUSED,
        "query_expansion": REFUSED,
        "tokenizer_name_or_path": REFUSED,
        "backend": REFUSED,
        "unpad_inputs": NO_EFFECT,
    },
    "modules.json": {
        "type": FOLLOWED,
        "path": FOLLOWED,
        "kwargs": REFUSED,
        "idx": NO_EFFECT,
        "name": NO_EFFECT,
    },
    "Pooling": {
        "embedding_dimension": FOLLOWED,
        "word_embedding_dimension": FOLLOWED,
        "pooling_mode": FOLLOWED,
        "pooling_mode_cls_token": FOLLOWED,
        "pooling_mode_max_tokens": FOLLOWED,
        "pooling_mode_mean_tokens": FOLLOWED,
        "pooling_mode_mean_sqrt_len_tokens": FOLLOWED,
        "pooling_mode_weightedmean_tokens": FOLLOWED,
        "pooling_mode_lasttoken": FOLLOWED,
        "include_prompt": FOLLOWED,
    },
    "Dense": {
        "in_features": FOLLOWED,
        "out_features": FOLLOWED,
        "bias": FOLLOWED,
        "activation_function": FOLLOWED,
        "use_residual": FOLLOWED,
        "module_input_name": REFUSED,
        "module_output_name": REFUSED,
    },
    "Normalize": {"module_input_name": REFUSED, "module_output_name": REFUSED},
    "LayerNorm": {"dimension": FOLLOWED},
    "Dropout": {"dropout": FOLLOWED},
}
"""What happens to each field of a checkpoint's files, by file or by class of a module.

`FOLLOWED`: as sentence-transformers does. `OVERRIDDEN`: replaced by a field of the entry.
`REFUSED`: accepted only with the value that sentence-transformers uses without the field, or with
one that changes no ranking. Fields that are not listed are refused.
"""

# sentence-transformers reads the first of these files that is not empty.
_TRANSFORMER_FILES = (
    _TRANSFORMER,
    *(
        f"sentence_{name}_config.json"
        for name in ("roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
    ),
)
_LEGACY_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_MODULES = ("Pooling", "Dense", "Normalize", "LayerNorm", "Dropout")
_LATENT = "pieline.studies.idiolink.predictions.encoders.LatentAttentionPooling"
_PLAIN_MODALITY = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
_USUAL: Mapping[str, Any] = {
    "transformer_task": "feature-extraction",
    "modality_config": _PLAIN_MODALITY,
    "module_output_name": "token_embeddings",
    "backend": "torch",
}
"""Values of refused fields of the transformer that are accepted; otherwise null or empty."""


@dataclass(frozen=True)
class CheckpointSettings:
    """Settings in a checkpoint's files that embedders follow.

    Attributes:
        prompts: Prompts of queries and documents, by the names of sentence-transformers.
        truncate_dim: Number of dimensions that are kept; None for all.
        include_prompt: Whether prompts are pooled.
        requirements: Versions of packages that the checkpoint needs.
    """

    prompts: Mapping[str, str]
    truncate_dim: int | None
    include_prompt: bool
    requirements: Any


def checkpoint_settings(entry: EmbedderEntry, folder: str | Path, where: str) -> CheckpointSettings:
    """Return the settings in a checkpoint's files that an embedder follows.

    Args:
        entry: Entry of the embedder.
        folder: Folder of the checkpoint.
        where: Name of the checkpoint in error messages.

    Raises:
        UserError: The files contradict the entry and its `overrides` do not name the setting, or a
            field of the files is not supported.
    """
    return _Files(entry, Path(folder), where).settings()


def check_ranker_files(
    entry: "RerankerEntry | LateInteractionEntry", folder: str | Path, where: str
) -> None:
    """Check that the files of a reranker or late-interaction model do not contradict its entry.

    Raises:
        UserError: They do, and `overrides` do not name the setting.
    """
    _Files(entry, Path(folder), where).check_ranker()


def length_limits(folder: Path) -> list[tuple[str, str, int]]:
    """Return the limits of the input length that a checkpoint's files state.

    Returns:
        The file, the field and the number of tokens of each limit.
    """
    transformer_file, transformer = _read_transformer(folder)
    tokenizer = transformer.get("tokenizer_args", transformer.get("processor_kwargs"))
    lengths = [
        (transformer_file, "max_seq_length", transformer),
        (transformer_file, "model_max_length", tokenizer if isinstance(tokenizer, dict) else {}),
    ]
    if not transformer.get("max_seq_length"):
        file = "tokenizer_config.json"
        lengths.append((file, "model_max_length", _read(folder, file)))
    lengths.append(("config.json", "max_position_embeddings", _read(folder, "config.json")))
    limits = []
    for file, field, content in lengths:
        limit = content.get(field)
        if isinstance(limit, int | float) and limit > 0:
            limits.append((file, field, int(limit)))
    return limits


def dtype_of(folder: Path) -> tuple[str, str] | None:
    """Return the data type that a checkpoint's files set, and the file that sets it.

    sentence-transformers uses this type. The result is None for float32 and for types that an entry
    cannot have.
    """
    file, transformer = _read_transformer(folder)
    options = transformer.get("model_args", transformer.get("model_kwargs"))
    for name, content in ((file, options), ("config.json", _read(folder, "config.json"))):
        for field in ("dtype", "torch_dtype"):
            value = content.get(field) if isinstance(content, dict) else None
            if value not in (None, "auto"):
                dtype = str(value).removeprefix("torch.")
                return (dtype, name) if dtype in ("bfloat16", "float16") else None
    return None


def first_module(folder: Path) -> str:
    """Return the class of the first module in a checkpoint's modules.json; empty if unknown."""
    path = folder / "modules.json"
    rows = read_json(path) if path.is_file() else []
    first = rows[0] if isinstance(rows, list) and rows else {}
    kind = first.get("type") if isinstance(first, dict) else ""
    return kind.rpartition(".")[2] if isinstance(kind, str) else ""


def _read(folder: Path, name: str) -> dict[str, Any]:
    """Return the content of a JSON file; empty if there is no such file."""
    path = folder / name
    content = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict):
        raise UserError("not a JSON object", where=path, hint="restore the original file")
    return content


def _read_transformer(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the name and content of the transformer's file."""
    contents = ((name, _read(folder, name)) for name in _TRANSFORMER_FILES)
    return next((item for item in contents if item[1]), (_TRANSFORMER, {}))


class _Files:
    """The sentence-transformers files of a checkpoint, and the entry to compare them with."""

    def __init__(
        self,
        entry: "EmbedderEntry | RerankerEntry | LateInteractionEntry",
        folder: Path,
        where: str,
    ) -> None:
        self.entry, self.folder, self.where = entry, folder, where
        self.model = _read(folder, _MODEL)
        self.transformer_file, self.transformer = _read_transformer(folder)
        self.modules = list(self._modules())

    def settings(self) -> CheckpointSettings:
        assert isinstance(self.entry, EmbedderEntry)
        self._check_known(_MODEL, self.model, FIELDS[_MODEL])
        self._check_known(self.transformer_file, self.transformer, FIELDS[_TRANSFORMER])
        kind = self.model.get("model_type") or "SentenceTransformer"
        if kind != "SentenceTransformer":
            self._refuse(_MODEL, "model_type", kind)
        self._check_transformer()
        include_prompt = self._check_modules(self.entry)
        truncate_dim = self.model.get("truncate_dim")
        if truncate_dim is not None and (type(truncate_dim) is not int or truncate_dim < 1):
            self._refuse(_MODEL, "truncate_dim", truncate_dim)
        if self._overrides("truncate_dim"):
            truncate_dim = None
        self._check_similarity(truncate_dim)
        self._check_length()
        prompts = {} if self._overrides("prompts") else self._prompts(self.entry)
        return CheckpointSettings(
            prompts, truncate_dim, include_prompt, self.model.get("requirements")
        )

    def check_ranker(self) -> None:
        self._check_length()
        if self._overrides("prompts"):
            return
        prompts = self._texts_of_prompts()
        default = prompts.get(self.model.get("default_prompt_name") or "", "")
        if self.entry.kind == "late_interaction":
            applied = {"query_prefix": prompts.get("query", "")}
            applied["passage_prefix"] = prompts.get("document", "")
        else:
            applied = dict.fromkeys(("query_prefix", "passage_prefix"), default)
        for field, prompt in applied.items():
            if prompt and (own := getattr(self.entry, field)):
                self._contradict(_MODEL, "prompts", prompt, f"{field} {own!r}", "prompts")

    def _modules(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the class, the name of the configuration file, and the configuration of modules."""
        path = self.folder / "modules.json"
        rows = read_json(path) if path.is_file() else []
        if not isinstance(rows, list) or not all(
            isinstance(row, dict)
            and isinstance(row.get("type"), str)
            and isinstance(row.get("path"), str | None)
            for row in rows
        ):
            raise UserError("not a list of modules", where=path, hint="restore the original file")
        for number, row in enumerate(rows):
            self._check_known("modules.json", row, FIELDS["modules.json"])
            if row.get("kwargs") and isinstance(self.entry, EmbedderEntry):
                self._refuse("modules.json", "kwargs", row["kwargs"])
            kind = row["type"]
            if kind.startswith("sentence_transformers."):
                kind = kind.rpartition(".")[2]
            if row.get("path") and not number:
                is_known = kind == "Transformer" or self.entry.trust_remote_code
                field = "path" if is_known else "type"
                self._refuse("modules.json", field, row["path"] if is_known else kind)
            # The transformer, which comes first, has its own file.
            name = Path(row.get("path") or "", "config.json").as_posix() if number else ""
            yield kind, name, _read(self.folder, name) if name else {}

    def _check_transformer(self) -> None:
        """Check the transformer's fields and options; the override `dtype` includes attention."""
        for field, value in self.transformer.items():
            usual = _USUAL.get(field)
            if FIELDS[_TRANSFORMER][field] == REFUSED and value and value != usual:
                self._refuse(self.transformer_file, field, value)
        options = self._options("config", "config") | self._options("model", "model")
        attention = getattr(self.entry, "attention", None)
        for name, field, own in (
            ("dtype", "dtype", self.entry.dtype),
            ("torch_dtype", "dtype", self.entry.dtype),
            ("attn_implementation", "attention", attention),
        ):
            value = options.get(name)
            if own and value and str(value).removeprefix("torch.") != own:
                self._contradict(self.transformer_file, name, value, f"{field} {own!r}", "dtype")

    def _check_modules(self, entry: EmbedderEntry) -> bool:
        """Check the modules after the transformer, and return whether prompts are pooled."""
        kinds = [kind for kind, _, _ in self.modules]
        _, name, pooling = self.modules[1] if kinds[1:2] == ["Pooling"] else ("", "", {})
        pools_prompts = pooling.get("include_prompt", True) or self._overrides("include_prompt")
        if not kinds or (self._overrides("pooling") and entry.pooling != "checkpoint"):
            return pools_prompts
        if kinds[0] != "Transformer" and not self._runs_code(entry):
            self._refuse("modules.json", "type", kinds[0])
        if entry.pooling == "latent":
            if kinds[1:2] != [_LATENT]:
                self._contradict("modules.json", "type", kinds[1:], "pooling 'latent'", "pooling")
            return True
        if kinds[1:2] != ["Pooling"]:
            raise UserError(
                f"modules.json: the second module is not a pooling module ({kinds[1:2]})",
                where=self.where,
                hint="use a sentence-transformers model with one vector per text, or set `pooling`"
                " and overrides: [pooling] in the model's entry",
            )
        for number, module in enumerate(self.modules[1:]):
            self._check_module(entry, *module, is_pooling=number == 0)
        mode = _pooling_mode(pooling)
        if mode is None:
            self._refuse(name, "pooling_mode", pooling["pooling_mode"])
        if entry.pooling != "checkpoint":
            own = f"pooling {entry.pooling!r}"
            if mode != entry.pooling:
                self._contradict(name, "pooling_mode", mode, own, "pooling")
            for kind in kinds[2:]:
                if kind not in ("Normalize", "Dropout"):
                    self._contradict("modules.json", "type", kind, f"{own} without it", "pooling")
        elif not isinstance(mode, str):
            # Span vectors are means of tokens, so they would have fewer dimensions.
            self._refuse(name, "pooling_mode", "+".join(mode))
        return pools_prompts

    def _check_module(
        self,
        entry: EmbedderEntry,
        kind: str,
        name: str,
        config: Mapping[str, Any],
        *,
        is_pooling: bool,
    ) -> None:
        """Check a module after the transformer."""
        if kind not in _MODULES or is_pooling != (kind == "Pooling"):
            if not self._runs_code(entry):
                self._refuse("modules.json", "type", kind)
            return
        self._check_known(name, config, FIELDS[kind])
        for field in ("module_input_name", "module_output_name"):
            if config.get(field) not in (None, "sentence_embedding"):
                self._refuse(name, field, config[field])
        activation = str(config.get("activation_function") or "torch.")
        if not activation.startswith("torch.") and not entry.trust_remote_code:
            self._refuse(name, "activation_function", activation)

    def _runs_code(self, entry: EmbedderEntry) -> bool:
        return entry.trust_remote_code and entry.pooling == "checkpoint"

    def _check_similarity(self, truncate_dim: int | None) -> None:
        name = self.model.get("similarity_fn_name")
        kinds = [kind for kind, _, _ in self.modules if kind != "Dropout"]
        normalized = kinds[-1:] == ["Normalize"] and truncate_dim is None
        # Vectors of length 1 have the same ranking by cosine, dot product and distance.
        accepted = {None, "cosine"} | ({"dot", "euclidean"} if normalized else set())
        if name not in accepted and not self._overrides("similarity_fn_name"):
            self._contradict(
                _MODEL, "similarity_fn_name", name, "ranking by cosine", "similarity_fn_name"
            )

    def _check_length(self) -> None:
        self._options("processor", "tokenizer")  # refuses other types than objects
        for file, field, limit in length_limits(self.folder):
            if limit < self.entry.max_length:
                own = f"max_length {self.entry.max_length}"
                self._contradict(file, field, limit, own, "max_seq_length")

    def _prompts(self, entry: EmbedderEntry) -> dict[str, str]:
        """Return the prompts that the entry follows, by the names of sentence-transformers."""
        prompts = self._texts_of_prompts()
        # sentence-transformers always has a prompt named document, so it ignores the other two.
        ignored = {} if prompts.get("document") else {"passage": "passage_prefix"}
        fields = {"query": "query_prefix", "document": "passage_prefix"} | ignored
        for name, field in fields.items():
            prompt, own = prompts.get(name), getattr(entry, field)
            if prompt and prompt != own and (own or name in ignored):
                self._contradict(_MODEL, f"prompts.{name}", prompt, f"{field} {own!r}", "prompts")
        applied = {name: prompts[name] for name in ("query", "document") if prompts.get(name)}
        default = str(self.model.get("default_prompt_name") or "")
        text = prompts.get(default, "")
        if text and (applied.get("query"), applied.get("document")) != (text, text):
            own = f"{applied or 'no prompts'} for queries and documents"
            setting: Override = "default_prompt_name"
            self._contradict(_MODEL, setting, default, own, setting)
        return applied

    def _texts_of_prompts(self) -> dict[str, str]:
        prompts = self.model.get("prompts") or {}
        if not isinstance(prompts, dict):
            self._refuse(_MODEL, "prompts", prompts)
        for name, text in prompts.items():
            if not isinstance(text, str | None):
                self._refuse(_MODEL, f"prompts.{name}", text)
        return {name: text or "" for name, text in prompts.items()}

    def _options(self, name: str, old_name: str) -> dict[str, Any]:
        """Return the options in the transformer's file that are passed to transformers."""
        options = self.transformer.get(f"{old_name}_args", self.transformer.get(f"{name}_kwargs"))
        if not isinstance(options or {}, dict):
            self._refuse(self.transformer_file, f"{name}_kwargs", options)
        return options or {}

    def _overrides(self, setting: Override) -> bool:
        return setting in (self.entry.overrides or ())

    def _check_known(self, file: str, content: Mapping[str, Any], known: Mapping[str, str]) -> None:
        if isinstance(self.entry, EmbedderEntry):
            for field in sorted(content.keys() - known.keys()):
                self._refuse(file, field, content[field])

    def _refuse(self, file: str, field: str, value: Any) -> NoReturn:
        raise UserError(
            f"{file}: {field} {value!r} is not supported",
            where=self.where,
            hint="remove it if it has no effect, or use another checkpoint",
        )

    def _contradict(self, file: str, field: str, value: Any, own: str, setting: Override) -> None:
        if not self._overrides(setting):
            raise UserError(
                f"{file}: {field} is {value!r}, but the entry has {own}",
                where=self.where,
                hint=f"change the model's entry, or add overrides: [{setting}] to it",
            )


def _pooling_mode(config: Mapping[str, Any]) -> str | tuple[str, ...] | None:
    """Return the mode, or modes, of a pooling module; None if the field has another type."""
    mode = config.get("pooling_mode")
    if mode is None:
        mode = [name for flag, name in _LEGACY_MODES.items() if config.get(flag)] or ["mean"]
    if isinstance(mode, str):
        return mode
    if not isinstance(mode, list) or not all(isinstance(each, str) for each in mode):
        return None
    return mode[0] if len(mode) == 1 else tuple(mode)
