"""Test writing and validating variants with a scripted local server."""

import json
from functools import partial

import pytest
from jam_cases import original, sentences_of
from llm.fault_server import FaultServer, Reply, Request, answer
from support import ROOT

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.client import ask
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry
from pieline.studies.jam.datasets import JudgedVariants, build_dataset
from pieline.studies.jam.variants.generation import (
    GenerationSettings,
    HardVariants,
    VariantWriting,
    confusing_variants,
    generate_neutral_variants,
    generate_variants,
    questions_ahead,
)
from pieline.studies.jam.variants.validation import check_variants

PROMPTS = ROOT / "prompts" / "jam"
GENERATION = GenerationSettings(max_tokens=500)
ICE = original("Marta broke the ice with a joke.", "broke the ice", id="test-0001")
BEANS = original(
    "The waiter spilled the beans.", "spilled the beans", figurative=False, id="test-0002"
)
MUM = original("He kept mum about the plan.", "kept mum", id="test-0003")
WATER = original("The firm is in hot water again.", "in hot water", id="test-0004")
ORIGINALS = [ICE, BEANS, MUM, WATER]

CONTEXTS = {
    ICE.id: [
        "The lake behind the hostel was frozen.",
        "Skates and sledges lay in every corner of the hut.",
        "Nobody had expected so much snow in April.",
        "They cracked a joke and broke the ice on the pond.",
    ],
    # With only two variants, this original is dropped.
    MUM.id: ["His mother was knitting by the fire.", "She was the oldest parent at the school."],
    WATER.id: [
        "The boiler of the factory burst in the night.",
        "The saunas on the second floor are finished.",
        "Steam came out of every pipe in the office.",
        "Even the tea kitchen has new kettles now.",
    ],
}
REPLACEMENT = f"The pond was covered with frost. {ICE.sentence}"


def texts_of(item):
    """Return the texts that the model writes for an original."""
    return [f"{context} {item.sentence}" for context in CONTEXTS[item.id]]


def scripted(request: Request) -> Reply:
    """Simulate the model: writer in the first call, validator in the second."""
    item = next(item for item in ORIGINALS if item.sentence in request.text)
    if "Give one verdict" not in request.text:
        if item is BEANS:
            return answer("I would rather write a poem about coffee beans.")
        return answer(f"Here you are:\n{json.dumps({'variants': texts_of(item)})}")
    if item is WATER:
        return answer('{"reviews": [{"number": 1, "verdict": "splendid"')
    reviews = [
        # The validator may miscopy a valid text, so the written text is kept.
        {"number": number, "verdict": "valid", "text": f"{text} (sic)"}
        for number, text in enumerate(texts_of(item), start=1)
    ]
    if item is ICE:
        reviews[3] = {"number": 4, "verdict": "replaced", "text": REPLACEMENT, "reason": "rule 3"}
    return answer(json.dumps({"reviews": reviews}))


@pytest.fixture
def asking(tmp_path, monkeypatch):
    """Return a function that connects to a model, with recordings in one folder."""
    monkeypatch.setenv("TEST_JAM_KEY", "key")

    def make(api_base, mode="record"):
        entry = {"kind": "llm", "label": "Writer", "licence": "none", "source": "api"}
        entry |= {"litellm_id": "openai/writer", "prices": "free"}
        entry |= {"provider": "tests", "api_base": api_base, "api_key_env": "TEST_JAM_KEY"}
        spec = LLMEntry.model_validate(entry | {"accepts": ["temperature", "max_tokens", "seed"]})
        fields = {"recordings_folder": tmp_path / "recordings", "mode": mode}
        fields |= {"max_attempts": 2, "backoff_s": 0.01, "timeout_s": 10}
        path = tmp_path / "recordings" / "jam_variants" / "writer.jsonl"
        settings = LLMSettings.model_validate(fields)
        return spec, partial(
            ask, spec=spec, settings=settings, recordings_path=path, progress=False
        )

    return make


def test_answers_of_both_calls_are_parsed():
    task = HardVariants(
        model="writer", spec="", inputs={}, outputs={}, recordings="", generation=GENERATION,
    )  # fmt: skip
    rules = {
        '{"variants": ["a"]}': "object with variants",
        '{"reviews": [{"number": 1, "verdict": "valid", "text": "a"}]}': "object with reviews",
        "I would rather not.": "",
    }
    for text, rule in rules.items():
        assert task.reading(Answer(key="k", text=text)).rule == rule


