"""Files that the jobs of the IdioLink study read."""

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
    """Return the paths of an index's dataset files, starting with the documents."""
    return list(paths.dataset(index).values())


def all_documents(index: str) -> str:
    """Return the path of the documents in the split that an index is built from."""
    return dataset(index.split("-", maxsplit=1)[0])[0]


def vectors(study: Idiolink, index: str, model: str, texts: str, seed: str) -> str:
    """Return the path of a split's embeddings; `texts` is `documents` or a query mode."""
    split = index.split("-", maxsplit=1)[0]
    pattern = paths.API_VECTORS if model in models.api_embedders(study) else paths.VECTORS
    return pattern.format(split=split, model=model, texts=texts, seed=seed)


def query_vectors(study: Idiolink, index: str, model: str, query_mode: str, seed: str) -> list[str]:
    """Return the path of the embeddings of a split's queries in one mode; the list has one path."""
    return [vectors(study, index, model, query_mode, seed)]


def all_query_vectors(study: Idiolink, index: str, model: str, seed: str) -> list[str]:
    """Return the paths of the embeddings of a split's queries in all modes."""
    return [vectors(study, index, model, mode, seed) for mode in QUERY_MODES]


def first_stage_run(study: Idiolink, model: str, index: str, query_mode: str) -> str:
    """Return the path of the run that a reranker reorders.

    The run has the reranker's query mode, except that BM25 always ranks by sentence.
    """
    entry = study.project.entry(model)
    assert isinstance(entry, RerankerEntry)
    ranks_by_sentence = isinstance(study.project.entry(entry.first_stage), Bm25Entry)
    mode = "sentence" if ranks_by_sentence else query_mode
    return paths.RUN.format(index=index, model=entry.first_stage, query_mode=mode, seed=0)


def archive_of_dataset(study: Idiolink, index: str) -> Archive | None:
    """Return the archive with the files for scoring an index, made from the present raw files."""
    folder = str(Path(paths.scoring_files(index)["manifest"]).parent)
    for archive in study.project.archives:
        dataset = archive.manifest.datasets.get(folder)
        if dataset is None or not dataset.raw:
            continue
        if all(study.project.digest(name) == digest for name, digest in dataset.raw.items()):
            return archive
    return None


def archived_datasets(study: Idiolink) -> list[Extraction]:
    """Return the extractions of the files for scoring, for a run without texts."""
    if has_texts(study):
        return []
    extractions = []
    for index in sorted({run.where["index"] for run in study.plan if run.archive}):
        if archive := archive_of_dataset(study, index):
            digests = archive.manifest.files
            files = {name: digests[name] for name in paths.scoring_files(index).values()}
            rule = re.sub(r"\W", "_", f"take_idiolink_{index}")
            extractions.append(Extraction(rule, archive.path, files, recordings={}))
    return extractions


def tuning(study: Idiolink, model: str, index: str, query_mode: str) -> str | None:
    """Return the path of the file with a BM25 run's k1 and b; None for other models.

    The full index uses the values tuned on sentence queries, because the paper reports a single
    pair of values for both query modes. Other compositions use the values tuned for the query mode
    and composition, as in the authors' code; without a validation split, they use those of the full
    index.
    """
    if not isinstance(models.entry(study, model), Bm25Entry):
        return None
    composition = index.partition("-")[2]
    if composition and models.is_tuned(study):
        return paths.TUNING.format(index=f"val-{composition}", model=model, query_mode=query_mode)
    return paths.TUNING.format(index="val", model=model, query_mode="sentence")


def tuning_dataset(study: Idiolink, index: str) -> list[str]:
    """Return the paths of the data for tuning k1 and b; empty without a validation split."""
    return dataset(index) if models.is_tuned(study) else []


def weights(study: Idiolink, model: str, seed: str) -> str | None:
    """Return the path of the digests of fine-tuned or unpacked weights; None if there are none."""
    if training := paths.training_of(model):
        return paths.WEIGHTS_DIGESTS.format(**training._asdict(), seed=seed)
    return study.project.unpacked_weights(model)


def weights_files(study: Idiolink, model: str) -> list[str]:
    """Return the files of the local checkpoint and adapter of a model or of its base model."""
    return study.project.weights_files(paths.base_of(model))


def limit_of_queries(study: Idiolink, split: str) -> int | None:
    """Return the number of queries to use in a split; None for all, as for training."""
    return None if split == "train" else study.project.limit


