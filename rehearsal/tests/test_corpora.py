"""The stand-ins for the corpora have the printed counts and pass all checks of the library."""

from pathlib import Path

import pytest
from support import ROOT, released_row

from pieline.core.files import digests
from pieline.core.upstream import is_released, load_upstream, verify
from pieline.languages.matching import contains_pie
from pieline.reporting.printed import read_published
from pieline.studies.idiolink.datasets.composition import check_dataset
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.datasets.loose import read_loosely
from pieline.studies.idiolink.datasets.relevance import meaning_qrels
from pieline.studies.idiolink.datasets.tuples import read_released_tuples
from pieline.studies.idiolink.originals.splits import SPLITS
from pieline.studies.idiolink.raw.released import COMPOSITIONS, read_texts
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.idiots.raw import read_sentences
from pieline.studies.jam.datasets.dataset import JamDataset, build_dataset
from pieline.studies.jam.datasets.tagging_data import hold_out
from pieline.studies.jam.originals import (
    apply_decisions,
    derive_decisions,
    load_decisions,
    save_decisions,
)
from pieline.studies.jam.predictions.prompt_examples import choose_examples
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.raw.released import read_released_originals
from pieline.studies.jam.settings import JamVariants
from pieline.studies.jam.variants.released import edited_originals, read_variants
from pieline.studies.jam.variants.validation import check_variants
from rehearsal.corpora import write_corpora
from rehearsal.corpora.id10m import LENGTHS
from rehearsal.corpora.idiolink import GOLD_TEXTS
from rehearsal.corpora.sizes import Size, scaled

LANGUAGES = ("english", "german")
TEXT_NUMBERS = {
    name: round(row["value"])
    for (name,), row in read_published(ROOT / "published/text_numbers.csv", ["id"]).items()
}


class Corpora:
    """Written corpora and their size."""

    def __init__(self, folder: Path, size: Size) -> None:
        write_corpora(folder, size=size, seed=1)
        self.size, self.mirror = size, folder / "mirror"
        self.upstream = load_upstream(folder / "upstream.yaml")

    def printed(self, name: str) -> int:
        """Return a number from the papers' text, or a tenth of it for the small size."""
        return scaled(TEXT_NUMBERS[name], self.size)

    def jam(self, language: str, folder: Path) -> JamDataset:
        """Build the dataset of ID10M-JAM through all previous stages."""
        raw = self.mirror / f"id10m/test_{language}.tsv"
        released = self.mirror / f"id10m-jam/{language}.json"
        sentences = read_id10m(raw, split="test")
        decisions = derive_decisions(sentences, read_released_originals(released), where=released)
        save_decisions(folder / "decisions.tsv", decisions)
        decisions = load_decisions(folder / "decisions.tsv")
        originals = apply_decisions(sentences, decisions, language=language, where=released)
        assert [released_row(item) | {"true_idioms": []} for item in originals] == [
            row.model_dump(mode="json") | {"true_idioms": []}
            for row in read_released_originals(released)
        ]
        path = self.mirror / f"id10m-jam/variants/{language}.json"
        variants = check_variants(originals, read_variants(path, originals, source="released"))
        assert edited_originals(originals, variants) == {}
        selection = JamVariants().model_dump(include={"review", "min_valid", "kept", "seed"})
        return build_dataset(
            originals,
            variants,
            reviews=[],
            adjudications=[],
            where="",
            originals_are_released=is_released({f"id10m/{raw.name}": raw}, self.upstream),
            verification=verify(
                f"id10m-jam/variants/{language}.json",
                path,
                self.upstream,
                problem="only their digest verifies the stand-ins",
            ),
            checks=JamVariants().checks,
            **selection,
        )


