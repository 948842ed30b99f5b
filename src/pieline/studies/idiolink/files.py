"""Return the paths of the files that the jobs of the IdioLink study read."""

import re
from pathlib import Path

from pieline.archives.extraction import Extraction
from pieline.archives.manifest import Archive
from pieline.models.entries import Bm25Entry
from pieline.models.rankers import RerankerEntry
from pieline.project import raw_name
from pieline.studies.idiolink import inputs, models, paths
from pieline.studies.idiolink.inputs import has_texts
from pieline.studies.idiolink.models import Idiolink
from pieline.studies.idiolink.originals.splits import SPLITS
from pieline.studies.idiolink.records import QUERY_MODES

RELEASED_TUPLES = paths.RELEASED_TUPLES.format(split="train")


def dataset(index: str) -> list[str]:
    """Return the paths of an index's dataset files; the documents come first."""
    return list(paths.dataset(index).values())


def all_documents(index: str) -> str:
    """Return the path of the documents of an index's split, including those not in the index."""
    return paths.dataset(paths.split_of(index))["documents"]


def vectors(study: Idiolink, index: str, model: str, texts: str, seed: str) -> str:
    """Return the path of a model's embeddings of the whole split from which an index is made.

    `texts` is `documents`, or the query mode of the embedded queries.
    """
    split = paths.split_of(index)
    pattern = paths.API_VECTORS if model in models.api_embedders(study) else paths.VECTORS
    return pattern.format(split=split, model=model, texts=texts, seed=seed)


def query_vectors(study: Idiolink, index: str, model: str, query_mode: str, seed: str) -> list[str]:
    """Return the path of the query embeddings in one query mode, as a list of one path."""
    return [vectors(study, index, model, query_mode, seed)]


def all_query_vectors(study: Idiolink, index: str, model: str, seed: str) -> list[str]:
    """Return the paths of the query embeddings, one for each query mode."""
    return [vectors(study, index, model, mode, seed) for mode in QUERY_MODES]


def first_stage_run(study: Idiolink, model: str, index: str, query_mode: str) -> str:
    """Return the path of the ranking that a reranker reorders.

    This ranking has the reranker's query mode, except that BM25 always ranks by sentence.
    """
    entry = study.project.entry(model)
    assert isinstance(entry, RerankerEntry)
    first_stage = entry.first_stage
    is_bm25 = isinstance(study.project.entry(first_stage), Bm25Entry)
    first_stage_mode = "sentence" if is_bm25 else query_mode
    return paths.RUN.format(index=index, model=first_stage, query_mode=first_stage_mode, seed=0)


def archive_of_dataset(study: Idiolink, index: str) -> Archive | None:
    """Return the first archive with current scoring files of an index; None if there is none.

    The files are current if they were made from raw files whose SHA-256 equals that of our files.
    """
    folder = str(Path(paths.scoring_files(index)["manifest"]).parent)
    for archive in study.project.archives:
        dataset_entry = archive.manifest.datasets.get(folder)
        if dataset_entry is None or not dataset_entry.raw:
            continue
        digests = dataset_entry.raw
        is_current = all(study.project.digest(name) == digests[name] for name in digests)
        if is_current:
            return archive
    return None


def dataset_extractions(study: Idiolink) -> list[Extraction]:
    """Return the extractions of scoring files from archives; empty if the study uses texts."""
    if has_texts(study):
        return []
    extractions = []
    for index in sorted({run.where["index"] for run in study.plan if run.archive}):
        if archive := archive_of_dataset(study, index):
            digests = archive.manifest.files
            files = {path: digests[path] for path in paths.scoring_files(index).values()}
            # Names of Snakemake rules contain only letters, digits and underscores.
            rule = re.sub(r"\W", "_", f"take_idiolink_{index}")
            extractions.append(Extraction(rule, archive.path, files, recordings={}))
    return extractions


def tuning(study: Idiolink, model: str, index: str, query_mode: str) -> str | None:
    """Return the path of the file with the k1 and b of a BM25 run; None for other models.

    The full index uses the values tuned on sentence queries, because the paper reports a single
    pair of values for both query modes. As in the authors' code, any other composition uses the
    values tuned for this composition and the query mode. Without a validation split, all
    compositions use the values of the full index.
    """
    if not isinstance(models.entry(study, model), Bm25Entry):
        return None
    composition = paths.composition_of(index)
    if composition == "full" or not models.is_tuned(study):
        return paths.TUNING.format(index="val", model=model, query_mode="sentence")
    return paths.TUNING.format(index=f"val-{composition}", model=model, query_mode=query_mode)


def tuning_dataset(study: Idiolink, index: str) -> list[str]:
    """Return the paths of the data for tuning k1 and b; empty if there is no validation split."""
    return dataset(index) if models.is_tuned(study) else []


def weights(study: Idiolink, model: str, seed: str) -> str | None:
    """Return the path of the file with the digests of weights; None if no job writes the weights.

    Jobs write the weights of fine-tuned models and of packed checkpoints.
    """
    if training := paths.training_of(model):
        return paths.WEIGHTS_DIGESTS.format(**training._asdict(), seed=seed)
    return study.project.unpacked_weights(model)


