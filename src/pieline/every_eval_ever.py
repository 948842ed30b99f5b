"""Export finished runs in the format of Every Eval Ever, version 0.3.0 of the format's schemas.

Each run becomes one record with the run's scores, and a JSONL file with one row per item. Their
paths follow the format: `data/<study>/<developer>/<model>/<UUID>.json` and `<UUID>_samples.jsonl`.
All inputs are read in the working directory, which is the folder of the run.
"""

import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from pieline.core.errors import UserError
from pieline.core.files import read_json, read_text, sha256_of, write_json, write_text
from pieline.core.records import load_jsonl
from pieline.core.sidecars import load_sidecar
from pieline.llm.recordings import read_answers
from pieline.reporting.evidence import MetricFile, input_of, load_metric_file
from pieline.reporting.numbers import Number, read_numbers
from pieline.studies.idiolink.datasets.dataset import meaning_qrels
from pieline.studies.idiolink.predictions.rankings import read_run
from pieline.studies.idiolink.records import Document, Query

Json = dict[str, Any]
SCHEMA_VERSION = "0.3.0"
ITEM_SCORES = {"idiots": "accuracy", "idiolink": "r_precision"}
"""Score of a run that is the mean of the scores of items, by study."""
_RANKED_DOCUMENTS = 10
"""Number of documents in the output of a query."""


def export_records(
    folder: Path, *, time: int, is_selected: Callable[[str], bool] = lambda _: True
) -> int:
    """Write the records of the finished runs, and return the number of records.

    Args:
        folder: Output folder.
        time: Time of the export in seconds since 1970, which the format requires. The rest of a
            record depends only on the run.
        is_selected: Function that returns, for a metric file, whether to export the run.

    Raises:
        UserError: A file of the run is missing or invalid, or no run is selected.
    """
    data = read_json("results/provenance.json")["data"]
    scores_by_run = _scores_by_run(is_selected)
    if not scores_by_run:
        raise UserError("no finished run", where="paper_tables/numbers.csv")
    studies = {scores[0].study for scores in scores_by_run.values()}
    items_by_study = {study: _items_by_run(study) for study in studies}
    for path, scores in scores_by_run.items():
        study = scores[0].study  # all scores of a run are of one study
        metric = load_metric_file(path)
        record = _record(metric, scores, data)
        record["retrieved_timestamp"] = str(time)
        record_path = _path_without_extension(study, record)
        rows = items_by_study[study].get(path)
        if rows:
            samples = list(_samples(study, metric, rows, record))
            lines = "".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples)
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{record_path}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": sha256_of(lines.encode()),
                "total_rows": len(samples),
            }
            write_text(folder / f"{record_path}_samples.jsonl", lines)
        write_json(folder / f"{record_path}.json", record)
    return len(scores_by_run)


def _scores_by_run(is_selected: Callable[[str], bool]) -> dict[str, list[Number]]:
    """Return the scores of each selected run, by metric file."""
    scores_by_path: dict[str, list[Number]] = defaultdict(list)
    for number in read_numbers("paper_tables/numbers.csv"):
        if len(number.files) == 1 and _is_score(number):
            [path] = number.files
            if _is_of_one_run(path) and is_selected(path):
                scores_by_path[path].append(number)
    return scores_by_path


def _is_of_one_run(path: str) -> bool:
    """Return whether a metric file belongs to one run, and not to data or to several seeds."""
    return Path(path).name.startswith("seed-")


def _is_score(number: Number) -> bool:
    """Return whether a number rates the model; counts and comparisons of two runs do not."""
    is_rate = number.unit == "%" or bool(number.better)
    return is_rate and number.ours is not None and not number.against


def _path_without_extension(study: str, record: Json) -> PurePosixPath:
    """Return the path of a record without the extension; the UUID is a hash of the record's id."""
    developer, _, model = record["model_info"]["id"].partition("/")
    digest = sha256_of(record["evaluation_id"].encode())
    name = str(uuid.UUID(digest[:32], version=4))
    return PurePosixPath("data", study, developer, model.replace("/", "_"), name)


def _items_by_run(study: str) -> dict[str, list[Json]]:
    """Return the rows of a study's items (docs/items.md) by metric file."""
    import pyarrow.parquet as pq

    path = Path("results", "items", f"{study}.parquet")
    if not path.is_file():
        raise UserError("is missing", where=path, hint="finish the run (target all)")
    rows_by_metric_file = defaultdict(list)
    for row in pq.read_table(path).to_pylist():
        rows_by_metric_file[row["metrics"]].append(row)
    return rows_by_metric_file


