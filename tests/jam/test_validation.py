"""Test automatic checks, human review with Label Studio, and selection."""

import json
import random
import re
from copy import deepcopy

import pytest
from jam_cases import SAMPLE, original, sample_originals, sample_variants, write

from pieline.core.errors import UserError
from pieline.core.review import write_tasks
from pieline.languages.registry import language_names
from pieline.studies.jam.bio import TAG_IDS
from pieline.studies.jam.datasets import build_dataset, judge_variants, select_variants
from pieline.studies.jam.records import by_original
from pieline.studies.jam.variants.projection import tokenize
from pieline.studies.jam.variants.released import check_contexts, edited_originals, read_variants
from pieline.studies.jam.variants.validation import (
    CRITERIA,
    Review,
    apply_reviews,
    check_text,
    check_variants,
    labelling_config,
    make_variant,
    read_adjudications,
    read_export,
    review_items,
    settle_reviews,
    write_adjudications,
)

ICE = original("Marta broke the ice with a joke.", "broke the ice")
CONTEXT = "The lake behind the hostel had been frozen since Christmas."


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (f"{CONTEXT} {ICE.sentence}", ()),
        (f"{CONTEXT} Then Marta broke the ice with jokes.", ("original_missing",)),
        (f"{CONTEXT} {ICE.sentence} Everyone laughed.", ("original_not_last",)),
        (ICE.sentence, ("context_empty",)),
        (f"Well, {ICE.sentence}", ("context_too_short",)),
        (f"{'The lake was wide and cold. ' * 21} {ICE.sentence}", ("context_too_long",)),
        (f"Skaters had to break the ice on the lake. {ICE.sentence}", ("pie_repeated",)),
        (f"The crew had cold feet on the frozen lake. {ICE.sentence}", ("other_pie",)),
        (f"Der See hinter der Herberge war zugefroren. {ICE.sentence}", ("wrong_language",)),
        (f"The lake behind the hostel was frozen since Christmas. {ICE.sentence}", ("duplicate",)),
    ],
)
def test_each_check_has_a_name(text, flags):
    siblings = [f"{CONTEXT} {ICE.sentence}"] if flags == ("duplicate",) else []
    assert check_text(ICE, text, siblings=siblings, known_pies=["cold feet", *ICE.pies]) == flags


@pytest.mark.parametrize("language", language_names())
def test_the_samples_variants_pass_all_checks(language):
    variants = sample_variants(language)
    assert [item.id for item in variants if item.flags] == []
    assert {item.verdict for item in variants} == {"valid"}


def test_the_sample_becomes_a_dataset():
    originals, variants = sample_originals("english"), sample_variants("english")
    dataset = built(originals, variants, review="automatic")
    by_id = {item.id: item for item in originals}
    groups = by_original(dataset.sentences)
    assert (len(dataset.sentences), len(groups)) == (164, 41)
    for name, (first, *others) in groups.items():
        assert (first.id, first.sentence) == (name, by_id[name].sentence)
        assert [item.is_original for item in others] == [False] * 3
        # In a joined clause, the first letter may be lowercase.
        assert all(item.sentence.endswith(first.sentence[1:]) for item in others)
        assert all(item.tags[-len(first.tags) :] == first.tags for item in others)
        assert all(item.pies == first.pies for item in others)
    manifest = dataset.manifest
    assert (manifest.figurative, manifest.literal, manifest.unique_pies) == (29, 12, 37)
    assert manifest.dropped_originals == ["test-0023"]
    assert not manifest.is_released


def annotated(tasks, answers, *, people=1):
    """Return a Label Studio export with these answers (verdict, correction, note)."""
    exported = []
    for number, task in enumerate(tasks, start=1):
        verdict, correction, note = answers.get(task["data"]["item_id"], ("valid", None, None))
        result = [result_of("verdict", "choices", {"choices": [verdict]})]
        if correction is not None:
            result.append(result_of("correction", "textarea", {"text": [correction]}))
        if note is not None:
            result.append(result_of("note", "textarea", {"text": [note]}))
        annotations = [
            {"id": number * 10 + person, "completed_by": person, "result": deepcopy(result)}
            for person in range(people)
        ]
        exported.append({"id": number, "data": task["data"], "annotations": annotations})
    return exported


