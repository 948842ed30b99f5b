"""Tables, figures and items of the ID10M-JAM study."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from pieline.languages.registry import get_language
from pieline.models.llm import LLMEntry
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.studies.jam import files, paths, questions, runs
from pieline.studies.jam.files import Jam
from pieline.studies.jam.predictions.baselines import BASELINES
from pieline.studies.jam.settings import FINE_TUNED, NO_VARIANTS
from pieline.study import NOT_CONFIGURED, Figure, Items, Table

_NOT_OF_PAPER = {
    "file": "{}: originals by custom decisions.",
    "tags": "{}: originals by ID10M's tags alone, without filtering.",
}
"""Notes on languages whose originals are not the released ones, by source of the decisions."""
_WRITTEN = "Hard variants by {} ({})."


def _listed(languages: Iterable[str]) -> str:
    return ", ".join(get_language(name).label for name in languages)


def _missing_labels(study: Jam) -> str:
    """Return why there is no human baseline; empty if there is one."""
    if study.settings.humans or study.settings.variants.source == "sample":
        return ""
    return (
        f"the variants are not labeled: have two people fill in {paths.HUMAN_FORM}"
        " (snakemake jam_human_form writes it) and name their files in jam.humans"
    )


def tables(study: Jam) -> list[Table]:
    """Return the tables available in this configuration.

    Table 2 is always included; the paper's other tables require models and variants. If there
    are models but no variants, a table of originals replaces the other tables.
    """
    numbers = study.project.here("published/text_numbers.csv")
    # The numbers in the text and the figures cover only runs of this project, not external
    # ones.
    made_here, results, settings = _runs(study), _results(study), study.settings
    sizes = Table(
        "jam_statistics",
        "Table 2",
        "Sentences and variants of ID10M and ID10M-JAM.",
        "pieline.studies.jam.tables.dataset:statistics",
        _statistics(study).with_files(published=_published(study, 2), text_numbers=numbers),
    )
    if not study.settings.models:
        return [sizes]
    if not files.has_variants(study):
        originals = Table(
            "jam_originals",
            "not in the paper",
            "Originals judged correctly, by model and usage.",
            "pieline.studies.jam.tables.results:originals_table",
            _runs(study, "predictions").model_copy(update={"absent": ()}),
        )
        return [sizes, originals]
    example, datasets, hyperparameters, prompt, checkpoints, artifacts = _descriptions(study)
    tables = [
        example,
        datasets,
        sizes,
        Table(
            "jam_drift",
            "Table 3",
            "Successes and negative drift of every model.",
            "pieline.studies.jam.tables.results:drift_table",
            results.with_files(published=_published(study, 3)),
        ),
        Table(
            "jam_text",
            "Section 5",
            "Numbers of the running text that follow from the figures.",
            "pieline.studies.jam.tables.text:text",
            made_here.with_files(text_numbers=numbers, published=_published(study, 3)).model_copy(
                update={"options": {"figure3": settings.figure3.model_dump()}}
            ),
        ),
    ]
    if "english" in settings.languages:
        reason = _missing_labels(study)
        humans = DisplayInputs(
            metrics=() if reason else (paths.HUMANS,),
            files={"text_numbers": numbers},
            not_run={"people": reason} if reason else {},
            notes=_notes(study),
        )
        tables.append(
            Table(
                "jam_humans",
                "Section 5.1",
                "Two people on the hard variants, in percent.",
                "pieline.studies.jam.tables.appendix:humans",
                humans,
            )
        )
    tables += [
        hyperparameters,
        prompt,
        Table(
            "jam_usage",
            "Table 5",
            "Successes and negative drift by usage.",
            "pieline.studies.jam.tables.results:usage_table",
            results.with_files(published=_published(study, 5)),
        ),
        Table(
            "jam_confusion",
            "Table 6",
            "Originals of which all, none or some variants confuse a model.",
            "pieline.studies.jam.tables.results:confusion_table",
            results.with_files(published=_published(study, 6)),
        ),
    ]
    for run in study.plan.select(experiment=runs.NEUTRAL):
        neutral = DisplayInputs(
            metrics=() if run.lacks else (run.metrics,),
            files={"text_numbers": numbers},
            models=study.describe_models([run.model]),
            not_run={run.model: run.lacks} if run.lacks else {},
            options=run.where,
            notes=_notes(study),
        )
        tables.append(
            Table(
                "jam_neutral",
                "Appendix G",
                "Confusing variants with neutral context.",
                "pieline.studies.jam.tables.appendix:neutral",
                neutral,
            )
        )
    if settings.attention:
        tables.append(
            Table(
                "jam_attention",
                "Appendix H",
                "Where the tokens of a PIE attend to.",
                "pieline.studies.jam.tables.appendix:attention",
                _attention(study),
            )
        )
    if _compares_effects(study):
        tables.append(
            Table(
                "jam_prompts",
                "not in the paper",
                "Effects of prompts and training data, on the same originals.",
                "pieline.studies.jam.tables.prompt_effects:prompts",
                _prompt_effects(study),
            )
        )
    return [
        *tables,
        checkpoints,
        artifacts,
        Table(
            "jam_pairs",
            "not in the paper",
            "Which of two runs drifts more, by a paired randomization test over originals.",
            "pieline.studies.jam.tables.runs:pairs",
            _runs(study, "predictions").model_copy(
                update={"options": {"permutations": settings.permutations}}
            ),
        ),
        Table(
            "jam_runs",
            "not in the paper",
            "Every run with its seeds and intervals.",
            "pieline.studies.jam.tables.runs:runs",
            results,
        ),
    ]


def why_no_table(study: Jam, name: str) -> str:
    """Return why this configuration does not include a table."""
    if not files.has_variants(study):
        return NO_VARIANTS
    return NOT_CONFIGURED if study.settings.models else "jam.models names no model"


def _descriptions(study: Jam) -> list[Table]:
    """Return the displays that need no run: Figures 1 and 4, Tables 1, 4, 7 and 8."""
    settings, upstream = study.settings, study.project.upstream
    sentences = {name: paths.DATASET.format(language=name) for name in settings.languages}
    fields = type(settings.fine_tuning).model_fields
    tuning = (
        settings.fine_tuning.stated(*fields)
        if study.plan.select(kind="encoder", experiment="")
        else {}
    )
    setting_of: dict[str, str] = {}
    for setting in chain(settings.settings, *settings.settings_by_model.values()):
        for kind, file in questions.prompt_files(study, setting).items():
            setting_of.setdefault(file, setting if kind == "prompt" else "few_shot_example")
    prompts = {setting: file for file, setting in setting_of.items()}
    return [
        Table(
            "jam_example",
            "Figure 1",
            "An original of each usage and a hard variant of it.",
            "pieline.studies.jam.tables.described:example",
            DisplayInputs(files=sentences, notes=_notes(study)),
        ),
        Table(
            "jam_datasets",
            "Table 1",
            "Datasets of idioms and their languages.",
            "pieline.studies.jam.tables.described:datasets",
            DisplayInputs(files={"published": _published(study, 1), "upstream": upstream}),
        ),
        Table(
            "jam_hyperparameters",
            "Table 4",
            "Hyperparameters of encoders, as set in this run.",
            "pieline.studies.jam.tables.described:hyperparameters",
            DisplayInputs(files={"published": _published(study, 4)}, options=tuning),
        ),
        Table(
            "jam_prompt",
            "Figure 4",
            "The prompts of this run.",
            "pieline.studies.jam.tables.described:prompt",
            DisplayInputs(files=prompts, options={"prompts": list(prompts)}),
        ),
        Table(
            "jam_checkpoints",
            "Table 7",
            "Checkpoints, their licenses, sizes and pinned revisions.",
            "pieline.reporting.described:checkpoints",
            DisplayInputs(files={"published": _published(study, 7)}, options=_checkpoints(study)),
        ),
        Table(
            "jam_artifacts",
            "Table 8",
            "Data and software, their licenses and pinned versions.",
            "pieline.reporting.described:artifacts",
            DisplayInputs(
                files={
                    "published": _published(study, 8),
                    "lock": study.project.here("envs/requirements.lock"),
                    "licences": study.project.here("data/licences.yaml"),
                    "upstream": upstream,
                }
            ),
        ),
    ]


def _checkpoints(study: Jam) -> dict[str, Any]:
    """Return the entries of the paper's models by their name in Table 7."""
    fields = {"checkpoint", "licence", "parameters", "revision", "source", "package"}
    found: dict[str, Any] = {}
    for name in study.project.names("llm", "encoder", "causal_lm"):
        entry = study.project.registry[name]
        stated = entry.model_dump(include=fields)
        if isinstance(entry, LLMEntry):
            stated["checkpoint"] = entry.litellm_id.partition("/")[2]
        if entry.published_as:
            found.setdefault(entry.published_as, {"name": name, **stated})
    return found


