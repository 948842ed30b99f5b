"""Tables, figures and items of the IdioLink study."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from pieline.models.llm import LLMEntry
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE
from pieline.studies.idiolink import files, models, paths, runs
from pieline.studies.idiolink.models import Idiolink
from pieline.studies.idiolink.records import query_scores_file
from pieline.study import NOT_CONFIGURED, Figure, Items, Table


def zero_shot(study: Idiolink, composition: str, names: Collection[str]) -> list[str]:
    """Return the metric files of zero-shot runs of these models on an index composition."""
    return study.plan.metrics(index=runs.index_of(composition), model=names)


def tuned_metrics(study: Idiolink) -> list[str]:
    """Return the metric files of the fine-tuned models' runs."""
    return [run.metrics for run in study.plan.made() if run.model != run.base]


def items(study: Idiolink) -> Items:
    """Return the specification of the item rows, one per query and run."""
    metrics = study.plan.metrics()
    names = [*models.ranked(study), *models.tuned_bases(study)]
    return study.items_of(metrics, dict.fromkeys(names), map(query_scores_file, metrics))


def tables(study: Idiolink) -> list[Table]:
    """Return the paper's tables and additional ones."""
    return list(_tables(study))


def _tables(study: Idiolink) -> Iterator[Table]:
    settings = study.settings
    ranked, tuned = models.ranked(study), models.tuned_bases(study)
    as_published = zero_shot(study, "full", ranked)
    # Scores on other data have no counterpart in the released run.
    reference = (
        {"released": study.project.here("published/idiolink_released_run.csv")}
        if study.project.data == "released"
        else {}
    )
    if files.has_texts(study):
        yield _table(
            study,
            "idiolink_example",
            "described:example",
            "Figure 1",
            "The document types of a PIE.",
            inputs=DisplayInputs(notes=(SAMPLE_NOTE,) if study.project.is_sample else ()),
            documents=paths.dataset("test")["documents"],
        )
        yield _table(
            study,
            "idiolink_dataset",
            "dataset:dataset",
            "Table 1",
            "Size of the IdioLink dataset.",
            inputs=DisplayInputs(metrics=(_checks(study),)),
            published="idiolink_table1",
            text_numbers=study.project.here("published/text_numbers.csv"),
        )
    if models.constructs(study):
        yield _table(
            study,
            "idiolink_construction",
            "dataset:construction",
            "Sections 3.2.1 to 3.2.4",
            "Statistics of the dataset's construction.",
            inputs=DisplayInputs(metrics=(paths.CONSTRUCTION_METRICS,)),
            published="text_numbers",
            filter_report=paths.FILTER_REPORT,
        )
    embedders = models.models_of_kinds(study, "embedder")
    rows = models.models_of_kinds(study, "embedder", *models.OWN_RANKERS, "predictions")
    yield _table(
        study,
        "idiolink_zero_shot",
        "zero_shot:zero_shot",
        "Table 2",
        "Zero-shot retrieval in four query modes, in percent.",
        inputs=_with_own_models(
            study,
            study.display_inputs(
                zero_shot(study, "full", rows), rows, "embedder", configured=settings.models
            ),
        ),
        published="idiolink_table2",
        **reference,
    )
    if embedders:
        yield _table(
            study,
            "idiolink_gains",
            "gains:gains",
            "Section 6",
            "Average gains by instructions and span embedding, in points.",
            inputs=study.display_inputs(zero_shot(study, "full", embedders), embedders, "embedder"),
            published="text_numbers",
        )
    if bm25 := zero_shot(study, "full", models.models_of_kinds(study, "bm25")):
        yield _table(
            study,
            "idiolink_bm25",
            "zero_shot:bm25",
            "Appendix E",
            "BM25 by sentence and by span.",
            inputs=DisplayInputs(metrics=tuple(bm25)),
            published="idiolink_bm25",
        )
    yield _table(
        study,
        "idiolink_hyperparameters",
        "described:hyperparameters",
        "Table 3",
        "Hyperparameters of fine-tuning, as set in this run.",
        inputs=DisplayInputs(
            options=settings.finetuning.model_copy(update={"models": tuned}).model_dump(mode="json")
        ),
        published="idiolink_table3",
    )
    yield _table(
        study,
        "idiolink_artifacts",
        "described:artifacts",
        "Table 4",
        "Data and packages, their licenses and pinned versions.",
        inputs=DisplayInputs(),
        published="idiolink_table4",
        lock=study.project.here("envs/requirements.lock"),
        licences=study.project.here("data/licences.yaml"),
        upstream=study.project.upstream,
    )
    if settings.finetuning.models:
        yield _table(
            study,
            "idiolink_finetuned",
            "finetuning:finetuned",
            "Table 5",
            "Retrieval by fine-tuned models, in percent.",
            inputs=_with_own_models(
                study,
                study.display_inputs(
                    tuned_metrics(study),
                    tuned,
                    "embedder",
                    configured=settings.finetuning.models,
                ),
            ),
            published="idiolink_table5",
        )
    yield _table(
        study,
        "idiolink_checkpoints",
        "described:checkpoints",
        "Table 6",
        "Checkpoints, their licenses, sizes and pinned revisions.",
        inputs=DisplayInputs(options=_checkpoints(study)),
        published="idiolink_table6",
    )
    every = tuple(
        name
        for composition in settings.compositions
        for name in zero_shot(study, composition, ranked)
    )
    if every and set(settings.compositions) - {"full"}:
        ranking = models.models_of_kinds(study, "bm25", "embedder", *models.OWN_RANKERS)
        yield _table(
            study,
            "idiolink_ablation",
            "zero_shot:ablation",
            "not in the paper",
            "The same queries over an index without some usages, in percent.",
            inputs=DisplayInputs(metrics=every, models=study.describe_models(ranking)),
        )
    if reference and every:
        yield _table(
            study,
            "idiolink_released",
            "released:released_run",
            "not in the paper",
            "Our scores and those of the authors' released run, in percent.",
            inputs=DisplayInputs(metrics=every, models=study.describe_models(ranked)),
            published="idiolink_table2",
            **reference,
        )
    if tests := runs.significance_tests(study, study.plan):
        tested = study.describe_models(dict.fromkeys([*ranked, *tuned]))
        yield _table(
            study,
            "idiolink_significance",
            "significance:significance",
            "not in the paper",
            "Paired randomization tests over PIEs between query modes, with intervals.",
            inputs=DisplayInputs(metrics=tuple(tests), models=tested),
        )
    modes = [mode for model in ranked for mode in runs.modes_of(study, model)]
    if len(modes) > len(set(modes)):
        yield _table(
            study,
            "idiolink_pairs",
            "significance:model_pairs",
            "not in the paper",
            "Paired randomization tests over PIEs between all pairs of models, with intervals.",
            inputs=DisplayInputs(
                metrics=tuple(as_published),
                models=study.describe_models(ranked),
                options={
                    "permutations": settings.permutations,
                    "resamples": settings.bootstrap_resamples,
                },
            ),
        )
    if as_published:
        yield _table(
            study,
            "idiolink_by_pie",
            "by_pie:by_pie",
            "not in the paper",
            "R-Precision and nDCG@10 of each PIE.",
            inputs=DisplayInputs(
                metrics=(*as_published, *tuned_metrics(study)), models=study.describe_models(ranked)
            ),
        )
    if measured := list(runs.shortcuts(study, study.plan)):
        yield _table(
            study,
            "idiolink_overlap",
            "shortcuts:overlap",
            "not in the paper",
            "Words that queries share with their relevant documents.",
            # All runs share the same texts.
            inputs=DisplayInputs(metrics=(measured[0],)),
        )
        yield _table(
            study,
            "idiolink_shortcuts",
            "shortcuts:shortcuts",
            "not in the paper",
            "Whether queries that share more words with relevant documents score higher.",
            inputs=DisplayInputs(metrics=tuple(measured), models=study.describe_models(ranked)),
        )


