"""What stands above the studies: everything that shows a run as a whole, and what it is made from.

The rules `claims`, `comparison`, `results_page`, `paper_source`, `paper_pdf` and `provenance` read
it.
"""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from pieline.archives.matching import Taking
from pieline.config import Config
from pieline.core.conditions import digest_of
from pieline.core.errors import UserError, pluralize
from pieline.core.evidence import evidence_of
from pieline.core.files import canonical_json
from pieline.models.llm import LLMEntry
from pieline.models.sizing import describe_requirement
from pieline.reporting.evidence import check_metrics
from pieline.reporting.models import REHEARSAL_NOTE
from pieline.results.claims.tables import load_catalogue
from pieline.results.displays import Displays, StudyDisplays
from pieline.results.provenance import Code, Model, RunDescription
from pieline.study import Display, Items, Study, own_name

CATEGORY = "The whole artifact"
"""Where the report has what belongs to no single paper."""

PARTS = {
    "paper_tables/claims.csv": (
        "Ledger",
        "The papers' claims, judged on the printed numbers and on ours.",
    ),
    "paper_tables/comparison.csv": ("Comparison", "Every cell of ours beside the printed one."),
    "paper_tables/printed_numbers.csv": (
        "Printed numbers",
        "Every number that the papers print, and what became of it in this run.",
    ),
    "paper_tables/index.html": (
        "Results page",
        "Everything on one page, and the way from a number to its sentences.",
    ),
    "paper_tables/paper.pdf": ("Document", "All tables and figures in the papers' order."),
}
"""What shows the run and belongs to no study: its place and caption, by file."""


