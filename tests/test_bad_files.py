"""User files with random faults: each gives a one-line error or a valid value."""

import codecs
import json
import math
import random
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, note
from hypothesis import strategies as st
from pydantic import BaseModel
from support import ROOT, released_row

from pieline.config import config_class, load_config, name_source
from pieline.core.errors import UserError, run_command
from pieline.core.files import atomic_folder, atomic_path, check_writable
from pieline.core.settings import Settings
from pieline.core.upstream import load_upstream
from pieline.core.yamls import read_yaml
from pieline.llm.archive import summarize, verify
from pieline.llm.prompts import load_prompt
from pieline.models.entries import EncoderEntry
from pieline.models.predictions import PredictionFile
from pieline.models.registry import AnyEntry, load_registry
from pieline.reporting.printed import read_published
from pieline.reporting.published import load_catalogue
from pieline.results.claims.claim import load_claims
from pieline.studies.idiolink.datasets.tuples import read_released_tuples, sample_tuples
from pieline.studies.idiolink.originals.pairs import filter_magpie, read_candidates
from pieline.studies.idiolink.originals.pie_filter import FilterOptions, read_exclusions
from pieline.studies.idiolink.predictions.rankings import read_foreign_run
from pieline.studies.idiolink.raw import read_magpie, read_texts
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.idiolink.variants.validation import read_corrections
from pieline.studies.idiots.datasets import mark_distractors, read_sentences
from pieline.studies.idiots.predictions import read_predictions as read_detections
from pieline.studies.idiots.verdicts import COLUMNS as VERDICT_COLUMNS
from pieline.studies.idiots.verdicts import read_cases
from pieline.studies.jam.metrics.humans import read_labels
from pieline.studies.jam.originals import apply_decisions, load_decisions, read_released_originals
from pieline.studies.jam.predictions.external import read_predictions
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.records import as_sentence
from pieline.studies.jam.settings import FewShotSettings, JamFineTuning
from pieline.studies.jam.variants.released import read_variants
from pieline.studies.jam.variants.validation import read_adjudications, read_export

SAMPLE = ROOT / "data/sample"
PUBLISHED = ROOT / "published"
RECORDINGS = ROOT / "recordings/idiots/smollm2-135m-instruct/zero_shot-seed-0.jsonl"
MAX_LINE = 2000


def head(path: Path, records: int) -> str:
    """Return the first records of a JSON array, or the first lines of another file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.dumps(json.loads(text)[:records], ensure_ascii=False, indent=1)
    return "".join(text.splitlines(keepends=True)[:records])


RAW = read_id10m(SAMPLE / "id10m/test_english.tsv", split="test")
DECISIONS = load_decisions(SAMPLE / "id10m/decisions/english.tsv")
ORIGINALS = apply_decisions(RAW, DECISIONS, language="english", where="decisions")[:3]
SENTENCES = [as_sentence(item) for item in ORIGINALS]
SUITE = read_sentences(SAMPLE / "idiots/idiots.json")
DETECTED = SUITE[:3]
DOCUMENTS = read_texts(SAMPLE / "idiolink/train/indexes.json", Document)
QUERIES = read_texts(SAMPLE / "idiolink/train/queries.json", Query)[:3]


def task(data: Mapping[str, str], **answers: str) -> dict[str, object]:
    """Return an annotated task of a Label Studio export."""
    kinds = {name: "text" if text.endswith(".") else "choices" for name, text in answers.items()}
    result = [
        {"from_name": name, "type": "any", "value": {kinds[name]: [text]}}
        for name, text in answers.items()
    ]
    done = {"completed_by": {"id": 3}, "was_cancelled": False, "result": result}
    return {"id": 1, "data": data, "annotations": [done, done | {"completed_by": 3}]}


EXPORT = [
    task({"item_id": "a-v1", "text": "A man came."}, verdict="valid", note="Good."),
    task({"item_id": "b-v2", "text": "A man came."}, verdict="corrected", correction="He came."),
]
REVIEW = [
    task(
        {"id": "001_s01_idiom_01", "sentence": "He kicked it.", "span": "kicked"},
        action="replaced",
        cause="ambiguous",
        new_sentence="He died.",
        new_span="died.",
    )
]
VERDICTS = [
    dict.fromkeys(VERDICT_COLUMNS, "")
    | {"model": "m", "setting": "zero_shot", "seed": "0", "sentence_id": f"idi00{at}-sen01-id"}
    | {"sentence": "He came clean, at last.", "gold": "idiomatic"}
    | {"verdict": verdict, "answer_key": "a" * 64}
    for at, verdict in enumerate(["yes", ""])
]
TEXTS = {text.id: text.sentence for text in [*DOCUMENTS, *QUERIES]}
TUPLES = [
    {
        "query": TEXTS[one.query],
        "positive": TEXTS[one.positive],
        "negatives": [TEXTS[name] for name in (*one.hard, *one.soft)],
    }
    for one in sample_tuples(QUERIES, DOCUMENTS, seed=1)
]
MODELS = """\
bm25: {kind: bm25, label: BM25, licence: none}
own: {kind: predictions, label: Own, files: [{study: idiots, file: a.csv, setting: mine}]}
gpt:
  kind: llm
  label: GPT
  licence: Proprietary
  source: api
  litellm_id: openai/gpt
  provider: openai
  api_key_env: OPENAI_API_KEY
  accepts: [temperature, seed]
  prices: {input: 0.15, output: 0.6}