def result_of(name, kind, value):
    """Return one result of an annotation."""
    return {"id": name, "from_name": name, "to_name": "text", "type": kind, "value": value}


@pytest.fixture
def exported(tmp_path):
    """Return the sample's originals, its variants without reviews, and their tasks."""
    originals = sample_originals("english")
    variants = [
        item.model_copy(update={"verdict": "unreviewed"}) for item in sample_variants("english")
    ]
    path = tmp_path / "tasks.json"
    write_tasks(path, review_items(originals, variants))
    return originals, variants, json.loads(path.read_text(encoding="utf-8"))


def built(originals, variants, reviews=(), adjudications=(), **fields):
    """Build a dataset."""
    values = {"review": "human"}
    judged = judge_variants(
        originals,
        variants,
        reviews=list(reviews),
        adjudications=list(adjudications),
        where="export.json",
    )
    return build_dataset(
        originals,
        judged,
        originals_are_released=False,
        **(values | fields),
    )


def test_round_trip_from_tasks_to_the_dataset(tmp_path, exported):
    originals, variants, tasks = exported
    first, second, third = (item for item in variants if item.original_id == "test-0001")
    other = next(item for item in variants if item.original_id == "test-0002")
    corrected = f"On a cold morning the skates lay ready by the lake. {originals[0].sentence}"
    answers = {
        first.id: ("corrected", corrected, "shorter"),
        # This text area contains its initial text, but the verdict needs no correction.
        second.id: ("valid", second.sentence, None),
        other.id: ("invalid", None, "incoherent"),
    }
    path = write(tmp_path / "export.json", json.dumps(annotated(tasks, answers)))
    reviews = read_export(path)
    assert len(reviews) == len(variants)
    dataset = built(originals, variants, reviews)
    assert dataset.manifest.verdicts == {"corrected": 1, "invalid": 1, "valid": 123}
    assert set(dataset.manifest.dropped_originals) == {"test-0002", "test-0023"}
    sentences = {item.id: item for item in dataset.sentences}
    assert sentences[first.id].sentence == corrected
    assert sentences[third.id].sentence == third.sentence
    # The corrected variant ends with the original's tags.
    count = len(originals[0].tags)
    assert sentences[first.id].tags[-count:] == originals[0].tags
    assert set(sentences[first.id].tags[:-count]) == {"O"}


def test_skipped_and_unanswered_tasks_stay_unreviewed(tmp_path, exported):
    originals, variants, tasks = exported
    export = annotated(tasks, {})
    export[0]["annotations"][0]["was_cancelled"] = True
    export[1]["annotations"] = []
    export[2]["annotations"][0]["result"] = []
    export[3]["annotations"][0]["completed_by"] = {"id": 7, "email": "a@example.org"}
    path = write(tmp_path / "export.json", json.dumps(export))
    reviews = read_export(path)
    assert len(reviews) == len(variants) - 3
    assert reviews[0].annotator == "7"
    export[2]["annotations"][0]["result"] = None
    assert read_export(write(path, json.dumps(export))) == reviews
    dataset = built(originals, variants, reviews)
    assert dataset.manifest.verdicts == {"unreviewed": 3, "valid": 122}
    assert "test-0001" in dataset.manifest.dropped_originals


def test_an_export_without_an_answer_is_refused(tmp_path, exported):
    path = write(tmp_path / "export.json", json.dumps(exported[2]))
    with pytest.raises(
        UserError, match=r"export\.json: no task has been answered; submit the annot"
    ):
        read_export(path)


