"""Test the strict reader of ID10M's format."""

from dataclasses import replace

import pytest
from jam_cases import SAMPLE, write
from support import MIRROR, needs_mirror

from pieline.core.errors import UserError
from pieline.studies.jam.raw.id10m import format_id10m, read_id10m

GOOD = "He \tO\nkept \tB-IDIOM\nmum\tI-IDIOM\n.\tO\n\nYes\tO\n!\tO\n"


def test_sentences_tokens_and_spans(tmp_path):
    first, second = read_id10m(write(tmp_path / "x.tsv", GOOD), split="test")
    assert (first.id, second.id) == ("test-0001", "test-0002")
    assert first.text == "He kept mum."
    assert first.idioms == ["kept mum"]
    assert (first.line, second.line) == (1, 6)
    assert second.spans == []


@pytest.mark.parametrize(
    "text",
    [
        "He\tO\n kept\tO\n his\tO\n word\tO\n",
        "to\tO\nget\tO\nher \tO\ntoday \tO\nor \tO\nso \tO\n",
        "害\tO\n群\tO\n之\tO\n馬\tO\n",
        "Yes\tO\n!\tO\n!\tO\n!\tO\n",
    ],
)
def test_unusual_spacing_is_accepted(tmp_path, text):
    assert read_id10m(write(tmp_path / "x.tsv", text), split="train")


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_file_without_trailing_spaces_is_refused(tmp_path, split):
    text = (SAMPLE / f"{split}_english.tsv").read_text("utf-8").replace(" \t", "\t")
    with pytest.raises(UserError, match=r"x\.tsv:1: no spaces between the words of"):
        read_id10m(write(tmp_path / "x.tsv", text), split=split)


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_the_last_sentence_may_end_the_file_in_any_way(tmp_path, end):
    text = GOOD.rstrip("\n") + end
    assert len(read_id10m(write(tmp_path / "x.tsv", text), split="test")) == 2


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("He \tO\nkept \tB-MWE\n", 2, "unknown tag 'B-MWE'"),
        ("He \tO\r\nkept \tO\r\n", 1, "Windows line endings (carriage return); use line feeds"),
        ("He \tO\nmum\tI-IDIOM\n", 2, "I-IDIOM without B-IDIOM"),
        ("He \tB-IDIOM\n\nmum\tI-IDIOM\n", 3, "I-IDIOM without B-IDIOM"),
        ("He \tO\n\n\n\nmum\tI-IDIOM\n", 5, "I-IDIOM without B-IDIOM"),
        ("He \tO\n\n\nkept\n", 4, "1 columns"),
        ("He \tO\n\n \nkept \tO\n", 3, "1 columns"),
        ("He \tO\n\n\t\nkept \tO\n", 3, "empty token"),
        ("He \tO\nkept\n", 2, "1 columns"),
        ("He \tO\tO\n", 1, "3 columns"),
        (" \tO\n", 1, "empty token"),
        ("Hi\tO\n\nHe\tO\nkept\tO\nhis\tO\nword\tO\n", 3, "no spaces between the words of 'He"),
        (
            "He \tO\nkept\tO\nhis\tO\nword\tO\ntoday\tO\n",
            1,
            "no spaces between the words of 'He kepthiswordtoday'",
        ),
    ],
)
def test_a_mistake_names_file_and_line(tmp_path, text, line, problem):
    path = write(tmp_path / "x.tsv", text)
    with pytest.raises(UserError) as caught:
        read_id10m(path, split="test")
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("change", "lines", "note"),
    [
        (lambda text: text, (1, 6), ""),
        (lambda text: f"\n{text}", (2, 7), "1 surplus blank line, the first is line 1"),
        (
            lambda text: text.replace("\n\n", "\n\n\n"),
            (1, 7),
            "1 surplus blank line, the first is line 6",
        ),
        (
            lambda text: text.replace("\n\n", "\n" * 5) + "\n\n",
            (1, 9),
            "4 surplus blank lines, the first is line 6",
        ),
    ],
)
def test_surplus_blank_lines_are_skipped_and_counted(tmp_path, capsys, change, lines, note):
    path = write(tmp_path / "x.tsv", change(GOOD))
    expected = read_id10m(write(tmp_path / "good.tsv", GOOD), split="test")
    sentences_read = read_id10m(path, split="test")
    assert [replace(item, line=0) for item in sentences_read] == [
        replace(item, line=0) for item in expected
    ]
    assert tuple(item.line for item in sentences_read) == lines
    assert capsys.readouterr().err == (f"{path}: skipped {note}\n" if note else "")


def test_an_empty_file_and_bad_utf8_are_errors(tmp_path):
    for text in ("", "\n", "\n\n\n"):
        with pytest.raises(UserError, match="no sentences"):
            read_id10m(write(tmp_path / "x.tsv", text), split="test")
    (tmp_path / "y.tsv").write_bytes(b"He \tO\nm\xfcm\tO\n")
    with pytest.raises(UserError, match=r"y\.tsv:2: not UTF-8"):
        read_id10m(tmp_path / "y.tsv", split="test")


@pytest.mark.parametrize(
    ("name", "sentences", "with_idiom"),
    [
        ("train_english", 304, 130),
        ("dev_english", 62, 26),
        ("test_english", 46, 34),
        ("train_german", 204, 96),
        ("dev_german", 42, 18),
        ("test_german", 34, 26),
        ("train_italian", 24, 12),
        ("dev_italian", 10, 5),
        ("test_italian", 14, 10),
        ("train_spanish", 24, 12),
        ("dev_spanish", 10, 5),
        ("test_spanish", 15, 10),
    ],
)
def test_sample_sizes_match_its_readme(name, sentences, with_idiom):
    sentences_read = read_id10m(SAMPLE / f"{name}.tsv", split="x")
    assert (len(sentences_read), sum(bool(item.spans) for item in sentences_read)) == (
        sentences,
        with_idiom,
    )
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    assert f"| `{name}.tsv` | {sentences} | {with_idiom} |" in readme


@needs_mirror
@pytest.mark.parametrize(
    ("name", "sentences", "with_idiom"),
    [
        ("test_english", 200, 159),
        ("test_german", 200, 181),
        ("dev_english", 3724, 735),
        ("dev_german", 2673, 835),
        ("test_italian", 200, 152),
        ("dev_spanish", 2771, 853),
    ],
)
def test_released_files_round_trip(name, sentences, with_idiom):
    path = MIRROR / "id10m" / f"{name}.tsv"
    sentences_read = read_id10m(path, split="x")
    assert (len(sentences_read), sum(bool(item.spans) for item in sentences_read)) == (
        sentences,
        with_idiom,
    )
    assert format_id10m(sentences_read) == path.read_text(encoding="utf-8")


@needs_mirror
def test_a_released_file_with_a_double_blank_line_is_read(capsys):
    path = MIRROR / "id10m/train_chinese.tsv"
    sentences_read = read_id10m(path, split="train")
    assert (len(sentences_read), sum(bool(item.spans) for item in sentences_read)) == (8249, 4706)
    note = f"{path}: skipped 1 surplus blank line, the first is line 151413\n"
    assert capsys.readouterr().err == note
    # Verify that nothing else was skipped.
    assert format_id10m(sentences_read) == path.read_text(encoding="utf-8").replace(
        "\n" * 3, "\n" * 2
    )
