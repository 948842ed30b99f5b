"""Test encoders: inputs, training, and resuming after interruptions."""

import json
import signal
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from jam_experiments.tiny import save_tiny_bert, sentences
from run_script import start_script
from support import MIRROR, needs_mirror

from pieline.core.errors import UserError
from pieline.models.entries import EncoderEntry
from pieline.studies.jam.bio import TAG_IDS, TAGS, Tag, span_text, spans_of, whitespace_word_spans
from pieline.studies.jam.predictions.tagging import predict
from pieline.studies.jam.raw.id10m import (
    TaggedSentence,
    cut_at_sentence_ends,
    format_id10m,
    read_id10m,
)
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.training.settings import Batching, TaggerTraining
from pieline.studies.jam.training.tagger import (
    IGNORED,
    EncodedSentence,
    Tagger,
    TaggingData,
    TaggingLog,
    collate,
    decode,
    encode,
    fine_tune,
    load_tagger,
    random_batches,
)

TRAIN, DEV, TEST = sentences(60, seed=1), sentences(20, seed=2), sentences(40, seed=3)
SETTINGS = TaggerTraining(epochs=4, batch_size=4, learning_rate=5e-3)


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> EncoderEntry:
    return save_tiny_bert(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def train(
    entry: EncoderEntry, checkpoint: Path, *, seed: int = 5, settings: TaggerTraining = SETTINGS
) -> tuple[Tagger, TaggingLog]:
    tagger = load_tagger(entry, seed=seed)
    log = fine_tune(
        tagger, TaggingData(TRAIN, DEV), settings, seed=seed, identity="t", checkpoint=checkpoint
    )
    return tagger, log


@pytest.fixture(scope="module")
def trained(
    entry: EncoderEntry, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tagger, TaggingLog]:
    """Return a complete training; do not change its tagger."""
    return train(entry, tmp_path_factory.mktemp("whole") / "checkpoint.pt")


def weights(tagger: Tagger) -> bytes:
    tensors = tagger.model.state_dict()
    return b"".join(tensors[name].numpy().tobytes() for name in sorted(tensors))


def test_the_released_form_trains_as_the_notebook(
    entry: EncoderEntry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dropout applies to every layer, and four batches share a step; the last group is smaller."""
    settings = TaggerTraining(form="released", epochs=1, batch_size=4, learning_rate=5e-3)
    tagger = load_tagger(entry, seed=5)
    steps = 0

    class Counted(torch.optim.AdamW):
        def step(self, *args: Any, **kwargs: Any) -> Any:
            nonlocal steps
            steps += 1
            return super().step(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim, "AdamW", Counted)
        path = tmp_path / "checkpoint.pt"
        fine_tune(tagger, TaggingData(TRAIN, DEV), settings, seed=5, identity="t", checkpoint=path)
    assert len(TRAIN) == 60
    assert steps == 4  # 15 batches
    if tagger.device.type == "cpu":
        assert "float32 is used: float16 requires a GPU" in capsys.readouterr().err
    assert {parameter.dtype for parameter in tagger.model.parameters()} == {torch.float32}
    dropout = [m.p for m in tagger.model.modules() if isinstance(m, torch.nn.Dropout)]
    assert len(dropout) > 4
    assert set(dropout) == {0.5}


def test_training_sentences_end_as_in_the_released_code() -> None:
    first = TaggedSentence("a", ("He ", "left", ". ", "Really", "?"), ("O", "O", "O", "O", "O"))
    no_end = TaggedSentence("b", ("under ", "the "), ("B-IDIOM", "I-IDIOM"))
    last = TaggedSentence("c", ("gun", "! ", "etc."), ("B-IDIOM", "I-IDIOM", "I-IDIOM"))
    pieces = cut_at_sentence_ends([first, no_end, last])
    assert [piece.text for piece in pieces] == ["He left. ", "Really?", "under the gun! ", "etc."]
    assert pieces[2].tags == ("B-IDIOM", "I-IDIOM", "B-IDIOM", "I-IDIOM")
    # The idiom is cut, and begins again.
    assert pieces[3].tags == ("B-IDIOM",)


@needs_mirror
@pytest.mark.parametrize(
    ("language", "sentences", "pieces"), [("english", 3724, 5337), ("german", 2673, 2683)]
)
def test_dev_splits_are_cut_into_as_many_pieces(language: str, sentences: int, pieces: int) -> None:
    dev = read_id10m(MIRROR / f"id10m/dev_{language}.tsv", split="dev")
    assert (len(dev), len(cut_at_sentence_ends(dev))) == (sentences, pieces)


def test_a_word_is_its_first_sub_token(entry: EncoderEntry) -> None:
    tokenizer = load_tagger(entry).tokenizer
    (encoded,) = encode(
        tokenizer, [["we ", "walked ", "unknownword ", "again", "."]], max_length=16
    )
    assert tokenizer.convert_ids_to_tokens(list(encoded.input_ids)) == [
        "[CLS]", "we", "walk", "##ed", "[UNK]", "again", ".", "[SEP]",
    ]  # fmt: skip
    assert encoded.first_subtokens == {0: 1, 1: 2, 2: 4, 3: 5, 4: 6}
    batch = collate([encoded], [["O", "B-IDIOM", "I-IDIOM", "O", "O"]], pad_id=0, device="cpu")
    assert batch["labels"].tolist() == [[IGNORED, 0, 1, IGNORED, 2, 0, 0, IGNORED]]
    # Only the first subtoken's tag counts; an I without B begins an idiom.
    assert decode(encoded, [1, 0, 2, 1, 2, 0, 0, 1]) == ["O", "B-IDIOM", "I-IDIOM", "O", "O"]


def test_words_beyond_the_longest_input_are_outside(entry: EncoderEntry) -> None:
    tokenizer = load_tagger(entry).tokenizer
    (encoded,) = encode(tokenizer, [["we "] * 10], max_length=6)
    assert (len(encoded), encoded.word_count, sorted(encoded.first_subtokens)) == (
        6,
        10,
        [0, 1, 2, 3],
    )
    assert decode(encoded, [1] * 6) == ["B-IDIOM"] * 4 + ["O"] * 6


@pytest.mark.parametrize("batching", ["random", "by_length"])
def test_batches_hold_every_sentence_once(batching: Batching) -> None:
    lengths = [number % 37 + 3 for number in range(1000)]

    def batches(seed: int) -> list[list[int]]:
        return random_batches(lengths, 16, batching, torch.Generator().manual_seed(seed))

    drawn = batches(1)
    assert sorted(number for batch in drawn for number in batch) == list(range(1000))
    assert sorted(map(len, drawn)) == [1000 % 16, *[16] * (1000 // 16)]
    padded = sum(len(batch) * max(lengths[number] for number in batch) for batch in drawn)
    assert (padded < 1.06 * sum(lengths)) == (batching == "by_length")
    assert batches(1) == drawn != batches(2)


def test_random_batches_are_the_trainer_s() -> None:
    """The Trainer's sampler draws a permutation, which the Trainer's loader cuts into batches."""
    sampler = torch.utils.data.RandomSampler(range(50), generator=torch.Generator().manual_seed(3))
    loader = torch.utils.data.BatchSampler(sampler, 8, drop_last=False)
    generator = torch.Generator().manual_seed(3)
    assert random_batches([1] * 50, 8, "random", generator) == list(loader)


def test_tags_do_not_depend_on_padding(entry: EncoderEntry) -> None:
    tagger = load_tagger(entry)
    texts = [item.tokens for item in TEST]
    assert tagger.tag(texts) == [tagger.tag([text])[0] for text in texts]


def test_it_learns_and_keeps_the_last_epoch(trained: tuple[Tagger, TaggingLog]) -> None:
    tagger, log = trained
    scores = [epoch.dev_span_f1 for epoch in log.epochs]
    assert log.kept_epoch == SETTINGS.epochs
    assert max(scores) > 0.9
    assert log.epochs[-1].loss < 0.5 * log.epochs[0].loss
    predicted = tagger.tag([item.tokens for item in TEST])
    right = sum(spans_of(tags) == item.spans for tags, item in zip(predicted, TEST, strict=True))
    assert right > 0.9 * len(TEST)


def test_weights_depend_on_seed_and_batching_only(
    entry: EncoderEntry, trained: tuple[Tagger, TaggingLog], tmp_path: Path
) -> None:
    again, _ = train(entry, tmp_path / "again.pt")
    other, _ = train(entry, tmp_path / "other.pt", seed=7)
    by_length = SETTINGS.model_copy(update={"batching": "by_length"})
    sorted_batches, _ = train(entry, tmp_path / "by_length.pt", settings=by_length)
    assert weights(trained[0]) == weights(again)
    assert weights(trained[0]) not in (weights(other), weights(sorted_batches))


class Killed(Exception):
    """Exception that simulates the end of the process."""


@pytest.mark.parametrize("last", [1, 2, 3])
def test_interrupted_after_an_epoch_ends_as_uninterrupted(
    entry: EncoderEntry,
    trained: tuple[Tagger, TaggingLog],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    last: int,
) -> None:
    complete, log = trained
    checkpoint = tmp_path / "broken.pt"

    def stop(epoch: int) -> None:
        if epoch == last:
            raise Killed

    broken = load_tagger(entry, seed=5)
    with pytest.raises(Killed):
        fine_tune(
            broken, TaggingData(TRAIN, DEV), SETTINGS,
            seed=5, identity="t", checkpoint=checkpoint, after_epoch=stop,
        )  # fmt: skip
    seen: list[int] = []
    message = f"resuming training after epoch {last}\n"
    assert message not in capsys.readouterr().err
    resumed = load_tagger(entry, seed=99)  # the head comes from the checkpoint
    resumed_log = fine_tune(
        resumed, TaggingData(TRAIN, DEV), SETTINGS,
        seed=5, identity="t", checkpoint=checkpoint, after_epoch=seen.append,
    )  # fmt: skip
    assert message in capsys.readouterr().err
    assert seen == list(range(last + 1, SETTINGS.epochs + 1))
    assert weights(resumed) == weights(complete)
    assert resumed_log == log


@pytest.mark.parametrize("what", ["seed", "epochs", "identity", "damaged"])
def test_a_checkpoint_of_another_training_is_not_used(
    entry: EncoderEntry, tmp_path: Path, what: str
) -> None:
    checkpoint = tmp_path / "checkpoint.pt"

    def run(**changed: Any) -> list[int]:
        """Train with these values, and return the epochs that were trained."""
        values = {"seed": 5, "identity": "t", "epochs": 2} | changed
        settings = SETTINGS.model_copy(update={"epochs": values.pop("epochs")})
        seen: list[int] = []
        tagger = load_tagger(entry, seed=5)
        fine_tune(
            tagger, TaggingData(TRAIN[:8], DEV[:4]), settings,
            checkpoint=checkpoint, after_epoch=seen.append, **values,
        )  # fmt: skip
        return seen

    other = {"seed": 6, "epochs": 1, "identity": "u"}
    run(**{what: other[what]} if what in other else {})
    if what == "damaged":
        checkpoint.write_bytes(checkpoint.read_bytes()[:5000])
    assert run() == [1, 2]


@pytest.mark.full
def test_killed_process_ends_with_the_same_files(entry: EncoderEntry, tmp_path: Path) -> None:
    for name, split in (("train", TRAIN), ("dev", DEV)):
        (tmp_path / f"{name}.tsv").write_text(format_id10m(split))

    def run(folder: Path, before: str = "") -> int:
        return start_script(
            "fine_tune_tagger",
            trains=True,
            before=before,
            input={"train": tmp_path / "train.tsv", "dev": tmp_path / "dev.tsv"},
            output={
                "weights": folder / "weights",
                "digests": folder / "weights.sha256",
                "log": folder / "training.json",
            },
            params={
                "spec": entry.execution_spec(),
                "settings": SETTINGS.model_dump_json(),
            },
            wildcards={"seed": 5},
            log=str(tmp_path / "log"),
        ).returncode

    # Kill the process in epoch 3, after training and before writing the checkpoint.
    dies = """
import os, signal
import pieline.studies.jam.training.tagger as training
scores = iter([training.span_scores] * 2)
def score(gold, found):
    return next(scores, lambda *_: os.kill(os.getpid(), signal.SIGKILL))(gold, found)
training.span_scores = score
"""
    complete, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(complete) == 0
    assert run(broken, before=dies) == -signal.SIGKILL
    assert not (broken / "weights").exists()
    assert (broken / "checkpoint.pt").exists()
    # Leave a partial file, as after a kill during writing.
    (broken / ".checkpoint.pt.x1.part").write_bytes(b"half")
    assert run(broken) == 0
    assert list(broken.glob(".*.part")) == []
    for name in ("weights/model.safetensors", "training.json"):
        assert (complete / name).read_bytes() == (broken / name).read_bytes(), name
    assert not (broken / "checkpoint.pt").exists()
    assert len(json.loads((complete / "training.json").read_text())["epochs"]) == 4


def test_saved_weights_tag_alike(
    entry: EncoderEntry, trained: tuple[Tagger, TaggingLog], tmp_path: Path
) -> None:
    tagger, _ = trained
    tagger.save(tmp_path / "weights")
    again = load_tagger(entry, weights=tmp_path / "weights", seed=1234)
    texts = [item.tokens for item in TEST]
    assert again.tag(texts) == tagger.tag(texts)


IDIOM = TaggedSentence(
    "train-0001",
    ("They ", "left ", "us ", "in ", "the ", "lurch", "! ", "“", "ca", "n't ", "go", "”."),
    ("O", "O", "O", "B-IDIOM", "I-IDIOM", "I-IDIOM", "O", "O", "B-IDIOM", "I-IDIOM", "O", "O"),
)  # fmt: skip


WORDS: list[Tag] = ["O"] * 3 + ["B-IDIOM", "I-IDIOM", "I-IDIOM", "B-IDIOM", "O"]
"""Tags of the words of `IDIOM` between white space."""


@needs_mirror
@pytest.mark.parametrize("language", ["english", "german"])
def test_words_of_the_real_data_are_what_splitting_at_white_space_gives(language: str) -> None:
    for item in read_id10m(MIRROR / f"id10m/test_{language}.tsv", split="test"):
        words = [span_text(item.tokens, place) for place in whitespace_word_spans(item.tokens)]
        assert words == item.text.split()


def test_sentences_are_tagged_in_the_words_of_the_training() -> None:
    class Spy:
        """Tagger that tags words as in `WORDS`, and tokens as in the sentence."""

        def tag(self, texts: list[list[str]], **_: bool) -> list[list[Tag]]:
            self.read = texts[0]
            return [list(tags) for tags in (IDIOM.tags, WORDS) if len(tags) == len(texts[0])]

    sentence = JamSentence(
        id="test-0001", original_id="test-0001", variant_number=0, language="english",
        sentence=IDIOM.text, tokens=IDIOM.tokens, tags=IDIOM.tags, pies=("in the lurch",),
        true_idioms=("in the lurch",), is_figurative=True,
    )  # fmt: skip
    spy: Any = Spy()
    (prediction,) = predict(spy, [sentence])
    assert spy.read == [token.strip() for token in IDIOM.tokens]
    assert (prediction.tags, prediction.idioms) == (IDIOM.tags, ("in the lurch", "can't"))
    (prediction,) = predict(spy, [sentence], form="released")
    assert spy.read == IDIOM.text.split()
    # Punctuation belongs to the adjacent word.
    assert prediction.idioms == ("in the lurch!", "“can't")
    assert prediction.tags == (*IDIOM.tags[:6], "I-IDIOM", "B-IDIOM", "I-IDIOM", *IDIOM.tags[9:])


def begun_idioms(words: list[str], tags: list[Tag]) -> list[str]:
    """Return the marked idioms by the rule of the released scripts (facts about the public code).

    A B tag begins an idiom, an I tag continues one that has begun, and an O tag ends it.
    """
    idioms: list[list[str]] = []
    is_open = False
    for word, tag in zip(words, tags, strict=True):
        if tag == "B-IDIOM":
            idioms.append([word])
        elif tag == "I-IDIOM" and is_open:
            idioms[-1].append(word)
        is_open = tag == "B-IDIOM" or (is_open and tag == "I-IDIOM")
    return [" ".join(idiom) for idiom in idioms]


def test_in_the_released_form_a_stray_tag_marks_no_idiom() -> None:
    words = ["a", "b", "c", "d", "e"]
    sentence = EncodedSentence((*range(7),), {word: word + 1 for word in range(5)}, 5)

    class Stub:
        """Tagger whose model predicts `numbers`."""

        def tag(self, texts: list[list[str]], *, drop_stray_tags: bool) -> list[list[Tag]]:
            return [decode(sentence, numbers, drop_stray_tags=drop_stray_tags) for _ in texts]

    item = JamSentence(
        id="test-0001", original_id="test-0001", variant_number=0, language="english",
        sentence="a b c d e", tokens=("a ", "b ", "c ", "d ", "e"), tags=("O",) * 5, pies=("a",),
        true_idioms=(), is_figurative=False,
    )  # fmt: skip
    stub: Any = Stub()
    assert begun_idioms(words, ["O", "I-IDIOM", "I-IDIOM", "O", "B-IDIOM"]) == ["e"]
    for tags in product(TAGS, repeat=5):
        numbers = [0, *(TAG_IDS[tag] for tag in tags), 0]
        (released,) = predict(stub, [item], form="released")
        assert list(released.idioms or ()) == begun_idioms(words, list(tags))
        (paper,) = predict(stub, [item], form="paper")
        begins: list[Tag] = [
            "B-IDIOM" if tag == "I-IDIOM" and (not place or tags[place - 1] == "O") else tag
            for place, tag in enumerate(tags)
        ]
        assert list(paper.idioms or ()) == begun_idioms(words, begins)


def test_remote_code_runs_only_if_the_entry_allows_it(
    entry: EncoderEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[Any] = []

    def record(*arguments: Any, **named: Any) -> None:
        options.append((named["trust_remote_code"], named.get("code_revision")))
        raise UserError("stop")

    monkeypatch.setattr("pieline.models.loading.load_model", record)
    trusted = entry.model_copy(update={"trust_remote_code": True, "code_revision": "a" * 40})
    for each in (entry, trusted):
        with pytest.raises(UserError, match="stop"):
            load_tagger(each)
    assert options == [(False, None), (True, "a" * 40)]