def _model_id(metric: MetricFile) -> str:
    """Return the name of a run's model on the Hub or at the provider, or else `pieline/<name>`."""
    name = str(metric.fields["model"])
    weights = metric.fields["conditions"]["weights"]
    # A fine-tuned embedder is named model+training mode+loss; encoders are always fine-tuned.
    is_fine_tuned_here = "+" in name or weights.get("kind") == "encoder"
    if is_fine_tuned_here:
        return f"pieline/{name}"
    if weights.get("source") == "api":
        return str(weights["litellm_id"])
    repository = weights.get("checkpoint") or weights.get("repository") or ""
    has_organization = "/" in repository  # unlike a name that the user gave
    if has_organization and weights.get("source") in ("hub", "package"):
        return str(repository)
    return f"pieline/{name}"


def _evaluation_name(metric: MetricFile) -> str:
    """Return study, data and setting of a run, such as `idiolink/test/sentence`."""
    *study_and_data, _model, setting, _seed = Path(metric.path).parts[2:]
    return "/".join([*study_and_data, setting])


def _record(metric: MetricFile, scores: list[Number], data: str) -> Json:
    """Return the record of a run with its scores; the caller adds the time and the items."""
    model_id, evaluation_name = _model_id(metric), _evaluation_name(metric)
    conditions = metric.fields["conditions"]
    weights = conditions["weights"]
    # A mean over a single seed equals the score of the run, and has the same id.
    results = {}
    for score in scores:
        result = _result(score, evaluation_name, data, conditions)
        results[result["evaluation_result_id"]] = result
    is_hosted = weights.get("source") == "api"
    details = {
        "data": data,
        "seed": str(metric.fields["seed"]),
        "metrics": metric.path,
        "origin": scores[0].origin,
        "deviations": "; ".join(conditions["deviations"]),
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{evaluation_name}/{model_id}/{metric.digest}",
        "source_metadata": {
            "source_name": "pieline",
            "source_type": "evaluation_run",
            "source_organization_name": "pieline",
            "evaluator_relationship": "other",
            "additional_details": {name: detail for name, detail in details.items() if detail},
        },
        "eval_library": {"name": "pieline", "version": version("pieline")},
        "model_info": {
            "name": metric.fields["model"],
            "id": model_id,
            "additional_details": {
                "deployment_type": "externally_managed" if is_hosted else "self_deployed",
                "model_availability": "unknown",
                **{name: _as_text(value) for name, value in weights.items()},
            },
        },
        "evaluation_results": list(results.values()),
    }


