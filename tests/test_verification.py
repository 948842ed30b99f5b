"""Released data without a digest is verified by the printed counts, and tables state this."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jam.jam_cases import original
from run_script import run_script
from support import MIRROR, ROOT, needs_mirror, run_snakemake
from table_files import content_of, table_rows, with_printed

from pieline.core.conditions import NO_CONDITIONS
from pieline.core.files import read_json, sha256, write_json, write_text
from pieline.core.records import load_jsonl, load_record, load_records, save_jsonl
from pieline.core.upstream import BY_COUNTS, SELF_VERIFIED
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.numbers import COMPARED
from pieline.reporting.printed import read_published
from pieline.studies.idiots import records as idiots
from pieline.studies.idiots import tables as idiots_tables
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.jam.datasets import JamManifest
from pieline.studies.jam.metrics.scores import JamMetrics
from pieline.studies.jam.metrics.statistics import jam_statistics
from pieline.studies.jam.records import PRINTED_COUNTS, Original
from pieline.studies.jam.settings import JamVariants
from pieline.studies.jam.tables import common
from pieline.studies.jam.tables import described as jam_tables
from pieline.studies.jam.variants import released as jam

Rows = list[dict[str, Any]]
TEXT = str(ROOT / "published/text_numbers.csv")
VARIANTS, SUITE = "id10m-jam/variants/{}.json", "idiots/idioms_sentences.tsv"


def test_the_counts_are_the_printed_ones() -> None:
    printed = {name: row["value"] for (name,), row in read_published(TEXT, ["id"]).items()}
    for language, counts in PRINTED_COUNTS.items():
        kinds = ("originals", "variants")
        assert counts == tuple(printed[f"jam.{kind}_{language}"] for kind in kinds)
    names = ("idioms", "idiomatic", "distractors")
    assert [*idiots.PRINTED_COUNTS.values()] == [printed[f"idiots.{name}"] for name in names]


# ID10M-JAM ---------------------------------------------------------------------------------------


def originals_in(language: str) -> list[Original]:
    """Create as many originals as the paper has, with texts written for the test."""
    number, _ = PRINTED_COUNTS[language]
    return [
        original(
            f"On day {at}, they said they can break the ice at last.",
            "break the ice",
            id=f"test-{at:04d}",
            language=language,
            figurative=at % 9 > 0,
        )
        for at in range(1, number + 1)
    ]


def variants_of(originals: list[Original]) -> Rows:
    """Create three variants per original, as in the release."""
    contexts = ("The lake was frozen.", "It was cold.", "A ship came up the river.")
    return [
        {
            "sentence": item.sentence,
            "PIE": list(item.pies),
            "is_figurative": item.is_figurative,
            "variant_number": number,
            "variant_sentence": f"{context} {item.sentence}",
        }
        for item in originals
        for number, context in enumerate(contexts, start=1)
    ]


def edited(rows: Rows, old: str, new: str, at: int = 7) -> Rows:
    """Return the rows with the text of one variant changed, including its tokens and tags."""
    text = rows[at]["variant_sentence"].replace(old, new)
    assert text != rows[at]["variant_sentence"]
    tokens = re.findall(r"\w+\s*|[^\w\s]\s*", text)
    own = {"variant_sentence": text, "tokens": tokens, "tags": ["O"] * len(tokens)}
    return [*rows[:at], rows[at] | own, *rows[at + 1 :]]


def moved(rows: Rows) -> Rows:
    """Assign one variant to the next original, which then has four instead of three."""
    fourth = rows[3] | {
        "variant_number": 4,
        "variant_sentence": f"It snowed. {rows[3]['sentence']}",
    }
    return [*rows[:2], fourth, *rows[3:]]


MISSES: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "one variant less": (lambda rows: rows[:-1], "533 variants, the paper 534"),
    "one more": (
        lambda rows: [*rows, rows[-1] | {"variant_number": 4}],
        "535 variants, the paper 534",
    ),
    "two and four": (moved, "2 variants of test-0001, the paper 3"),
    "a word changed": (
        lambda rows: edited(rows, "at last", "at once"),
        "test-0003-v2 lacks its original, which the paper's contain: last. → once.",
    ),
    "a word lacks": (
        lambda rows: edited(rows, "break the ice", "break ice"),
        "test-0003-v2 lacks its original, which the paper's contain: the → -",
    ),
    "two words changed": (
        lambda rows: edited(edited(rows, "can", "could"), "said", "say"),
        "test-0003-v2 lacks its original, which the paper's contain: said → say, can → could",
    ),
}
HITS: dict[str, Callable[[Rows], Rows]] = {
    "as they are": lambda rows: rows,
    "other punctuation": lambda rows: edited(rows, ", they", " they"),
    "the known edit": lambda rows: edited(rows, "can", "could"),
}


def dataset(
    rows: Rows,
    folder: Path,
    language: str = "english",
    *,
    originals_are_released: bool = True,
    **known: str,
) -> dict[str, Any]:
    """Create the manifest of a dataset of these variants with the workflow's scripts."""
    originals, name = originals_in(language), VARIANTS.format(language)
    save_jsonl(folder / "originals.jsonl", originals)
    write_json(folder / "report.json", {"originals_are_released": originals_are_released})
    write_json(folder / "raw.json", rows)
    write_text(folder / "upstream.yaml", yaml.safe_dump({name: {"url": None, **known}}))
    chosen = JamVariants()
    run_script(
        "jam_variants",
        input={"originals": folder / "originals.jsonl", "variants": folder / "raw.json"},
        output={"variants": folder / "variants.jsonl", "report": folder / "edits.json"},
        params={"source": "released"},
    )  # fmt: skip
    run_script(
        "jam_dataset",
        input={
            "originals": folder / "originals.jsonl", "report": folder / "report.json",
            "variants": folder / "variants.jsonl", "released": [folder / "raw.json"],
            "upstream": folder / "upstream.yaml", "annotations": [], "adjudications": [],
        },
        output={
            "dataset": folder / "dataset.jsonl", "manifest": folder / "manifest.json",
            "disputed": folder / "disputed.tsv",
        },
        params={"review": chosen.review, "limit": None},
    )  # fmt: skip
    manifest: dict[str, Any] = read_json(folder / "manifest.json")
    return manifest


