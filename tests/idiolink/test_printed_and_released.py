"""Printed cells of Table 2 beside the scores of the authors' run, and what they decide."""

import re
from collections import Counter
from collections.abc import Mapping

import pytest
from support import ROOT

from pieline.models.embedder import EmbedderEntry
from pieline.models.registry import load_registry
from pieline.reporting.printed import compare, read_printed
from pieline.studies.idiolink.records import QUERY_MODES

MEASURES = ("r_precision", "ndcg_at_10")
Cell = tuple[str, str, str]
"""Printed model, query mode and measure."""


@pytest.fixture(scope="module")
def agreement() -> dict[Cell, bool]:
    """Return whether each printed score of Table 2 equals the released one, if there is one."""
    released: dict[Cell, str] = {}
    for row in read_printed(ROOT / "published/idiolink_released_run.csv"):
        if (row["composition"], row["scope"]) == ("full", "overall"):
            released[row["model"], row["query_mode"], row["metric"]] = row["value"]
    cells = {}
    for row in read_printed(ROOT / "published/idiolink_table2.csv"):
        for measure in MEASURES:
            cell = (row["model"], row["query_mode"], measure)
            printed = row[f"{measure}_pct"]
            if value := released.get(cell):
                decimals = len(printed.partition(".")[2])
                compared = compare(
                    100 * float(value), float(printed), obstacles=[], decimals=decimals
                )
                cells[cell] = compared.reproduced == "yes"
    return cells


def test_printed_scores_that_the_released_run_has(agreement: Mapping[Cell, bool]) -> None:
    """results.md states these counts."""
    counts = {
        mode: (equal := [same for (_, of, _), same in agreement.items() if of == mode]).count(True)
        for mode in QUERY_MODES
    }
    sizes = Counter(mode for _, mode, _ in agreement)
    assert counts == {
        "sentence": 24,
        "span": 12,
        "instruction_sentence": 8,
        "instruction_span": 4,
    }
    assert equal
    assert sizes == {"sentence": 26, "span": 24, "instruction_sentence": 26, "instruction_span": 24}
    text = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    stated = re.search(
        r"Of the (\d+) scores printed in IdioLink's Table 2, (\d+) equal scores of the"
        r" \[authors' run\]\(\S+\): (\d+) of (\d+) in the mode sentence, (\d+) of (\d+) in span,"
        r" (\d+) of (\d+) in instruction \+ sentence, and (\d+) of (\d+) in instruction \+ span",
        text,
    )
    assert stated
    pairs = [(counts[mode], sizes[mode]) for mode in QUERY_MODES]
    totals = (sum(sizes.values()), sum(counts.values()))
    assert [int(number) for number in stated.groups()] == [
        number for pair in (totals, *pairs) for number in pair
    ]


@pytest.mark.parametrize(
    ("model", "modes", "query_prefix", "passage_prefix"),
    [
        ("e5-base-v2", ("sentence", "span"), "", ""),
        ("drama-1b", ("sentence",), "", ""),
        ("nomic-v2-moe", ("sentence",), "search_document: ", "search_document: "),
    ],
)
def test_inputs_are_those_of_the_released_run_where_its_scores_are_printed(
    agreement: Mapping[Cell, bool],
    model: str,
    modes: tuple[str, ...],
    query_prefix: str,
    passage_prefix: str,
) -> None:
    entry = load_registry(ROOT / "models.yaml")[model]
    assert isinstance(entry, EmbedderEntry)
    for mode in modes:
        for measure in MEASURES:
            assert agreement[str(entry.published_as), mode, measure], (mode, measure)
    for inputs in (entry, entry.with_inputs("released")):
        assert (inputs.query_prefix, inputs.passage_prefix) == (query_prefix, passage_prefix)
    # In the other modes, the printed and the released scores do not show which inputs were used.
    equal = [
        agreement[str(entry.published_as), mode, measure]
        for mode in QUERY_MODES
        if mode not in modes
        for measure in MEASURES
    ]
    assert equal.count(False) >= 3
