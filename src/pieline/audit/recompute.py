"""Recompute a sample of an archive's predictions on this machine, and compare the results."""

import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pieline.archives.manifest import Archive, ArchivedRun, member_sidecar
from pieline.core.errors import UserError, pluralize
from pieline.core.files import canonical_json, read_json, sha256
from pieline.core.records import load_jsonl, load_record
from pieline.core.sidecars import Sidecar
from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.llm.recordings import read_answers
from pieline.models.embedder import EmbedderEntry
from pieline.studies.idiolink.predictions.bm25 import build_index, search
from pieline.studies.idiolink.predictions.bm25_tuning import Tuning
from pieline.studies.idiolink.predictions.runs import RankedRun, cosine_scores, read_run
from pieline.studies.idiolink.records import Document, Query
from pieline.study import Study

SCORE_TOLERANCE = 1e-4
"""Tolerance for a model's scores on two machines, which differ in the last digits of float32."""
_BEST = 10
"""Number of top-ranked documents, and of randomly chosen others, to compare per query."""


def recompute(
    run: ArchivedRun, folder: Path, studies: Sequence[Study[Any]], *, sample: int
) -> tuple[bool, str]:
    """Recompute a sample of an archived run on the datasets of the working directory.

    Args:
        run: Archived run.
        folder: Folder into which the archive was unpacked.
        studies: Configured studies, which provide the language model tasks.
        sample: Number of queries per ranking; for language models, all recorded answers are parsed.

    Returns:
        Whether no difference was detected, and a line with the result of the comparison or the
        reason why the run was not recomputed.

    Raises:
        UserError: A file is invalid.
    """
    if reason := _other_data(run, folder):
        return True, f"not recomputed: {reason}"
    if run.recordings:
        return _read_again(run, folder, studies)
    weights = run.conditions.weights
    if "+" in run.predictions or weights.get("kind") == "encoder":
        return True, "not recomputed: weights of trained models are not in archives"
    if not (
        weights.get("kind") == "bm25" or (weights.get("kind") == "embedder" and "dtype" in weights)
    ):
        return True, "not recomputed: only BM25 and embedders with local weights can be"
    return _rank_again(run, folder, sample)


def compare_meanings(archive: Archive) -> dict[str, bool]:
    """Return whether local meaning files equal those of the archive's datasets, by path.

    Files that do not exist in the working directory are omitted.
    """
    names = [dataset.files[0] for dataset in archive.manifest.datasets.values()]
    stated = archive.manifest.files
    return {name: sha256(name) == stated[name] for name in names if Path(name).exists()}


def _other_data(run: ArchivedRun, folder: Path) -> str:
    """Return why the local dataset does not match the one used by a run; empty if it does."""
    sidecar = load_record(folder / member_sidecar(run.predictions), Sidecar)
    for path, digest in sidecar.made_from.items():
        if path.startswith("results/datasets/") and path.endswith(".jsonl"):
            if not Path(path).exists():
                return f"{path} does not exist (run snakemake --cores 1 -- {path})"
            if sha256(path) != digest:
                return f"{path} differs from the run's"
    return ""


def _match_path(pattern: str, path: str) -> dict[str, str] | None:
    """Return the wildcard values of a path that matches a pattern; None if it does not match."""
    regex = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(pattern))
    match = re.fullmatch(regex, path)
    return match and match.groupdict()


