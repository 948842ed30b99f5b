"""Archives of runs: export, checks, extraction, and the conditions that they state."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from support import ROOT

from pieline.archives.export import digests_affecting_predictions, export_runs
from pieline.archives.extraction import check_archive, extract
from pieline.archives.manifest import (
    MANIFEST,
    Archive,
    ArchivedDataset,
    ArchivedRun,
    Manifest,
    manifest_digest,
    member_sidecar,
    read_archive,
)
from pieline.archives.reading import load_archives, stated_conditions
from pieline.beyond.extended import Extended
from pieline.beyond.idiolink.study import ExtendedIdiolink
from pieline.beyond.settings import BeyondIdiolink
from pieline.cli import command
from pieline.config import layered, load_config, load_studies
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.core.files import canonical_json, sha256_of, write_json, write_text
from pieline.core.measures import Measure
from pieline.core.packing import pack, unpack
from pieline.core.settings import declared_settings, effect_of
from pieline.core.sidecars import Digests, check_made, sidecar_of, write_sidecar
from pieline.llm.answers import Answer
from pieline.llm.questions import Message, Question
from pieline.llm.recordings import read_answers, record
from pieline.models.registry import load_registry
from pieline.plan import Run
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.numbers import numbers_for
from pieline.reporting.ours import OurNumbers
from pieline.reuse import extractions
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.files import dataset_extractions
from pieline.studies.idiolink.inputs import has_texts
from pieline.studies.idiolink.predictions.bm25 import build_index, search
from pieline.studies.idiolink.predictions.rankings import write_run
from pieline.studies.idiolink.records import Bm25Parameters, Document, Query, Tuning
from pieline.studies.idiolink.settings import IdiolinkSettings
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
        fields["digest"] = manifest_digest(fields)
        content[MANIFEST] = canonical_json(fields).encode()
    pack(target, [(MANIFEST, content.pop(MANIFEST)), *content.items()])


def test_an_archive_has_equal_bytes_and_every_file_of_its_runs(folder: Path) -> None:
    manifest = export_runs("one.tar.zst")
    export_runs("two.tar.zst")
    assert Path("one.tar.zst").read_bytes() == Path("two.tar.zst").read_bytes()
    assert [run.metrics for run in manifest.runs] == [RANKED, ANSWERED]
    ranked, answered = manifest.runs
    assert ranked.files == (RUN, TUNING, member_sidecar(RUN), member_sidecar(TUNING))
    assert ranked.members_to_extract == [RUN, TUNING]
    assert set(ranked.raw) == {RAW, INDEXES}
    assert set(answered.raw) == {"prompts/idiots/detect.jinja"}
    assert answered.recordings == "recordings/idiots/talker/zero_shot/seed-1.jsonl"
    assert manifest.datasets[DATASET].files == (
        f"{DATASET}/meanings.jsonl",
        f"{DATASET}/manifest.json",
    )
    assert check_archive("one.tar.zst") == 2
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
        for path, evidence in extract(archive.path, files, recordings).items():
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
        extract("a.tar.zst", {}, {member: "recordings/other.jsonl"})
    assert [*read_answers("recordings/other.jsonl")] == [QUESTION.key]
    with pytest.raises(UserError, match="was changed during the run"):
        extract("a.tar.zst", {"results/predictions/x.jsonl": "0"}, {})


def decompressed(archive: Path) -> bytes:
    with archive.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        return reader.read()


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
            check_archive(altered)
        except UserError:
            continue
        # Some bits of the compression do not affect the content.
        if decompressed(altered) != decompressed(Path("a.tar.zst")):
            accepted.append(number)
    assert accepted == []


@pytest.mark.parametrize("name", ["../x", "/etc/x", "src/x.py", "results/predictions/.x"])
def test_a_signed_archive_has_only_safe_paths(folder: Path, name: str) -> None:
    export_runs("a.tar.zst")
    repacked(read_archive("a.tar.zst"), Path("b.tar.zst"), {name: b"x"}, signed=True)
    with pytest.raises(UserError, match="is not allowed"):
        extract("b.tar.zst", {}, {})


@pytest.mark.parametrize("missing", [RUN, TUNING, member_sidecar(RUN), f"{DATASET}/meanings.jsonl"])
def test_a_signed_archive_has_the_files_of_its_runs(folder: Path, missing: str) -> None:
    export_runs("a.tar.zst")
    fields = read_archive("a.tar.zst").manifest.model_dump(mode="json")
    del fields["files"][missing]
    fields["digest"] = manifest_digest(fields)
    pack("b.tar.zst", [(MANIFEST, canonical_json(fields).encode())])
    with pytest.raises(UserError, match=f"{missing} is missing"):
        read_archive("b.tar.zst")


def test_fields_of_another_version_are_part_of_the_digest(folder: Path) -> None:
    export_runs("a.tar.zst")
    fields = read_archive("a.tar.zst").manifest.model_dump(mode="json")
    fields["runs"][0]["seconds"] = {"embed.tsv": 3.5}
    pack("changed.tar.zst", [(MANIFEST, canonical_json(fields).encode())])
    with pytest.raises(UserError, match="was changed after the export"):
        read_archive("changed.tar.zst")
    fields["digest"] = manifest_digest(fields)
    pack("older.tar.zst", [(MANIFEST, canonical_json(fields).encode())])
    assert list(read_archive("older.tar.zst").runs) == [RANKED, ANSWERED]


def test_an_extracted_file_must_match_its_sidecar(folder: Path) -> None:
    export_runs("a.tar.zst")
    changed = {PREDICTIONS: b'{"id":"s2"}\n'}
    repacked(read_archive("a.tar.zst"), Path("b.tar.zst"), changed, signed=True)
    files = read_archive("b.tar.zst").manifest.files
    names = (PREDICTIONS, member_sidecar(PREDICTIONS))
    for path, sidecar in extract("b.tar.zst", {name: files[name] for name in names}, {}).items():
        write_json(sidecar_of(path), sidecar.model_dump(mode="json"))
    with pytest.raises(UserError, match="was changed after it was written"):
        check_made([PREDICTIONS])


def test_an_extracted_run_is_not_exported_without_its_origin(folder: Path) -> None:
    """Without its origin, the dataset would be unknown, and the run would match any data."""
    Path(sidecar_of(f"{DATASET}/documents.jsonl")).unlink()
    with pytest.raises(UserError, match="no sidecar states how its input"):
        export_runs("a.tar.zst")


def idiolink(archives: tuple[Archive, ...] = (), **section: Any) -> Study[Any]:
    """Create the study with BM25 and SBERT on the sample."""
    fields = {"models": ["bm25", "sbert"], "compositions": ["full"], **section}
    return study("idiolink", archives, **fields)


def study(name: str, archives: tuple[Archive, ...] = (), **section: Any) -> Study[Any]:
    """Create a study with these archives."""
    settings = {"studies": [name], name: section}
    config = load_config(layered(settings, ROOT / "config/sample.yaml"))
    made = load_studies(config, load_registry(ROOT / "models.yaml"), ROOT)[name]
    return type(made)(
        made.settings,
        replace(made.project, archives=archives),
        *([made.beyond] if isinstance(made, Extended) else []),
    )


def archive_of(made: Study[Any], runs: list[Run] | None = None, **changes: Any) -> Archive:
    """Return an archive, without content, of the runs of a study; `changes` are of each run."""
    raw = "results/raw/idiolink/test/queries.json"
    stated = {raw: made.project.digest(raw) or ""}
    archived = []
    for run in made.plan if runs is None else runs:
        files = [run.predictions, *([TUNING] if run.kind == "bm25" else [])]
        fields = {"metrics": run.metrics, "conditions": run.conditions, "raw": stated}
        archived.append(ArchivedRun(**fields | {"files": tuple(files)} | changes))
    names = {name for run in archived for name in run.members_to_extract}
    digests = dict.fromkeys([*names, *map(member_sidecar, names)], "0")
    return Archive(
        "a.tar.zst", Manifest(code=None, machine="", runs=tuple(archived), files=digests)
    )


def restated(made: Study[Any], part: str, **values: Any) -> Archive:
    """Return an archive of a study's runs that states other settings or weights; None: absent."""
    runs = []
    for run in made.plan:
        stated = {**getattr(run.conditions, part), **values}
        kept = {name: value for name, value in stated.items() if value is not None}
        conditions = run.conditions.model_copy(update={part: kept})
        runs.append(replace(run, conditions=conditions))
    return archive_of(made, runs)