def why_no_table(study: Idiolink, name: str) -> str:
    """Return the reason why this configuration does not produce a table."""
    reasons = {
        "idiolink_finetuned": "idiolink.finetuning.models names no model",
        "idiolink_construction": "idiolink.construction.enabled is false",
        **dict.fromkeys(
            ("idiolink_dataset", "idiolink_example"),
            "idiolink.dataset is 'archived': there are no texts",
        ),
        **dict.fromkeys(("idiolink_overlap", "idiolink_shortcuts"), "idiolink.shortcuts is false"),
    }
    return reasons.get(name, NOT_CONFIGURED)


def figures(study: Idiolink) -> list[Figure]:
    """Return the paper's figures and additional ones."""
    return list(_figures(study))


def _figures(study: Idiolink) -> Iterator[Figure]:
    ranked, tuned = models.ranked(study), models.tuned_bases(study)
    as_published = zero_shot(study, "full", ranked)
    if files.has_texts(study):
        yield _figure(
            study,
            "idiolink_domains",
            "domains:domains",
            "Section 3.2.2",
            "Texts by domain and usage.",
            metrics=[_checks(study)],
        )
    if models.constructs(study):
        yield _figure(
            study,
            "idiolink_flow",
            "construction:flow",
            "Section 3.2",
            "From the PIEs of MAGPIE to documents and queries.",
            metrics=[paths.CONSTRUCTION_METRICS],
            filter_report=paths.FILTER_REPORT,
        )
    if as_published:
        yield _figure(
            study,
            "idiolink_modes",
            "modes:modes",
            "Section 6",
            "Each model in the four query modes, with intervals over PIEs.",
            metrics=as_published,
            models=ranked,
        )
    if tuned:
        untuned = zero_shot(study, "full", models.models_of_kinds(study, "embedder"))
        yield _figure(
            study,
            "idiolink_finetuning",
            "finetuning:finetuning",
            "Figure 3",
            "Fine-tuned models against zero-shot.",
            metrics=[*untuned, *tuned_metrics(study)],
            models=tuned,
        )
    if as_published:
        yield _figure(
            study,
            "idiolink_by_pie",
            "by_pie:by_pie",
            "not in the paper",
            "nDCG@10 of each PIE.",
            metrics=[*as_published, *tuned_metrics(study)],
            models=ranked,
        )
    if measured := list(runs.shortcuts(study, study.plan)):
        yield _figure(
            study,
            "idiolink_shortcuts",
            "shortcuts:shortcuts",
            "not in the paper",
            "nDCG@10 by tenth of word overlap.",
            metrics=measured,
            models=ranked,
        )


