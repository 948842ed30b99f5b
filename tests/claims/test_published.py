"""The printed numbers are well-formed, and the catalogue lists all of their files."""

import csv

import pytest
from claims_cases import PUBLISHED, Ledger


def test_every_file_is_in_the_catalogue(ledger: Ledger) -> None:
    assert {path.stem for path in PUBLISHED.glob("*.csv")} == set(ledger.catalogue)


def test_keys_identify_rows(ledger: Ledger) -> None:
    for name, rows in ledger.printed.items():
        with (PUBLISHED / f"{name}.csv").open(encoding="utf-8") as stream:
            assert len(rows) == sum(1 for _ in stream) - 1, name


@pytest.mark.parametrize("paper", ["jam", "idiots", "idiolink"])
def test_every_number_of_a_text_supports_a_claim(ledger: Ledger, paper: str) -> None:
    used = {
        number.where["id"]
        for claim in ledger.claims
        for number in claim.numbers.values()
        if number.table == "text_numbers"
    }
    stated = {name for (name,) in ledger.printed["text_numbers"] if name.startswith(f"{paper}.")}
    assert stated <= used


def test_text_numbers_name_their_study(ledger: Ledger) -> None:
    with (PUBLISHED / "text_numbers.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert all(row["id"].startswith(f"{row['study']}.") for row in rows)
    assert all(row["section"] and row["what"] for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)