def test_without_human_review_only_unflagged_variants_count(exported):
    originals, variants, _ = exported
    with pytest.raises(UserError, match="annotat"):
        built(originals, variants)
    text = f"Die Schlittschuhe lagen schon am See bereit. {originals[0].sentence}"
    fields = {"number": 1, "source": "generated"}
    flagged = [make_variant(originals[0], text, **fields), *variants[1:]]
    checked = built(originals, flagged, review="automatic")
    assert set(checked.manifest.dropped_originals) == {"test-0001", "test-0023"}
    assert checked.manifest.flags == {"wrong_language": 1}


def test_disagreement_waits_for_an_adjudication(tmp_path, exported):
    originals, variants, tasks = exported
    name = "test-0001-v1"
    export = annotated(tasks, {}, people=2)
    export[0]["annotations"][1]["result"][0]["value"]["choices"] = ["invalid"]
    reviews = read_export(write(tmp_path / "export.json", json.dumps(export)))
    dataset = built(originals, variants, reviews)
    assert dataset.manifest.disputed == [name]
    assert "test-0001" in dataset.manifest.dropped_originals
    path = tmp_path / "disputed.tsv"
    write_adjudications(path, {name: variants[0].sentence})
    form = path.read_text(encoding="utf-8")
    write(path, form.replace("\t\t\t\n", "\tvalid\t\tfine\n"))
    decided = read_adjudications(path)
    dataset = built(originals, variants, reviews, decided)
    assert dataset.manifest.disputed == []
    assert dataset.manifest.dropped_originals == ["test-0023"]


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (["Another text.", "valid", "", ""], "the review of 'test-0001-v1' is for a different"),
        (["", "valid", "", ""], r"disputed\.tsv:2.*: the cell `reviewed` is empty"),
        (["{text}", "", "", ""], r"disputed\.tsv:2.*: verdict: Field required"),
    ],
)
def test_adjudication_refers_to_the_current_text(tmp_path, exported, cells, problem):
    originals, variants, _ = exported
    cells = [cell.format(text=variants[0].sentence) for cell in cells]
    row = "\t".join(["test-0001-v1", *cells])
    path = write(tmp_path / "disputed.tsv", f"item_id\treviewed\tverdict\ttext\tnote\n{row}\n")
    with pytest.raises(UserError, match=problem):
        built(originals, variants, [], read_adjudications(path))


def test_spreadsheet_quotes_are_removed(tmp_path):
    path = tmp_path / "disputed.tsv"
    texts = {"a": 'The lake froze. "Ice," she said.', "b": '"Ice," she said.'}
    write_adjudications(path, texts)
    form = path.read_text(encoding="utf-8").replace("\t\t\t\n", '\tcorrected\t"A ""b""."\t\n')
    reviews = read_adjudications(write(path, form))
    assert {review.item_id: review.reviewed for review in reviews} == texts
    assert {review.text for review in reviews} == {'A "b".'}


def test_an_adjudication_decides_against_agreement():
    reviews = [Review(item_id="x", verdict="valid", annotator=name) for name in "ab"]
    decided, disputed = settle_reviews(reviews, [Review(item_id="x", verdict="invalid")])
    assert (decided["x"].verdict, disputed) == ("invalid", [])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda task: task["data"].pop("item_id"), "task 1: .*item_id"),
        (lambda task: task["data"].pop("text"), "task 1: data.text: missing, or not text"),
        (
            lambda task: task["annotations"][0]["result"].append(
                result_of("verdict", "choices", {"choices": ["invalid"]})
            ),
            r"task 1 \(test-0001-v1\): one annotation has two answers for verdict",
        ),
        (
            lambda task: task["annotations"][0]["result"].append(
                result_of("rating", "rating", {"rating": 3})
            ),
            r"task 1 \(test-0001-v1\): unknown control 'rating'",
        ),
        (
            lambda task: task["annotations"][0]["result"][0]["value"].update(choices=["good"]),
            "task 1 .*verdict",
        ),
        (
            lambda task: task["annotations"][0]["result"][0]["value"].update(choices=["corrected"]),
            "task 1 .*text is required for corrected items",
        ),
    ],
)
def test_a_wrong_export_is_named(tmp_path, exported, change, problem):
    export = annotated(exported[2], {})
    change(export[0])
    path = write(tmp_path / "export.json", json.dumps(export))
    with pytest.raises(UserError, match=rf"export\.json: {problem}"):
        read_export(path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda original, sibling: "Something else entirely.",
            "the variant does not contain its original",
        ),
        (lambda original, sibling: original, "no context before the original"),
        (
            lambda original, sibling: f"Das war ein langer Abend für alle im Haus. {original}",
            "a context in another language",
        ),
        (lambda original, sibling: sibling, "the text of another variant"),
    ],
)
def test_a_correction_must_be_a_variant(exported, change, problem):
    originals, variants, _ = exported
    text = change(originals[0].sentence, variants[1].sentence)
    review = Review(item_id="test-0001-v1", verdict="corrected", text=text)
    with pytest.raises(UserError, match=rf"x\.json: test-0001-v1: {problem}"):
        apply_reviews(originals, variants, {review.item_id: review}, where="x.json")