@pytest.mark.parametrize("language", PRINTED_COUNTS)
@pytest.mark.parametrize("kind", HITS)
def test_variants_as_the_paper_counts_them_are_verified(
    tmp_path: Path, kind: str, language: str
) -> None:
    rows = HITS[kind](variants_of(originals_in(language)))
    assert dataset(rows, tmp_path, language)["verified"] == "counts"
    assert load_record(tmp_path / "manifest.json", JamManifest).is_released


@pytest.mark.parametrize("kind", MISSES)
def test_different_variants_are_not_comparable_and_the_table_states_why(
    tmp_path: Path, kind: str
) -> None:
    change, problem = MISSES[kind]
    manifest = dataset(change(variants_of(originals_in("english"))), tmp_path)
    assert (manifest["verified"], manifest["problem"]) == (None, problem)
    assert not load_record(tmp_path / "manifest.json", JamManifest).is_released
    rows = table_2(tmp_path)
    assert rows["test_variants"]["verdict"] == "not comparable"
    assert rows["unique_pies"]["reason"] == f"not verified as the public data: {problem}"


def test_other_originals_or_languages_verify_nothing(tmp_path: Path) -> None:
    originals = originals_in("english")
    assert jam.count_problem(originals[1:], []) == "177 originals, the paper 178"
    italian = [item.model_copy(update={"language": "italian"}) for item in originals]
    assert jam.count_problem(italian, []) == "the paper has no variants in Italian"
    manifest = dataset(variants_of(originals), tmp_path, originals_are_released=False)
    assert (manifest["verified"], manifest["problem"]) == (None, "")
    assert not load_record(tmp_path / "manifest.json", JamManifest).is_released


def test_a_known_digest_takes_precedence(tmp_path: Path) -> None:
    rows = variants_of(originals_in("english"))
    write_json(tmp_path / "raw.json", rows[:-1])
    manifest = dataset(rows[:-1], tmp_path, sha256=sha256(tmp_path / "raw.json"))
    assert (manifest["verified"], manifest["problem"]) == ("digest", "")
    manifest = dataset(rows, tmp_path, sha256="0" * 64)
    assert manifest["verified"] is None
    assert re.fullmatch("SHA-256 is .*, expected 0*", manifest["problem"])


