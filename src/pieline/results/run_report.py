"""Define the outputs that cover all studies, and their inputs.

The rules `claims`, `comparison`, `results_page`, `paper_source`, `paper_pdf` and `provenance` use
this module.
"""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from pieline.archives.matching import Extraction
from pieline.config import Config
from pieline.core.conditions import digest_of
from pieline.core.environment import settled
from pieline.core.errors import UserError, pluralize
from pieline.core.files import canonical_json
from pieline.core.sidecars import MAKE_AGAIN, load_sidecar, sidecar_of
from pieline.models.llm import LLMEntry
from pieline.models.sizing import describe_requirement
from pieline.project import own_data_name, raw_name
from pieline.reporting.evidence import check_metrics
from pieline.results.claims.tables import load_catalogue
from pieline.results.displays import Displays, StudyDisplays
from pieline.results.provenance import Code, Model, RunDescription
from pieline.reuse import archive_of, extractions, marks, notes
from pieline.study import NOT_CONFIGURED, Display, Items, Study, Table

CATEGORY = "The whole artifact"
"""Category in the Snakemake report for files that do not belong to a single paper."""

PARTS = {
    "paper_tables/claims.csv": (
        "Ledger",
        "The papers' claims, judged on the printed numbers and on ours.",
    ),
    "paper_tables/comparison.csv": ("Comparison", "All our cells next to the printed ones."),
    "paper_tables/printed_numbers.csv": (
        "Printed numbers",
        "All numbers that the papers print, with their verdicts in this run.",
    ),
    "paper_tables/index.html": (
        "Results page",
        "All results on one page, with the sentences behind each number.",
    ),
    "paper_tables/paper.pdf": ("Document", "All tables and figures in the papers' order."),
}
"""Place and caption of the files that do not belong to a study, by path."""