def test_generation_from_originals_to_the_dataset(asking):
    with FaultServer(scripted) as server:
        spec, model = asking(server.api_base)
        generated, report = generate_variants(
            ORIGINALS, VariantWriting(spec, GENERATION, PROMPTS), model
        )
        assert len(server.requests) == 7  # four texts to write, three to validate
        sent = server.requests[0].body
    assert (sent["temperature"], sent["max_tokens"]) == (1, 500)
    assert "Write 5 texts" in sent["messages"][-1]["content"]

    assert report["written"]["outcomes"] == {"ok": 3, "unparseable": 1}
    assert list(report["written"]["unreadable"]) == [BEANS.id]
    assert report["reviewed"]["outcomes"] == {"ok": 2, "unparseable": 1}
    assert report["model_verdicts"] == {"replaced": 1, "unknown": 4, "valid": 5}

    variants = {item.id: item for item in check_variants(ORIGINALS, generated)}
    assert variants["test-0001-v1"].sentence == texts_of(ICE)[0]
    replaced = variants["test-0001-v4"]
    assert (replaced.sentence, replaced.note) == (REPLACEMENT, "rule 3")
    assert replaced.flags == () and replaced.tags[-len(ICE.tags) :] == ICE.tags
    # Texts that the validator did not judge are flagged.
    assert all(variants[f"test-0004-v{n}"].flags == ("not_reviewed_by_model",) for n in range(1, 5))

    dataset = build_dataset(
        ORIGINALS,
        JudgedVariants(list(variants.values())),
        originals_are_released=False,
        review="automatic",
    )
    assert [item.original_id for item in dataset.sentences] == [ICE.id] * 4
    assert dataset.manifest.dropped_originals == [BEANS.id, MUM.id, WATER.id]
    assert dataset.manifest.candidate_variants == 10
    assert dataset.manifest.valid_variants == 6


def test_provider_failure_is_an_error(asking):
    def failing(request: Request) -> Reply:
        return Reply(status=500, body=b"{}") if MUM.sentence in request.text else scripted(request)

    with FaultServer(failing) as server:
        spec, model = asking(server.api_base)
        with pytest.raises(UserError, match=r"1 of 4 questions got no answer.*a further run asks"):
            generate_variants(ORIGINALS, VariantWriting(spec, GENERATION, PROMPTS), model)
        server.behave = scripted
        asked = len(server.requests)
        _, report = generate_variants(ORIGINALS, VariantWriting(spec, GENERATION, PROMPTS), model)
        # Only the failed question is repeated, then the second calls follow.
        assert len(server.requests) - asked == 4
    assert report["variants"] == 10


def test_the_cost_of_both_calls_is_known_before_the_first(asking):
    spec, _ = asking("http://127.0.0.1:1/v1")
    ahead = questions_ahead(ORIGINALS, VariantWriting(spec, GENERATION, PROMPTS), lambda keys: {})
    assert len(ahead) == 2 * len(ORIGINALS)
    with FaultServer(scripted) as server:
        spec, model = asking(server.api_base)
        generate_variants(ORIGINALS, VariantWriting(spec, GENERATION, PROMPTS), model)
        known = questions_ahead(
            ORIGINALS, VariantWriting(spec, GENERATION, PROMPTS), lambda keys: read(model, keys)
        )
    # The unreadable answer has no second call; everything else is recorded.
    assert len(known) == 7
    assert read(model, {question.key for question in known}).keys() == {
        question.key for question in known
    }


def read(model, keys):
    """Return recorded answers."""
    from pieline.llm.recordings import read_answers

    return read_answers(model.keywords["recordings_path"], keys)


@pytest.fixture
def dataset():
    """Return two originals with two variants each, as sentences to be predicted."""
    return [
        sentence for item in (ICE, MUM) for sentence in sentences_of(item, *CONTEXTS[item.id][:2])
    ]


def test_neutral_variants_of_the_confusing_ones(asking, dataset, tmp_path):
    judged = [
        {"id": ICE.id, "correct": True, "variants": {"test-0001-v1": False, "test-0001-v2": False}},
        {"id": MUM.id, "correct": False, "variants": {"test-0003-v1": True, "test-0003-v2": False}},
    ]
    metrics = tmp_path / "metrics.json"
    metrics.write_text(json.dumps({"judged": judged}), encoding="utf-8")
    confusing = confusing_variants(metrics)
    # Wrong originals are included.
    assert confusing == ["test-0001-v1", "test-0001-v2", "test-0003-v2"]
    confusing = confusing[:2]

    def neutral(request: Request) -> Reply:
        assert "opposite" not in request.text and "figurative reading" in request.text
        number = request.attempt if "about 7 words" in request.text else 9
        text = f"It was party number {number} that week. {ICE.sentence}"
        return answer(json.dumps({"variants": [text]}))

    with FaultServer(neutral) as server:
        spec, model = asking(server.api_base)
        generated, report = generate_neutral_variants(
            dataset, confusing, VariantWriting(spec, GENERATION, PROMPTS), model
        )
    assert [item.id for item in generated] == confusing
    assert generated[0].tags[-len(ICE.tags) :] == ICE.tags
    assert report["outcomes"] == {"ok": 2}
    assert report["variants"] == 2


def test_a_neutral_variant_without_its_original_is_not_used(asking, dataset):
    with FaultServer(lambda request: answer('{"variants": ["Some other text."]}')) as server:
        spec, model = asking(server.api_base)
        generated, report = generate_neutral_variants(
            dataset, ["test-0001-v1"], VariantWriting(spec, GENERATION, PROMPTS), model
        )
    assert generated == []
    assert report["flags"] == {"test-0001-v1": ["original_missing"]}