def tuples_source(study: Idiolink) -> str:
    """Return the source of training tuples: `sampled` or `released`."""
    source = study.settings.finetuning.tuples
    if source != "released_where_available":
        return source
    name = raw_name(RELEASED_TUPLES)
    is_available = not study.project.is_sample and study.project.is_available(name)
    return "released" if is_available else "sampled"


def tuples(study: Idiolink, seed: str) -> str:
    """Return the path of the training tuples."""
    sampled = tuples_source(study) == "sampled"
    pattern = paths.SAMPLED_TUPLES if sampled else paths.MINED_TUPLES
    return pattern.format(split="train", seed=seed)


def magpie(study: Idiolink) -> str:
    """Return the path of the MAGPIE file from which PIEs are selected."""
    name = "MAGPIE_sample" if study.project.is_sample else "MAGPIE_unfiltered"
    return f"results/raw/magpie/{name}.jsonl"


def released_indexes() -> list[str]:
    """Return the paths of the released documents of every split."""
    return [f"results/raw/idiolink/{split}/indexes.json" for split in SPLITS]


def candidates(study: Idiolink) -> str | None:
    """Return the path of the released list of candidate PIEs; None if it is not available."""
    name = raw_name(paths.CANDIDATES)
    is_available = not study.project.is_sample and study.project.is_available(name)
    return paths.CANDIDATES if is_available else None


def counted_candidates(study: Idiolink, origin: str) -> str | None:
    """Return the path of the candidate PIEs to count with an origin's texts; None without any."""
    return candidates(study) if origin == "released_format" else None


def compared_indexes(study: Idiolink) -> list[str]:
    """Return the paths of the released documents; empty without the released candidates."""
    return released_indexes() if candidates(study) else []


def split_source_indexes(study: Idiolink) -> list[str]:
    """Return the paths of the released documents; empty if the splits are drawn."""
    source = study.settings.construction.split_source
    return released_indexes() if source == "released" else []


def exclusions(study: Idiolink) -> str:
    """Return the path of the TSV of manually excluded PIEs.

    The TSV is the configured file, the sample's, or the one derived from the released files.
    """
    if study.settings.construction.exclusions:
        return study.settings.construction.exclusions
    if study.project.is_sample:
        return study.project.here("data/sample/magpie/exclusions.tsv")
    return paths.EXCLUSIONS


def corrections(study: Idiolink) -> str | None:
    """Return the path of the human corrections of generated texts, if any."""
    if study.settings.construction.corrections or not study.project.is_sample:
        return study.settings.construction.corrections
    return study.project.here("data/sample/idiolink_construction/corrections.csv")


def of_collections(pattern: str) -> list[str]:
    """Return the paths that a pattern yields for both collections."""
    return [pattern.format(collection=collection) for collection in models.COLLECTIONS]


def data_folder(origin: str) -> str:
    """Return the folder with the constructed or the public texts, in the public format."""
    constructed = origin == "constructed"
    return paths.CONSTRUCTED if constructed else "results/raw/idiolink"


def checked_files(study: Idiolink, origin: str) -> list[str]:
    """Return the paths of the text files in every split of an origin."""
    return [
        f"{data_folder(origin)}/{split}/{name}.json"
        for split in models.splits(study, origin)
        for name in models.TEXT_FILES
    ]


def experiment_texts(study: Idiolink, split: str, name: str) -> str:
    """Return the path of a split's texts in the experiments, `indexes` or `queries`."""
    return f"{data_folder(study.settings.dataset)}/{split}/{name}.json"


def raw_files(study: Idiolink) -> list[str]:
    """Return the paths of the raw files that this configuration uses."""
    if not has_texts(study):
        return []
    files = checked_files(study, "released_format")
    if candidates_file := candidates(study):
        files.append(candidates_file)
    if inputs.tuned_bases(study) and tuples_source(study) == "released":
        files.append(RELEASED_TUPLES)
    if models.constructs(study):
        files.append(magpie(study))
        files += compared_indexes(study)
        files += split_source_indexes(study)
    return files


def other_targets(study: Idiolink) -> list[str]:
    """Return the paths of the data checks and, with construction, the review sheet."""
    targets = []
    if has_texts(study):
        targets.append(paths.CHECKS.format(origin="released_format"))
    if models.constructs(study):
        targets += [paths.CHECKS.format(origin="constructed"), paths.REVIEW]
    return targets