def figures(study: Jam) -> list[Figure]:
    """Return the flow figure and, if there are models and variants, the figures of results.

    These are Figures 2, 3 and 6, and those of the attention analysis and of prompt effects if
    they are configured.
    """
    flow = Figure(
        "jam_flow",
        "Section 3",
        "From ID10M's test split to originals and hard variants.",
        "pieline.studies.jam.figures.dataset:flow",
        _statistics(study),
    )
    if not (files.has_variants(study) and study.settings.models):
        return [flow]
    options = {
        "languages": list(study.settings.languages),
        "figure3": study.settings.figure3.model_dump(),
    }
    given = _runs(study).model_copy(update={"options": options})
    numbers = study.project.here("published/text_numbers.csv")
    figures = [
        flow,
        Figure(
            "jam_accuracy_vs_drift",
            "Figure 2",
            "Accuracy on the originals against negative drift.",
            "pieline.studies.jam.figures.results:accuracy_vs_drift",
            given.with_files(published=_published(study, 3), text_numbers=numbers),
        ),
        Figure(
            "jam_confused_models",
            "Figure 3",
            "How many models each hard variant confuses.",
            "pieline.studies.jam.figures.results:confused_models",
            given.with_files(text_numbers=numbers),
        ),
        Figure(
            "jam_all_vs_mixed",
            "Figure 6",
            "All-confused against partly confused originals.",
            "pieline.studies.jam.figures.results:all_vs_mixed",
            given.with_files(published=_published(study, 6)),
        ),
    ]
    if study.settings.attention and (attention := _attention(study)).metrics:
        figures.append(
            Figure(
                "jam_attention",
                "Figure 7",
                "Attention from the tokens of a PIE to its context.",
                "pieline.studies.jam.figures.attention:attention",
                attention,
            )
        )
    if _compares_effects(study):
        figures.append(
            Figure(
                "jam_prompts",
                "not in the paper",
                "Effects of prompts and training data, with 95% intervals.",
                "pieline.studies.jam.figures.prompt_effects:forest",
                _prompt_effects(study),
            )
        )
    return figures