class RunReport:
    """Outputs of a run that cover all studies.

    Args:
        all_studies: All studies by name, including those that the configuration does not name.
        config: Configuration of the run.
    """

    def __init__(self, all_studies: Mapping[str, Study[Any]], config: Config) -> None:
        self.all_studies = all_studies
        self.config = config
        self.project = next(iter(all_studies.values())).project
        self.studies = [all_studies[name] for name in config.studies]

    @cached_property
    def displays(self) -> Displays:
        """Tables and figures in the form that scripts receive."""
        return Displays(
            studies=(
                *(
                    StudyDisplays(
                        name=study.name,
                        paper=study.paper,
                        items=items.record if (items := study.items()) else "",
                        recordings={
                            run.predictions: run.recordings
                            for run in study.plan.made()
                            if run.recordings
                        },
                        tables=tuple(study.tables()),
                        figures=tuple(study.figures()),
                    )
                    for study in self.studies
                ),
                *(
                    StudyDisplays(name=study.name, paper=study.paper)
                    for study in self.all_studies.values()
                    if study not in self.studies
                ),
            ),
            mark=self.mark,
            data=self.config.data,
            document=self._document,
            archives=tuple(
                sorted(
                    {
                        archive_of(run)
                        for study in self.studies
                        for run in study.plan
                        if run.archived
                    }
                )
            ),
        )

    @property
    def mark(self) -> str:
        """Notice on displays if the run uses the user's own or limited data, else empty."""
        label, limit = self.project.own_label, self.project.limit
        notes = [
            f"{label[0].upper()}{label[1:]}." if label else "",
            f"Only the first {limit} originals, sentences or queries." if limit else "",
        ]
        return " ".join(filter(None, notes))

    def display_inputs_json(self, shown: Display | Items) -> str:
        """Return the inputs of a table, a figure or items as canonical JSON."""
        update: dict[str, Any] = {
            "mark": self.mark,
            "is_own": bool(self.project.own_data),
            "asked": self.configured_digests(shown.display_inputs.metrics),
            "archived": {
                path: archive_of(study.plan[path])
                for study in self.studies
                for path in shown.display_inputs.metrics
                if path in study.plan and study.plan[path].archived
            },
        }
        if isinstance(shown, Table) and shown.display_inputs.shows_models:
            update["rows"] = self.config.rows_of(shown.name)
        return shown.display_inputs.model_copy(update=update).canonical()

    def configured_digests(self, metrics: Iterable[str]) -> dict[str, str]:
        """Return digests of the configured conditions of metric files that have any, by path."""
        plans = [study.plan for study in self.all_studies.values()]
        conditions = ((path, plan.conditions(path)) for path in metrics for plan in plans)
        return {path: digest_of(one.canonical()) for path, one in conditions if one}

    def check_raw_files(self, remade: Collection[str] = ()) -> None:
        """Check that existing raw files have the content of their configured source.

        Args:
            remade: Files that the run makes again.

        Raises:
            UserError: A file comes from other data.
        """
        for path in self.raw_files():
            if path in remade or not Path(sidecar_of(path)).exists():
                continue
            known, name, sidecar = self.project.digest(path), raw_name(path), load_sidecar(path)
            # The digest of a download may be unknown.
            url = self.project.public_files[name].url if known == "" else None
            if (known and sidecar.files.get(path) != known) or (url and sidecar.source != url):
                source = self.project.local(name) or self.project.mirror or url
                raise UserError(
                    f"is not from the configured data, {source or 'the released files'}, but from"
                    f" {sidecar.source}",
                    where=path,
                    hint=MAKE_AGAIN.format(path),
                )

    def check_settings(self) -> None:
        """Check existing raw files and metric files in a run without Snakemake metadata.

        Raises:
            UserError: A file was changed or comes from other data, or was computed under conditions
                other than the configured ones.
        """
        present = [path for path in self.metrics() if Path(path).exists()]
        try:
            self.check_raw_files()
            check_metrics(present, self.configured_digests(present))
        except UserError as error:
            hint = (
                "restore the folder .snakemake, use another folder (--directory), or delete"
                " results/ to make everything again"
            )
            raise UserError(error.what, where=error.where, hint=hint) from None

    def files(self, ending: str) -> list[str]:
        """Return the files of tables (csv, html, tex) or figures (pdf, png) with this extension."""
        return self.displays.files(ending)

    def item_classes(self) -> list[str]:
        """Return the item classes, which also read the files behind metric files."""
        return [study.items for study in self.displays.studies if study.items]

    def items(self) -> list[str]:
        """Return the paths of all item files."""
        declared = (study.items() for study in self.studies)
        return [path for items in declared if items for path in items.files.values()]

    def metrics(self) -> list[str]:
        """Return the metric files behind the tables."""
        return list(dict.fromkeys(chain.from_iterable(study.metrics() for study in self.studies)))

    def behind(self) -> list[str]:
        """Return the predictions and datasets behind the metric files, for the results page."""
        return sorted(
            {
                path
                for study in self.studies
                for metrics in study.metrics()
                if metrics in study.plan
                for path in study.plan[metrics].behind
            }
        )

    def raw_files(self) -> list[str]:
        """Return the paths of the raw files below results/raw/ on which the results depend."""
        names = chain.from_iterable(study.raw_files() for study in self.studies)
        return sorted({name for name in names if name.startswith("results/raw/")})

    def recordings(self) -> list[str]:
        """Return the recordings files on which predictions depend; some may not exist."""
        return sorted({task.recordings for study in self.studies for task in study.tasks()})

    def published(self) -> list[str]:
        """Return the files with the papers' printed numbers and claims."""
        folder = self.project.root / "published"
        return sorted(self.project.here("published", path.name) for path in folder.iterdir())

    def models(self) -> list[Model]:
        """Return the models that the configuration uses, sorted by name."""
        names = {name for study in self.studies for name in study.models()}
        return [self._model(name) for name in sorted(names)]

    def model_records(self) -> str:
        """Return the configured models as canonical JSON."""
        return canonical_json([model.model_dump() for model in self.models()])

    def _model(self, name: str) -> Model:
        entry = self.project.registry[name]
        fields = {field: getattr(entry, field, None) for field in Model.model_fields}
        if isinstance(entry, LLMEntry):
            fields["checkpoint"] = entry.litellm_id
        return Model.model_validate(fields | {"name": name})

    def absent(self) -> dict[str, str]:
        """Return why this run does not make certain tables with printed numbers, by table name."""
        catalogue = load_catalogue(self.project.here("published/tables.yaml"))
        ours = chain.from_iterable(table.ours.files for table in catalogue.values() if table.ours)
        made = {table.name for study in self.studies for table in study.tables()}
        return {
            name: study.why_no_table(name)
            if (study := self.all_studies[name.partition("_")[0]]) in self.studies
            else f"the configuration does not name {study.paper}"
            for name in ours
            if name not in made
        }

    def without_rows(self) -> dict[str, str]:
        """Return why tables with only this run's rows lack other printed rows, by table name."""
        made = (table.name for study in self.studies for table in study.tables())
        return {name: NOT_CONFIGURED for name in made if self.config.rows_of(name) == "run"}

    def needs(self) -> dict[str, str]:
        """Return the requirements for running each of the papers' models, by printed name."""
        entries = [entry for entry in self.project.registry.values() if entry.published_as]
        # Entries of retired models come last, since weights of the same model may be available.
        needs: dict[str, str] = {}
        for entry in sorted(entries, key=lambda entry: bool(getattr(entry, "retired", None))):
            needs.setdefault(str(entry.published_as), describe_requirement(entry))
        return needs

    def printed_names(self) -> dict[str, str]:
        """Return the printed names of models by our names."""
        registry = self.project.registry
        return {name: entry.published_as for name, entry in registry.items() if entry.published_as}

    def printed_labels(self) -> dict[str, str]:
        """Return the labels of the papers' models, by printed name."""
        entries = reversed(self.project.registry.values())
        return {entry.published_as: entry.label for entry in entries if entry.published_as}

    def described_models(self) -> str:
        """Return descriptions of the papers' and the run's models for the page, as JSON.

        Other models are omitted, so that a new entry in models.local.yaml does not make the page
        stale.
        """
        used = {name for study in self.studies for name in study.models()}
        names = [
            name
            for name, entry in self.project.registry.items()
            if entry.published_as or name in used
        ]
        marks_of = (marks(study.plan).items() for study in self.studies)
        return canonical_json(
            [
                model.model_dump()
                for model in self.project.describe_models(
                    names, dict(chain.from_iterable(marks_of))
                )
            ]
        )

    def description(self) -> str:
        """Return the `RunDescription` of the run as canonical JSON."""
        return RunDescription(
            code=code_state(self.project.root),
            # Paths and API addresses do not affect the results.
            config=self.config.model_dump(
                mode="json", exclude={"mirror": True, "llm": {"api_bases"}}
            )
            | {
                "own_data": self.project.own_data and own_data_name(self.project.own_data),
                "archives": {each.name: each.manifest.digest for each in self.project.archives},
            },
            models=self.models(),
        ).canonical()

    def beside(self) -> list[str]:
        """Return the path of printed_numbers.csv of the run to which the page links, as a list.

        The list is empty if no run is configured or the file does not exist.
        """
        folder = self.config.page.beside
        path = Path(folder or "", "paper_tables", "printed_numbers.csv")
        return [str(path)] if folder and path.exists() else []

    def extractions(self) -> list[Extraction]:
        """Return the extractions from archives for all configured studies."""
        return [extraction for study in self.studies for extraction in extractions(study.plan)]

    def left_out(self) -> list[str]:
        """Return lines that list the runs taken from archives, and the runs left out and why."""
        runs: dict[tuple[str, str], Counter[str]] = {}
        for study in self.studies:
            for run, reason in study.left_out().items():
                runs.setdefault((study.name, reason), Counter())[run.partition("/")[0]] += 1
            for table in study.tables():
                shown = {model.name for model in table.display_inputs.models}
                for model, reason in table.display_inputs.not_run.items():
                    if model in shown:
                        runs.setdefault((table.name, reason), Counter())[model] += 1
        archived = [line for study in self.studies for line in notes(study.plan, study.name)]
        return archived + [
            f"left out of {study} ({reason}): "
            + ", ".join(f"{model}, {pluralize(number, 'run')}" for model, number in models.items())
            for (study, reason), models in runs.items()
        ]

    @property
    def _document(self) -> str:
        """Path of the document, which is a PDF if pdflatex is installed, else a LaTeX file."""
        return f"paper_tables/paper.{'pdf' if shutil.which('pdflatex') else 'tex'}"

    def targets(self) -> list[str]:
        """Return the paths of the targets that cover all studies."""
        return [
            "paper_tables/claims.tex",
            "paper_tables/comparison.tex",
            "paper_tables/index.html",
            self._document,
            "results/provenance.json",
        ]

    def category(self, path: str) -> str:
        """Return the paper under which the report shows a file."""
        return self._reported[path][0]

    def labels(self, path: str) -> dict[str, str]:
        """Return the place, caption and format of a file for the Snakemake report."""
        _, place, caption = self._reported[path]
        return {"place": place, "shows": caption, "as": Path(path).suffix.strip(".").upper()}

    @cached_property
    def _reported(self) -> dict[str, tuple[str, str, str]]:
        """Category, place and caption of every file that the report can show."""
        reported = {path: (CATEGORY, *labels) for path, labels in PARTS.items()}
        for study in self.all_studies.values():
            for each in (*study.tables(), *study.figures()):
                shown = each.files["csv" if each.kind == "table" else "png"]
                reported[shown] = (study.paper, each.place, each.caption)
        return reported


def code_state(root: Path) -> Code:
    """Return the commit, commit date and modification state of a git clone.

    For other folders, all fields are None.
    """

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(root), *arguments]
        try:
            # Without the user's GIT_DIR and the like, which name another repository.
            result = subprocess.run(
                command, capture_output=True, text=True, check=True, env=settled(os.environ)
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return result.stdout.strip()

    # A folder without .git may be inside another project's clone.
    commit = git("rev-parse", "HEAD") if (root / ".git").exists() else None
    if commit is None:
        return Code(commit=None, day=None, modified=None)
    return Code(
        commit=commit,
        day=git("show", "--no-patch", "--format=%cs", "HEAD"),
        modified=bool(git("status", "--porcelain", "--untracked-files=no")),
    )