@pytest.fixture(scope="module", params=["small", pytest.param("full", marks=pytest.mark.slow)])
def corpora(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpora:
    return Corpora(tmp_path_factory.mktemp("corpora"), request.param)


def test_every_upstream_file_exists_with_its_digest(corpora: Corpora) -> None:
    assert corpora.upstream.keys() < load_upstream(ROOT / "data/upstream.yaml").keys()
    assert is_released({name: corpora.mirror / name for name in corpora.upstream}, corpora.upstream)
    assert {item.url for item in corpora.upstream.values()} == {None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_id10m_has_the_upstream_lengths_and_no_duplicates(corpora: Corpora, language: str) -> None:
    texts = []
    for split in ("test", "dev", "train"):
        sentences = read_id10m(corpora.mirror / f"id10m/{split}_{language}.tsv", split=split)
        lengths = len(sentences), sum(bool(item.spans) for item in sentences)
        assert lengths == tuple(
            scaled(number, corpora.size, of_train=split == "train")
            for number in LENGTHS[split, language]
        )
        texts += [item.text for item in sentences]
    assert len(set(texts)) == len(texts)


def test_the_lengths_are_the_printed_ones() -> None:
    printed = read_published(ROOT / "published/jam_table2.csv", ["dataset", "language"])
    for language in LANGUAGES:
        row = printed["ID10M", language]
        lengths = LENGTHS["train", language][0], LENGTHS["test", language][0]
        assert lengths == (row["train_sentences"], row["test_sentences"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pipeline_keeps_the_printed_originals_and_all_variants(
    corpora: Corpora, language: str, tmp_path: Path
) -> None:
    dataset = corpora.jam(language, tmp_path)
    manifest = dataset.manifest
    literal = corpora.printed(f"jam.literal_originals_{language}")
    assert manifest.is_released
    assert manifest.originals == corpora.printed(f"jam.originals_{language}")
    assert (manifest.literal, manifest.figurative) == (literal, manifest.originals - literal)
    assert manifest.unique_pies == corpora.printed(f"jam.pies_{language}")
    assert manifest.variants == manifest.valid_variants == 3 * manifest.originals
    assert manifest.flags == {}
    assert manifest.dropped_originals == []
    assert len({item.sentence for item in dataset.sentences}) == len(dataset.sentences)
    for item in dataset.sentences:
        assert contains_pie(item.sentence, item.pies[0], language=language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_few_shot_examples_have_an_idiom_or_reject_one(corpora: Corpora, language: str) -> None:
    train = read_id10m(corpora.mirror / f"id10m/train_{language}.tsv", split="train")
    chosen = choose_examples(
        train, idiomatic=3, literal=3, seed=42, language=language, examples="contrastive"
    )
    assert not [item for item in chosen if item.lacks_candidate]
    splits = hold_out(train, seed=42)
    assert all(any(item.spans for item in split) for split in splits)


def test_idiots_has_the_counts_of_section_3(corpora: Corpora) -> None:
    sentences = read_sentences(corpora.mirror / "idiots/idioms_sentences.tsv")
    assert len(sentences) == corpora.printed("idiots.sentences")
    assert len({item.pie_id for item in sentences}) == corpora.printed("idiots.idioms")
    idiomatic = [item for item in sentences if item.is_idiomatic]
    assert len(idiomatic) == corpora.printed("idiots.idiomatic")
    assert len({item.sentence for item in sentences}) == len(sentences)
    assert all(contains_pie(item.sentence, item.pie[3:], language="english") for item in sentences)


def test_idiolink_passes_every_check_and_gives_table_1(corpora: Corpora) -> None:
    folders = [(split, corpora.mirror / "idiolink" / split) for split in SPLITS]
    texts, files = read_loosely(folders)
    report = check_dataset(
        texts,
        origin="released_format",
        sample=False,
        released=True,
        computed_from=digests(files),
    )
    assert {name: check.findings for name, check in report.checks.items() if check.count} == {}
    marked = {(split, name): of[name] for split, of in report.marked_gold.items() for name in of}
    assert marked == {place: scaled(count, corpora.size) for place, count in GOLD_TEXTS.items()}
    printed = read_published(ROOT / "published/idiolink_table1.csv", ["split"])
    for row, counts in report.counts.items():
        assert (counts.queries, counts.documents) == (20 * counts.pies, 100 * counts.pies)
        if corpora.size == "full":
            assert counts.model_dump() == printed[row,]
    assert len(report.gold_pies) == report.counts["test_gold"].pies == scaled(13, corpora.size)


@pytest.mark.parametrize("split", SPLITS)
def test_idiolink_can_be_composed_and_its_tuples_are_read(corpora: Corpora, split: str) -> None:
    folder = corpora.mirror / "idiolink" / split
    documents = read_texts(folder / "indexes.json", Document)
    queries = read_texts(folder / "queries.json", Query)
    for composition in COMPOSITIONS:
        data = IdiolinkDataset(split, "full", True, documents, queries).composed(composition)
        assert all(meaning_qrels(queries, data.documents).values())
    if split == "train":
        tuples = read_released_tuples(folder / f"triplets_{split}_full.jsonl", queries, documents)
        assert [item.query for item in tuples] == [query.id for query in queries]


@pytest.mark.parametrize("corpora", ["small"], indirect=True)
def test_the_same_seed_gives_the_same_bytes(corpora: Corpora, tmp_path: Path) -> None:
    write_corpora(tmp_path / "again", size="small", seed=1)
    write_corpora(tmp_path / "other", size="small", seed=2)
    same, other = (load_upstream(tmp_path / name / "upstream.yaml") for name in ("again", "other"))
    assert same == corpora.upstream
    assert not [name for name in same if same[name] == other[name]]
