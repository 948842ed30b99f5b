"""Archives of runs: export, verification, extraction and matching with a configuration."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pieline.archives.export import compared, export_runs
from pieline.archives.manifest import (
    MANIFEST,
    Archive,
    ArchivedRun,
    Manifest,
    member_sidecar,
    read_archive,
)
from pieline.archives.matching import RemoteArchive, load_archives, offer
from pieline.audit.archives import defects, extract
from pieline.cli import command
from pieline.config import layered, load_config, load_studies
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.core.files import canonical_json, sha256_of, write_json, write_text
from pieline.core.measures import Measure
from pieline.core.packing import pack, unpack
from pieline.core.sidecars import Digests, check_made, sidecar_of, write_sidecar
from pieline.core.upstream import UpstreamFile
from pieline.llm.answers import Answer
from pieline.llm.questions import Message, Question
from pieline.llm.recordings import read_answers, record
from pieline.models.registry import load_registry
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.numbers import numbers_for
from pieline.reporting.ours import OurNumbers
from pieline.reuse import extractions
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.predictions.bm25 import build_index, search
from pieline.studies.idiolink.predictions.bm25_tuning import Bm25Parameters, Tuning
from pieline.studies.idiolink.predictions.runs import write_run
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.study import Study

DATASET = "results/datasets/idiolink/test"
RUN = "results/predictions/idiolink/test/bm25/sentence/seed-0.run.gz"
TUNING = "results/predictions/idiolink/val/bm25/sentence/tuning.json"
RANKED = "results/metrics/idiolink/test/bm25/sentence/seed-0.json"
ANSWERED = "results/metrics/idiots/talker/zero_shot/seed-1.json"
PREDICTIONS = "results/predictions/idiots/talker/zero_shot/seed-1.jsonl"
SENTENCES = "results/datasets/idiots/sentences.jsonl"
RAW = "results/raw/idiolink/test/queries.json"
INDEXES = "results/raw/idiolink/test/indexes.json"
CONDITIONS = Conditions(
    settings={"top_k": 3, "bootstrap_resamples": 10}, weights={"kind": "bm25", "k1": 0.9}
)
QUESTION = Question("provider/talker", (Message("user", "An idiom?"),), {}, 0)
MORE = Question("provider/talker", (Message("user", "And now?"),), {}, 0)


def add_evidence(path: str, made_from: list[str], **more: object) -> None:
    write_sidecar(path, made_from=Digests().of(*made_from), **more)


def metric(path: str, made_from: list[str], conditions: Conditions = CONDITIONS) -> None:
    write_json(path, {"conditions": conditions.model_dump(mode="json"), "computed_from": {}})
    add_evidence(path, made_from)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a working directory with a ranking and recorded answers of a language model."""
    monkeypatch.chdir(tmp_path)
    for raw in (RAW, INDEXES, "prompts/idiots/detect.jinja", SENTENCES):
        write_text(raw, f"the content of {raw}")
    text = {"pie": "break the ice", "subject": "Music", "is_gold": True, "span": "broke the ice"}
    documents = [
        Document(id=f"d{n}", sentence=f"{n} broke the ice.", usage="idiomatic", **text)
        for n in range(4)
    ]
    query = Query(id="q1", sentence="She broke the ice.", usage="idiomatic", **text)
    IdiolinkDataset("test", "full", True, documents, [query]).save(DATASET)
    files = [str(path) for path in sorted(Path(DATASET).iterdir())]
    for path in files:
        add_evidence(path, [RAW, INDEXES])
    point = Bm25Parameters(k1=0.9, b=0.4)
    tuning = Tuning(query_mode="sentence", composition="full", chosen=point, grid=[])
    write_json(TUNING, tuning.model_dump())
    add_evidence(TUNING, [])
    index = build_index(documents, point)
    ranked = search(index, documents, [query], query_mode="sentence", top_k=3, progress=False)
    write_run(RUN, ranked, tag="bm25")
    add_evidence(RUN, [f"{DATASET}/documents.jsonl", f"{DATASET}/queries.jsonl", TUNING])
    metric(RANKED, [RUN, TUNING, f"{DATASET}/meanings.jsonl"])
    answer = Answer(key=QUESTION.key, text="Yes.")
    record("recordings/idiots/talker/run.jsonl", [(QUESTION, answer)])
    write_text(PREDICTIONS, '{"id":"s1"}\n')
    add_evidence(SENTENCES, [])
    add_evidence(
        PREDICTIONS,
        ["prompts/idiots/detect.jinja", SENTENCES],
        answers={QUESTION.key: answer.digest},
        recordings=Digests().of("recordings/idiots/talker/run.jsonl"),
    )
    metric(ANSWERED, [PREDICTIONS])
    return tmp_path