class RunReport:
    """A run of some studies.

    Args:
        every: all studies by name, also those that the configuration does not name.
        config: what to run.
    """

    def __init__(self, every: Mapping[str, Study[Any]], config: Config) -> None:
        self.every = every
        self.config = config
        # What all studies share.
        self.run = next(iter(every.values())).run
        self.studies = [every[name] for name in config.studies]

    @cached_property
    def displays(self) -> Displays:
        """Tables and figures, as scripts are told of them."""
        return Displays(
            studies=(
                *(
                    StudyDisplays(
                        name=study.name,
                        paper=study.paper,
                        items=items.record if (items := study.items()) else "",
                        recordings={
                            asking.outputs["predictions"]: asking.recordings
                            for asking in study.llm_tasks()
                            if asking.recordings
                        },
                        tables=tuple(study.tables()),
                        figures=tuple(study.figures()),
                    )
                    for study in self.studies
                ),
                *(
                    StudyDisplays(name=study.name, paper=study.paper)
                    for study in self.every.values()
                    if study not in self.studies
                ),
            ),
            mark=self.mark,
            data=self.config.data,
            document=self._document,
            archives=tuple(
                sorted(
                    {
                        offer.archive.name
                        for study in self.studies
                        for offer in study.archived.values()
                    }
                )
            ),
        )

    @property
    def mark(self) -> str:
        """What stands over everything that shows the run: it is no result, or of own data."""
        if label := self.run.own_label:
            return f"{label[0].upper()}{label[1:]}."
        return REHEARSAL_NOTE if self.config.rehearsal else ""

    def given(self, shown: Display | Items) -> str:
        """What a table, a figure or items are made from, as canonical JSON."""
        update = {
            "mark": self.mark,
            "is_own": bool(self.run.own_data),
            "asked": self.asked(shown.given.metrics),
            "archived": {
                path: study.archived[path].archive.name
                for study in self.studies
                for path in shown.given.metrics
                if path in study.archived
            },
        }
        return shown.given.model_copy(update=update).canonical()

    def asked(self, metrics: Iterable[str]) -> dict[str, str]:
        """Digests of the conditions that the configuration asks for, by metric file."""
        conditions = {
            path: next(filter(None, (study.asked(path) for study in self.every.values())), "")
            for path in metrics
        }
        return {path: digest_of(each) for path, each in conditions.items() if each}

    def check_settings(self) -> None:
        """Check the metric files that are there, for a run of which Snakemake has no record.

        Raises:
            UserError: one was computed under other conditions than the configuration asks for.
        """
        present = [path for path in self.metrics() if Path(path).exists()]
        try:
            check_metrics(present, self.asked(present))
        except UserError as error:
            hint = "restore the folder .snakemake, or delete results/ to make everything again"
            raise UserError(error.what, where=error.where, hint=hint) from None

    def files(self, ending: str) -> list[str]:
        """The files with this ending, of tables (csv, html, tex) or of figures (pdf, png)."""
        return self.displays.files(ending)

    def evidence(self) -> list[str]:
        """What the tables were made from."""
        return [evidence_of(path) for path in self.files("html")]

    def item_classes(self) -> list[str]:
        """The classes of the items, which also read what lies behind the metric files."""
        return [study.items for study in self.displays.studies if study.items]

    def items(self) -> list[str]:
        """The files of all items."""
        declared = (study.items() for study in self.studies)
        return [path for items in declared if items for path in items.files.values()]

    def metrics(self) -> list[str]:
        """The metric files that numbers of tables come from."""
        return list(dict.fromkeys(chain.from_iterable(study.metrics() for study in self.studies)))

    def behind(self) -> list[str]:
        """Predictions and datasets behind the metric files, which the results page shows."""
        return sorted(
            {
                path
                for study in self.studies
                for metrics in study.metrics()
                for path in study.behind(metrics)
            }
        )

    def raw_files(self) -> list[str]:
        """The raw files that the run's results come from."""
        names = chain.from_iterable(study.raw_files() for study in self.studies)
        return sorted({name for name in names if name.startswith("results/raw/")})

    def recordings(self) -> list[str]:
        """Files of recorded answers that the run's predictions come from; some may not exist."""
        return sorted({task.recordings for study in self.studies for task in study.tasks()})

    def published(self) -> list[str]:
        """The papers' printed numbers and claims."""
        folder = self.run.root / "published"
        return sorted(self.run.here("published", path.name) for path in folder.iterdir())

    def models(self) -> list[Model]:
        """The models that the configuration names."""
        names = {name for study in self.studies for name in study.models()}
        return [self._model(name) for name in sorted(names)]

    def model_records(self) -> str:
        """The same as canonical JSON."""
        return canonical_json([model.model_dump() for model in self.models()])

    def _model(self, name: str) -> Model:
        entry = self.run.registry[name]
        fields = {field: getattr(entry, field, None) for field in Model.model_fields}
        if isinstance(entry, LLMEntry):
            fields["checkpoint"] = entry.litellm_id
        return Model.model_validate(fields | {"name": name})

    def absent(self) -> dict[str, str]:
        """Why the tables with the papers' numbers that this run does not make are not made."""
        catalogue = load_catalogue(self.run.here("published/tables.yaml"))
        ours = chain.from_iterable(table.ours.files for table in catalogue.values() if table.ours)
        made = {table.name for study in self.studies for table in study.tables()}
        return {
            name: study.why_no_table(name)
            if (study := self.every[name.partition("_")[0]]) in self.studies
            else f"the configuration does not name {study.paper}"
            for name in ours
            if name not in made
        }

    def needs(self) -> dict[str, str]:
        """What a run of each model of the papers takes, by its printed name."""
        entries = [entry for entry in self.run.registry.values() if entry.published_as]
        # Of a model that its provider ended there may be weights to serve.
        needs: dict[str, str] = {}
        for entry in sorted(entries, key=lambda entry: bool(getattr(entry, "retired", None))):
            needs.setdefault(str(entry.published_as), describe_requirement(entry))
        return needs

    def described_models(self) -> str:
        """What page and claims say of the papers' models and of those of the run, as JSON.

        Not of all that exist, or one more in models.local.yaml would make both stale.
        """
        used = {name for study in self.studies for name in study.models()}
        names = [
            name for name, entry in self.run.registry.items() if entry.published_as or name in used
        ]
        marks = {model: mark for study in self.studies for model, mark in study.marks().items()}
        return canonical_json([model.model_dump() for model in self.run.described(names, marks)])

    def description(self) -> str:
        """Code, configuration and models, as canonical JSON."""
        return RunDescription(
            code=code_state(self.run.root),
            # Where files lie or a gateway is says nothing of the results; the digests do.
            config=self.config.model_dump(
                mode="json", exclude={"mirror": True, "llm": {"api_bases"}}
            )
            | {
                "own_data": self.run.own_data and own_name(self.run.own_data),
                "archives": {each.name: each.manifest.digest for each in self.run.archives},
            },
            models=self.models(),
            workflow="Snakefile" if self.run.root == Path() else None,
        ).canonical()

    def beside(self) -> list[str]:
        """The printed numbers of the run that the page links to, if that run has been made."""
        folder = self.config.page.beside
        path = Path(folder or "", "paper_tables", "printed_numbers.csv")
        return [str(path)] if folder and path.exists() else []

    def takings(self) -> list[Taking]:
        """What jobs take from archives."""
        return [taking for study in self.studies for taking in study.takings()]

    def left_out(self) -> list[str]:
        """What the run takes from archives, and does not make at all: a line for each reason."""
        runs: dict[tuple[str, str], Counter[str]] = {}
        for study in self.studies:
            for run, reason in study.left_out().items():
                runs.setdefault((study.name, reason), Counter())[run.partition("/")[0]] += 1
            for table in study.tables():
                shown = {model.name for model in table.given.models}
                for model, reason in table.given.not_run.items():
                    if model in shown:
                        runs.setdefault((table.name, reason), Counter())[model] += 1
        archived = [line for study in self.studies for line in study.archive_notes()]
        return archived + [
            f"left out of {study} ({reason}): "
            + ", ".join(f"{model}, {pluralize(number, 'run')}" for model, number in models.items())
            for (study, reason), models in runs.items()
        ]

    @property
    def _document(self) -> str:
        """The document, compiled where the machine has pdflatex."""
        return f"paper_tables/paper.{'pdf' if shutil.which('pdflatex') else 'tex'}"

    def targets(self) -> list[str]:
        """What shows the run."""
        return [
            "paper_tables/claims.tex",
            "paper_tables/comparison.tex",
            "paper_tables/index.html",
            self._document,
            "results/provenance.json",
        ]

    def category(self, path: str) -> str:
        """The paper under which the report shows a file."""
        return self._reported[path][0]

    def labels(self, path: str) -> dict[str, str]:
        """What the report says of a file."""
        _, place, caption = self._reported[path]
        return {"place": place, "shows": caption, "as": Path(path).suffix.strip(".").upper()}

    @cached_property
    def _reported(self) -> dict[str, tuple[str, str, str]]:
        """Category, place and caption of what the report can show, of whatever study."""
        found = {path: (CATEGORY, *told) for path, told in PARTS.items()}
        for study in self.every.values():
            for each in (*study.tables(), *study.figures()):
                shown = each.files["csv" if each.kind == "table" else "png"]
                found[shown] = (study.paper, each.place, each.caption)
        return found


def code_state(root: Path) -> Code:
    """The commit of a clone and whether files were changed since; nothing is known elsewhere."""

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(root), *arguments]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return result.stdout.strip()

    # A folder without .git may lie inside another project's clone.
    commit = git("rev-parse", "HEAD") if (root / ".git").exists() else None
    if commit is None:
        return Code(commit=None, day=None, modified=None)
    return Code(
        commit=commit,
        day=git("show", "--no-patch", "--format=%cs", "HEAD"),
        modified=bool(git("status", "--porcelain", "--untracked-files=no")),
    )
