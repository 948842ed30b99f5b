"""Read the settings in a checkpoint's sentence-transformers files, and compare them with its entry.

Only JSON files are read, so that a contradiction is reported before any weights are loaded.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pieline.core.errors import UserError
from pieline.core.files import read_json
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import Override

if TYPE_CHECKING:
    # Import only for type checks, so that changes to pieline.models.rankers do not rerun embedding
    # jobs.
    from pieline.models.rankers import LateInteractionEntry, RerankerEntry

FOLLOWED, OVERRIDDEN, REFUSED, NO_EFFECT = "followed", "entry", "refused", "no effect"

SETTINGS_FILE, _TRANSFORMER = "config_sentence_transformers.json", "sentence_bert_config.json"
FIELDS: Mapping[str, Mapping[str, str]] = {
    SETTINGS_FILE: {
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
"""How pieline treats each field of a checkpoint's files, by file or by class of a module.

- `FOLLOWED`: as sentence-transformers does.
- `OVERRIDDEN`: The entry has a field that replaces it.
- `REFUSED`: An error, unless the value is the default of sentence-transformers or changes no
  ranking.
- `NO_EFFECT`: Ignored.

Fields that are not listed are an error.
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
_MODULES_AFTER_POOLING = ("Dense", "Normalize", "LayerNorm", "Dropout")
_LATENT = "pieline.studies.idiolink.predictions.encoders.LatentAttentionPooling"
_PLAIN_MODALITY = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
_DEFAULTS: Mapping[str, Any] = {
    "transformer_task": "feature-extraction",
    "modality_config": _PLAIN_MODALITY,
    "module_output_name": "token_embeddings",
    "backend": "torch",
}
"""Accepted values of the transformer's `REFUSED` fields. The other fields must be null or empty."""


@dataclass(frozen=True)
class CheckpointSettings:
    """Settings in a checkpoint's files that embedders follow.

    Attributes:
        prompts: Nonempty prompts, with the keys `query` and `document`.
        truncate_dim: Number of dimensions to keep; None for all.
        include_prompt: Whether the pooling includes the vectors of a prompt's tokens.
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
        UserError: The files contradict the entry in a setting that the entry's `overrides` do not
            name, or a field of the files is not supported.
    """
    return _CheckpointFiles(entry, Path(folder), where).read_settings()


def check_ranker_files(
    entry: "RerankerEntry | LateInteractionEntry", folder: str | Path, where: str
) -> None:
    """Check that the files of a reranker or late-interaction model do not contradict its entry.

    Raises:
        UserError: The files contradict the entry in a setting that `overrides` do not name.
    """
    _CheckpointFiles(entry, Path(folder), where).check_ranker()


class LengthLimit(NamedTuple):
    """A limit on the input length in tokens, with the file and the field that state the limit."""

    file: str
    field: str
    tokens: int


def length_limits(folder: Path) -> list[LengthLimit]:
    """Return the limits on the input length that a checkpoint's files state.

    A `max_seq_length` in the transformer's file replaces the limit in tokenizer_config.json.
    """
    transformer_file, transformer = _read_transformer(folder)
    tokenizer_options = transformer.get("tokenizer_args", transformer.get("processor_kwargs"))
    if not isinstance(tokenizer_options, dict):
        tokenizer_options = {}
    candidates = [
        (transformer_file, "max_seq_length", transformer),
        (transformer_file, "model_max_length", tokenizer_options),
    ]
    if not transformer.get("max_seq_length"):
        tokenizer_file = "tokenizer_config.json"
        candidates.append((tokenizer_file, "model_max_length", _read(folder, tokenizer_file)))
    candidates.append(("config.json", "max_position_embeddings", _read(folder, "config.json")))
    limits = []
    for file, field, content in candidates:
        tokens = content.get(field)
        if isinstance(tokens, int | float) and tokens > 0:
            limits.append(LengthLimit(file, field, int(tokens)))
    return limits