def repacked(source: Archive, target: Path, changed: dict[str, bytes], *, signed: bool) -> None:
    """Repack an archive with changed members; `signed` recomputes the digests."""
    place = target.with_suffix(".unpacked")
    shutil.rmtree(place, ignore_errors=True)
    names = unpack(source.path, place, allowed=lambda _: True)
    content = {name: (place / name).read_bytes() for name in names} | changed
    if signed:
        fields = json.loads(content[MANIFEST])
        fields["files"] = {
            name: sha256_of(each) for name, each in content.items() if name != MANIFEST
        }
        manifest = Manifest.model_validate_json(json.dumps(fields | {"digest": ""}))
        fields["digest"] = manifest.computed_digest()
        content[MANIFEST] = canonical_json(fields).encode()
    pack(target, [(MANIFEST, content.pop(MANIFEST)), *content.items()])


def test_an_archive_has_equal_bytes_and_every_file_of_its_runs(folder: Path) -> None:
    manifest = export_runs("one.tar.zst")
    export_runs("two.tar.zst")
    assert Path("one.tar.zst").read_bytes() == Path("two.tar.zst").read_bytes()
    assert [run.metrics for run in manifest.runs] == [RANKED, ANSWERED]
    ranked, answered = manifest.runs
    assert ranked.files == (RUN, TUNING, member_sidecar(RUN), member_sidecar(TUNING))
    assert set(ranked.raw) == {RAW, INDEXES}
    assert set(answered.raw) == {"prompts/idiots/detect.jinja"}
    assert answered.recordings == "recordings/idiots/talker/zero_shot/seed-1.jsonl"
    assert manifest.datasets[DATASET].files == (
        f"{DATASET}/meanings.jsonl",
        f"{DATASET}/manifest.json",
    )
    assert defects("one.tar.zst") == []
    unpack("one.tar.zst", "unpacked", allowed=lambda _: True)
    texts = b"".join(path.read_bytes() for path in Path("unpacked").rglob("*") if path.is_file())
    assert b"She broke the ice" not in texts


def test_runs_are_chosen_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command(["runs", "export", "a.tar.zst", "--study", "idiolink", "--seed", "0"])
    assert list(read_archive("a.tar.zst").runs) == [RANKED]
    command(["runs", "verify", "a.tar.zst"])
    assert "1 run verified" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command(["runs", "export", "b.tar.zst", "--model", "bm26"])
    assert "no finished runs" in capsys.readouterr().err
    assert not Path("b.tar.zst").exists()


def test_changed_files_are_not_exported(folder: Path) -> None:
    write_text(PREDICTIONS, '{"id":"s2"}\n')
    with pytest.raises(UserError, match="was changed after it was written"):
        export_runs("a.tar.zst")