sbert:
  kind: embedder
  label: SBERT
  licence: Apache-2.0
  source: hub
  checkpoint: sentence-transformers/all-MiniLM-L6-v2
  revision: aaaa
  trained_with_instructions: false
  instruction_format: instruct_query
  max_length: 256
"""
PROMPT = """\
---
source: mine
answer: {idioms: {type: array, items: {type: string}}}
---
=== system ===
You know {{ language }}.
=== user ===
Sentence: {{ sentence }}
{% for idiom in idioms %}
- {{ loop.index }}. {{ idiom|upper }}{{ "," if not loop.last }}
{% endfor %}
"""
CONFIG = """\
studies: [jam, idiolink, idiots]
llm: {mode: replay, max_cost_usd: 1.5, timeout_s: 3, providers: {openai: {concurrency: 2}}}
idiolink:
  models: [bm25, sbert]
  query_modes: [sentence, span]
  bm25: {k1: [0.9, 1.2], b: [0.4]}
  finetuning: {models: [sbert], seeds: [1, 2], learning_rate: 1.0e-5}
  construction: {enabled: true, pies: [come clean], min_occurrences: 5}
jam:
  languages: [english]
  models: [gpt, bert]
  settings: [zero_shot, mine]
  prompts: {mine: {file: own.jinja, temperature: 0.1}}
  seeds: [1, 2]
  by_model: {gpt: {seeds: [7]}}
  neutral: gpt
  fine_tuning: {seeds: [5], epochs: 2}
