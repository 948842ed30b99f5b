"""The printed numbers are well-formed, and the catalogue lists all of their files."""

import re

import pytest
from claims_cases import Ledger
from frame_cases import PUBLISHED
from support import ROOT

from pieline.reporting.printed import read_printed


def test_every_file_is_in_the_catalogue(ledger: Ledger) -> None:
    assert {path.stem for path in PUBLISHED.glob("*.csv")} == set(ledger.catalogue)


def test_keys_identify_rows(ledger: Ledger) -> None:
    for name, rows in ledger.printed.items():
        with (PUBLISHED / f"{name}.csv").open(encoding="utf-8") as stream:
            lines = [line for line in stream if not line.startswith("#")]
        assert len(rows) == len(lines) - 1, name


def test_our_measures_of_general_statements_are_marked(ledger: Ledger) -> None:
    """claims.yaml defines `reading: ours`."""
    for claim in ledger.claims:
        is_measure = any(
            word in f"{claim.says} {claim.formula}"
            for word in ("(we ask", "kendall", "spearman", "a cent a call", "weighted by")
        )
        assert claim.reading == "ours" or not is_measure, claim.id


def test_medians_and_gains_of_the_text_are_counted(ledger: Ledger) -> None:
    """statistics.md states their number."""
    computed = [
        row
        for row in read_printed(PUBLISHED / "text_numbers.csv")
        if re.search(r"\.median_|_gain_", row["id"])
    ]
    assert {row["kind"] for row in computed} == {"score"}
    text = (ROOT / "docs/statistics.md").read_text(encoding="utf-8")
    assert f"{len(computed)} medians and gains" in text


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