def test_predictions_and_answers_are_restored(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_runs("a.tar.zst")
    was = {path: Path(path).read_bytes() for path in (RUN, PREDICTIONS)}
    monkeypatch.chdir(tmp_path_factory.mktemp("other"))
    archive = read_archive(folder / "a.tar.zst")
    for run in archive.manifest.runs:
        files = {name: archive.manifest.files[name] for name in run.files}
        recordings = {run.recordings: "recordings/mine.jsonl"} if run.recordings else {}
        for path, evidence in extract(archive.path, files, recordings, {}).items():
            write_json(sidecar_of(path), evidence.model_dump(mode="json"))
    assert {path: Path(path).read_bytes() for path in was} == was
    assert read_answers("recordings/mine.jsonl")[QUESTION.key].text == "Yes."
    check_made([RUN, PREDICTIONS])
    # The dataset is made on this machine; a different one is detected before scoring.
    write_text(f"{DATASET}/queries.jsonl", "other\n")
    with pytest.raises(
        UserError, match=r"differs from the file that .*a\.tar\.zst: .* \(--directory\)"
    ):
        check_made([RUN])


def test_conflicting_answers_are_rejected(folder: Path) -> None:
    record("recordings/idiots/talker/run.jsonl", [(MORE, Answer(key=MORE.key, text="Yes."))])
    answers = read_answers("recordings/idiots/talker/run.jsonl")
    add_evidence(
        PREDICTIONS,
        ["prompts/idiots/detect.jinja", SENTENCES],
        answers={key: answer.digest for key, answer in answers.items()},
        recordings=Digests().of("recordings/idiots/talker/run.jsonl"),
    )
    metric(ANSWERED, [PREDICTIONS])
    export_runs("a.tar.zst")
    record("recordings/other.jsonl", [(QUESTION, Answer(key=QUESTION.key, text="No."))])
    member = read_archive("a.tar.zst").runs[ANSWERED].recordings
    with pytest.raises(UserError, match="has other answers to 1 question"):
        extract("a.tar.zst", {}, {member: "recordings/other.jsonl"}, {})
    assert [*read_answers("recordings/other.jsonl")] == [QUESTION.key]
    with pytest.raises(UserError, match="was changed during the run"):
        extract("a.tar.zst", {"results/predictions/x.jsonl": "0"}, {}, {})


def test_random_changes_are_rejected(folder: Path, tmp_path: Path) -> None:
    """Change bytes of the file, bytes of a member, and values of the manifest."""
    export_runs("a.tar.zst")
    source, chance = read_archive("a.tar.zst"), random.Random(1)
    packed = bytearray(Path("a.tar.zst").read_bytes())
    place = tmp_path / "unpacked"
    unpack("a.tar.zst", place, allowed=lambda _: True)
    names = [*source.manifest.files, MANIFEST]
    accepted = []
    for number in range(40):
        altered = tmp_path / "altered.tar.zst"
        if number % 8 < 3:
            altered.write_bytes(packed[: chance.randrange(len(packed))])
        elif number % 8 < 6:
            # The first bytes contain the window size, which does not affect the content.
            at = chance.randrange(6, len(packed))
            altered.write_bytes(
                packed[:at] + bytes([packed[at] ^ 1 << chance.randrange(8)]) + packed[at + 1 :]
            )
        else:
            name = chance.choice(names)
            content = bytearray((place / name).read_bytes())
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(7)
            repacked(source, altered, {name: bytes(content)}, signed=False)
        try:
            if altered.read_bytes() != packed and not defects(altered):
                accepted.append(number)
        except UserError:
            pass
    assert accepted == []


def forged(change: Callable[[dict[str, Any], dict[str, bytes]], object]) -> list[str]:
    """Return the defects of an archive that was changed and then signed again."""
    export_runs("a.tar.zst")
    names = unpack("a.tar.zst", "unpacked", allowed=lambda _: True)
    content = {name: Path("unpacked", name).read_bytes() for name in names}
    fields = json.loads(content[MANIFEST])
    change(fields, content)
    content[MANIFEST] = json.dumps(fields).encode()
    repacked(read_archive("a.tar.zst"), Path("b.tar.zst"), content, signed=True)
    try:
        return defects("b.tar.zst")
    except UserError as error:
        return [str(error)]


def add(path: str) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    """Return a change that adds a file with a matching sidecar to the first run."""

    def change(fields: dict[str, Any], content: dict[str, bytes]) -> None:
        content[path] = b"{}\n"
        evidence = {"path": member_sidecar(path), "files": {path: sha256_of(b"{}\n")}}
        content[member_sidecar(path)] = json.dumps(evidence | {"made_from": {}}).encode()
        fields["runs"][0]["files"] += [path, member_sidecar(path)]

    return change


def put(name: str, content: bytes) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    """Return a change that replaces or adds a file."""
    return lambda _, members: members.update({name: content})


def without_answers(fields: dict[str, Any], content: dict[str, bytes]) -> None:
    run = fields["runs"][1]
    del content[run["recordings"]]
    run["recordings"] = ""
    run["conditions"]["weights"] = {"kind": "llm"}
    evidence = json.loads(content[member_sidecar(PREDICTIONS)])
    content[member_sidecar(PREDICTIONS)] = json.dumps(evidence | {"answers": {}}).encode()


def no_json(fields: dict[str, Any], content: dict[str, bytes]) -> None:
    content[PREDICTIONS] = b"[\n"
    evidence = json.loads(content[member_sidecar(PREDICTIONS)])
    evidence["files"] = {PREDICTIONS: sha256_of(b"[\n")}
    content[member_sidecar(PREDICTIONS)] = json.dumps(evidence).encode()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (put(PREDICTIONS, b'{"id":"s2"}\n'), "does not match its sidecar"),
        (put(RUN, b"no run"), "does not match its sidecar"),
        (put(f"{DATASET}/meanings.jsonl", b""), "unknown id"),
        (put("recordings/idiots/talker/zero_shot/seed-1.jsonl", b""), "0 recorded answers"),
        (put("results/predictions/idiots/more.jsonl", b"{}"), "belongs to no run"),
        (put("../x.jsonl", b"x"), "is not allowed"),
        (put("/etc/x", b"x"), "is not allowed"),
        (put("src/x.py", b"x"), "is not allowed"),
        (put("results/predictions/.x", b"x"), "is not allowed"),
        (add(f"{DATASET}/documents.jsonl"), "does not belong to it"),
        (add(RUN.replace("bm25", "other")), "does not belong to it"),
        (add(TUNING.replace("bm25", "other")), "does not belong to it"),
        (lambda fields, _: fields["runs"].append(fields["runs"][0]), "twice"),
        (lambda fields, _: fields["runs"][0].update(files=[]), "belong to another run"),
        (
            lambda fields, _: fields["runs"][1].update(raw={}),
            "differs from the one in the manifest",
        ),
        (without_answers, "lists no recorded answers"),
        (no_json, "Invalid JSON"),
        (
            lambda _, content: content.update(
                {
                    f"{DATASET}/manifest.json": content[f"{DATASET}/manifest.json"].replace(
                        b"full", b"lit_idiom"
                    )
                }
            ),
            "contains the dataset test-lit_idiom",
        ),
    ],
)
def test_a_signed_archive_must_be_consistent(
    folder: Path, change: Callable[[dict[str, Any], dict[str, bytes]], object], problem: str
) -> None:
    problems = forged(change)
    assert any(problem in line for line in problems), problems
    with pytest.raises(UserError):
        extract("b.tar.zst", read_archive("a.tar.zst").manifest.files, {}, {})


