"""Define the outputs that cover all studies, and the inputs of these outputs."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
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
from pieline.results.run_models import other_models, requirement_by_model, shown_labels, used_models
from pieline.results.run_results import RunResults, ShownStudy, shown_display
from pieline.results.scores import describe_scores
from pieline.reuse import notes
from pieline.study import NOT_CONFIGURED, Items, Study

_ENDINGS = (".csv", ".html", ".pdf", ".png", ".tex")
"""Extensions of the files of tables and figures."""
_OPTIONS_WITH_RULES = {"--forcerun", "-R", "--until", "-U", "--omit-from", "-O", "--allowed-rules"}
_OF_ALL_STUDIES = ("claims", "comparison", "numbers", "paper")
"""Names of the files in paper_tables/ that cover all studies, without extension."""


class RunReport:
    """Outputs of a run that cover all studies.

    Args:
        all_studies: All studies by name, including studies that the configuration does not name.
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
        any_study, *_ = all_studies.values()
        self.project = any_study.project
        self.studies = [all_studies[name] for name in config.studies]

    @cached_property
    def results(self) -> RunResults:
        """Descriptions of the run's studies, tables and figures, with the labels of its models."""
        other_studies = [study for study in self.all_studies.values() if study not in self.studies]
        return RunResults(
            studies=(
                *(_shown_study(study) for study in self.studies),
                *(ShownStudy(name=study.name, paper=study.paper) for study in other_studies),
            ),
            others=other_models(self.studies, self.project.registry),
            labels=shown_labels(self.studies, self.project.registry),
            mark=self.project.notice,
            data=self.config.data,
            document=self._document,
            options=self.options,
        )

    def inputs_of(self, shown: Display | Items) -> DisplayInputs:
        """Return the inputs of a table, a figure or an export of predictions (`Items`).

        Raises:
            ValueError: The configuration does not include the table or figure.
        """
        if isinstance(shown, Items):
            return shown.display_inputs
        for study in self.all_studies.values():
            if shown in study.shown:
                return study.shown[shown]
        raise ValueError(f"not in this configuration: {shown}")

    def display_inputs_json(self, shown: Display | Items) -> str:
        """Return the inputs of a table, a figure or an export of predictions, as canonical JSON."""
        inputs = self.inputs_of(shown)
        if isinstance(shown, Table) and inputs.shows_models:
            inputs = inputs.model_copy(update={"rows": self.config.rows_of(shown.name)})
        return inputs.canonical()

    def configured_digests(self, metrics: Iterable[str]) -> dict[str, str]:
        """Return the digest of the configured conditions of each metric file, by the file's path.

        Metric files without configured conditions are omitted.

        Args:
            metrics: Paths of metric files.
        """
        digests = {}
        for path in metrics:
            for study in self.all_studies.values():
                conditions = study.plan.conditions(path)
                if conditions:
                    digests[path] = digest_of(conditions.canonical())
        return digests

    def check_raw_files(self, remade: Collection[str] = ()) -> None:
        """Check that existing raw files have the content of their configured source.

        Args:
            remade: Paths of files that the run makes again, which are not checked.

        Raises:
            UserError: A raw file comes from data other than the configured data.
        """
        for path in raw_files(self.studies):
            if path in remade or not Path(sidecar_of(path)).exists():
                continue
            name = raw_name(path)
            sidecar = load_sidecar(path)
            expected_digest = self.project.digest(path)
            url = None
            if expected_digest:
                is_configured = sidecar.files.get(path) == expected_digest
            elif expected_digest == "":
                # The digest of this download is unknown, so its URL is compared.
                url = self.project.public_files[name].url
                is_configured = not url or sidecar.source == url
            else:
                # No source of the file is configured, so there is nothing to compare with.
                is_configured = True
            if not is_configured:
                source = self.project.local(name) or self.project.mirror or url
                raise UserError(
                    f"is not from the configured data, {source or 'the public files'}, but from"
                    f" {sidecar.source}",
                    where=path,
                    hint=MAKE_AGAIN.format(path),
                )

    def absent(self) -> dict[str, str]:
        """Return why this run does not make a table with printed numbers, by name of the table."""
        catalogue = load_catalogue(self.project.here("published/tables.yaml"))
        names: list[str] = []
        for printed_table in catalogue.values():
            # `table` is empty if no table of ours shows the printed table. The keys of `needs` are
            # the tables that show numbers of the running text.
            names += [printed_table.table, *printed_table.needs]
        made_tables = {table.name for study in self.studies for table in study.tables()}
        reasons = {}
        for name in dict.fromkeys(names):
            if not name or name in made_tables:
                continue
            study_name = name.partition("_")[0]  # "jam" for "jam_drift"
            study = self.all_studies[study_name]
            if study in self.studies:
                reasons[name] = study.why_no_table(name)
            else:
                reasons[name] = f"the configuration does not name {study.paper}"
        return reasons

    def check_targets(self, targets: Iterable[str]) -> None:
        """Check that targets in paper_tables/ are files that this configuration makes.

        Args:
            targets: Words of the command line: targets, options and their values.

        Raises:
            UserError: A target is the name of a table or figure instead of its file, or a file of
                a table or figure that this configuration does not make.
        """
        displays = [display for study in self.all_studies.values() for display in study.shown]
        file_by_name = {display.name: display.main_file for display in displays}
        files = {path for display in displays for path in shown_display(display).files.values()}
        words = list(targets)
        # An option such as --forcerun may name a rule that has the name of a table.
        names_rules = any(word in _OPTIONS_WITH_RULES for word in words)
        problem = "no file of a table or figure"
        for target in words:
            path = Path(target)
            if target in file_by_name and not names_rules:
                raise UserError(problem, where=target, hint=f"write {file_by_name[target]}")
            # Snakemake's report is an HTML file in paper_tables/ with any name.
            is_report = path.parent == Path("paper_tables") and path.suffix == ".html"
            is_in_folder = Path("paper_tables") in path.parents
            is_display_file = is_in_folder and path.suffix in _ENDINGS and not is_report
            if not is_display_file or target in files or path.stem in _OF_ALL_STUDIES:
                continue
            reason = self.absent().get(path.stem)
            if reason:
                raise UserError(reason, where=target, hint="see docs/configuration.md")
            raise UserError(problem, where=target, hint=_suggest_file(path, files))

    def list_displays(self) -> list[tuple[str, str, str]]:
        """Return the file, the place in the paper and the requirements of each table and figure."""
        catalogue = load_catalogue(self.project.here("published/tables.yaml"))
        absent = self.absent()
        displays = []
        for study in self.all_studies.values():
            made_displays = study.shown if study in self.studies else {}
            for display in study.displays:
                requirements: list[str] = []
                if display not in made_displays:
                    requirements.append(absent.get(display.name) or NOT_CONFIGURED)
                for printed_table in display.printed:
                    if printed_table in catalogue:
                        requirements += catalogue[printed_table].needs.get(display.name, ())
                needs = "; ".join(dict.fromkeys(requirements))
                displays.append((display.main_file, display.place, needs))
        return displays

    def _tables_with_numbers(self) -> list[Table]:
        return [table for study in self.studies for table in study.tables() if table.numbers]

    def tables_with_numbers(self) -> str:
        """Return the tables of this run that have numbers, as a JSON list of `TableNumbers`."""
        tables = [
            f'{{"ours": "{table.ours}", "inputs": {self.display_inputs_json(table)}}}'
            for table in self._tables_with_numbers()
        ]
        return f"[{', '.join(tables)}]"

    def makers_of_numbers(self) -> list[str]:
        """Return the names (`module:function`) of the functions that compute this run's numbers."""
        return [table.ours for table in self._tables_with_numbers()]

    def numbers_inputs(self) -> list[str]:
        """Return the paths of the files from which the numbers of this run are read."""
        files: list[str] = []
        for table in self._tables_with_numbers():
            files += self.inputs_of(table).input_files()
        return list(dict.fromkeys(files))

    def requirements(self) -> str:
        """Return the `Requirements` for comparing this run with the printed numbers, as JSON."""
        return Requirements(
            models=requirement_by_model(self.project.registry),
            absent=self.absent(),
            general=REAL_DATA if self.config.data == "sample" else "",
        ).canonical()

    def description(self) -> str:
        """Return the code version, settings and models of the run, as JSON of `RunDescription`."""
        # The path of the mirror and the addresses of APIs do not affect the results.
        config = self.config.model_dump(mode="json", exclude={"mirror": True, "llm": {"api_bases"}})
        own_data = self.project.own_data
        config["own_data"] = own_data_name(own_data) if own_data else None
        config["archives"] = {
            archive.name: archive.manifest.digest for archive in self.project.archives
        }
        return RunDescription(
            code=code_state(self.project.root),
            config=config,
            models=used_models(self.studies, self.project.registry),
        ).canonical()

    def linked_numbers(self) -> list[str]:
        """Return a list with the path of numbers.csv of the run to which the results page links.

        The list is empty if no such run is configured, or if that run has no numbers.csv.
        """
        folder = self.config.page.beside
        if not folder:
            return []
        path = Path(folder, "paper_tables", "numbers.csv")
        return [str(path)] if path.exists() else []

    def closing_lines(self, width: int) -> list[str]:
        """Return the texts that a finished run prints: scores, counts by verdict, and a link.

        The counts are those of the papers' numbers; the link is the path of the results page.

        Args:
            width: Width of the terminal in characters.
        """
        numbers = read_numbers("paper_tables/numbers.csv")
        scores = describe_scores(self.results, numbers, width)
        if self.config.data == "sample":
            counts = "sample data: compared with no printed number"
        else:
            counts = summarize(numbers)
        return [scores, counts, f"Open {Path('paper_tables/index.html').absolute()}"]

    def left_out(self) -> list[str]:
        """Return lines that list runs taken from archives, and impossible runs with the reasons."""
        lines = [line for study in self.studies for line in notes(study.plan, study.name)]
        for study in self.studies:
            runs_by_reason: dict[str, Counter[str]] = defaultdict(Counter)
            for run in study.plan:
                if run.impossible_because:
                    runs_by_reason[run.impossible_because][run.base] += 1
            for reason, runs_by_model in runs_by_reason.items():
                models = [
                    f"{model}, {pluralize(count, 'run')}" for model, count in runs_by_model.items()
                ]
                lines.append(f"{LEFT_OUT}{study.name} ({reason}): {', '.join(models)}")
        return lines

    @property
    def _document(self) -> str:
        """Path of the document: a PDF file if pdflatex is installed, otherwise a LaTeX file."""
        return f"paper_tables/paper.{'pdf' if shutil.which('pdflatex') else 'tex'}"

    def targets(self) -> list[str]:
        """Return the paths of the files that a complete run makes once for all studies together."""
        return [
            "paper_tables/claims.tex",
            "paper_tables/comparison.tex",
            "paper_tables/index.html",
            self._document,
            "results/provenance.json",
        ]


def _suggest_file(path: Path, files: Iterable[str]) -> str:
    """Return a hint that names the file whose name is closest to that of a path.

    The file has the same extension as the path. If no name is close, the hint names the command
    that lists all files.
    """
    file_by_stem = {Path(file).stem: file for file in files if Path(file).suffix == path.suffix}
    closest = get_close_matches(path.stem, file_by_stem, n=1)
    if not closest:
        return "pieline tables lists them"
    return f"did you mean {file_by_stem[closest[0]]!r}?"


def _shown_study(study: Study[Any]) -> ShownStudy:
    """Return the description of a study that the configuration names."""
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