idiots: {models: [gpt], seeds: [0]}
"""
UPSTREAM = """\
id10m/test_english.tsv: {url: https://example.org/a.tsv, sha256: null}
idiots/idiots.json: {url: null}
"""


def table(rows: Sequence[Mapping[str, object]], delimiter: str) -> str:
    lines = [[*rows[0]], *(row.values() for row in rows)]
    return "".join(delimiter.join(f'"{cell}"' for cell in line) + "\n" for line in lines)


def unique(values: Iterable[object]) -> None:
    values = list(values)
    assert len(values) == len(set(values))


def records(read: Callable[..., Any], *keys: str, **options: Any) -> Callable[[Path], Any]:
    """Create a reader of records with unique keys (or ids)."""

    def reading(path: Path) -> list[Any]:
        items = list(read(path, **options))
        unique(tuple(getattr(item, key) for key in keys or ("id",)) for item in items)
        return items

    return reading


def printed(name: str, keys: list[str]) -> Callable[[Path], Any]:
    """Create a reader of printed numbers that accepts only the original ones."""
    wanted = read_published(PUBLISHED / f"{name}.csv", keys)

    def reading(path: Path) -> object:
        shutil.copy(PUBLISHED / "schema.yaml", path.parent)
        numbers = read_published(path, keys)
        assert numbers == wanted
        return numbers

    return reading


def read_config(path: Path) -> object:
    raw = read_yaml(path)
    if not isinstance(raw, Mapping):  # Snakemake reports this error
        raise UserError("not a mapping", where=path)
    config = load_config(raw, where=str(path))
    for seeds in (
        config.section("jam").seeds,  # type: ignore[attr-defined]
        config.section("idiolink").finetuning.seeds,  # type: ignore[attr-defined]
        config.studies,
    ):
        unique(seeds)
    bm25 = config.section("idiolink").bm25  # type: ignore[attr-defined]
    assert all(0 <= b <= 1 for b in bm25.b)
    return config


def read_models(path: Path) -> object:
    registry = load_registry(path)
    for name, entry in registry.items():
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,79}", name), name
        if key := getattr(entry, "api_key_env", None):
            assert re.fullmatch(r"[A-Z_][A-Z0-9_]*", key), key
    return registry


def read_recordings(path: Path) -> object:
    problems = verify(path)
    assert all("\n" not in problem and problem.startswith(f"{path}:") for problem in problems)
    if problems:
        raise UserError("; ".join(problems))
    return summarize(path)


def read_prompt(path: Path) -> object:
    prompt = load_prompt(path)
    prompt.check_shows("sentence", language="English", idioms=["a"])
    return [prompt.about, prompt.response_format]


def read_exclusions_whole(path: Path) -> object:
    exclusions = read_exclusions(path)
    assert all(pie.strip() and reason.strip() for pie, reason in exclusions.items())
    return exclusions


@dataclass(frozen=True)
class File:
    """File that users can edit: its name, valid content, and its reader."""

    name: str
    text: str
    read: Callable[[Path], Any]


def jsonl(rows: Iterable[object]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


IDIOTS = head(SAMPLE / "idiots/idiots.json", 3)
RUN = "".join(
    f"{query.id} Q0 {text.id} {rank} {9 - rank} own-span\n"
    for query in QUERIES
    for rank, text in enumerate(DOCUMENTS[:4], start=1)
)
SAMPLES: dict[str, tuple[str, int, Callable[[Path], Any]]] = {
    "test.tsv": ("id10m/test_english.tsv", 40, records(read_id10m, split="test")),
    "decisions.tsv": ("id10m/decisions/english.tsv", 12, records(load_decisions, "sentence_id")),
    "labels.csv": ("id10m/humans/english_simulated.csv", 4, records(read_labels, "variant_id")),
    "idiots.json": ("idiots/idiots.json", 3, records(read_sentences)),
    "kinds.csv": ("idiots/distractor_kinds.csv", 4, partial(mark_distractors, SUITE)),
    "indexes.json": ("idiolink/val/indexes.json", 3, records(read_texts, record=Document)),
    "queries.json": ("idiolink/val/queries.json", 3, records(read_texts, record=Query)),
    "magpie.jsonl": ("magpie/MAGPIE_sample.jsonl", 3, records(read_magpie)),
    "exclusions.tsv": ("magpie/exclusions.tsv", 9, read_exclusions_whole),
    "corrections.csv": ("idiolink_construction/corrections.csv", 6, read_corrections),
}
KEYS = {
    "idiots_table1": ["model"],
    "idiolink_released_run": ["model", "query_mode", "composition", "scope", "metric"],
    "jam_table2": ["dataset", "language"],
}
jam, idiots = (
    records(read_predictions, sentences=SENTENCES),
    records(read_detections, sentences=DETECTED),
)
FILES = [
    *(File(name, head(SAMPLE / path, many), read) for name, (path, many, read) in SAMPLES.items()),
    *(
        File(f"{name}.csv", head(PUBLISHED / f"{name}.csv", 9999), printed(name, keys))
        for name, keys in KEYS.items()
    ),
    File(
        "originals.json",
        json.dumps([released_row(item) for item in ORIGINALS]),
        read_released_originals,
    ),
    File(
        "variants.json",
        head(SAMPLE / "id10m/variants/english.json", 3),
        partial(read_variants, originals=ORIGINALS, source="sample"),
    ),
    File("export.json", json.dumps(EXPORT), read_export),
    File("review.json", json.dumps(REVIEW), read_corrections),
    File(
        "adjudications.tsv",
        "item_id\treviewed\tverdict\ttext\tnote\n"
        "a-v1\tHe came.\tvalid\t\tgood\nb-v2\tIt was.\tcorrected\tIt is.\t\n",
        records(read_adjudications, "item_id"),
    ),
    File(
        "jam.csv",
        table(
            [{"id": one.id, "idioms": f"{one.pies[0]}; {one.tokens[0]}"} for one in SENTENCES], ","
        ),
        jam,
    ),
    File("jam.jsonl", jsonl({"id": one.id, "tags": list(one.tags)} for one in SENTENCES), jam),
    File("run.csv", table([{"id": one.id, "has_idiom": "yes"} for one in DETECTED], ","), idiots),
    File("run.jsonl", jsonl({"id": one.id, "has_idiom": True} for one in DETECTED), idiots),
    File("idiots.tsv", table(json.loads(IDIOTS), "\t"), records(read_sentences)),
    File("verdicts.csv", table(VERDICTS, ","), records(read_cases, "run", "sentence_id")),
    File(
        "verdicts.jsonl",
        jsonl(row | {"seed": 0} for row in VERDICTS),
        records(read_cases, "run", "sentence_id"),
    ),
    File(
        "candidates.csv",
        'id,idiom,valid\n1,come clean,1\n2,"a, b",0\n',
        records(read_candidates, "pie"),
    ),
    File(
        "tuples.jsonl",
        jsonl(TUPLES),
        partial(read_released_tuples, queries=QUERIES, documents=DOCUMENTS),
    ),
    File(
        "own.project",
        RUN,
        partial(
            read_foreign_run,
            query_ids=[one.id for one in QUERIES],
            document_ids=[one.id for one in DOCUMENTS],
            mode="span",
            top_k=3,
        ),
    ),
    File("prompt.jinja", PROMPT, read_prompt),
    File("recordings.jsonl", head(RECORDINGS, 3), read_recordings),
    File("claims.yaml", head(PUBLISHED / "claims.yaml", 44), load_claims),
    File("tables.yaml", head(PUBLISHED / "tables.yaml", 25), load_catalogue),
    File("models.yaml", MODELS, read_models),
    File("config.yaml", CONFIG, read_config),
    File("upstream.yaml", UPSTREAM, load_upstream),
]

ODD: list[Any] = [
    *(None, True, -1, 0, 2, 0.5, 10**400, math.inf, math.nan, [], [[]], [None], {}, {"": 1}),
    *("", " ", "a b", "x\ny", "x\ty", "\x00", "\ud800", "\ufeff", "\u2028", "x" * 300),
    *("0,656", "0.6S6", "nan", "../x", "$(touch PWNED)", {"id": []}),
]
SNIPPETS = [
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\\ud800"),
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"\t", b" ", b",", b'"', b"'", b":", b"#", b"{", b"[", b"]"),
    *(b"1", b"-", b"e9", b"nan", b"&a *a", b"? [a]\n: 1\n", b"5: 1\n", b"\n- \n"),
    *(b"2024-99-99", b"!!python/object:x"),
]


def mutated(file: File, draw: random.Random) -> bytes:
    """Return the file's content with one to three faults."""
    data = file.text.encode()
    ending = file.name.rpartition(".")[2]
    for _ in range(draw.choice([1, 1, 2, 3])):
        ways: list[Callable[[bytes, random.Random], bytes]] = [bytes_changed, lines_changed]
        if ending in {"json", "jsonl", "yaml"}:
            ways += [partial(values_changed, ending=ending)] * 4
        if ending in {"csv", "tsv", "run"}:
            ways += [
                partial(cells_changed, delimiter={"csv": ",", "tsv": "\t"}.get(ending, " "))
            ] * 2
        data = draw.choice(ways)(data, draw)
    return data


def bytes_changed(data: bytes, draw: random.Random) -> bytes:
    at = draw.choice([0, draw.randrange(len(data) + 1), len(data)])
    until = draw.choice([at, at + 1, at + draw.randrange(20), len(data)])
    return data[:at] + draw.choice([b"", *SNIPPETS]) + data[until:]


def lines_changed(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    at = draw.randrange(len(lines))
    lines[at : at + 1] = draw.choice(
        [[], [lines[at]] * 2, [draw.choice(lines)], [b"\n", lines[at]]]
    )
    return b"".join(lines)


def cells_changed(data: bytes, draw: random.Random, delimiter: str) -> bytes:
    lines = data.decode("utf-8", "replace").split("\n")
    at = draw.randrange(len(lines))
    cells = lines[at].split(delimiter)
    where = draw.randrange(len(cells))
    odd = str(draw.choice([value for value in ODD if not isinstance(value, list | dict)]))
    cells[where : where + 1] = draw.choice([[odd], [], [cells[where]] * 2])
    lines[at] = delimiter.join(cells)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def values_changed(data: bytes, draw: random.Random, ending: str) -> bytes:
    try:
        value = (
            yaml.safe_load(data) if ending == "yaml"
            else [json.loads(line) for line in data.splitlines()] if ending == "jsonl"
            else json.loads(data)
        )  # fmt: skip
    except (ValueError, yaml.YAMLError, RecursionError, TypeError):
        return data
    value = value_changed(value, draw)
    if ending == "jsonl":
        text = jsonl(value) if isinstance(value, list) else json.dumps(value)
    else:
        text = json.dumps(value)
    if ending == "yaml":
        text = text.replace("Infinity", ".inf").replace("NaN", ".nan")
    return text.encode("utf-8", "surrogatepass")


def value_changed(value: Any, draw: random.Random) -> Any:
    """Return a value with one part of it changed."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        how = draw.choice(["in", "in", "in", "in", "in", "delete", "rename"])
        if how == "in":
            return value | {key: value_changed(value[key], draw)}
        rest = {name: item for name, item in value.items() if name != key}
        return rest if how == "delete" else rest | {draw.choice([f"{key}x", "", "A b"]): value[key]}
    if isinstance(value, list) and value and draw.random() < 0.9:
        at = draw.randrange(len(value))
        how = draw.choice(["in", "in", "in", "delete", "twice"])
        kept = {
            "in": [value_changed(value[at], draw)] if how == "in" else [],
            "delete": [],
            "twice": [value[at]] * 2,
        }
        return [*value[:at], *kept[how], *value[at + 1 :]]
    return draw.choice(ODD)


IDS = {"id", "sentence_id", "item_id", "variant_id", "pie_id", "original_id"}


def sound(value: Any, name: str = "") -> None:
    """Check that numbers are finite, texts can be encoded, and ids are single visible words."""
    if isinstance(value, float):
        assert math.isfinite(value), name
    elif isinstance(value, str):
        value.encode("utf-8")
        if name in IDS:
            assert value.isprintable(), (name, value)
            assert re.fullmatch(r"\S+", value), (name, value)
    elif isinstance(value, BaseModel):
        for field in type(value).model_fields:
            sound(getattr(value, field), field)
    elif is_dataclass(value):
        for one in fields(value):
            sound(getattr(value, one.name), one.name)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            sound(key)
            sound(item, str(key))
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            sound(item, name)


def outcome(file: File, data: bytes, folder: Path) -> str:
    """Return `error` or `accepted` for a file; any other exception is raised."""
    path = folder / file.name
    path.write_bytes(data)
    try:
        sound(file.read(path))
    except UserError as error:
        assert "\n" not in str(error), str(error)
        assert len(str(error)) < MAX_LINE, str(error)[:300]
        assert str(error).startswith(str(path)), str(error)
        return "error"
    return "accepted"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_sample_is_accepted(file: File, tmp_path: Path) -> None:
    assert outcome(file, file.text.encode(), tmp_path) == "accepted"


@pytest.mark.parametrize(
    "file",
    [file for file in FILES if file.name.endswith((".json", ".jsonl", ".yaml"))],
    ids=lambda file: file.name,
)
def test_deep_nesting_is_a_one_line_error(file: File, tmp_path: Path) -> None:
    """Random mutations would hardly ever produce deep nesting."""
    # On a single line, PyYAML would search for a key at each bracket, which takes a second.
    bracket = "[\n" if file.name.endswith(".yaml") else "["
    nested = bracket * 100_000 + "]" * 100_000
    assert outcome(file, (nested + file.text).encode(), tmp_path) == "error"


# Marked for `make explore`, which does not detect the inner property test.
@pytest.mark.hypothesis
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_broken_file_is_a_one_line_error_or_valid(
    file: File, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("broken")

    @given(seed=st.integers(0, 1 << 32))
    def holds(seed: int) -> None:
        data = mutated(file, random.Random(seed))
        note(repr(data[:3000]))
        outcome(file, data, folder)

    holds()


def changed_config(**sections: dict[str, Any]) -> dict[str, Any]:
    raw = yaml.safe_load(CONFIG)
    for name, section in sections.items():
        raw[name] = raw.get(name, {}) | section
    return dict(raw)


@pytest.mark.parametrize(
    ("section", "changes", "problem"),
    [
        ("idiolink", {"bm25": {"k1": [math.inf]}}, "idiolink.bm25.k1.0: Input should be a finite"),
        ("idiolink", {"bm25": {"b": [math.nan]}}, "idiolink.bm25.b.0: Input should be "),
        ("idiolink", {"bm25": {"b": [2]}}, "idiolink.bm25.b.0: Input should be less than"),
        ("idiolink", {"models": ["bm25", "bm25"]}, "idiolink: models lists 'bm25' twice"),
        ("llm", {"max_cost_usd": math.inf}, "llm.max_cost_usd: Input should be a finite number"),
        ("jam", {"seeds": [1, 1]}, "jam: seeds lists 1 twice"),
        ("jam", {"by_model": {"gpt": {"seeds": [7, 7]}}}, "jam.by_model.gpt: seeds lists 7 twice"),
        (
            "idiolink",
            {"leave_out": {"sbert": "{no} room"}},
            "leave_out contains braces: '{no} room'",
        ),
        ("jam", {"humans": ["a.csv", "b{1}.csv"]}, "humans contains braces: 'b{1}.csv'"),
        ("llm", {"recordings_folder": "{x}"}, "recordings_folder contains braces: '{x}'"),
        ("jam", {"fine_tuning": {"seeds": [5, 5, 7]}}, "jam.fine_tuning: seeds lists 5 twice"),
        ("jam", {"seeds": [2**64]}, "jam.seeds.0: Input should be less than 4294967296"),
        ("idiots", {"seeds": [2**64]}, "idiots.seeds.0: Input should be less than"),
        (
            "idiolink",
            {"finetuning": {"seeds": [2**32]}},
            "idiolink.finetuning.seeds.0: Input should be less than",
        ),
        ("jam", {"fine_tuning": {"learning_rate": 1e30}}, "learning_rate: Input should be less"),
        (
            "idiolink",
            {"finetuning": {"learning_rate": 1e30}},
            "learning_rate: Input should be less",
        ),
        ("jam", {"prompts": {"../x": {"file": "own.jinja"}}}, "String should match pattern"),
        ("idiots", {"prompts": {"x" * 81: {"file": "own.jinja"}}}, "at most 80 characters"),
        ("jam", {"seed": [1]}, "unknown key 'jam.seed'; did you mean 'seeds'?"),
        ("jam", {"huamns": 1}, "unknown key 'jam.huamns'; did you mean 'humans'?"),
        (
            "jam",
            {"prompts": {"mine": {"file": "own.jinja", "setings": 1}}},
            "unknown key 'jam.prompts.mine.setings'; ",
        ),
        (
            "llm",
            {"providers": {"openai": {"concurency": 2}}},
            "unknown key 'llm.providers.openai.concurency'; did you mean 'concurrency'?",
        ),
        ("idiolink", {"bm25": {"k": [1]}}, "unknown key 'idiolink.bm25.k'; did you mean 'k1'?"),
        ("jam", {"prompts_against": "zero_shot"}, "it is now beyond.jam.prompts_against"),
        ("jam", {"training_contexts": ["hard"]}, "it is now beyond.jam.training_contexts"),
        ("idiots", {"prompts_against": None}, "it is now beyond.idiots.prompts_against"),
        ("idiolink", {"shortcuts": True}, "it is now beyond.idiolink.shortcuts"),
        ("beyond", {"idiolink": {"shortcut": True}}, "did you mean 'shortcuts'?"),
    ],
)
def test_invalid_settings_are_rejected(section: str, changes: dict[str, Any], problem: str) -> None:
    load_config(changed_config())
    with pytest.raises(UserError, match=re.escape(problem)):
        load_config(changed_config(**{section: changes}))


def parts(kind: type[BaseModel]) -> set[type[BaseModel]]:
    """Return a settings class and all classes of its fields."""
    known: set[type[BaseModel]] = set()

    def add(item: Any) -> None:
        for one in get_args(item):
            add(one)
        if isinstance(item, type) and issubclass(item, BaseModel) and item not in known:
            known.add(item)
            for field in item.model_fields.values():
                add(field.annotation)

    add(kind)
    return known


def test_every_part_of_the_configuration_checks_duplicates_and_unknown_keys() -> None:
    classes = {part for kind in (config_class(), *get_args(AnyEntry)) for part in parts(kind)}
    assert {JamFineTuning, FewShotSettings, PredictionFile, EncoderEntry} <= classes
    assert [part for part in classes if not issubclass(part, Settings)] == []
    assert {part.model_config["extra"] for part in classes} == {"forbid"}


def test_an_error_names_the_file_that_has_the_setting() -> None:
    sources = {
        "sample.yaml": {"jam": {"neutral": "a"}},
        "config.yaml": {"jam": {"models": ["b"]}, "studies": ["jam"]},
        "mine.yaml": {"jam": {"models": ["c"], "seed": 1}},
    }
    for where, what, named in (
        ("config.yaml: jam.neutral", "'a' is not in jam.models", "sample.yaml"),
        ("config.yaml: jam.models", "unknown model 'c'", "mine.yaml"),
        ("config.yaml", "jam.models.0: Input should be a string", "mine.yaml"),
        ("config.yaml", "unknown key 'jam.seed'", "mine.yaml"),
        ("config.yaml: studies", "empty list", "config.yaml"),
        ("config.yaml: llm.mode", "wrong", "config.yaml"),
        ("models.yaml: a", "wrong", "models.yaml"),
    ):
        error = name_source(UserError(what, where=where, hint="correct it"), sources)
        assert str(error).startswith(f"{named}: ")
        assert error.what == what


ENTRY = "{kind: bm25, label: BM25, licence: none}"
NAMES = ["x$(touch PWNED)y", '""', "../x", '"a\\nb"', "x" * 81, "5", "[a]", "Big", ".x"]
"""Names that do not fit paths and command lines."""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *((f"? {name}\n: {ENTRY}\n", "") for name in NAMES),
        # Snakemake would expand braces.
        (MODELS.replace("label: Own", "label: 'O{w}n'"), "own: .*label contains braces"),
        (MODELS.replace("label: Own", r'label: "O\n\nwn"'), "own: .*label: should be one line"),
        (MODELS.replace("label: Own", "label: ' '"), "own: .*label: should be one line"),
        (MODELS.replace("file: a.csv", "file: 'a{x}.csv'"), "own: .*file contains braces"),
        (f"{MODELS}  poling: mean\n", "sbert: .*poling"),
        (
            "mine: {kind: encoder, label: E, licence: MIT, source: hub, checkpoint: a/b,"
            " languages: [english, english], max_length: 9}\n",
            "mine: encoder: languages lists 'english' twice",
        ),
        (
            "mine: {kind: encoder, label: Mine}\n",
            r"mine: encoder\.licence: Field required \(4 more: encoder\.checkpoint,"
            r" encoder\.source, encoder\.languages, encoder\.max_length\); ",
        ),
    ],
)
def test_an_invalid_model_entry_is_rejected(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=f"{re.escape(str(path))}.*{problem}"):
        load_registry(path)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_infinite_numbers_are_invalid_json(number: str, tmp_path: Path) -> None:
    path = tmp_path / "english.json"
    path.write_text(f'[\n{{"sentence": {number}}}]', encoding="utf-8")
    with pytest.raises(UserError, match=rf"{path}: not JSON: {number} is not a number"):
        read_released_originals(path)


def test_a_duplicate_key_is_invalid_json(tmp_path: Path) -> None:
    path = tmp_path / "english.json"
    path.write_text('[{"sentence": "a", "tokens": [], "sentence": "b"}]', encoding="utf-8")
    with pytest.raises(UserError, match=f"{path}: not JSON: duplicate key 'sentence'"):
        read_released_originals(path)


@pytest.mark.parametrize("key", ["sk-proj-0123456789abcdef", "AIzaSy0123456789abcdef", "0A1B2C3D"])
def test_an_api_key_instead_of_its_variable_is_rejected_and_not_shown(
    key: str, tmp_path: Path
) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(MODELS.replace("OPENAI_API_KEY", key), encoding="utf-8")
    with pytest.raises(UserError, match="should be the name of an environment variable") as caught:
        load_registry(path)
    assert key not in str(caught.value)


def test_a_byte_order_mark_is_not_part_of_a_token(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_bytes(codecs.BOM_UTF8 + (SAMPLE / "id10m/test_english.tsv").read_bytes())
    assert read_id10m(path, split="test") == RAW


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "a\0", "\ufeffa", "a\u3000b"])
def test_an_id_is_one_word(name: str) -> None:
    fields = QUERIES[0].model_dump() | {"id": name}
    with pytest.raises(ValueError, match="should be one word"):
        Query.model_validate(fields)


def test_mismatched_decisions_are_reported_with_the_raw_file() -> None:
    cut, decided = RAW[:-1], {"language": "english", "raw": "raw.tsv", "where": "decisions.tsv"}
    with pytest.raises(
        UserError, match=r"decisions.tsv: .*use decisions for the same version of raw.tsv"
    ):
        apply_decisions(cut, DECISIONS, **decided)
    with pytest.raises(UserError, match=r"^raw.tsv: the sentences are not in German; use the file"):
        apply_decisions(RAW, DECISIONS, **decided | {"language": "german"})
    kept = next(item.sentence_id for item in DECISIONS if item.decision == "keep")
    other = [
        replace(item, tokens=("x ",), tags=("O",)) if item.id == kept else item for item in RAW
    ]
    line = next(item.line for item in RAW if item.id == kept)
    with pytest.raises(UserError, match=rf"correct the sentence \(raw.tsv:{line}\)"):
        apply_decisions(other, DECISIONS, **decided)


def test_mismatched_exclusions_are_reported_with_their_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("pie\treason\nno such pie\tnone\n", encoding="utf-8")
    with pytest.raises(UserError, match=rf"{path}: excluded PIE 'no such pie' is not in MAGPIE"):
        filter_magpie(
            SAMPLE / "magpie/MAGPIE_sample.jsonl", path, FilterOptions(semantics="paper"),
            candidates=None, documents=[], computed_from={},
        )  # fmt: skip


@pytest.mark.parametrize("place", ["/dev/full", "/", "/nowhere/x"])
def test_an_os_error_is_one_line(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_command(lambda: print(Path(place).write_text("x" * 100_000)))
    assert ended.value.code == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith("error: ")
    assert stderr.count("\n") == 1


@pytest.mark.parametrize("writing", [atomic_path, atomic_folder])
def test_a_full_disk_is_reported_for_any_library_error(
    writing: Callable[[Path], AbstractContextManager[Path]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write() -> None:
        with writing(tmp_path / "weights"):
            raise RuntimeError("[enforce fail at inline_container.cc:664]")

    with pytest.raises(RuntimeError):
        write()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(OSError, match=r"No space left on device: '.*/weights'"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_is_reported() -> None:
    with pytest.raises(UserError, match="/nowhere: No such file or directory"):
        check_writable("/nowhere")
