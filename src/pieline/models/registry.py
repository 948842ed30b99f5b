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


def _place(fields: Any) -> str:
    """Return `api` for the entry of an embedder behind an API, else `weights`."""
    source = fields.get("source") if isinstance(fields, dict) else fields.source
    return "api" if source == "api" else "weights"


_Embedder = Annotated[
    Annotated[ApiEmbedderEntry, Tag("api")] | Annotated[EmbedderEntry, Tag("weights")],
    Discriminator(_place),
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
    """Return the entries of models.yaml and, if it exists, models.local.yaml next to it, by name.

    An entry of models.local.yaml that has only a `revision` pins the commit of an entry of
    models.yaml that has none. Neither file is an input of a rule: each job receives only the entry
    that it needs, so that adding a model does not rerun jobs of other models.

    Args:
        path: Path of models.yaml.
        added: Fields of entries that models.local.yaml does not have yet, by name.

    Raises:
        UserError: An entry is invalid, or two entries have the same name or label.
    """
    path = Path(path)
    fields, own = _fields(path), local_file(path)
    own_fields = _fields(own) if own.exists() else {}
    for name, each in validated(_NAMED, added or {}, where=own, hint=_NAME_HINT).items():
        if name in fields or name in own_fields:
            where = path if name in fields else own
            raise UserError(
                f"there is already a model {name!r}", where=where, hint="use a different name"
            )
        own_fields[name] = each
    for name in fields.keys() & own_fields.keys():
        pin = own_fields.pop(name)
        if not _pins(pin, fields[name]):
            raise UserError(
                f"{path} also has a model {name!r}", where=own, hint="rename your model"
            )
        fields[name] = fields[name] | pin
    shipped, added = _entries(path, fields), _entries(own, own_fields)
    names: dict[str, str] = {}
    for where, entries in ((path, shipped), (own, added)):
        for name, entry in entries.items():
            label = " ".join(entry.label.split())
            other = names.setdefault(label.casefold(), name)
            if other != name:
                raise UserError(
                    f"{other} has the same label {label!r}",
                    where=f"{where}: {name}",
                    hint="use a different label, because tables show only labels",
                )
    return shipped | added


def local_file(path: Path) -> Path:
    """Return the path of the file with the user's own entries next to models.yaml."""
    return path.with_suffix(f".local{path.suffix}")


def _pins(own: Any, shipped: Any) -> bool:
    """Return whether the fields of an entry only add the commit that a shipped entry lacks."""
    is_unpinned = shipped.get("source") == "hub" and not shipped.get("revision")
    return isinstance(own, dict) and own.keys() == {"revision"} and is_unpinned


def _fields(path: Path) -> dict[str, Any]:
    return validated(_NAMED, read_yaml(path) or {}, where=path, hint=_HINT)


def _entries(path: Path, fields: Mapping[str, Any]) -> Registry:
    return {name: _entry(each, where=f"{path}: {name}") for name, each in fields.items()}


def _kinds_of(entry_class: Any) -> tuple[str, ...]:
    """Return the possible values of the field `kind` of a class of entries."""
    return get_args(entry_class.model_fields["kind"].annotation)


def _entry(fields: Any, *, where: str) -> AnyEntry:
    """Validate the fields of an entry.

    Raises:
        UserError: A field is unknown (the hint names the closest one) or invalid.
    """
    try:
        return ENTRY.validate_python(fields)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        # A misspelled field explains that the field of the right name is missing.
        unknown = next((each for each in errors if each["type"] == "extra_forbidden"), None)
        if unknown is None:
            raise UserError(explain(error), where=where, hint=_HINT) from None
        kind, *location = unknown["loc"]
        tag = location.pop(0) if kind == "embedder" else ""
        is_api = tag == "api"
        entry_class = next(
            each
            for each in get_args(AnyEntry)
            if _kinds_of(each) == (kind,) and (each is ApiEmbedderEntry) == is_api
        )
        name = ".".join(map(str, location))
        hint = nearest(str(location[-1]), keys_at(entry_class, location[:-1]))
        raise UserError(f"unknown field {name!r}", where=where, hint=hint) from None


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