def weights_files(study: Idiolink, model: str) -> list[str]:
    """Return the paths of the files of a model's local checkpoint and adapter.

    For a fine-tuned model, these are the files of the base model.
    """
    return study.project.weights_files(paths.base_of(model))


def limit_of_queries(study: Idiolink, split: str) -> int | None:
    """Return the maximum number of a split's queries to use; None if all are used.

    Training always uses all queries.
    """
    return None if split == "train" else study.project.limit


def _is_public_file_available(study: Idiolink, path: str) -> bool:
    """Return whether a raw public file is available; always False for the sample data."""
    return not study.project.is_sample and study.project.is_available(raw_name(path))


def tuples_source(study: Idiolink) -> str:
    """Return the source of training tuples: `sampled`, or `released` for the authors' tuples."""
    source = study.settings.finetuning.tuples
    if source == "released_where_available":
        return "released" if _is_public_file_available(study, RELEASED_TUPLES) else "sampled"
    return source


def tuples(study: Idiolink, seed: str) -> str:
    """Return the path of the training tuples; only sampled tuples depend on the seed."""
    is_sampled = tuples_source(study) == "sampled"
    pattern = paths.SAMPLED_TUPLES if is_sampled else paths.MINED_TUPLES
    return pattern.format(split="train", seed=seed)


def magpie(study: Idiolink) -> str:
    """Return the path of the MAGPIE file from which PIEs are selected."""
    name = "MAGPIE_sample" if study.project.is_sample else "MAGPIE_unfiltered"
    return f"results/raw/magpie/{name}.jsonl"


def released_indexes() -> list[str]:
    """Return the paths of the public documents, one for each split."""
    return [f"results/raw/idiolink/{split}/indexes.json" for split in SPLITS]


def candidates(study: Idiolink) -> str | None:
    """Return the path of the authors' list of candidate PIEs; None if the list is unavailable."""
    return paths.CANDIDATES if _is_public_file_available(study, paths.CANDIDATES) else None


def counted_candidates(study: Idiolink, origin: str) -> str | None:
    """Return the path of the authors' list of candidate PIEs, which is counted with the texts.

    The result is None if the texts are constructed, or if the list is unavailable.
    """
    return candidates(study) if origin == "released_format" else None


def compared_indexes(study: Idiolink) -> list[str]:
    """Return the paths of the public documents to compare with the authors' candidate PIEs.

    The result is empty if the list of candidates is unavailable.
    """
    return released_indexes() if candidates(study) else []


def split_source_indexes(study: Idiolink) -> list[str]:
    """Return the paths of the public documents, which define the authors' splits.

    The result is empty if the splits are drawn at random.
    """
    source = study.settings.construction.split_source
    return released_indexes() if source == "released" else []


def exclusions(study: Idiolink) -> str:
    """Return the path of the TSV of manually excluded PIEs.

    If no file is configured, the sample data has its own file, and for other data, a job derives
    the file from the public data.
    """
    if study.settings.construction.exclusions:
        return study.settings.construction.exclusions
    if study.project.is_sample:
        return study.project.here("data/sample/magpie/exclusions.tsv")
    return paths.EXCLUSIONS


def corrections(study: Idiolink) -> str | None:
    """Return the path of the human corrections of generated texts; None if there is no file."""
    configured_file = study.settings.construction.corrections
    if not configured_file and study.project.is_sample:
        return study.project.here("data/sample/idiolink_construction/corrections.csv")
    return configured_file


def of_collections(pattern: str) -> list[str]:
    """Return the paths that a pattern yields for the documents and for the queries."""
    return [pattern.format(collection=collection) for collection in models.COLLECTIONS]


def data_folder(origin: str) -> str:
    """Return the folder of the texts of an origin, `constructed` or `released_format`."""
    return paths.CONSTRUCTED if origin == "constructed" else "results/raw/idiolink"


def checked_files(study: Idiolink, origin: str) -> list[str]:
    """Return the paths of the texts of an origin (see `data_folder`) in all available splits."""
    return [
        f"{data_folder(origin)}/{split}/{name}.json"
        for split in models.splits(study, origin)
        for name in models.TEXT_FILES
    ]


def experiment_texts(study: Idiolink, split: str, name: str) -> str:
    """Return the path of the documents or queries that the experiments use from a split.

    `name` is `indexes` for the documents, or `queries`.
    """
    return f"{data_folder(study.settings.dataset)}/{split}/{name}.json"


def raw_files(study: Idiolink) -> list[str]:
    """Return the paths of the raw files that this configuration uses."""
    if not has_texts(study):
        return []
    raw_paths = checked_files(study, "released_format")
    if candidates_file := candidates(study):
        raw_paths.append(candidates_file)
    if inputs.models_to_fine_tune(study) and tuples_source(study) == "released":
        raw_paths.append(RELEASED_TUPLES)
    if models.constructs(study):
        raw_paths.append(magpie(study))
        raw_paths += compared_indexes(study)
        raw_paths += split_source_indexes(study)
    return raw_paths


def other_targets(study: Idiolink) -> list[str]:
    """Return the paths of the data checks and, if a dataset is constructed, the review sheet."""
    targets = []
    if has_texts(study):
        targets.append(paths.CHECKS.format(origin="released_format"))
    if models.constructs(study):
        targets += [paths.CHECKS.format(origin="constructed"), paths.REVIEW]
    return targets