def table_2(folder: Path) -> dict[str, dict[str, str]]:
    """Create the ID10M-JAM numbers of Table 2 from a dataset's manifest."""
    originals = originals_in("english")
    report = {
        "originals_are_released": True, "raw_sentences": 200, "raw_with_idiom": 159,
        "reasons": {"drop": {}, "fix": {}}, "oddities": [],
    }  # fmt: skip
    manifest = load_record(folder / "manifest.json", JamManifest)
    statistics = jam_statistics(
        report, originals, train_sentences=None, manifest=manifest, computed_from={}
    )
    write_json(folder / "statistics.json", statistics.model_dump())
    table = jam_tables.STATISTICS_TABLE
    metrics = (str(folder / "statistics.json"),)
    inputs = with_printed(table, DisplayInputs(study="jam", metrics=metrics, data="released"))
    notes = content_of(table, inputs).notes
    assert (BY_COUNTS in notes) is (manifest.verified == "counts")
    of_jam = {"scope": "ID10M-JAM", "language": "english"}
    rows = table_rows(table, inputs, folder)
    return {row["measure"]: row for row in rows if of_jam.items() <= row.items()}


def test_tables_state_that_counts_verified_the_data(tmp_path: Path) -> None:
    dataset(variants_of(originals_in("english")), tmp_path)
    rows = table_2(tmp_path)
    # The count that verified the data is no independent evidence.
    variants = rows["test_variants"]
    assert (variants["verdict"], variants["reason"]) == ("not comparable", SELF_VERIFIED)
    assert rows["unique_pies"]["verdict"] in COMPARED


@pytest.mark.parametrize("kind", ["as they are", "one variant less"])
def test_every_run_states_how_its_data_was_verified(tmp_path: Path, kind: str) -> None:
    change = HITS[kind] if kind in HITS else MISSES[kind][0]
    dataset(change(variants_of(originals_in("english"))), tmp_path)
    place = tmp_path / "always-pie/baseline/seed-0.json"
    run_script(
        "jam_baselines",
        input={"sentences": tmp_path / "dataset.jsonl", "manifest": tmp_path / "manifest.json"},
        output=[place],
        params={"scoring": "paper", "resamples": 10, "conditions": NO_CONDITIONS.model_dump_json()},
    )  # fmt: skip
    metrics = load_records([place], JamMetrics)
    if kind in HITS:
        assert common.obstacles_of(*metrics) == []
        assert common.notes_on(metrics, DisplayInputs(notes=("Other.",))) == (BY_COUNTS, "Other.")
    else:
        problem = f"not verified as the public data: {MISSES[kind][1]}"
        assert common.obstacles_of(*metrics) == [problem]
        assert common.notes_on(metrics, DisplayInputs()) == ()


# IdioTS ------------------------------------------------------------------------------------------