def _as_text(value: Any) -> str:
    """Return a text unchanged, and other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _result(number: Number, evaluation_name: str, data: str, conditions: Json) -> Json:
    """Return a number as an evaluation result, with its score, metric, interval and settings.

    Percentages are converted to fractions.
    """
    is_percent = number.unit == "%"

    def to_fraction(value: float) -> float:
        return round(value / 100, 12) if is_percent else value

    metric = {
        "metric_id": number.measure,
        "lower_is_better": number.better == "low",
        "additional_details": {"part_of_the_data": number.scope} if number.scope else {},
    }
    if is_percent:
        metric["metric_unit"] = "proportion"
    assert number.ours is not None  # see `_is_score`
    score: Json = {"score": to_fraction(number.ours)}
    if number.low is not None and number.high is not None:
        interval = {
            "lower": to_fraction(number.low),
            "upper": to_fraction(number.high),
            "confidence_level": 0.95,
        }
        score["uncertainty"] = {"confidence_interval": interval}
    settings = {name: _as_text(value) for name, value in conditions["settings"].items()}
    measure_and_scope = f"{number.measure}/{number.scope}" if number.scope else number.measure
    return {
        "evaluation_result_id": measure_and_scope,
        "evaluation_name": evaluation_name,
        "source_data": {
            "dataset_name": number.study,
            "source_type": "other",
            "additional_details": {"data": data},
        },
        "metric_config": metric,
        "score_details": score,
        "generation_config": {"additional_details": settings},
    }


def _samples(study: str, metric: MetricFile, rows: list[Json], record: Json) -> Iterator[Json]:
    """Yield the samples of a run, which are the items with a score."""
    shared_fields = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": record["evaluation_id"],
        "model_id": record["model_info"]["id"],
        "evaluation_name": _evaluation_name(metric),
        "interaction_type": "single_turn",
    }
    result_ids = {result["evaluation_result_id"] for result in record["evaluation_results"]}
    item_score = ITEM_SCORES.get(study)
    if item_score in result_ids:
        shared_fields["evaluation_result_id"] = item_score
    items_are_queries = "query" in rows[0]
    samples_of_rows = _query_samples if items_are_queries else _sentence_samples
    for sample in samples_of_rows(metric, rows):
        yield {**shared_fields, **sample}


def _sentence_samples(metric: MetricFile, rows: list[Json]) -> Iterator[Json]:
    """Yield a sample for each sentence, with the decision whether the sentence has an idiom.

    The output of a sample is the recorded answers or, if nothing is recorded, the decision.
    """
    [predictions_path] = metric.predictions(".jsonl")
    predictions = _objects_by_id(predictions_path)
    answers = _answer_texts(predictions_path)
    datasets = [path for path in metric.inputs if path.startswith("results/datasets/")]
    sentence_files = [path for path in datasets if path.endswith(".jsonl")]
    sentences = _objects_by_id(sentence_files[0])
    for row in rows:
        if row["correct"] is None:
            continue
        prediction = predictions[row["id"]]
        # A prediction has one answer, or a list of answers if a model was asked several times.
        keys_of_samples = [answer["key"] for answer in prediction.get("samples", ())]
        keys = keys_of_samples or [prediction.get("answer_key")]
        recorded = [answers[key] for key in keys if key in answers]
        decision = row["answer"] or ""
        sample = _sample(
            row["id"],
            sentences[row["id"]]["sentence"],
            [row["gold"]],
            output=recorded or [decision],
            value=decision,
            method="parsing",
        )
        sample["evaluation"] = {"score": float(row["correct"]), "is_correct": row["correct"]}
        if row["answer"] is None:
            sample["error"] = row["outcome"]
        sample["metadata"] = {"pie": row["pie"], "usage": row["usage"]}
        yield sample


def _answer_texts(predictions: str) -> dict[str, str]:
    """Return the texts of the recorded answers behind predictions, by key of the question."""
    texts: dict[str, str] = {}
    for recordings in load_sidecar(predictions).recordings:
        if Path(recordings).is_file():
            for key, answer in read_answers(recordings).items():
                texts[key] = answer.text or ""
    return texts


def _query_samples(metric: MetricFile, rows: list[Json]) -> Iterator[Json]:
    """Yield a sample for each query, with the first ten documents of the ranking as the output.

    A ranking is correct if the first document is relevant. The score is R-Precision, and the
    references are the relevant documents.
    """
    folder = Path(input_of(metric, "/manifest.json")).parent
    queries = {query.id: query for query in load_jsonl(folder / "queries.jsonl", Query)}
    documents = load_jsonl(folder / "documents.jsonl", Document)
    relevant = meaning_qrels(queries.values(), documents)
    rankings = read_run(metric.predictions(".run.gz")[0], top_k=_RANKED_DOCUMENTS)
    for row in rows:
        if row["r_precision"] is None:
            continue
        query_id = row["query"]
        ranked_documents = list(rankings.get(query_id, ()))
        sample = _sample(
            query_id,
            queries[query_id].sentence,
            sorted(relevant[query_id]),
            output=[" ".join(ranked_documents)],
            value=ranked_documents[0] if ranked_documents else "",
            method="ranking",
        )
        sample["evaluation"] = {
            "score": row["r_precision"],
            "is_correct": row["first_relevant"] == 1,
        }
        sample["metadata"] = {"pie": row["pie"], "usage": row["usage"]}
        for measure in ("ndcg_at_10", "first_relevant"):
            if row[measure] is not None:
                sample["metadata"][measure] = str(row[measure])
        yield sample


def _sample(
    sample_id: str, text: str, reference: list[str], *, output: list[str], value: str, method: str
) -> Json:
    """Return the fields of a sample that are the same for sentences and queries.

    Args:
        sample_id: Id of the sentence or query.
        text: Text of the sentence or query.
        reference: Correct outputs.
        output: Outputs of the model.
        value: Decision that was read from the outputs.
        method: How the decision was read from the outputs.
    """
    return {
        "sample_id": sample_id,
        "input": {"raw": text, "reference": reference},
        "output": {"raw": output},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": value,
                "extraction_method": method,
                "is_terminal": True,
            }
        ],
    }


def _objects_by_id(path: str) -> dict[str, Json]:
    """Return the objects of a JSONL file by id."""
    objects = [json.loads(line) for line in read_text(path).splitlines()]
    return {json_object["id"]: json_object for json_object in objects}