def _read_again(run: ArchivedRun, folder: Path, studies: Sequence[Study[Any]]) -> tuple[bool, str]:
    answers = read_answers(folder / run.recordings)

    def recorded(questions: Sequence[Question]) -> Mapping[str, Answer]:
        if missing := [question for question in questions if question.key not in answers]:
            raise UserError(f"no recorded answer to {pluralize(len(missing), 'question')}")
        return answers

    for spec in (spec for study in studies for spec in study.llm_tasks()):
        wildcards = _match_path(spec.outputs.get("predictions", ""), run.predictions)
        if wildcards is None:
            continue
        with tempfile.TemporaryDirectory() as place:
            output = Path(place, "predictions.jsonl")
            task = spec.make(**wildcards)
            try:
                task.model_copy(update={"outputs": {"predictions": str(output)}}).run(
                    task.entry(), recorded
                )
            except UserError as error:
                return False, str(error)
            same = output.read_bytes() == (folder / run.predictions).read_bytes()
        return same, f"{len(answers)} answers parsed again: {'identical' if same else 'DIFFERENT'}"
    return True, "not recomputed: the configuration does not name its study"


def _rank_again(run: ArchivedRun, folder: Path, sample: int) -> tuple[bool, str]:
    *_, index, _, mode, _ = Path(run.predictions).parts
    place = Path("results/datasets/idiolink", index)
    documents = load_jsonl(place / "documents.jsonl", Document)
    queries = load_jsonl(place / "queries.jsonl", Query)
    # Not a fixed seed, with which a forger would know the queries that are never compared.
    chance = random.SystemRandom()
    sampled = chance.sample(queries, min(sample, len(queries)))
    archived = read_run(folder / run.predictions)
    depth = min(int(run.conditions.settings["top_k"]), len(documents))
    known = {document.id for document in documents}
    for query in sampled:
        ranked = archived.get(query.id, {})
        if len(ranked) != depth or not ranked.keys() <= known:
            return False, f"DIFFERENT: {query.id} does not rank {depth} documents of the dataset"
    # Lower ranks are included to detect documents that were moved down.
    best = {
        query.id: [*names[:_BEST], *chance.sample(names[_BEST:], min(_BEST, depth - _BEST))]
        if len(names := [*archived[query.id]]) > _BEST
        else names
        for query in sampled
    }
    if run.conditions.weights["kind"] == "bm25":
        (tuning,) = [path for path in run.files if path.endswith("/tuning.json")]
        point = Tuning.model_validate(read_json(folder / tuning)).chosen
        ranker = build_index(documents, point)
        query_field: Literal["sentence", "span"] = "span" if mode == "span" else "sentence"
        recomputed = search(
            ranker, documents, sampled, query_mode=query_field, top_k=len(documents)
        )
    else:
        try:
            recomputed = _similarities(run, mode, sampled, documents, best)
        except UserError as error:
            return True, f"not recomputed: {error}"
    differences = [
        abs(recomputed[query][name] - archived[query][name])
        for query in best
        for name in best[query]
    ]
    largest = max(differences)
    same = largest <= SCORE_TOLERANCE
    line = f"{len(sampled)} queries, {len(differences)} scores: largest difference {largest:.1g}"
    return same, line if same else f"DIFFERENT: {line}"


def _similarities(
    run: ArchivedRun,
    mode: str,
    queries: Sequence[Query],
    documents: Sequence[Document],
    best: Mapping[str, Sequence[str]],
) -> RankedRun:
    """Return the cosine similarities between all queries and all documents listed in `best`."""
    from pieline.studies.idiolink.predictions.embedding import embed_index, embed_query_modes
    from pieline.studies.idiolink.predictions.encoders import load_encoder

    entry = EmbedderEntry.from_spec(canonical_json(run.conditions.weights))
    unpacked = Path("results/raw/weights", Path(run.predictions).parts[4])
    weights = str(unpacked) if unpacked.is_dir() else None
    model = load_encoder(entry, weights=weights)
    wanted = {name for names in best.values() for name in names}
    selected = [document for document in documents if document.id in wanted]
    vectors = embed_index(model, selected, entry, progress=False)
    query_vectors = embed_query_modes(model, queries, entry)[mode]
    return {
        query.id: {
            document.id: float(score) for document, score in zip(selected, scores, strict=True)
        }
        for query, scores in zip(
            queries, cosine_scores(np.asarray(query_vectors), vectors), strict=True
        )
    }
