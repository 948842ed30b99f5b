"""The released formats of IdioTS: a table with tabs, or one JSON array of sentences."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pieline.core.errors import UserError
from pieline.core.files import read_json
from pieline.core.records import Id, check_unique_ids, validated
from pieline.core.tables import read_table
from pieline.studies.idiots.records import DistractorKind, IdiotsSentence

KINDS: dict[str, DistractorKind] = {kind: kind for kind in get_args(DistractorKind)}
_SEE = "see data/sample/idiots/README.md"


class _Released(BaseModel):
    """One line of the table, or object of the array."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    idiom_id: Id
    idiom: str = Field(min_length=1)
    sentence_id: Annotated[Id, Field(pattern=r"-(id|di)$")]
    # A string, and the string "False" is as true as any other: only these two may pass.
    sentence_has_idiom: Literal["True", "False"]
    en: str = Field(min_length=1)
    es: str
    idiom_detection_pattern: str = ""

    @model_validator(mode="after")
    def _label_agrees_with_id(self) -> Self:
        if (self.sentence_has_idiom == "True") != self.sentence_id.endswith("-id"):
            raise ValueError(
                f"sentence_has_idiom {self.sentence_has_idiom!r} contradicts the id's suffix"
            )
        return self


def read_sentences(
    path: str | Path, kinds: Mapping[str, DistractorKind] | None = None
) -> list[IdiotsSentence]:
    """Read the sentences of IdioTS in file order.

    Args:
        path: the released file; TSV where the name ends in .tsv.
        kinds: distractor kinds by sentence id, where someone marked them.

    Raises:
        UserError: not JSON, not an array, no such table, a record that breaks the format (a label
            that is not the string "True" or "False" or contradicts the id, a missing or unknown
            field), a duplicate id, or a kind for a sentence that is no distractor. The message
            names the file, the record's place and its id.
    """
    if Path(path).suffix.lower() == ".tsv":
        rows = _table(path)
    else:
        rows = read_json(path)
        if not isinstance(rows, list) or not rows:
            raise UserError("not a JSON array of sentences", where=path, mend=_SEE)
    kinds = kinds or {}
    sentences = []
    for number, row in enumerate(rows, start=1):
        name = row.get("sentence_id", "?") if isinstance(row, dict) else "?"
        where = f"{path}: record {number} ({name})"
        released = validated(_Released, row, where=where, mend=_SEE)
        fields = {
            "id": released.sentence_id,
            "pie_id": released.idiom_id,
            "pie": released.idiom,
            "sentence": released.en,
            "translation": released.es,
            "is_idiomatic": released.sentence_has_idiom == "True",
            "distractor_kind": kinds.get(released.sentence_id),
        }
        sentences.append(validated(IdiotsSentence, fields, where=where, mend=_SEE))
    check_unique_ids([sentence.id for sentence in sentences], where=path)
    if unknown := sorted(kinds.keys() - {sentence.id for sentence in sentences}):
        raise UserError(
            f"no sentence {unknown[0]!r}, which has a distractor kind", where=path, mend=_SEE
        )
    return sentences


def _table(path: str | Path) -> list[dict[str, str]]:
    """The lines of a TSV by column, whether it writes quotes as data or as CSV does."""
    try:
        rows = read_table(path, [], delimiter="\t", mend=_SEE)
    except UserError:
        rows = read_table(path, [], delimiter="\t", quoted=False, mend=_SEE)
    if not rows:
        raise UserError("no sentences", where=path, mend=_SEE)
    return [row for _, row in rows]


def read_distractor_kinds(path: str | Path) -> dict[str, DistractorKind]:
    """Read a CSV (`sentence_id,kind`) that marks how each distractor was made (section 3.3).

    Raises:
        UserError: other columns, an unknown kind, or a sentence that stands twice; names the line.
    """
    kinds: dict[str, DistractorKind] = {}
    for line, row in read_table(path, ["sentence_id", "kind"], more=[], mend=_SEE):
        where, name, kind = f"{path}:{line}", row["sentence_id"], row["kind"]
        if kind not in KINDS:
            raise UserError(
                f"unknown kind {kind!r}", where=where, mend=f"one of {', '.join(KINDS)}"
            )
        if name in kinds:
            raise UserError(f"sentence {name!r} stands twice", where=where, mend="remove one line")
        kinds[name] = KINDS[kind]
    return kinds
