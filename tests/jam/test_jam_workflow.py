"""Test the data stages of ID10M-JAM with Snakemake."""

import csv
import json

import pytest
from llm.fault_server import FaultServer, answer
from support import run_snakemake

from pieline.core.records import load_jsonl, load_record
from pieline.studies.jam.datasets import JamManifest
from pieline.studies.jam.records import Variant

WRITER = """
jam-test-writer:
  kind: llm
  label: Writer
  licence: none
  source: api
  provider: tests
  litellm_id: openai/writer
  api_base: {api_base}
  accepts: [temperature, max_tokens]
"""
GENERATED = """
studies: [jam]
jam:
  languages: [german]
  variants: {source: generated, model: jam-test-writer, review: automatic}
"""
CONTEXTS = (
    "Gestern hat der Nachbar seinen alten Wagen verkauft und ist in die Stadt gefahren.",
    "Am Morgen lag dichter Nebel über den Feldern hinter dem Bahnhof.",
    "Die Kinder spielten bis zum Abend im Garten ihrer Großmutter.",
)


def writer(request):
    """Simulate a model that writes the same contexts for every original and accepts them all."""
    sentence = request.text.split("entence: ", 1)[1].split("\n", 1)[0]
    texts = [f"{context} {sentence}" for context in CONTEXTS]
    if "Give one verdict" not in request.text:
        return answer(json.dumps({"variants": texts}))
    reviews = [
        {"number": number, "verdict": "valid", "text": text}
        for number, text in enumerate(texts, start=1)
    ]
    return answer(json.dumps({"reviews": reviews}))


def test_generated_variants_are_asked_only_once(project, tmp_path):
    (project / "generated.yaml").write_text(GENERATED, encoding="utf-8")
    models = project / "models.yaml"
    target = "results/datasets/jam/german.jsonl"
    arguments = ("--cores", "1", "--configfile", "generated.yaml", "--")
    with FaultServer(writer) as server:
        entry = WRITER.format(api_base=server.api_base)
        models.write_text(models.read_text(encoding="utf-8") + entry, encoding="utf-8")
        result = run_snakemake(project, *arguments, target)
        assert result.returncode == 0, result.stderr[-4000:]
        assert len(server.requests) == 60
    variants = load_jsonl(project / "results/variants/jam/german.jsonl", Variant)
    assert len(variants) == 90
    assert {item.model_verdict for item in variants} == {"valid"}
    assert [item.id for item in variants if item.flags] == []
    first = (project / target).read_bytes()
    # The server is closed, so only recordings can answer.
    (project / "results/variants/jam/german.jsonl").unlink()
    (project / target).unlink()
    result = run_snakemake(project, *arguments, target)
    assert result.returncode == 0, result.stderr[-4000:]
    assert (project / target).read_bytes() == first


def test_custom_decisions_and_annotations(project):
    """Drop one more sentence with a decision, and mark one variant as invalid with an export."""
    decisions = project / "data/sample/id10m/decisions/german.tsv"
    text = decisions.read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("test-0002\tkeep"))
    (project / "mine").mkdir()
    changed = text.replace(row, "test-0002\tdrop\tambiguous\t\t\t\t")
    (project / "mine/german.tsv").write_text(changed, encoding="utf-8")
    result_value = {"choices": ["invalid"]}
    annotation = {"result": [{"from_name": "verdict", "value": result_value}], "completed_by": 1}
    config = "jam: {decisions: mine, variants: {annotations: {german: [mine/export.json]}}}\n"
    (project / "mine.yaml").write_text(config, encoding="utf-8")
    variants = project / "data/sample/id10m/variants/german.json"
    rows = json.loads(variants.read_text(encoding="utf-8"))
    kept = [row for row in rows if row["sentence_id"] != "test-0002"]
    data = {"item_id": "test-0001-v1", "text": rows[0]["variant_sentence"]}
    tasks = [{"data": data, "annotations": [annotation]}]
    (project / "mine/export.json").write_text(json.dumps(tasks), encoding="utf-8")
    variants.write_text(json.dumps(kept), encoding="utf-8")
    target = "results/datasets/jam/german.jsonl"
    result = run_snakemake(project, "--cores", "1", "--configfile", "mine.yaml", "--", target)
    assert result.returncode == 0, result.stderr[-4000:]
    manifest = load_record(project / "results/datasets/jam/german.manifest.json", JamManifest)
    assert manifest.dropped_originals == ["test-0001", "test-0030"]
    assert manifest.originals == 27


def test_people_label_the_form_and_are_scored(finished):
    form = finished / "results/datasets/jam/english.human_form.csv"
    with form.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 41
    exported = json.loads(form.with_name("english.human_tasks.json").read_text(encoding="utf-8"))
    for number, task in enumerate(exported):
        choice = "ambiguous" if number < 4 else "figurative"
        result_value = {"from_name": "label", "value": {"choices": [choice]}}
        task["annotations"] = [{"result": [result_value], "completed_by": 7}]
    (finished / "second.json").write_text(json.dumps(exported), encoding="utf-8")
    with (finished / "first.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows({**row, "label": "figurative"} for row in rows)
    config = "jam: {humans: [first.csv, second.json]}\n"
    (finished / "people.yaml").write_text(config, encoding="utf-8")
    table = "paper_tables/jam_humans.csv"
    result = run_snakemake(finished, "--cores", "1", "--configfile", "people.yaml", "--", table)
    assert result.returncode == 0, result.stderr[-4000:]
    with (finished / table).open(encoding="utf-8", newline="") as stream:
        numbers = {row["measure"]: float(row["ours"]) for row in csv.DictReader(stream)}
    assert numbers["human_accuracy_first"] == pytest.approx(100 * 29 / 41)
    assert numbers["human_agreement"] == pytest.approx(100 * 37 / 41)
    assert numbers["human_ambiguous_second"] == pytest.approx(100 * 4 / 41)