def dtype_of(folder: Path) -> tuple[str, str] | None:
    """Return the data type that a checkpoint's files set, and the name of the file that sets it.

    sentence-transformers uses this type. The result is None if no file sets a type, or if the first
    type that a file sets is not one of the half-precision types that an entry can have.
    """
    transformer_file, transformer = _read_transformer(folder)
    model_options = transformer.get("model_args", transformer.get("model_kwargs"))
    candidates = (
        (transformer_file, model_options),
        ("config.json", _read(folder, "config.json")),
    )
    for file, content in candidates:
        for field in ("dtype", "torch_dtype"):
            value = content.get(field) if isinstance(content, dict) else None
            if value not in (None, "auto"):
                dtype = str(value).removeprefix("torch.")
                is_half_precision = dtype in ("bfloat16", "float16")
                return (dtype, file) if is_half_precision else None
    return None


def first_module(folder: Path) -> str:
    """Return the class name of the first module in modules.json; empty if no file states it."""
    path = folder / "modules.json"
    modules = read_json(path) if path.is_file() else None
    if not isinstance(modules, list) or not modules or not isinstance(modules[0], dict):
        return ""
    class_path = modules[0].get("type")
    return class_path.rpartition(".")[2] if isinstance(class_path, str) else ""


def _read(folder: Path, name: str) -> dict[str, Any]:
    """Return the object in a JSON file of a folder; empty if there is no such file.

    Raises:
        UserError: The file is not valid, or contains no object.
    """
    path = folder / name
    content = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict):
        raise UserError("not a JSON object", where=path, hint="restore the original file")
    return content


