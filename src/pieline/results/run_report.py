"""Define the outputs that cover all studies, and their inputs.

The rules `numbers`, `results_page`, `paper_source`, `paper_pdf` and `provenance` use
this module.
"""

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from pieline.config import Config
from pieline.core.conditions import digest_of
from pieline.core.errors import UserError, pluralize
from pieline.core.sidecars import MAKE_AGAIN, load_sidecar, sidecar_of
from pieline.plan import LEFT_OUT
from pieline.project import own_data_name, raw_name
from pieline.reporting.displays import Display, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import read_numbers
from pieline.reporting.published import load_catalogue
from pieline.results.numbers import REAL_DATA, Requirements, summarize
from pieline.results.provenance import RunDescription, code_state
from pieline.results.run_files import raw_files
from pieline.results.run_models import needs, other_models, shown_labels, used_models
from pieline.results.run_results import RunResults, ShownStudy, shown_display
from pieline.results.scores import describe_scores
from pieline.reuse import notes
from pieline.study import NOT_CONFIGURED, Items, Study

_ENDINGS = (".csv", ".html", ".pdf", ".png", ".tex")
"""Extensions of the files of tables and figures."""
_RULE_OPTIONS = {"--forcerun", "-R", "--until", "-U", "--omit-from", "-O", "--allowed-rules"}
_OF_ALL_STUDIES = ("claims", "comparison", "numbers", "paper")
"""Names of the files in paper_tables/ that cover all studies."""