def test_a_review_of_another_dataset_is_named(exported):
    originals, variants, _ = exported
    review = Review(item_id="test-9999-v1", verdict="valid")
    with pytest.raises(UserError, match=r"export\.json: unknown variant 'test-9999-v1'"):
        built(originals, variants, [review])


@pytest.mark.parametrize("person", [0, 1])
def test_a_review_of_another_text_is_refused(tmp_path, exported, person):
    """A review of another text is rejected even if another review or adjudication agrees."""
    originals, variants, tasks = exported
    exports = [annotated(deepcopy(tasks), {}), annotated(deepcopy(tasks), {})]
    exports[person][3]["data"]["text"] = "Another text."
    reviews = [
        review
        for number, export in enumerate(exports)
        for review in read_export(write(tmp_path / f"{number}.json", json.dumps(export)))
    ]
    name = tasks[3]["data"]["item_id"]
    problem = rf"export\.json: the review of '{name}' is for a different text; review the current"
    for adjudications in [], [Review(item_id=name, verdict="valid")]:
        with pytest.raises(UserError, match=problem):
            built(originals, variants, reviews, adjudications)


def test_reviewers_do_not_see_the_results_of_checks(exported):
    originals, variants, _ = exported
    flagged = [item.model_copy(update={"flags": ("other_pie",)}) for item in variants]
    assert review_items(originals, flagged) == review_items(originals, variants)
    config = labelling_config(text_name="Hard variant", criteria=CRITERIA)
    shown = {"original", "expression", "gold_label", "text"}
    assert set(re.findall(r"\$(\w+)", config)) == shown
    assert set(review_items(originals, flagged)[0]) == shown | {"item_id"}


def test_label_studio_takes_configuration_tasks_and_annotations(exported):
    interface = pytest.importorskip(
        "label_studio_sdk.label_interface", reason="label-studio-sdk is not installed"
    )
    config = labelling_config(text_name='Hard "variant" & more', criteria=CRITERIA)
    label_interface = interface.LabelInterface(config)
    label_interface.validate()
    _, _, tasks = exported
    assert all(label_interface.validate_task(task) for task in tasks)
    answers = {"test-0001-v1": ("corrected", "text", "note"), "test-0001-v2": ("invalid", None, "")}
    for task in annotated(tasks[:4], answers):
        assert all(label_interface.validate_annotation(item) for item in task["annotations"])
    wrong = annotated(tasks[:1], {"test-0001-v1": ("good", None, None)})
    assert not label_interface.validate_annotation(wrong[0]["annotations"][0])


def five_valid(name):
    """Return an original and five valid variants."""
    item = original("Marta broke the ice with a joke.", "broke the ice", id=name)
    texts = [f"Boat number {number} lay by the lake. {item.sentence}" for number in range(1, 6)]
    variants = [
        make_variant(item, text, number=number, source="generated", verdict="valid")
        for number, text in enumerate(texts, start=1)
    ]
    return item, variants


