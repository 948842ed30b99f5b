"""Load the entries of models.yaml and of the user's models.local.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError

from pieline.core.errors import UserError, nearest
from pieline.core.records import Name, explain, validated
from pieline.core.settings import keys_at
from pieline.core.yamls import read_yaml
from pieline.models.api_embedder import ApiEmbedderEntry
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import Bm25Entry, CausalEntry, EncoderEntry
from pieline.models.llm import LLMEntry
from pieline.models.predictions import PredictionsEntry
from pieline.models.rankers import LateInteractionEntry, RerankerEntry

AnyEntry = (
    ApiEmbedderEntry
    | Bm25Entry
    | CausalEntry
    | EmbedderEntry
    | EncoderEntry
    | LateInteractionEntry
    | LLMEntry
    | PredictionsEntry
    | RerankerEntry
)


def _embedder_tag(fields: Any) -> str:
    """Return `api` for an embedder behind an API, and `weights` for an embedder with weights.

    Args:
        fields: Fields of the entry, or the entry itself.
    """
    source = fields.get("source") if isinstance(fields, dict) else fields.source
    return "api" if source == "api" else "weights"


_Embedder = Annotated[
    Annotated[ApiEmbedderEntry, Tag("api")] | Annotated[EmbedderEntry, Tag("weights")],
    Discriminator(_embedder_tag),
]
Entry = Annotated[
    Bm25Entry
    | CausalEntry
    | _Embedder
    | EncoderEntry
    | LateInteractionEntry
    | LLMEntry
    | PredictionsEntry
    | RerankerEntry,
    Field(discriminator="kind"),
]
ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(Entry)
Registry = dict[str, AnyEntry]
_NAMED: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[Name, Any])
_HINT = "see schemas/models.schema.json"
_NAME_HINT = "use a name of a-z, 0-9, '.', '_' and '-'"


def load_registry(path: str | Path, *, added: Mapping[str, Any] | None = None) -> Registry:
    """Return the entries of models.yaml and of models.local.yaml next to it, by name.

    The file models.local.yaml need not exist. It can pin the commit of an entry of models.yaml that
    pins none, with an entry of the same name that has only the field `revision`. Neither file is an
    input of a rule. Each job receives only the entries that it needs, so that adding a model does
    not rerun the jobs of other models.

    Args:
        path: Path of models.yaml.
        added: Fields of further entries of models.local.yaml that are not in the file yet, by name.

    Raises:
        UserError: An entry is invalid, or two entries have the same name or label.
    """
    path = Path(path)
    local_path = local_file(path)
    shipped_fields = _read_fields(path)
    local_fields = _read_fields(local_path) if local_path.exists() else {}
    added_fields = validated(_NAMED, added or {}, where=local_path, hint=_NAME_HINT)
    for name, fields in added_fields.items():
        if name in shipped_fields or name in local_fields:
            where = path if name in shipped_fields else local_path
            raise UserError(
                f"there is already a model {name!r}", where=where, hint="use a different name"
            )
        local_fields[name] = fields
    # A local entry with the name of a shipped entry may only pin its commit.
    for name in shipped_fields.keys() & local_fields.keys():
        pin = local_fields.pop(name)
        if not _pins_commit(pin, shipped_fields[name]):
            raise UserError(
                f"{path} also has a model {name!r}", where=local_path, hint="rename your model"
            )
        shipped_fields[name] = shipped_fields[name] | pin
    shipped_entries = _validate_entries(path, shipped_fields)
    local_entries = _validate_entries(local_path, local_fields)
    _check_labels({path: shipped_entries, local_path: local_entries})
    return shipped_entries | local_entries


def _check_labels(entries_by_file: Mapping[Path, Registry]) -> None:
    """Raise a `UserError` if two entries have the same label apart from case and spaces."""
    name_of_label: dict[str, str] = {}
    for path, entries in entries_by_file.items():
        for name, entry in entries.items():
            label = " ".join(entry.label.split())
            first_name = name_of_label.setdefault(label.casefold(), name)
            if first_name != name:
                raise UserError(
                    f"{first_name} has the same label {label!r}",
                    where=f"{path}: {name}",
                    hint="use a different label, because tables show only labels",
                )


def local_file(path: Path) -> Path:
    """Return the path of the file with the user's own entries next to models.yaml."""
    return path.with_suffix(f".local{path.suffix}")


def _pins_commit(local_fields: Any, shipped_fields: Any) -> bool:
    """Return whether a local entry only adds the commit that a shipped entry does not pin."""
    is_unpinned = shipped_fields.get("source") == "hub" and not shipped_fields.get("revision")
    is_pin = isinstance(local_fields, dict) and local_fields.keys() == {"revision"}
    return is_pin and is_unpinned


def _read_fields(path: Path) -> dict[str, Any]:
    """Return the fields of the entries in a file, by name, after checking only the names."""
    return validated(_NAMED, read_yaml(path) or {}, where=path, hint=_HINT)


def _validate_entries(path: Path, fields_by_name: Mapping[str, Any]) -> Registry:
    return {
        name: _validate_entry(fields, where=f"{path}: {name}")
        for name, fields in fields_by_name.items()
    }


def _validate_entry(fields: Any, *, where: str) -> AnyEntry:
    """Return an entry with validated fields.

    Raises:
        UserError: A field is unknown (the hint names the closest one) or invalid.
    """
    try:
        return ENTRY.validate_python(fields)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            # Report an unknown field first, because a misspelled field makes another one missing.
            if detail["type"] == "extra_forbidden":
                raise _unknown_field_error(detail["loc"], where) from None
        raise UserError(explain(error), where=where, hint=_HINT) from None


def _unknown_field_error(location: tuple[int | str, ...], where: str) -> UserError:
    """Return an error that states an unknown field and the closest known field.

    Args:
        location: Location of the field from pydantic: the entry's kind, for an embedder `api` or
            `weights`, and the path of the field.
        where: Path of the file and name of the entry.
    """
    kind, *field_path = location
    if kind == "embedder":
        embedder_tag, *field_path = field_path
        entry_class = ApiEmbedderEntry if embedder_tag == "api" else EmbedderEntry
    else:
        entry_class = _class_of_kind(kind)
    field = ".".join(str(part) for part in field_path)
    hint = nearest(str(field_path[-1]), keys_at(entry_class, field_path[:-1]))
    return UserError(f"unknown field {field!r}", where=where, hint=hint)


def _class_of_kind(kind: int | str) -> Any:
    """Return the class of the entries of a kind (for embedders, the first of two classes)."""
    for entry_class in get_args(AnyEntry):
        if kind in get_args(entry_class.model_fields["kind"].annotation):
            return entry_class
    raise LookupError(f"no class for kind {kind!r}")


def registry_schema() -> dict[str, Any]:
    """Return the JSON schema of models.yaml, for editors."""
    schema = ENTRY.json_schema()
    definitions = schema.pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "models.yaml: entries of the models",
        "type": "object",
        "propertyNames": TypeAdapter(Name).json_schema(),
        "additionalProperties": schema,
        "$defs": definitions,
    }