def read_from(archive: Archive, **section: Any) -> Conditions:
    """Return the conditions of SBERT's first run in an archive, and check that it is used."""
    run = idiolink((archive,), **{"finetuning": {"models": []}, **section}).plan[SBERT]
    assert run.archive is archive
    return run.conditions


SBERT = "results/metrics/idiolink/test/sbert/sentence/seed-0.json"


class TestStatedConditions:
    """Tests that deviations of archived runs follow from what their archive states."""

    def test_an_archive_of_the_same_runs_has_no_further_deviation(self) -> None:
        made = idiolink()
        for run in idiolink((archive_of(made),)).plan:
            assert run.archive
            assert run.conditions == made.plan[run.metrics].conditions

    @pytest.mark.parametrize(
        ("part", "values", "deviation"),
        [
            ("settings", {"top_k": 50}, "top k 50, this configuration 100"),
            ("settings", {"limit": 5}, "limit 5, this configuration null"),
            ("settings", {"data": "mine"}, "data mine, this configuration null"),
            ("settings", {"inputs": "released"}, "inputs released, this configuration paper"),
            ("weights", {"dtype": "float16"}, "dtype float16, this configuration float32"),
            ("weights", {"kind": None}, "kind null, this configuration embedder"),
        ],
    )
    def test_what_is_stated_otherwise_is_a_deviation(
        self, part: str, values: dict[str, Any], deviation: str
    ) -> None:
        conditions = read_from(restated(idiolink(), part, **values))
        assert conditions.deviations == (deviation,)
        named = {name: value for name, value in values.items() if value is not None}
        assert named.items() <= getattr(conditions, part).items()

    def test_each_difference_in_a_nested_setting_is_a_deviation(self) -> None:
        stated = Conditions(settings={"parameters": {"temperature": 0.3, "top_p": 1}})
        configured = Conditions(settings={"parameters": {"temperature": 0.7, "top_p": 0.9}})
        run = ArchivedRun(metrics="m.json", conditions=stated, raw={"a.tsv": "0"}, files=("p",))
        conditions = stated_conditions(
            run, configured, scoring=(), defaults={}, digest=lambda _: "0"
        )
        assert conditions.deviations == (
            "parameters: temperature 0.3, this configuration 0.7",
            "parameters: top p 1, this configuration 0.9",
        )

    def test_a_deviation_of_the_configuration_is_not_one_of_the_archive(self) -> None:
        assert read_from(archive_of(idiolink()), top_k=50).deviations == (
            "top k 100, this configuration 50",
        )

    def test_a_setting_at_its_default_may_be_younger_than_the_archive(self) -> None:
        older = restated(idiolink(), "settings", top_k=None)
        assert read_from(older).deviations == ()
        assert read_from(older, top_k=50).deviations == ("top k null, this configuration 50",)
        assert read_from(restated(idiolink(), "weights", trust_remote_code=None)).deviations == ()

    def test_of_a_setting_that_is_gone_the_stated_deviation_counts(self) -> None:
        older = restated(idiolink(), "settings", old_option=3)
        assert read_from(older).deviations == ()
        runs = [
            replace(run, conditions=run.conditions.model_copy(update={"deviations": (line, "x")}))
            for line in ("old option 3, the paper 2",)
            for run in idiolink().plan
        ]
        stated = archive_of(idiolink(), runs).runs[SBERT].conditions
        settings = {**stated.settings, "old_option": 3}
        both = stated.model_copy(update={"settings": settings})
        archive = archive_of(idiolink(), conditions=both)
        assert read_from(archive).deviations == ("old option 3, the paper 2",)

    def test_other_or_unstated_data_is_a_deviation(self) -> None:
        assert read_from(archive_of(idiolink(), raw={RAW: "0" * 64})).deviations == (
            f"made from another {RAW}",
        )
        assert read_from(archive_of(idiolink(), raw={"own.tsv": "0" * 64})).deviations == (
            "made from own.tsv, which is not here",
        )
        assert read_from(archive_of(idiolink(), raw={})).deviations == (
            "the archive does not state the data",
        )

    @pytest.mark.parametrize(
        ("name", "section"),
        [
            ("jam", {"models": ["minilm-tagger"], "scoring": "released"}),
            ("idiots", {}),
            ("idiolink", {"compositions": ["full"]}),
        ],
    )
    def test_runs_are_scored_with_the_settings_of_this_configuration(
        self, name: str, section: dict[str, Any]
    ) -> None:
        """Every setting that affects scoring, whether the archive states it or not."""
        made = study(name, **section)
        declared = dict(declared_settings(made.Settings))
        scoring = [each for each, field in declared.items() if effect_of(field) == "scoring"]
        assert scoring
        settings = {each.rpartition(".")[2]: "stated" for each in scoring}
        stated = restated(made, "settings", **settings)
        unstated = restated(made, "settings", **dict.fromkeys(settings))
        for archive in (stated, unstated):
            for run in study(name, (archive,), **section).plan:
                ours = made.plan[run.metrics].conditions
                assert bool(run.archive) != bool(run.impossible_because)
                assert run.conditions.settings == ours.settings
                data = run.conditions.deviations[len(ours.deviations) :]
                assert all(line.startswith("made from ") for line in data)


