"""Export finished runs in the format of Every Eval Ever, version 0.3.0 of its schemas.

Each run becomes one record with its scores, and a JSONL file with one row per item, in the folders
of the format's data store: `data/<study>/<developer>/<model>/<UUID>.json` and
`<UUID>_samples.jsonl`. All files are read in the working directory, the folder of the run.
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
"""Score of a run that is the mean of its items' scores, by study."""
_RANKED = 10
"""Documents of each ranking in the output of a query."""


def export_records(
    folder: Path, *, time: int, is_selected: Callable[[str], bool] = lambda _: True
) -> int:
    """Write the records of the finished runs, and return their number.

    Args:
        folder: Output folder.
        time: Time of the export in seconds since 1970, which the format requires. Everything else
            depends only on the runs.
        is_selected: Whether to export the run with this metric file.

    Raises:
        UserError: A file of the run is missing or invalid, or no run is selected.
    """
    data = read_json("results/provenance.json")["data"]
    scores: dict[str, list[Number]] = defaultdict(list)
    for number in read_numbers("paper_tables/numbers.csv"):
        if len(number.files) == 1 and _is_score(number):
            scores[number.files[0]].append(number)
    scores = {path: own for path, own in scores.items() if _is_run(path) and is_selected(path)}
    if not scores:
        raise UserError("no finished run", where="paper_tables/numbers.csv")
    items = {study: _items(study) for study in {own[0].study for own in scores.values()}}
    for path, numbers in scores.items():
        study, metric = numbers[0].study, load_metric_file(path)
        record = _record(metric, numbers, data)
        record["retrieved_timestamp"] = str(time)
        name = PurePosixPath("data", study, *_folders(record["model_info"]["id"]))
        name /= str(uuid.UUID(sha256_of(record["evaluation_id"].encode())[:32], version=4))
        if rows := items[study].get(path):
            samples = [*_samples(study, metric, rows, record)]
            lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in samples)
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{name}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": sha256_of(lines.encode()),
                "total_rows": len(samples),
            }
            write_text(folder / f"{name}_samples.jsonl", lines)
        write_json(folder / f"{name}.json", record)
    return len(scores)


def _is_run(path: str) -> bool:
    """Return whether a metric file is of one run; others describe data or several runs."""
    return Path(path).name.startswith("seed-")


def _is_score(number: Number) -> bool:
    """Return whether a number rates the model; counts and comparisons of two runs do not."""
    is_rate = number.unit == "%" or bool(number.better)
    return is_rate and number.ours is not None and not number.against


def _items(study: str) -> dict[str, list[Json]]:
    """Return the rows of the study's items (docs/items.md) by metric file."""
    import pyarrow.parquet as pq

    path = Path("results", "items", f"{study}.parquet")
    if not path.is_file():
        raise UserError("is missing", where=path, hint="finish the run (target all)")
    rows = defaultdict(list)
    for row in pq.read_table(path).to_pylist():
        rows[row["metrics"]].append(row)
    return rows


def _model_id(metric: MetricFile) -> str:
    """Return the model's name on the Hub or at its provider, or `pieline/<name>`."""
    name = str(metric.fields["model"])
    weights = metric.fields["conditions"]["weights"]
    if "+" not in name and weights.get("kind") != "encoder":  # others were fine-tuned here
        if weights.get("source") == "api":
            return str(weights["litellm_id"])
        public = weights.get("checkpoint") or weights.get("repository") or ""
        if "/" in public and weights.get("source") in ("hub", "package"):
            return str(public)
    return f"pieline/{name}"


def _folders(model_id: str) -> tuple[str, str]:
    """Return the folders of a model in the data store: developer and name."""
    developer, _, name = model_id.partition("/")
    return developer, name.replace("/", "_")


def _place(metric: MetricFile) -> str:
    """Return study, data and setting of a run, such as `idiolink/test/sentence`."""
    *place, _, setting, _ = Path(metric.path).parts[2:]
    return "/".join([*place, setting])