def _figure(
    study: Idiolink,
    name: str,
    maker: str,
    place: str,
    caption: str,
    *,
    metrics: Iterable[str],
    models: Iterable[str] = (),
    **files: str,
) -> Figure:
    """Return a figure; `maker` is the module and function that draw it (`module:function`).

    `files` are other input files, by parameter name.
    """
    maker = f"pieline.studies.idiolink.figures.{maker}"
    described = study.describe_models(models)
    inputs = DisplayInputs(metrics=tuple(metrics), models=described, files=files)
    return Figure(name, place, caption, maker, inputs)


def _table(
    study: Idiolink,
    name: str,
    maker: str,
    place: str,
    caption: str,
    *,
    inputs: DisplayInputs,
    published: str = "",
    **files: str,
) -> Table:
    """Return a table.

    Args:
        study: The study.
        name: Name of the table's files.
        maker: Module and function, as `module:function`.
        place: Place in the paper.
        caption: Caption of the table.
        inputs: Inputs of the table.
        published: Name of the CSV in published/ with the printed numbers, if any.
        **files: Other input files, by parameter name.
    """
    if published:
        files["published"] = study.project.here(f"published/{published}.csv")
    maker = f"pieline.studies.idiolink.tables.{maker}"
    return Table(name, place, caption, maker, inputs.with_files(**files))


def _with_own_models(study: Idiolink, inputs: DisplayInputs) -> DisplayInputs:
    """Return the inputs, with the user's skipped models added to `absent`."""
    registry = study.project.registry
    own = [name for name in models.skipped(study) if registry[name].published_as is None]
    return inputs.model_copy(update={"absent": (*inputs.absent, *study.describe_models(own))})


def _checkpoints(study: Idiolink) -> dict[str, Any]:
    """Return entry fields of embedders and construction models, by name in Table 6."""
    fields = {"checkpoint", "licence", "parameters", "revision", "source", "package"}
    entries: dict[str, Any] = {}
    for name in [*study.project.names("embedder"), *models.roles(study).values()]:
        entry = study.project.registry[name]
        printed, of_entry = entry.published_as, entry.model_dump(include=fields)
        if isinstance(entry, LLMEntry):
            printed = of_entry["checkpoint"] = entry.litellm_id.rpartition("/")[2]
        if printed:
            entries.setdefault(printed, {"name": name, **of_entry})
    return entries


def _checks(study: Idiolink) -> str:
    """Return the path of the data checks behind Table 1."""
    return paths.CHECKS.format(
        origin="constructed" if models.constructs(study) else "released_format"
    )