class RunReport:
    """Outputs of a run that cover all studies.

    Args:
        all_studies: All studies by name, including those that the configuration does not name.
        config: Configuration of the run.
        options: Options of snakemake that select the run: its folder and configuration.
    """

    def __init__(
        self,
        all_studies: Mapping[str, Study[Any]],
        config: Config,
        options: Sequence[str] = (),
    ) -> None:
        self.options = tuple(options)
        self.all_studies = all_studies
        self.config = config
        self.project = next(iter(all_studies.values())).project
        self.studies = [all_studies[name] for name in config.studies]

    @cached_property
    def results(self) -> RunResults:
        """Tables and figures, without their cells."""
        others = [study for study in self.all_studies.values() if study not in self.studies]
        return RunResults(
            studies=(
                *map(_shown_study, self.studies),
                *(ShownStudy(name=study.name, paper=study.paper) for study in others),
            ),
            others=other_models(self.studies, self.project.registry),
            labels=shown_labels(self.studies, self.project.registry),
            mark=self.project.notice,
            data=self.config.data,
            document=self._document,
            options=self.options,
        )

    def inputs_of(self, shown: Display | Items) -> DisplayInputs:
        """Return the inputs of a table, a figure or items."""
        if isinstance(shown, Items):
            return shown.display_inputs
        return next(
            study.shown[shown] for study in self.all_studies.values() if shown in study.shown
        )

    def display_inputs_json(self, shown: Display | Items) -> str:
        """Return the inputs of a table, a figure or items as canonical JSON."""
        given = self.inputs_of(shown)
        if isinstance(shown, Table) and given.shows_models:
            given = given.model_copy(update={"rows": self.config.rows_of(shown.name)})
        return given.canonical()

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
        for path in raw_files(self.studies):
            if path in remade or not Path(sidecar_of(path)).exists():
                continue
            known, name, sidecar = self.project.digest(path), raw_name(path), load_sidecar(path)
            # The digest of a download may be unknown.
            url = self.project.public_files[name].url if known == "" else None
            if (known and sidecar.files.get(path) != known) or (url and sidecar.source != url):
                source = self.project.local(name) or self.project.mirror or url
                raise UserError(
                    f"is not from the configured data, {source or 'the public files'}, but from"
                    f" {sidecar.source}",
                    where=path,
                    hint=MAKE_AGAIN.format(path),
                )

    def absent(self) -> dict[str, str]:
        """Return why this run does not make certain tables with printed numbers, by table name."""
        catalogue = load_catalogue(self.project.here("published/tables.yaml"))
        # `needs` lists the tables behind numbers of the running text.
        ours = chain.from_iterable((table.table, *table.needs) for table in catalogue.values())
        made = {table.name for study in self.studies for table in study.tables()}
        reasons = {}
        for name in dict.fromkeys(ours):
            if not name or name in made:
                continue
            study = self.all_studies[name.partition("_")[0]]
            reasons[name] = (
                study.why_no_table(name)
                if study in self.studies
                else f"the configuration does not name {study.paper}"
            )
        return reasons

    def check_targets(self, targets: Iterable[str]) -> None:
        """Raise a `UserError` if a target is no file of a table or figure of this configuration.

        The hint names the closest file, even if the target is only the name of a table or figure.
        """
        shown = [each for study in self.all_studies.values() for each in study.shown]
        first = {each.name: next(reversed(each.files.values())) for each in shown}
        files = {path for each in shown for path in shown_display(each).files.values()}
        words = list(targets)
        for target in words:
            # An option such as --forcerun may name a rule with the name of a table.
            path, is_bare = Path(target), target in first and not _RULE_OPTIONS & {*words}
            # Snakemake's report may have any name.
            is_report = path.parent == Path("paper_tables") and path.suffix == ".html"
            is_display = path.parts[:1] == ("paper_tables",) and path.suffix in _ENDINGS
            is_display = is_display and not is_report
            if not (is_bare or is_display) or target in files or path.stem in _OF_ALL_STUDIES:
                continue
            problem = "no file of a table or figure"
            same = {Path(file).stem: file for file in files if Path(file).suffix == path.suffix}
            near = [same[name] for name in get_close_matches(path.stem, same, n=1)]
            if is_bare:
                raise UserError(problem, where=target, hint=f"write {first[target]}")
            if reason := self.absent().get(path.stem):
                raise UserError(reason, where=target, hint="see docs/configuration.md")
            hint = f"did you mean {near[0]!r}?" if near else "pieline tables lists them"
            raise UserError(problem, where=target, hint=hint)

    def list_displays(self) -> list[tuple[str, str, str]]:
        """Return file, place in the paper, and requirements of every table and figure."""
        catalogue = load_catalogue(self.project.here("published/tables.yaml"))
        absent = self.absent()
        lines = []
        for study in self.all_studies.values():
            made = study.shown if study in self.studies else {}
            for display in study.displays:
                needs: list[str] = []
                for printed in display.printed:
                    if printed in catalogue:
                        needs += catalogue[printed].needs.get(display.name, ())
                if display not in made:
                    needs.insert(0, absent.get(display.name) or NOT_CONFIGURED)
                file = next(reversed(display.files.values()))
                lines.append((file, display.place, "; ".join(dict.fromkeys(needs))))
        return lines

    def _with_numbers(self) -> list[Table]:
        return [table for study in self.studies for table in study.tables() if table.numbers]

    def tables_with_numbers(self) -> str:
        """Return the tables of this run that have numbers as JSON (see `TableNumbers`)."""
        tables = (
            f'{{"ours": "{table.ours}", "inputs": {self.display_inputs_json(table)}}}'
            for table in self._with_numbers()
        )
        return f"[{', '.join(tables)}]"

    def makers_of_numbers(self) -> list[str]:
        """Return the functions that make our rows of the frame of numbers."""
        return [table.ours for table in self._with_numbers()]

    def numbers_inputs(self) -> list[str]:
        """Return the files that the numbers of this run are read from."""
        files = (self.inputs_of(table).input_files() for table in self._with_numbers())
        return list(dict.fromkeys(chain.from_iterable(files)))

    def requirements(self) -> str:
        """Return what the numbers require as canonical JSON (see `Requirements`)."""
        return Requirements(
            models=needs(self.project.registry),
            absent=self.absent(),
            general=REAL_DATA if self.config.data == "sample" else "",
        ).canonical()

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
            models=used_models(self.studies, self.project.registry),
        ).canonical()

    def beside(self) -> list[str]:
        """Return the path of numbers.csv of the run to which the page links, as a list.

        The list is empty if no run is configured or the file does not exist.
        """
        folder = self.config.page.beside
        path = Path(folder or "", "paper_tables", "numbers.csv")
        return [str(path)] if folder and path.exists() else []

    def closing_lines(self, width: int) -> list[str]:
        """Return what a finished run prints: its scores, its totals and the path of its page.

        Args:
            width: Width of the terminal.
        """
        numbers = read_numbers("paper_tables/numbers.csv")
        is_sample = self.config.data == "sample"
        totals = "sample data: compared with no printed number" if is_sample else summarize(numbers)
        scores = describe_scores(self.results, numbers, width)
        return [scores, totals, f"Open {Path('paper_tables/index.html').absolute()}"]

    def left_out(self) -> list[str]:
        """Return lines that list the runs taken from archives, and the runs left out and why."""
        runs: dict[tuple[str, str], Counter[str]] = {}
        for study in self.studies:
            for run in study.plan:
                if run.lacks:
                    runs.setdefault((study.name, run.lacks), Counter())[run.base] += 1
        archived = [line for study in self.studies for line in notes(study.plan, study.name)]
        return archived + [
            f"{LEFT_OUT}{study} ({reason}): "
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


def _shown_study(study: Study[Any]) -> ShownStudy:
    """Return the description of a configured study."""
    items = study.items()
    return ShownStudy(
        name=study.name,
        paper=study.paper,
        items=items.record if items else "",
        recordings={run.predictions: run.recordings for run in study.plan.made() if run.recordings},
        tables=tuple(map(shown_display, study.tables())),
        figures=tuple(map(shown_display, study.figures())),
        main_tables=study.main_tables,
        main_measures=study.main_measures,
        reference_models=study.reference_models,
    )