def _read_transformer(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the name and the content of the file with the settings of the transformer.

    Of several such files, sentence-transformers reads the first that is not empty.
    """
    for name in _TRANSFORMER_FILES:
        content = _read(folder, name)
        if content:
            return name, content
    return _TRANSFORMER, {}


class _Module(NamedTuple):
    """A module in modules.json.

    Attributes:
        kind: Name of the class, without the package for classes of sentence-transformers.
        config_file: Path of the module's configuration in the checkpoint; empty for the first
            module.
        config: Content of the configuration file.
    """

    kind: str
    config_file: str
    config: Mapping[str, Any]


class _CheckpointFiles:
    """The sentence-transformers files of a checkpoint, and the entry to compare them with."""

    def __init__(
        self,
        entry: "EmbedderEntry | RerankerEntry | LateInteractionEntry",
        folder: Path,
        where: str,
    ) -> None:
        self.entry, self.folder, self.where = entry, folder, where
        self.model = _read(folder, SETTINGS_FILE)
        self.transformer_file, self.transformer = _read_transformer(folder)
        self.modules = list(self._read_modules())

    def read_settings(self) -> CheckpointSettings:
        """Check the files of an embedder, and return the settings to follow."""
        assert isinstance(self.entry, EmbedderEntry)
        self._refuse_unknown(SETTINGS_FILE, self.model, FIELDS[SETTINGS_FILE])
        self._refuse_unknown(self.transformer_file, self.transformer, FIELDS[_TRANSFORMER])
        model_type = self.model.get("model_type") or "SentenceTransformer"
        if model_type != "SentenceTransformer":
            self._refuse(SETTINGS_FILE, "model_type", model_type)
        self._check_transformer()
        self._check_modules(self.entry)
        truncate_dim = self._truncate_dim()
        self._check_similarity(truncate_dim)
        self._check_length()
        prompts = {} if self._overrides("prompts") else self._applied_prompts(self.entry)
        return CheckpointSettings(
            prompts, truncate_dim, self._include_prompt(), self.model.get("requirements")
        )

    def check_ranker(self) -> None:
        """Check that the files of a reranker or late-interaction model agree with its entry."""
        self._check_length()
        if self._overrides("prompts"):
            return
        prompts = self._all_prompts()
        if self.entry.kind == "late_interaction":
            query_prompt, document_prompt = prompts.get("query"), prompts.get("document")
        else:
            query_prompt = document_prompt = prompts.get(self._default_prompt_name())
        for field, prompt in (("query_prefix", query_prompt), ("passage_prefix", document_prompt)):
            prefix = getattr(self.entry, field)
            if prompt and prefix:
                self._contradict(SETTINGS_FILE, "prompts", prompt, f"{field} {prefix!r}", "prompts")

    def _read_modules(self) -> Iterator[_Module]:
        """Yield the modules in modules.json, in order."""
        path = self.folder / "modules.json"
        rows = read_json(path) if path.is_file() else []
        if not isinstance(rows, list) or not all(_is_module(row) for row in rows):
            raise UserError("not a list of modules", where=path, hint="restore the original file")
        for position, row in enumerate(rows):
            self._refuse_unknown("modules.json", row, FIELDS["modules.json"])
            if row.get("kwargs") and isinstance(self.entry, EmbedderEntry):
                self._refuse("modules.json", "kwargs", row["kwargs"])
            kind, module_folder = row["type"], row.get("path") or ""
            if kind.startswith("sentence_transformers."):
                kind = kind.rpartition(".")[2]
            if position > 0:
                config_file = Path(module_folder, "config.json").as_posix()
                yield _Module(kind, config_file, _read(self.folder, config_file))
                continue
            # The first module is the transformer, whose files are not in a folder of their own.
            if module_folder and (kind == "Transformer" or self.entry.trust_remote_code):
                self._refuse("modules.json", "path", module_folder)
            if module_folder:
                self._refuse("modules.json", "type", kind)
            yield _Module(kind, "", {})

    def _check_transformer(self) -> None:
        """Check the fields of the transformer's file, and compare its options with the entry."""
        for field, value in self.transformer.items():
            is_refused = FIELDS[_TRANSFORMER][field] == REFUSED
            if is_refused and value and value != _DEFAULTS.get(field):
                self._refuse(self.transformer_file, field, value)
        config_options = self._options("config_args", "config_kwargs")
        options = config_options | self._options("model_args", "model_kwargs")
        # The override `dtype` also covers the attention kernel.
        for option, field in (
            ("dtype", "dtype"),
            ("torch_dtype", "dtype"),
            ("attn_implementation", "attention"),
        ):
            value, entry_value = options.get(option), getattr(self.entry, field, None)
            if entry_value and value and str(value).removeprefix("torch.") != entry_value:
                entry_has = f"{field} {entry_value!r}"
                self._contradict(self.transformer_file, option, value, entry_has, "dtype")

    def _pooling_module(self) -> _Module | None:
        """Return the second module if it is a pooling module, else None."""
        is_pooling = len(self.modules) > 1 and self.modules[1].kind == "Pooling"
        return self.modules[1] if is_pooling else None

    def _include_prompt(self) -> bool:
        """Return whether the pooling includes the tokens of prompts."""
        pooling = self._pooling_module()
        if pooling is None or self._overrides("include_prompt"):
            return True
        return bool(pooling.config.get("include_prompt", True))

    def _check_modules(self, entry: EmbedderEntry) -> None:
        """Check the kinds and the fields of the modules, and compare the pooling with the entry."""
        if not self.modules:
            return
        if entry.pooling != "checkpoint" and self._overrides("pooling"):
            return  # the entry replaces all modules after the transformer
        kinds = [module.kind for module in self.modules]
        if kinds[0] != "Transformer" and not self._runs_code(entry):
            self._refuse("modules.json", "type", kinds[0])
        if entry.pooling == "latent":
            if kinds[1:2] != [_LATENT]:
                self._contradict("modules.json", "type", kinds[1:], "pooling 'latent'", "pooling")
            return
        pooling = self._pooling_module()
        if pooling is None:
            raise UserError(
                f"modules.json: the second module is not a pooling module ({kinds[1:2]})",
                where=self.where,
                hint="use a sentence-transformers model with one vector per text, or set `pooling`"
                " and overrides: [pooling] in the model's entry",
            )
        for module in self.modules[1:]:
            if module is pooling or module.kind in _MODULES_AFTER_POOLING:
                self._check_module_fields(module, entry)
            elif not self._runs_code(entry):
                self._refuse("modules.json", "type", module.kind)
        self._check_pooling_mode(pooling, entry)

    def _check_module_fields(self, module: _Module, entry: EmbedderEntry) -> None:
        """Refuse unsupported fields of a module that follows the transformer."""
        self._refuse_unknown(module.config_file, module.config, FIELDS[module.kind])
        for field in ("module_input_name", "module_output_name"):
            if module.config.get(field) not in (None, "sentence_embedding"):
                self._refuse(module.config_file, field, module.config[field])
        activation = str(module.config.get("activation_function") or "")
        is_custom = activation and not activation.startswith("torch.")
        if is_custom and not entry.trust_remote_code:
            self._refuse(module.config_file, "activation_function", activation)

    def _check_pooling_mode(self, pooling: _Module, entry: EmbedderEntry) -> None:
        """Check the mode of a pooling module, and compare it with the entry's `pooling`."""
        file, mode = pooling.config_file, _pooling_mode(pooling.config)
        if mode is None:
            self._refuse(file, "pooling_mode", pooling.config["pooling_mode"])
        if entry.pooling == "checkpoint":
            if not isinstance(mode, str):
                # Vectors of spans are means of tokens, so they would have fewer dimensions.
                self._refuse(file, "pooling_mode", "+".join(mode))
            return
        pooling_of_entry = f"pooling {entry.pooling!r}"
        if mode != entry.pooling:
            self._contradict(file, "pooling_mode", mode, pooling_of_entry, "pooling")
        modules_after_pooling = self.modules[2:]
        for module in modules_after_pooling:
            if module.kind not in ("Normalize", "Dropout"):
                without_module = f"{pooling_of_entry} without it"
                self._contradict("modules.json", "type", module.kind, without_module, "pooling")

    def _runs_code(self, entry: EmbedderEntry) -> bool:
        """Return whether the entry allows modules with classes from the checkpoint's repository."""
        return entry.trust_remote_code and entry.pooling == "checkpoint"

    def _truncate_dim(self) -> int | None:
        """Return the number of dimensions of vectors to keep; None to keep all dimensions."""
        truncate_dim = self.model.get("truncate_dim")
        if truncate_dim is not None and (type(truncate_dim) is not int or truncate_dim < 1):
            self._refuse(SETTINGS_FILE, "truncate_dim", truncate_dim)
        return None if self._overrides("truncate_dim") else truncate_dim

    def _check_similarity(self, truncate_dim: int | None) -> None:
        """Check that ranking by cosine is the same as ranking by the checkpoint's similarity."""
        kinds = [module.kind for module in self.modules if module.kind != "Dropout"]
        is_normalized = kinds[-1:] == ["Normalize"] and truncate_dim is None
        accepted = {None, "cosine"}
        if is_normalized:
            # Vectors of length 1 have the same ranking by cosine, dot product and distance.
            accepted |= {"dot", "euclidean"}
        field: Override = "similarity_fn_name"
        similarity = self.model.get(field)
        if similarity not in accepted:
            self._contradict(SETTINGS_FILE, field, similarity, "ranking by cosine", field)

    def _check_length(self) -> None:
        """Check that the entry's `max_length` is not above the limits that the files state."""
        self._options("tokenizer_args", "processor_kwargs")  # raises an error if not an object
        for file, field, tokens in length_limits(self.folder):
            if tokens < self.entry.max_length:
                entry_has = f"max_length {self.entry.max_length}"
                self._contradict(file, field, tokens, entry_has, "max_seq_length")

    def _applied_prompts(self, entry: EmbedderEntry) -> dict[str, str]:
        """Check all prompts, and return those to apply, with the keys `query` and `document`."""
        prompts = self._all_prompts()
        for name, field in (("query", "query_prefix"), ("document", "passage_prefix")):
            prompt, prefix = prompts.get(name), getattr(entry, field)
            if prompt and prefix and prompt != prefix:
                entry_has = f"{field} {prefix!r}"
                self._contradict(SETTINGS_FILE, f"prompts.{name}", prompt, entry_has, "prompts")
        # sentence-transformers ignores a prompt named "passage", because it always has a prompt
        # named "document". Therefore, the entry must have the text of the ignored prompt.
        prompt = prompts.get("passage")
        if prompt and not prompts.get("document") and prompt != entry.passage_prefix:
            entry_has = f"passage_prefix {entry.passage_prefix!r}"
            self._contradict(SETTINGS_FILE, "prompts.passage", prompt, entry_has, "prompts")
        applied = {name: prompts[name] for name in ("query", "document") if prompts.get(name)}
        self._check_default_prompt(prompts, applied)
        return applied

    def _check_default_prompt(self, prompts: Mapping[str, str], applied: Mapping[str, str]) -> None:
        """Check that the default prompt, if any, is the prompt of both queries and documents."""
        name = self._default_prompt_name()
        default_prompt = prompts.get(name)
        is_applied = applied.get("query") == applied.get("document") == default_prompt
        if default_prompt and not is_applied:
            entry_has = f"{applied or 'no prompts'} for queries and documents"
            setting: Override = "default_prompt_name"
            self._contradict(SETTINGS_FILE, setting, name, entry_has, setting)

    def _default_prompt_name(self) -> str:
        """Return the name of the prompt for texts without a prompt; empty if there is none."""
        return str(self.model.get("default_prompt_name") or "")

    def _all_prompts(self) -> dict[str, str]:
        """Return the text of each prompt by its name, with an empty text for null."""
        prompts = self.model.get("prompts") or {}
        if not isinstance(prompts, dict):
            self._refuse(SETTINGS_FILE, "prompts", prompts)
        for name, text in prompts.items():
            if not isinstance(text, str | None):
                self._refuse(SETTINGS_FILE, f"prompts.{name}", text)
        return {name: text or "" for name, text in prompts.items()}

    def _options(self, old_field: str, new_field: str) -> dict[str, Any]:
        """Return the options for the library transformers in a field of the transformer's file.

        The field has an old and a new name in different versions of sentence-transformers.
        """
        options = self.transformer.get(old_field, self.transformer.get(new_field)) or {}
        if not isinstance(options, dict):
            self._refuse(self.transformer_file, new_field, options)
        return options

    def _overrides(self, setting: Override) -> bool:
        """Return whether the entry overrides a setting of the files."""
        return setting in (self.entry.overrides or ())

    def _refuse_unknown(
        self, file: str, content: Mapping[str, Any], known: Mapping[str, str]
    ) -> None:
        """Raise a `UserError` if a file of an embedder's checkpoint has an unknown field."""
        if isinstance(self.entry, EmbedderEntry):
            for field in sorted(content.keys() - known.keys()):
                self._refuse(file, field, content[field])

    def _refuse(self, file: str, field: str, value: Any) -> NoReturn:
        """Raise a `UserError` about a field of the files that is not supported."""
        raise UserError(
            f"{file}: {field} {value!r} is not supported",
            where=self.where,
            hint="remove it if it has no effect, or use another checkpoint",
        )

    def _contradict(
        self, file: str, field: str, value: Any, entry_has: str, setting: Override
    ) -> None:
        """Raise a `UserError` about a field that contradicts the entry, unless it is overridden.

        Args:
            file: Name of the file.
            field: Field of the file.
            value: Value of the field.
            entry_has: What the entry has instead.
            setting: Name of the setting in `overrides`.
        """
        if not self._overrides(setting):
            raise UserError(
                f"{file}: {field} is {value!r}, but the entry has {entry_has}",
                where=self.where,
                hint=f"change the model's entry, or add overrides: [{setting}] to it",
            )


def _is_module(row: Any) -> bool:
    """Return whether a row of modules.json has a class and, if any, a path."""
    return (
        isinstance(row, dict)
        and isinstance(row.get("type"), str)
        and isinstance(row.get("path"), str | None)
    )


def _pooling_mode(config: Mapping[str, Any]) -> str | tuple[str, ...] | None:
    """Return the mode, or several modes, of a pooling module; None if its mode is invalid."""
    modes = config.get("pooling_mode")
    if modes is None:
        # Older files have one flag per mode.
        modes = [mode for flag, mode in _LEGACY_MODES.items() if config.get(flag)] or ["mean"]
    if isinstance(modes, str):
        return modes
    if not isinstance(modes, list) or not all(isinstance(mode, str) for mode in modes):
        return None
    return modes[0] if len(modes) == 1 else tuple(modes)
