"""The tables and figures that a run can make, in the order of the papers."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pieline.core.errors import UserError
from pieline.core.records import explain
from pieline.core.yamls import read_yaml
from pieline.results.claims.tables import PAPERS, Paper

Kind = Literal["table", "figure"]
NOT_LISTED = "not in the paper"


class MetricFiles(BaseModel):
    """Which metric files the rows of a table come from.

    A file belongs to a row if its path fits the pattern `path`, every key of the row that the file
    has as a field has the same value there, and so has every field of `where`. `called` writes a
    field from the row's keys where its name or value differs, as in
    `{model: "{model}+{train_mode}"}`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(description="Pattern below results/metrics/, where * is anything.")
    where: dict[str, str] = {}
    called: dict[str, str] = {}


class Artifact(BaseModel):
    """A table or figure: its file's name without ending, and where the paper has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    kind: Kind
    paper: Paper
    place: str
    caption: str
    metrics: MetricFiles | None = None


def load_artifacts(path: str | Path) -> list[Artifact]:
    """Read templates/artifacts.yaml.

    Raises:
        UserError: names the file and the entry that is wrong.
    """
    artifacts = []
    for number, fields in enumerate(read_yaml(path) or [], start=1):
        try:
            artifacts.append(TypeAdapter(Artifact).validate_python(fields))
        except ValidationError as error:
            where = f"{path}: entry {number}"
            raise UserError(explain(error), where=where, mend="see the other entries") from None
    return artifacts


def made_artifacts(
    known: Iterable[Artifact], tables: Iterable[str | Path], figures: Iterable[str | Path]
) -> list[tuple[Artifact, Path]]:
    """What a run made, in the order of the papers.

    Args:
        known: those that templates/artifacts.yaml lists.
        tables: the run's CSVs (or LaTeX files).
        figures: its PNG (or PDF) files.

    Returns:
        Each with its file; one that is not listed comes after those of its study, which the first
        word of its name says.

    Raises:
        UserError: the name of an unlisted file begins with no study.
    """
    files: dict[tuple[Kind, str], Path] = {}
    files |= {("table", Path(path).stem): Path(path) for path in tables}
    files |= {("figure", Path(path).stem): Path(path) for path in figures}
    listed = {(artifact.kind, artifact.name): artifact for artifact in known}
    order = {key: number for number, key in enumerate(listed)}
    papers = list(PAPERS)
    found = [(listed.get(key) or _unlisted(key, path), path) for key, path in files.items()]
    return sorted(
        found,
        key=lambda item: (
            papers.index(item[0].paper),
            order.get((item[0].kind, item[0].name), len(order)),
            item[0].name,
        ),
    )


def _unlisted(key: tuple[Kind, str], path: Path) -> Artifact:
    kind, name = key
    paper = next((paper for paper in get_args(Paper) if name.split("_")[0] == paper), None)
    if paper is None:
        raise UserError(
            "its name begins with no study", where=path, mend=f"known: {', '.join(PAPERS)}"
        )
    words = " ".join(name.split("_")[1:])
    return Artifact(
        name=name, kind=kind, paper=paper, place=NOT_LISTED, caption=f"{words.capitalize()}."
    )