def test_fine_tuned_runs_of_several_seeds_and_modes_are_read(tmp_path: Path) -> None:
    tuning = {"models": ["sbert"], "losses": ["released"], "seeds": [42, 43, 44]}
    tuning |= {"train_modes": ["sentence", "instruction_sentence", "span", "instruction_span"]}
    made = idiolink(finetuning=tuning)
    tuned = [run for run in made.plan if run.model != run.base]
    assert len(tuned) == (2 + 2 + 1 + 1) * 3
    archive = archive_of(made, tuned)
    plan = idiolink((archive,), finetuning=tuning).plan
    assert [run.metrics for run in plan if run.archive] == [run.metrics for run in tuned]
    found = extractions(plan)
    assert len(found) == 4
    assert [len(each.outputs) for each in found] == [6, 6, 3, 3]
    deviating = archive_of(made, tuned, conditions=tuned[0].conditions)
    other = idiolink((deviating,), finetuning=tuning).plan[tuned[-1].metrics].conditions
    assert "train mode sentence, this configuration instruction_span" in other.deviations


def test_rankings_of_a_model_are_read_from_one_archive_in_all_query_modes() -> None:
    made = idiolink(finetuning={"models": []})
    sbert = made.plan.select(model="sbert")
    some = idiolink((archive_of(made, sbert[:2]),), finetuning={"models": []})
    assert not any(run.archive for run in some.plan.select(model="sbert"))
    assert some.plan.archived_models() == set()
    every = idiolink((archive_of(made, sbert),), finetuning={"models": []})
    assert all(run.archive for run in every.plan.select(model="sbert", seed="0"))
    left = idiolink((archive_of(made),), finetuning={"models": []}, leave_out={"sbert": "slow"})
    assert {run.base for run in left.plan if run.archive} == {"bm25"}


