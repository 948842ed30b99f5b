"""Exchange of files with MTEB and Inspect AI; most tests need neither package."""

import importlib.util
import json
import re
import struct
import zipfile
from pathlib import Path
from shutil import copyfile
from types import ModuleType
from typing import Any

import pytest
import zstandard
from pydantic import ValidationError
from support import ROOT

from pieline.core.errors import UserError
from pieline.core.records import save_jsonl
from pieline.llm.inspect_logs import read_inspect_log
from pieline.models.predictions import PredictionFile
from pieline.studies.idiolink.datasets.dataset import meaning_qrels
from pieline.studies.idiolink.metrics.scores import mean_scores, score_queries
from pieline.studies.idiolink.predictions.mteb import write_mteb_data
from pieline.studies.idiolink.predictions.query_texts import INSTRUCTION
from pieline.studies.idiolink.predictions.rankings import RankedRun, read_foreign_run
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.idiots.predictions import read_prediction
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.jam.predictions.prompting import combine, sample_of
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence

MTEB_FILE = "IdioLink_sentence_predictions.json"
PIES = {"cut corners": "cut corners", "hit the road": "hit the road"}
DOCUMENTS = [
    Document(
        id=f"d{number}", is_gold=True, pie=pie, sentence=f"{number} of them {pie}.", span=pie,
        subject="Food", usage="idiomatic" if number % 2 else "literal",
    )
    for number in range(6) for pie in [[*PIES][number // 3]]
]  # fmt: skip
QUERIES = [
    Query(
        id=f"q{number}", is_gold=True, pie=pie, sentence=f"We “{pie}” today.", span=pie,
        subject="Food", usage="idiomatic",
    )
    for number, pie in enumerate(PIES)
]  # fmt: skip
SCORES = {
    "q0": {"d0": 0.5, "d1": 0.9, "d2": 0.9, "d3": 0.1, "d4": 0.2, "d5": 0.3},
    "q1": {"d0": 0.6, "d1": 0.1, "d2": 0.9, "d3": 0.8, "d4": 1, "d5": 0.3},
}


def write_task(folder: Path) -> Path:
    """Write the task and its data as the rule does."""
    names = {"corpus": "jsonl", "qrels": "tsv", "queries_sentence": "jsonl"}
    names["queries_instruction_sentence"] = "jsonl"
    files = {name: str(folder / f"{name}.{ending}") for name, ending in names.items()}
    write_mteb_data(files, DOCUMENTS, QUERIES)
    copyfile(ROOT / "templates" / "mteb_task.py", folder / "idiolink_mteb.py")
    return folder / "idiolink_mteb.py"


def load_module(path: Path) -> ModuleType:
    """Load a file that is not part of a package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_data_of_the_task(tmp_path: Path) -> None:
    write_task(tmp_path)
    assert rows(tmp_path / "corpus.jsonl")[1] == {
        "_id": "d1", "title": "", "text": "1 of them cut corners.",
    }  # fmt: skip
    assert rows(tmp_path / "queries_sentence.jsonl")[0] == {
        "_id": "q0", "text": "We “cut corners” today.",
    }  # fmt: skip
    instruction = INSTRUCTION.format(span="hit the road")
    assert rows(tmp_path / "queries_instruction_sentence.jsonl")[1]["text"] == (
        f"{instruction}\nQuery: We “hit the road” today."
    )
    head, *lines = (tmp_path / "qrels.tsv").read_text().splitlines()
    assert head == "query-id\tcorpus-id\tscore"
    assert sorted(lines) == sorted(
        f"{query}\t{name}\t1"
        for query, names in meaning_qrels(QUERIES, DOCUMENTS).items()
        for name in names
    )


def read_mteb(path: Path, text: str, mode: str = "sentence") -> RankedRun:
    path.write_text(text, encoding="utf-8")
    names = {one.id for one in DOCUMENTS}
    return read_foreign_run(path, ["q0", "q1"], names, mode=mode, top_k=3, file_format="mteb")


def mteb_json(scores: Any) -> str:
    return json.dumps({"mteb_model_meta": {"model_name": "m"}, "default": {"test": scores}})


def test_the_predictions_of_mteb_are_cut_as_trec_eval_orders_them(tmp_path: Path) -> None:
    run = read_mteb(tmp_path / MTEB_FILE, mteb_json(SCORES))
    assert {query: list(ranked.items()) for query, ranked in run.items()} == {
        "q0": [("d2", 0.9), ("d1", 0.9), ("d0", 0.5)],
        "q1": [("d4", 1.0), ("d2", 0.9), ("d3", 0.8)],
    }
    # A file of any task can be renamed to end in its mode.
    assert read_mteb(tmp_path / "mine-span.json", mteb_json(SCORES), "span") == run


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no predictions for 'default'"),
        ('{"default": {"dev": {}}}', "no predictions for 'test'"),
        (mteb_json({"q0": {"d0": "high"}}), r"q0\.d0"),
        (mteb_json(SCORES).replace("0.9", "NaN"), "not JSON"),
        (mteb_json({"q0": SCORES["q0"]}), "no prediction for 1 of 2 queries"),
        (mteb_json(SCORES | {"q1": {"d9": 1, "d1": 2, "d2": 3}}), "1 unknown document"),
        (mteb_json(SCORES | {"q1": {"d1": 1.5}}), "fewer than 3 documents"),
    ],
)
def test_invalid_mteb_predictions_are_rejected(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        read_mteb(tmp_path / MTEB_FILE, text)


def test_the_name_of_the_task_is_the_query_mode(tmp_path: Path) -> None:
    path = tmp_path / "IdioLink_instruction_sentence_predictions.json"
    with pytest.raises(UserError, match="query mode is 'instruction_sentence', not 'sentence'"):
        read_mteb(path, mteb_json(SCORES))


@pytest.mark.parametrize(
    ("study", "file_format"), [("idiolink", "inspect"), ("jam", "mteb"), ("idiots", "mteb")]
)
def test_formats_belong_to_studies(study: str, file_format: str) -> None:
    with pytest.raises(
        ValidationError, match=f"{study} does not support the format '{file_format}'"
    ):
        PredictionFile(study=study, file="a", setting="b", format=file_format)  # type: ignore[arg-type]


def test_mteb_runs_the_task_and_scores_alike(tmp_path: Path) -> None:
    mteb = pytest.importorskip("mteb", reason="mteb is not installed")
    task = load_module(write_task(tmp_path))
    result = mteb.evaluate(
        mteb.get_model("mteb/baseline-random-encoder"),
        [task.IdioLinkSentence()],
        cache=None,
        prediction_folder=tmp_path,
    )
    theirs = result.task_results[0].scores["test"][0]
    run = read_mteb(tmp_path / MTEB_FILE, (tmp_path / MTEB_FILE).read_text(encoding="utf-8"))
    ours = mean_scores(score_queries(run, meaning_qrels(QUERIES, DOCUMENTS)), ["q0", "q1"])
    assert ours.r_precision == pytest.approx(theirs["r_precision"], abs=1e-4)


YES = '{"hasIdiom": true, "idiom": "broke the ice", "meaning": "", "explanation": ""}'
SENTENCES = [
    IdiotsSentence(
        id=name, pie_id="i1", pie="Break the ice", sentence=f"We broke the ice, {name}.",
        translation="", is_idiomatic=True,
    )
    for name in ("s1", "s2")
]  # fmt: skip


def sample(name: str, content: Any, stop: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    choices = [{"message": message, "stop_reason": stop}]
    return {"id": name, "epoch": 1, "output": {"model": "m", "choices": choices}} | more


def write_log(path: Path, *samples: dict[str, Any], zstd: bool = True) -> Path:
    """Write a log as Inspect does, compressed with Zstandard."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        for number, one in enumerate(samples):
            data = json.dumps(one).encode()
            # Long samples are compressed in several frames.
            frames = map(zstandard.compress, (data[:9], data[9:]))
            packed = b"".join(frames) if zstd else data
            archive.writestr(f"samples/{one['id']}_epoch_{number}.json", packed)
        places = [one.header_offset + 8 for one in archive.infolist()[1:] if zstd]
    data = bytearray(path.read_bytes())
    # zipfile cannot write this method, so it is set in both headers of each sample.
    central = data.index(b"PK\x01\x02") + 1
    for place in places:
        central = data.index(b"PK\x01\x02", central) + 1
        for at in (place, central + 9):
            data[at : at + 2] = struct.pack("<H", 93)
    path.write_bytes(data)
    return path


def detected(path: Path) -> list[DetectionPrediction]:
    answers = read_inspect_log(path, [one.id for one in SENTENCES])
    return [read_prediction(name, answer) for name, answer in answers.items()]


@pytest.mark.parametrize("zstd", [True, False])
def test_answers_in_a_log_are_parsed_like_ours(zstd: bool, tmp_path: Path) -> None:
    thoughts = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": YES}]
    path = write_log(
        tmp_path / "a.eval", sample("s2", thoughts), sample("s1", YES[:20], "max_tokens"), zstd=zstd
    )
    first, second = detected(path)
    assert (first.id, first.outcome, first.has_idiom) == ("s1", "truncated", None)
    assert (second.id, second.outcome, second.idiom) == ("s2", "ok", "broke the ice")


def test_long_texts_of_a_log_are_read_from_attachments(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "a.eval",
        sample("s1", "attachment://abc", attachments={"abc": YES}),
        sample("s2", "", "content_filter"),
    )
    assert [(one.outcome, one.has_idiom) for one in detected(path)] == [
        ("ok", True), ("filtered", None),
    ]  # fmt: skip


def test_a_refusal_in_a_log_is_refused(tmp_path: Path) -> None:
    refused = [{"type": "text", "text": "I can't help with that.", "refusal": True}]
    parts = [{"type": "text", "text": YES[:20]}, {"type": "text", "text": YES[20:]}]
    path = write_log(tmp_path / "a.eval", sample("s1", refused), sample("s2", parts))
    assert [(one.outcome, one.has_idiom) for one in detected(path)] == [
        ("refused", None), ("ok", True),
    ]  # fmt: skip


def test_a_log_in_json_is_read(tmp_path: Path) -> None:
    log = {
        "version": 2,
        "status": "success",
        "results": {"scores": [{"metrics": {"accuracy": {"value": float("nan")}}}]},
        "samples": [sample("s2", YES, scores={"x": {"value": float("nan")}}), sample("s1", "no")],
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log), encoding="utf-8-sig")
    zipped = write_log(tmp_path / "a.eval", *log["samples"])
    assert detected(path) == detected(zipped)
    path.write_text(json.dumps({name: log[name] for name in ("version", "status")}))
    with pytest.raises(UserError, match=r"not an Inspect AI log.*`inspect log convert --to eval`"):
        detected(path)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (
            [sample("s1", YES), sample("s2", [{"type": "image", "image": "x"}])],
            "sample 's2' has content of type 'image'",
        ),
        ([sample("s1", YES)], "no prediction for 1 of 2 sentences, such as 's2'"),
        ([sample("s1", YES), sample("s1", YES)], "sample 's1' occurs twice"),
        ([sample("s1", YES), sample("s2", "", error={"message": "x"})], "1 sample failed.*'s2'"),
        (
            [
                sample("s1", YES),
                sample("s2", "", output={**sample("s2", YES)["output"], "error": "overloaded"}),
            ],
            "1 sample failed.*'s2'",
        ),
        ([sample("s1", YES), sample("s2", "", output={})], "sample 's2' has no output"),
        ([sample("s1", YES), {"id": "s2"}], "not an Inspect AI log"),
    ],
)
def test_an_incomplete_log_is_rejected(
    samples: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        detected(write_log(tmp_path / "a.eval", *samples))


@pytest.mark.parametrize("data", [b"", b"no zip", b"cut"])
def test_other_files_are_rejected_as_logs(data: bytes, tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.eval", sample("s1", YES))
    path.write_bytes(path.read_bytes()[:-30] if data == b"cut" else data)
    with pytest.raises(UserError, match="not an Inspect AI log"):
        read_inspect_log(path, ["s1"])


TOKENS = ("They ", "broke ", "the ", "ice", ".")
JAM = JamSentence(
    id="test-0001", original_id="test-0001", variant_number=0, language="english",
    sentence="".join(TOKENS), tokens=TOKENS, tags=("O", "B-IDIOM", "I-IDIOM", "I-IDIOM", "O"),
    pies=("broke the ice",), true_idioms=("broke the ice",), is_figurative=True,
)  # fmt: skip


def identified(path: Path) -> IdiomPrediction:
    answer = read_inspect_log(path, [JAM.id])[JAM.id]
    return combine(JAM.id, [sample_of(answer)], language=JAM.language)


def test_idioms_in_a_log(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.eval", sample(JAM.id, '{"idioms": ["broke the ice"]}'))
    predictions = identified(path)
    assert (predictions.id, predictions.outcome, predictions.idioms) == (
        JAM.id,
        "ok",
        ("broke the ice",),
    )
    assert [one.idioms for one in predictions.samples] == [("broke the ice",)]


def test_inspect_asks_our_questions_and_scores_alike(tmp_path: Path) -> None:
    inspect = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    model = importlib.import_module("inspect_ai.model")
    tasks = load_module(ROOT / "examples" / "inspect_tasks.py")
    prompts = ROOT / "prompts"
    save_jsonl(tmp_path / "idiots.jsonl", SENTENCES)
    save_jsonl(tmp_path / "jam.jsonl", [JAM])
    asked = []

    def run(task: Any, *answers: str) -> Path:
        outputs = [model.ModelOutput.from_content("mock", text) for text in answers]
        for output in outputs:
            # Otherwise Inspect would download a tokenizer to count tokens.
            output.usage = model.ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        mock = model.get_model("mockllm/model", custom_outputs=outputs)
        (log,) = inspect.eval(
            task, model=mock, log_dir=str(tmp_path), display="none", max_connections=1
        )
        asked.extend([[turn.text for turn in one.input] for one in log.samples])
        accuracies.append(log.results.scores[0].metrics["accuracy"].value)
        return Path(log.location.removeprefix("file://"))

    accuracies: list[float] = []
    path = run(
        tasks.idiots(str(tmp_path / "idiots.jsonl"), str(prompts / "idiots/detect.jinja")),
        *(YES, "no answer"),
    )
    assert sorted(one.outcome for one in detected(path)) == ["ok", "unparseable"]
    path = run(
        tasks.jam("english", str(tmp_path / "jam.jsonl"), str(prompts / "jam/zero_shot.jinja")),
        '["broke the ice"]',
    )
    predictions = identified(path)
    assert predictions.idioms == ("broke the ice",)
    assert accuracies == [0.5, 1.0]
    assert [turns[-1] for turns in asked][-1] == "Sentence: They broke the ice."


def test_the_documented_commands_of_inspect_find_their_files(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`inspect eval` changes into the folder of the task's file."""
    inspect = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    model = importlib.import_module("inspect_ai.model")
    text = (ROOT / "docs/adding/predictions.md").read_text(encoding="utf-8")
    commands = re.findall(r"(?m)^inspect eval (\S+)(?: -T language=(\w+))? --model", text)
    assert len(commands) == 2
    for path, sentences in (("idiots/sentences", SENTENCES), ("jam/german", [JAM])):
        (project / f"results/datasets/{path}").parent.mkdir(parents=True, exist_ok=True)
        save_jsonl(project / f"results/datasets/{path}.jsonl", sentences)
    monkeypatch.chdir(project)
    for task, language in commands:
        outputs = [model.ModelOutput.from_content("mock", "no idea") for _ in SENTENCES]
        for output in outputs:
            output.usage = model.ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        (log,) = inspect.eval(
            task,
            model=model.get_model("mockllm/model", custom_outputs=outputs),
            task_args={"language": language} if language else {},
            log_dir=str(tmp_path / "logs"),
            display="none",
        )
        assert log.status == "success"
        assert len(log.samples) == (1 if language else 2)