def test_an_extracted_run_is_not_exported_without_its_origin(folder: Path) -> None:
    """Without its origin, the dataset would be unknown, and the run would match any data."""
    Path(sidecar_of(f"{DATASET}/documents.jsonl")).unlink()
    with pytest.raises(UserError, match="no sidecar states how its input"):
        export_runs("a.tar.zst")


class TestOffer:
    """Tests that a configuration uses only runs with everything equal that affects predictions."""

    @pytest.fixture
    def archive(self, folder: Path) -> Archive:
        export_runs("a.tar.zst")
        return read_archive("a.tar.zst")

    def differences(
        self,
        archive: Archive,
        asked: Conditions = CONDITIONS,
        digest: str = "",
    ) -> tuple[str, ...]:
        digests = {RAW: digest}
        best = offer(RANKED, asked.canonical(), [archive], lambda name: digests.get(name, ""))
        assert best
        return best.differences

    def test_equal_runs_match_with_any_scoring_settings(self, archive: Archive) -> None:
        settings = {"top_k": 3, "bootstrap_resamples": 2000, "permutations": 5}
        other = CONDITIONS.model_copy(update={"settings": settings})
        assert self.differences(archive) == self.differences(archive, other) == ()

    def test_each_difference_is_listed(self, archive: Archive) -> None:
        changed = CONDITIONS.model_copy(update={"weights": {"kind": "bm25", "k1": 1.2}})
        assert self.differences(archive, changed) == ("weight k1 1.2, archive 0.9",)
        deeper = CONDITIONS.model_copy(update={"settings": {"top_k": 100, "prompts": {"a": "1"}}})
        assert self.differences(archive, deeper) == (
            'setting prompts {"a": "1"}, archive null',
            "setting top_k 100, archive 3",
        )
        (line,) = self.differences(archive, digest="f" * 64)
        assert line.startswith(f"{RAW}: SHA-256 ffffffffffff, archive ")

    def test_files_used_by_only_one_run(self, archive: Archive) -> None:
        asked = CONDITIONS.canonical()
        best = offer(RANKED, asked, [archive], lambda _: "", {RAW: False, "own.tsv": True})
        gone = offer(RANKED, asked, [archive], lambda name: None if name == RAW else "")
        assert best
        assert gone
        assert best.differences == (
            "own.tsv: used here only",
            f"{RAW}: used in the archive only",
        )
        assert gone.differences == (f"{RAW}: no such file here",)

    def test_a_run_missing_in_all_archives(self, archive: Archive) -> None:
        assert offer("results/metrics/x.json", CONDITIONS.canonical(), [archive], str) is None