def test_a_file_in_two_archives_is_extracted_once() -> None:
    made = idiolink(finetuning={"models": []})
    archives = tuple(
        replace(archive_of(made, made.plan.select(model=model)), path=f"{model}/a{mark}1.tar.zst")
        for model, mark in (("bm25", "-"), ("sbert", "_"))
    )
    found = extractions(idiolink(archives, finetuning={"models": []}).plan)
    assert [sorted(each.outputs) for each in found] == [
        sorted([*(run.predictions for run in made.plan.select(model="bm25")), TUNING]),
        sorted(run.predictions for run in made.plan.select(model="sbert")),
    ]
    assert len({each.rule for each in found}) == 2


class TestTexts:
    """Tests that texts are downloaded only if an archive does not make them unnecessary."""

    def without(self, digest: str, **section: Any) -> Study[Any]:
        made = idiolink(finetuning={"models": []})
        archive = archive_of(made)
        folder = "results/datasets/idiolink/test"
        scored = tuple(f"{folder}/{name}" for name in ("meanings.jsonl", "manifest.json"))
        dataset = ArchivedDataset(raw={RAW: digest}, files=scored)
        files = {**archive.manifest.files, **dict.fromkeys(scored, "0")}
        manifest = archive.manifest.model_copy(
            update={"datasets": {folder: dataset}, "files": files}
        )
        project = replace(
            made.project, data="released", archives=(replace(archive, manifest=manifest),)
        )
        fields = {"models": ["bm25", "sbert"], "compositions": ["full"], **section}
        return IdiolinkStudy(IdiolinkSettings.model_validate(fields), project)

    def test_rankings_and_data_of_archives_suffice(self) -> None:
        listed = idiolink().project.public_files["idiolink/test/queries.json"].sha256
        assert listed
        made = self.without(listed)
        assert not has_texts(made)
        assert made.raw_files() == []
        assert [each.rule for each in dataset_extractions(made)] == ["take_idiolink_test"]
        assert "idiolink_dataset" not in {table.name for table in made.tables()}
        with pytest.raises(UserError, match=r"beyond\.idiolink\.shortcuts: .* come from archives"):
            ExtendedIdiolink(made.settings, made.project, BeyondIdiolink(shortcuts=True))

    def test_other_data_or_another_model_needs_texts(self) -> None:
        listed = idiolink().project.public_files["idiolink/test/queries.json"].sha256
        assert listed
        assert has_texts(self.without("0" * 64))
        assert has_texts(self.without(listed, models=["bm25", "sbert", "contriever"]))
        assert dataset_extractions(self.without("0" * 64)) == []


def test_a_path_is_looked_up_in_the_project_and_names_are_unique(folder: Path) -> None:
    (folder / "project").mkdir()
    export_runs("project/runs.tar.zst")
    (archive,) = load_archives(["runs.tar.zst"], folder / "project")
    assert (archive.name, list(archive.runs)) == ("runs", [RANKED, ANSWERED])
    with pytest.raises(UserError, match="another archive has this name"):
        load_archives(["runs.tar.zst", "project/runs.tar.zst"], folder / "project")


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
        digests_affecting_predictions(
            {place.format(name): name for name in names[:3]} | {"../own/b.jinja": names[3]}
        )
        for place in (below, outside, above)
    ]
    # The digests are the names here; those of public files do not affect predictions.
    assert seen == [dict(zip(sorted(names[1:]), sorted(names[1:]), strict=True))] * 3