def _notes(study: Jam) -> tuple[str, ...]:
    """Return notes on data that are not the paper's."""
    if study.project.is_sample:
        return (SAMPLE_NOTE,)
    notes = []
    for decided, note in _NOT_OF_PAPER.items():
        chosen = [
            name for name in study.settings.languages if files.decided_by(study, name) == decided
        ]
        notes += [note.format(_listed(chosen))] if chosen else []
    # An inactive study may lack its writer model.
    if (model := study.settings.variants.model) and files.written_languages(study):
        writer = study.project.entry(model).label
        notes.append(_WRITTEN.format(writer, _listed(files.written_languages(study))))
    return tuple(notes)


def _published(study: Jam, number: int) -> str:
    return study.project.here(f"published/jam_table{number}.csv")


def _runs(study: Jam, *besides: str) -> DisplayInputs:
    """Return inputs with all runs, and the reasons for missing runs.

    The runs are those of language models, encoders and the kinds of models in `besides`.
    """
    metrics = study.plan.metrics(kind=("llm", "encoder", *besides), experiment="")
    given = study.display_inputs(metrics, study.settings.models, "llm", "encoder")
    return given.model_copy(update={"notes": _notes(study)})


def _results(study: Jam) -> DisplayInputs:
    """Return inputs with all runs, including external ones, and baselines."""
    given = _runs(study, "predictions")
    scored = (path for name in study.settings.languages for path in runs.baselines(name))
    described = (
        ModelDescription(name=name, kind="baseline", label=label)
        for name, label in BASELINES.items()
    )
    return given.model_copy(
        update={"metrics": (*given.metrics, *scored), "models": (*given.models, *described)}
    )


def _compares_effects(study: Jam) -> bool:
    return bool(study.settings.prompts_against or files.added_settings(study))


def _prompt_effects(study: Jam) -> DisplayInputs:
    """Return inputs with the runs to compare, their references and `always-none`."""
    settings, given, added = study.settings, _runs(study), files.added_settings(study)
    shown = {settings.prompts_against, *([FINE_TUNED] if added else []), *added}
    shown |= {*settings.prompts} if settings.prompts_against else set()
    made = [path for path in given.metrics if study.plan[path].where["setting"] in shown]
    none = [runs.baselines(language)[0] for language in settings.languages]
    options = {
        "against": settings.prompts_against,
        "added": bool(added),
        "permutations": settings.permutations,
        "resamples": settings.bootstrap_resamples,
    }
    return given.model_copy(update={"metrics": (*made, *none), "absent": (), "options": options})


def _statistics(study: Jam) -> DisplayInputs:
    languages = study.settings.languages
    metrics = tuple(paths.STATISTICS.format(language=name) for name in languages)
    return DisplayInputs(metrics=metrics, notes=_notes(study))


def _attention(study: Jam) -> DisplayInputs:
    analysis = study.settings.attention
    assert analysis  # callers check this
    place = analysis.model_dump(include={"language", "model"})
    made = bool(files.metrics_on(study, analysis.language))
    return DisplayInputs(
        metrics=(paths.ATTENTION.format(**place),) if made else (),
        models=study.describe_models([analysis.model]),
        not_run={} if made else {analysis.model: "no run shows which variants mislead"},
        options=place,
        notes=_notes(study),
    )


def items(study: Jam) -> Items:
    """Return the specification of the items, one per sentence and run."""
    made = study.plan.made(experiment="")
    behind = (path for run in made for path in run.behind)
    return study.items_of([run.metrics for run in made], study.settings.models, behind)