def test_selection_is_seeded_and_each_original_has_its_own():
    first, of_first = five_valid("test-0001")
    second, of_second = five_valid("test-0002")
    chosen = {"review": "human"}
    both = select_variants([first, second], of_first + of_second, seed=1, **chosen)
    assert [item.variant_number for item in both].count(0) == 2
    alone = select_variants([second], of_second, seed=1, **chosen)
    assert both[4:] == alone
    shuffled = random.Random(0).sample(of_first + of_second, 10)
    assert select_variants([first, second], shuffled, seed=1, **chosen) == both
    numbers = {
        tuple(
            item.variant_number for item in select_variants([first], of_first, seed=seed, **chosen)
        )
        for seed in range(20)
    }
    assert len(numbers) > 3
    assert all(
        sorted(set(variant_numbers)) == list(variant_numbers) and len(variant_numbers) == 4
        for variant_numbers in numbers
    )


def test_three_valid_variants_are_needed():
    item, variants = five_valid("test-0001")
    invalid = [
        other.model_copy(update={"verdict": "invalid"}) if other.number > 2 else other
        for other in variants
    ]
    assert select_variants([item], invalid, review="automatic") == []


def row(item, number=1, **fields):
    """Return a record of the released variants."""
    values = {"sentence": item.sentence, "PIE": list(item.pies), "is_figurative": True}
    values |= {"variant_number": number, "variant_sentence": f"{CONTEXT} {item.sentence}"}
    return values | {"tokens": [], "tags": [], "tag_ids": [], "true_idioms": "['x']"} | fields


def test_the_released_format_belongs_to_originals_by_their_text(tmp_path):
    path = write(tmp_path / "x.json", json.dumps([row(ICE, 1), row(ICE, 2)]))
    first, second = read_variants(path, [ICE], source="released")
    assert (first.id, second.id, first.verdict) == ("test-0001-v1", "test-0001-v2", "valid")
    assert first.tags[-len(ICE.tags) :] == ICE.tags
    # The German file has lists in Python notation; missing fields are copied from the original.
    assert first.true_idioms == ("x",)
    listed = write(tmp_path / "y.json", json.dumps([row(ICE, 1, true_idioms=None)]))
    assert read_variants(listed, [ICE], source="released")[0].true_idioms == ICE.true_idioms
    assert check_variants([ICE], [first, second])[1].flags == ("duplicate",)


def read_and_checked(path):
    originals = sample_originals("english")
    variants = check_variants(originals, read_variants(path, originals, source="sample"))
    check_contexts(variants, where=path)
    return variants


def move(rows, name):
    values = [row[name] for row in rows]
    for row, value in zip(rows, [*values[3:], *values[:3]], strict=True):
        row[name] = value


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda rows: move(rows, "PIE"),
            r"record \d+: the PIE differs from the original's \(1\d\d",
        ),
        (
            lambda rows: [row.update(variant_sentence=row["sentence"]) for row in rows],
            "no context in 125 of 125 variants",
        ),
        (
            lambda rows: [
                row.update(variant_sentence=f"{CONTEXT} {row['sentence']}") for row in rows
            ],
            r"the text of another variant in 8\d of 125",
        ),
        (
            lambda rows: [
                row.update(variant_sentence=f"Das war ein kalter Abend im Haus. {row['sentence']}")
                for row in rows
            ],
            "a context in another language in 125 of 125 variants; write a different",
        ),
    ],
)
def test_a_wrong_column_of_variants_is_refused(tmp_path, change, problem):
    rows = json.loads((SAMPLE / "variants" / "english.json").read_text("utf-8"))
    path = tmp_path / "english.json"
    assert len(read_and_checked(write(path, json.dumps(rows)))) == len(rows)
    change(rows)
    with pytest.raises(UserError, match=problem):
        read_and_checked(write(path, json.dumps(rows)))