def suite(idiomatic: int = 164, distractors: int = 86, idioms: int = 93) -> str:
    """Create a table of synthetic sentences in the released format."""
    lines = ["idiom_id\tidiom\tsentence_id\tsentence_has_idiom\ten\tes"]
    for at in range(idiomatic + distractors):
        name, end = f"idi{at % idioms:03d}", "id" if at < idiomatic else "di"
        lines.append(
            f"{name}\tBreak ice {at % idioms}\t{name}-sen{at:03d}-{end}\t{end == 'id'}"
            f"\tThey break ice {at % idioms} on day {at}.\t"
        )
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("counts", "problem"),
    [
        ({}, ""),
        ({"idiomatic": 163, "distractors": 87}, "163 idiomatic sentences, the paper 164"),
        ({"idiomatic": 165}, "165 idiomatic sentences, the paper 164"),
        ({"distractors": 85}, "85 distractors, the paper 86"),
        ({"idioms": 92}, "92 idioms, the paper 93"),
        ({"idioms": 94}, "94 idioms, the paper 93"),
    ],
)
def test_sentences_as_the_paper_counts_them_are_verified(
    tmp_path: Path, counts: dict[str, int], problem: str
) -> None:
    write_text(tmp_path / "suite.tsv", suite(**counts))
    write_text(tmp_path / "upstream.yaml", yaml.safe_dump({SUITE: {"url": None}}))
    data = {"sentences": tmp_path / "sentences.jsonl", "manifest": tmp_path / "manifest.json"}
    run_script(
        "idiots_dataset",
        input={
            "sentences": tmp_path / "suite.tsv", "kinds": [],
            "upstream": tmp_path / "upstream.yaml",
        },
        output=data, params={"name": SUITE, "origin": "unverified", "limit": None},
    )  # fmt: skip
    manifest = read_json(tmp_path / "manifest.json")
    expected = ("released", "counts") if not problem else ("unverified", None)
    assert (manifest["origin"], manifest["verified"], manifest["problem"]) == (*expected, problem)
    sizes = idiots_tables.DATASET_TABLE
    files = {"manifest": str(tmp_path / "manifest.json")}
    inputs = with_printed(sizes, DisplayInputs(study="idiots", files=files, data="released"))
    why = f"not verified as the public data: {problem}" if problem else SELF_VERIFIED
    by_counts = () if problem else (BY_COUNTS,)
    not_compared = f"Not compared with printed numbers: {why}."
    assert content_of(sizes, inputs).notes == (*by_counts, not_compared)
    rows = table_rows(sizes, inputs, tmp_path)
    assert {(row["verdict"], row["reason"]) for row in rows} == {("not comparable", why)}
    sentences = load_jsonl(data["sentences"], IdiotsSentence)
    predictions = [
        DetectionPrediction(
            id=item.id, outcome="ok", answer_key="0" * 64, has_idiom=True, idiom=item.pie
        )
        for item in sentences
    ]
    save_jsonl(tmp_path / "predictions.jsonl", predictions)
    run_script(
        "idiots_metrics",
        input={**data, "predictions": tmp_path / "predictions.jsonl", "verdicts": []},
        output=[tmp_path / "metrics.json"],
        params={"resamples": 10, "conditions": NO_CONDITIONS.model_dump_json()},
        wildcards={"model": "vicuna-7b", "setting": "zero_shot", "seed": 0},
    )  # fmt: skip
    vicuna = ModelDescription(
        name="vicuna-7b", kind="llm", label="Vicuna", published_as="Vicuna-7b"
    )
    table = idiots_tables.DETECTION_TABLE
    metrics = (str(tmp_path / "metrics.json"),)
    inputs = DisplayInputs(study="idiots", metrics=metrics, models=(vicuna,), data="released")
    inputs = with_printed(table, inputs)
    assert (BY_COUNTS in content_of(table, inputs).notes) is not bool(problem)
    compared = {
        (row["verdict"] in COMPARED, row["reason"])
        for row in table_rows(table, inputs, tmp_path)
        if row["model"] == "vicuna-7b" and row["measure"] in ("accuracy", "recall")
    }
    assert compared == {(False, why) if problem else (True, "")}


# Through the workflow ----------------------------------------------------------------------------


@pytest.mark.full
@needs_mirror
def test_a_mirror_with_files_that_count_as_the_papers(project: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    for name in ("id10m/test_english.tsv", "id10m-jam/english.json"):
        (mirror / name).parent.mkdir(parents=True)
        shutil.copyfile(MIRROR / name, mirror / name)
    rows = [
        {
            **{name: row[name] for name in ("sentence", "PIE", "is_figurative", "true_idioms")},
            "variant_number": number,
            "variant_sentence": f"It was day {number}. {row['sentence']}",
        }
        for row in read_json(mirror / "id10m-jam/english.json")
        for number in (1, 2, 3)
    ]
    write_json(mirror / VARIANTS.format("english"), rows)
    write_text(mirror / SUITE, suite())
    manifests = (
        "results/datasets/jam/english.manifest.json",
        "results/datasets/idiots/manifest.json",
    )
    result = run_snakemake(
        project,
        *("--cores", "1", "--configfile", "config/released.yaml"),
        *("--config", f"mirror={mirror}", "jam={variants: {source: released}}", "--"),
        *manifests,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert [read_json(project / name)["verified"] for name in manifests] == ["counts", "counts"]
    assert load_record(project / manifests[0], JamManifest).is_released