def idiolink(archives: tuple[Archive, ...], **section: Any) -> Study[Any]:
    """Create the study with BM25 on the sample."""
    root = Path(__file__).parents[2]
    settings = {"idiolink": {"models": ["bm25"], "compositions": ["full"], **section}}
    config = load_config(layered(settings, root / "config/sample.yaml"))
    project = load_studies(config, load_registry(root / "models.yaml"), root)["idiolink"].project
    return IdiolinkStudy(config.section("idiolink"), replace(project, archives=archives))


def test_a_file_in_two_archives_is_extracted_once(folder: Path) -> None:
    none = {"finetuning": {"models": []}}
    paths = (RANKED, RANKED.replace("/sentence/", "/span/"))
    asked = idiolink((), **none).plan[RANKED].conditions
    files = [path.replace("metrics", "predictions").replace("json", "run.gz") for path in paths]
    archives = []
    for number, path in enumerate(paths):
        # Both archives also contain the ranking of the other one.
        its = (files[number], files[1 - number], TUNING)
        run = ArchivedRun(metrics=path, conditions=asked, raw={}, files=its)
        manifest = Manifest(code=None, machine="", runs=(run,), files=dict.fromkeys(its, "0"))
        archives.append(Archive(f"{number}/a{'-_'[number]}1.tar.zst", manifest))
    found = extractions(idiolink(tuple(archives), **none).plan)
    assert [sorted(extraction.files) for extraction in found] == [
        [files[0], TUNING],
        [files[1]],
    ]
    assert len({extraction.rule for extraction in found}) == 2
    assert idiolink(tuple(archives), **none).archived_models() == {"bm25"}
    left = idiolink(tuple(archives), **none, models=["bm25", "sbert"], leave_out={"sbert": "slow"})
    assert {run.metrics for run in left.plan if run.archived} == {*paths}
    per_index = none | {"compositions": ["full", "lit_idiom"]}
    ablation = tuple(renamed(archive, "/test/", "/test-lit_idiom/") for archive in archives)
    one_tuning = idiolink(ablation, **per_index, bm25={"tuning": "sentence"})
    assert len(one_tuning.plan.select(archived=[True])) == 2
    assert extractions(idiolink(ablation, **per_index).plan) == []
    constructed = none | {"dataset": "constructed", "construction": {"enabled": True}}
    assert extractions(idiolink(tuple(archives), **constructed).plan) == []


