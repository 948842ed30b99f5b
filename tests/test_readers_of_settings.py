"""Configuration files, prompts and tables that people write or open."""

from pathlib import Path
from typing import Any

import pytest

from pieline.config import load_config
from pieline.core.errors import UserError
from pieline.core.tables import read_table, write_csv
from pieline.core.yamls import parse_yaml, read_settings
from pieline.llm.prompts import load_prompt
from pieline.models.registry import load_registry


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("seeds: é".encode("latin-1"), "1: not UTF-8 (byte 0xe9); save the file as UTF-8"),
        ("seeds: [1]".encode("utf-16"), "1: not UTF-8 (byte 0xff); save the file as UTF-8"),
        (b"- seeds\n- models\n", " write one `key: value` per line"),
        (b"only a text\n", " write one `key: value` per line"),
    ],
)
def test_a_configuration_in_another_form(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_settings(path)
    assert str(caught.value).startswith(f"{path}:")
    assert problem in str(caught.value)


def test_an_empty_configuration_or_one_from_windows(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"")
    assert read_settings(path) == {}
    path.write_bytes(b"\xef\xbb\xbfpage:\r\n  depth: 3\r\n")
    assert read_settings(path) == {"page": {"depth": 3}}


@pytest.mark.parametrize("number", ["010", "-010", "0x10", "0b1", "1:30", "1:30.5", "1_000", "00"])
def test_ambiguous_numbers_are_rejected(number: str) -> None:
    with pytest.raises(UserError, match=f"here:2: not valid YAML: ambiguous number {number}"):
        parse_yaml(f"a: 1\nseed: {number}\n", where="here")
    assert parse_yaml(f"seed: '{number}'", where="here") == {"seed": number}
    # As strings, which Snakemake makes of nested values on the command line.
    with pytest.raises(UserError, match=r"page.depth: "):
        load_config({"page": {"depth": number}})


@pytest.mark.parametrize("number", ["0", "10", "-3", "1.5", "0.25", "1e-4", "3.0e-4"])
def test_plain_numbers_are_read(number: str) -> None:
    value = parse_yaml(f"seed: {number}", where="here")["seed"]
    assert float(value) == float(number)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"page": {"depth": True}}, "page.depth"),
        ({"idiolink": {"finetuning": {"seeds": [42, True]}}}, "idiolink.finetuning.seeds"),
        ({"jam": {"fine_tuning": {"learning_rate": False}}}, "jam.fine_tuning.learning_rate"),
        ({"llm": {"max_cost_usd": True}}, "llm.max_cost_usd"),
    ],
)
def test_true_is_not_a_number(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(UserError, match=rf"config.yaml: {field}: (true|false) is not a number"):
        load_config(settings)


def test_true_is_not_a_number_in_models_either(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(
        "mine: {kind: embedder, label: Mine, licence: MIT, checkpoint: mine, source: folder, path:"
        " weights/m, trained_with_instructions: false, instruction_format: instruct_query,"
        " max_length: true}\n"
    )
    with pytest.raises(UserError, match="max_length: true is not a number"):
        load_registry(path)


FORMULAS = ['=HYPERLINK("http://a")', "+1", "-1+2", "@SUM(1)", "\t=1", "'=1", "''=1", "- no"]


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_sheets_contain_no_formula_and_are_read_back_unchanged(
    tmp_path: Path, delimiter: str
) -> None:
    path = tmp_path / "sheet.csv"
    texts = [*FORMULAS, "'tis", "'", "a=b", ""]
    rows = [{"text": text, "number": -1} for text in texts]
    write_csv(path, ["text", "number"], rows, delimiter=delimiter, for_people=True)
    kept = [row["text"] for _, row in read_table(path, ["text"], delimiter=delimiter, hint="")]
    assert not [cell for cell in kept if cell.startswith(("=", "+", "-", "@", "\t"))]
    read = read_table(path, ["text"], delimiter=delimiter, for_people=True, hint="")
    assert [row["text"] for _, row in read] == texts
    assert {row["number"] for _, row in read} == {"-1"}


def prompt(folder: Path, body: str, *, ending: str = "\n") -> Any:
    path = folder / "prompt.jinja"
    path.write_bytes(f"=== user ===\n{body}\n".replace("\n", ending).encode())
    return load_prompt(path)


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_a_prompt_with_the_line_endings_of_another_system(tmp_path: Path, ending: str) -> None:
    body = "{# note #}\nSentence: {{ sentence }}\n{% if sentence %}\nAnswer\n{% endif %}"
    unix, other = prompt(tmp_path, body), prompt(tmp_path, body, ending=ending)
    assert other.digest == unix.digest
    assert other.messages(sentence="a") == unix.messages(sentence="a")
