"""The printed numbers are well-formed, and the catalogue lists all of their files."""

import pytest
from claims_cases import PUBLISHED, Ledger


def test_every_file_is_in_the_catalogue(ledger: Ledger) -> None:
    assert {path.stem for path in PUBLISHED.glob("*.csv")} == set(ledger.catalogue)


def test_keys_identify_rows(ledger: Ledger) -> None:
    for name, rows in ledger.printed.items():
        with (PUBLISHED / f"{name}.csv").open(encoding="utf-8") as stream:
            lines = [line for line in stream if not line.startswith("#")]
        assert len(rows) == len(lines) - 1, name


ONLY_COUNTED = {
    *("jam.generation_api_calls", "jam.generation_api_cost", "jam.finetuning_hours"),
    *("jam.human_annotators", "jam.variant_annotators", "idiots.collaborators"),
    *("jam.attention_pairs", "jam.attention_pies"),
    "idiolink.documents_per_pair",
    *(
        f"idiolink.{usage}_per_pair"
        for usage in ("literal", "idiomatic", "simplification", "sense")
    ),
    *(f"idiolink.{usage}_per_pie" for usage in ("idiomatic", "simplification", "sense")),
}
"""Numbers of the text that no claim needs."""


@pytest.mark.parametrize("paper", ["jam", "idiots", "idiolink"])
def test_every_number_of_a_text_supports_a_claim(ledger: Ledger, paper: str) -> None:
    used = {
        number.where["id"]
        for claim in ledger.claims
        for number in claim.numbers.values()
        if number.table == "text_numbers"
    }
    stated = {name for (name,) in ledger.printed["text_numbers"] if name.startswith(f"{paper}.")}
    assert stated <= used | ONLY_COUNTED
    assert not used & ONLY_COUNTED