def renamed(archive: Archive, old: str, new: str) -> Archive:
    """Return the archive with runs at other paths."""
    text = archive.manifest.model_dump_json().replace(old, new)
    return Archive(archive.path, Manifest.model_validate_json(text))


@pytest.mark.parametrize("url", ["http://[x/a", "https://host/", "https://host/..", "http://h/a b"])
def test_a_url_must_end_in_a_file_name(url: str) -> None:
    with pytest.raises(UserError, match="not the URL of a file"):
        load_archives([RemoteArchive(url=url, sha256="0" * 64)], Path())


def test_the_query_of_a_url_is_not_part_of_the_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_runs("a.tar.zst")
    monkeypatch.setattr(
        "pieline.archives.matching.download", lambda _, place, name: write_copy("a.tar.zst", place)
    )
    remote = RemoteArchive(url="https://host/files/runs.tar.zst?download=1", sha256="0" * 64)
    assert [archive.name for archive in load_archives([remote], Path())] == ["runs"]


def write_copy(source: str, target: Path) -> None:
    target.parent.mkdir(parents=True)
    shutil.copyfile(source, target)


def test_released_must_match_the_digests(folder: Path) -> None:
    manifest = export_runs("a.tar.zst")
    dataset = manifest.datasets[DATASET]
    files = {name: manifest.files[name] for name in dataset.files}
    names = {path.removeprefix("results/raw/"): digest for path, digest in dataset.raw.items()}
    right = {name: UpstreamFile(url=None, sha256=digest) for name, digest in names.items()}
    assert extract("a.tar.zst", files, {}, right) == {}
    wrong = right | {"idiolink/test/queries.json": UpstreamFile(url=None, sha256="0" * 64)}
    with pytest.raises(UserError, match="but its raw files' digests disagree"):
        extract("a.tar.zst", files, {}, wrong)


def test_numbers_state_the_archive_of_their_predictions() -> None:
    numbers = OurNumbers("jam")
    score = Measure[float]("score", lambda value: value)
    for model in ("mine", "theirs"):
        numbers.add({"model": model}, [score], 1.0, files=[f"{model}.json"])
    runs = (
        PlannedRun(keys={"model": "mine"}, metrics="mine.json"),
        PlannedRun(keys={"model": "theirs"}, metrics="theirs.json", origin="archive grid"),
    )
    frame = numbers_for(DisplayInputs(study="jam", runs=runs), numbers.frame())
    assert frame[["model", "origin"]].values.tolist() == [["mine", ""], ["theirs", "archive grid"]]


def test_inputs_have_the_same_names_in_every_working_directory() -> None:
    names = ["data/upstream.yaml", "prompts/jam/a.jinja", "data/sample/a.json", "own/b.jinja"]
    below, outside, above = ("../../{}", "../../home/data/pieline/{}", "{}")
    seen = [
        compared({place.format(name): name for name in names[:3]} | {"../own/b.jinja": names[3]})
        for place in (below, outside, above)
    ]
    # The digests are the names here; those of public files do not affect predictions.
    assert seen == [dict(zip(sorted(names[1:]), sorted(names[1:]), strict=True))] * 3