def released_row(item, number, ends, tags, *, names=None, **fields):
    """Return a record in the released format, with tokens that include their spaces."""
    # The context repeats some words of the original.
    text = f"They can wait by the lake, and nobody asked if they can. {ends}"
    tokens = tokenize(text)
    own = ["O"] * (len(tokens) - len(tags)) + tags
    fields = {"tokens": tokens, "tags": own, "tag_ids": [TAG_IDS[tag] for tag in own]} | fields
    return row(item, number, sentence=names or item.sentence, variant_sentence=text, **fields)


OUT = original("They asked if we can let the cat out.", "let the cat out", id="test-0003")
ARM = original(
    "Er kann seinen Bruder auf den Arm nehmen.",
    "auf den Arm nehmen",
    id="test-0002",
    language="german",
)
MARKS = ["B-IDIOM", "I-IDIOM", "I-IDIOM", "I-IDIOM", "O"]
EDITED = [
    released_row(OUT, 1, OUT.sentence, list(OUT.tags)),
    released_row(OUT, 2, "They asked if we could let the cat out.", ["O"] * 5 + MARKS),
    released_row(
        OUT,
        3,
        "They asked whether we can let the cat out.",
        ["O"] * 5 + MARKS,
        names="They asked whether we can let the cat out.",
    ),
    released_row(
        ARM,
        1,
        "Der kann seinen Bruder auf den Arm nehmen.",
        ["O"] * 4 + MARKS,
        true_idioms="['auf den Arm nehmen']",
    ),
]


def test_a_record_with_an_edited_original_keeps_its_own_tokens_and_tags(tmp_path):
    path = write(tmp_path / "x.json", json.dumps(EDITED))
    variants = read_variants(path, [OUT, ARM], source="released")
    assert [item.id for item in variants[:3]] == [f"test-0003-v{number}" for number in (1, 2, 3)]
    for variant, record in zip(variants, EDITED, strict=True):
        assert variant.sentence == record["variant_sentence"]
        assert (list(variant.tokens), list(variant.tags)) == (record["tokens"], record["tags"])
    assert edited_originals([OUT, ARM], variants) == {
        "test-0003-v2": ["can → could"],
        "test-0003-v3": ["if → whether"],
        "test-0002-v1": ["Er → Der"],
    }
    dataset = built([OUT, ARM], check_variants([OUT, ARM], variants))
    assert [item.id for item in dataset.sentences] == ["test-0003", *(x.id for x in variants[:3])]
    assert dataset.sentences[2].tags == variants[1].tags
    assert dataset.manifest.flags["original_missing"] == 3


def test_missing_token_spaces_are_restored(tmp_path):
    bare = EDITED[1] | {"tokens": [token.strip() for token in EDITED[1]["tokens"]]}
    path = write(tmp_path / "x.json", json.dumps([bare]))
    (variant,) = read_variants(path, [OUT], source="released")
    assert list(variant.tokens) == EDITED[1]["tokens"]


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([row(ICE, sentence="Another one.")], "record 1: unknown original"),
        ([row(ICE, variant_sentence="Another one.")], "record 1: the original is not in"),
        ([EDITED[1] | {"tokens": None}], "record 1: the original is not in"),
        ([EDITED[1] | {"tags": ["O"]}], "record 1: 1 tags for"),
        ([row(ICE, is_figurative=False)], "record 1: is_figurative differs"),
        ([row(ICE), row(ICE)], "test-0001-v1 occurs more than once"),
        ([row(ICE), {}], "record 2: sentence"),
        ([row(ICE, true_idioms="x y")], "record 1: true_idioms: .*not a list"),
        ({}, "not a JSON array"),
    ],
)
def test_a_wrong_variant_file_is_named(tmp_path, records, problem):
    path = write(tmp_path / "x.json", json.dumps(records))
    with pytest.raises(UserError, match=rf"x\.json: {problem}"):
        read_variants(path, [ICE, OUT], source="released")