def _record(metric: MetricFile, numbers: list[Number], data: str) -> Json:
    """Return the aggregate record of a run, without time and items."""
    model_id, place, conditions = _model_id(metric), _place(metric), metric.fields["conditions"]
    weights = conditions["weights"]
    results = [_result(number, place, data, conditions) for number in numbers]
    is_hosted = weights.get("source") == "api"
    details = {
        "data": data,
        "seed": str(metric.fields["seed"]),
        "metrics": metric.path,
        "origin": numbers[0].origin,
        "deviations": "; ".join(conditions["deviations"]),
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{place}/{model_id}/{metric.digest}",
        "source_metadata": {
            "source_name": "pieline",
            "source_type": "evaluation_run",
            "source_organization_name": "pieline",
            "evaluator_relationship": "other",
            "additional_details": {name: text for name, text in details.items() if text},
        },
        "eval_library": {"name": "pieline", "version": version("pieline")},
        "model_info": {
            "name": metric.fields["model"],
            "id": model_id,
            "additional_details": {
                "deployment_type": "externally_managed" if is_hosted else "self_deployed",
                "model_availability": "unknown",
                **{name: _text(value) for name, value in weights.items()},
            },
        },
        # The mean over a single seed is the same score.
        "evaluation_results": [*{one["evaluation_result_id"]: one for one in results}.values()],
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _result(number: Number, place: str, data: str, conditions: Json) -> Json:
    """Return a score with its metric, interval and settings; percentages become fractions."""
    is_percent = number.unit == "%"

    def converted(value: float) -> float:
        return round(value / 100, 12) if is_percent else value

    metric = {
        "metric_id": number.measure,
        "lower_is_better": number.better == "low",
        "additional_details": {"part_of_the_data": number.scope} if number.scope else {},
    }
    if is_percent:
        metric |= {"metric_unit": "proportion"}
    assert number.ours is not None
    score: Json = {"score": converted(number.ours)}
    if number.low is not None and number.high is not None:
        interval = {"lower": converted(number.low), "upper": converted(number.high)}
        score["uncertainty"] = {"confidence_interval": interval | {"confidence_level": 0.95}}
    settings = {name: _text(value) for name, value in conditions["settings"].items()}
    return {
        "evaluation_result_id": "/".join(filter(None, [number.measure, number.scope])),
        "evaluation_name": place,
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
    """Yield the items of a run that have a score."""
    shared = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": record["evaluation_id"],
        "model_id": record["model_info"]["id"],
        "evaluation_name": _place(metric),
        "interaction_type": "single_turn",
    }
    known = {result["evaluation_result_id"] for result in record["evaluation_results"]}
    if (score := ITEM_SCORES.get(study)) in known:
        shared["evaluation_result_id"] = score
    # An item of ID10M-JAM or IdioTS is a sentence; an item of IdioLink is a query.
    items = _rankings(metric, rows) if "query" in rows[0] else _decisions(metric, rows)
    for item in items:
        yield shared | item


def _decisions(metric: MetricFile, rows: list[Json]) -> Iterator[Json]:
    """Yield what was decided about each sentence: idiom or no idiom.

    The output is the recorded answers; without recordings, the decision.
    """
    (path,) = metric.predictions(".jsonl")
    predictions = _by_id(path)
    answers: dict[str, str] = {}
    for recording in load_sidecar(path).recordings:
        found = read_answers(recording) if Path(recording).is_file() else {}
        answers |= {key: answer.text or "" for key, answer in found.items()}
    sentences = _by_id(next(name for name in metric.inputs if name.startswith("results/datasets/")
                            and name.endswith(".jsonl")))  # fmt: skip
    for row in rows:
        if row["correct"] is None:
            continue
        predicted = predictions[row["id"]]
        keys = [sample["key"] for sample in predicted.get("samples", ())]
        recorded = [answers[key] for key in keys or [predicted.get("answer_key")] if key in answers]
        item = _item(
            row["id"], sentences[row["id"]]["sentence"], [row["gold"]],
            output=recorded or [row["answer"] or ""], value=row["answer"] or "", method="parsing",
        )  # fmt: skip
        item["evaluation"] = {"score": float(row["correct"]), "is_correct": row["correct"]}
        if row["answer"] is None:
            item["error"] = row["outcome"]
        item["metadata"] = {"pie": row["pie"], "usage": row["usage"]}
        yield item


def _rankings(metric: MetricFile, rows: list[Json]) -> Iterator[Json]:
    """Yield the first ten documents of each query, which is correct if the first is relevant.

    The score is R-Precision, and the references are the relevant documents.
    """
    folder = Path(input_of(metric, "/manifest.json")).parent
    queries = {query.id: query for query in load_jsonl(folder / "queries.jsonl", Query)}
    documents = load_jsonl(folder / "documents.jsonl", Document)
    relevant = meaning_qrels(queries.values(), documents)
    ranked = read_run(metric.predictions(".run.gz")[0], top_k=_RANKED)
    for row in rows:
        if row["r_precision"] is None:
            continue
        name = row["query"]
        found = [*ranked.get(name, ())]
        item = _item(
            name, queries[name].sentence, sorted(relevant[name]),
            output=[" ".join(found)], value=found[0] if found else "", method="ranking",
        )  # fmt: skip
        item["evaluation"] = {
            "score": row["r_precision"],
            "is_correct": row["first_relevant"] == 1,
        }
        scores = {"ndcg_at_10": row["ndcg_at_10"], "first_relevant": row["first_relevant"]}
        item["metadata"] = {"pie": row["pie"], "usage": row["usage"]} | {
            measure: str(value) for measure, value in scores.items() if value is not None
        }
        yield item


def _item(
    name: str, text: str, reference: list[str], *, output: list[str], value: str, method: str
) -> Json:
    return {
        "sample_id": name,
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


def _by_id(path: str) -> dict[str, Json]:
    """Return the objects of a JSONL file by id."""
    return {row["id"]: row for row in map(json.loads, read_text(path).splitlines())}
