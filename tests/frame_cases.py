"""Numbers of invented runs, for tests of what is made from the frame of numbers."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pandas as pd
from support import ROOT

from pieline.core.measures import Measure
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import Number
from pieline.reporting.ours import KEYS, OurNumbers
from pieline.reporting.published import load_catalogue
from pieline.results.numbers import Requirements, TableNumbers, all_numbers

PUBLISHED = ROOT / "published"
CATALOGUE = load_catalogue(PUBLISHED / "tables.yaml")
PRINTED = {name: str(PUBLISHED / f"{name}.csv") for name in CATALOGUE}


def given_rows(inputs: DisplayInputs) -> pd.DataFrame:
    """Return our rows as the inputs' options list them: keys, value and other columns."""
    numbers = OurNumbers(inputs.study)
    for row in inputs.options["rows"]:
        decimals = row.get("decimals", 2)
        measure = Measure[float](
            row["measure"], lambda value: value, decimals=decimals, better=row.get("better", "")
        )
        keys = {name: row[name] for name in KEYS if name in row and name != "measure"}
        others = {*KEYS, "ours", "decimals", "better"}
        columns = {name: value for name, value in row.items() if name not in others}
        numbers.add(keys, [measure], row["ours"], **columns)
    return numbers.frame()


def table_of(name: str, *rows: Mapping[str, Any], **fields: Any) -> TableNumbers:
    """Return a table of a run with these rows of ours; `fields` are fields of its inputs."""
    study, options = name.partition("_")[0], {"rows": rows}
    inputs = DisplayInputs(study=study, display=name, options=options, **fields)
    return TableNumbers(ours="frame_cases:given_rows", inputs=inputs)


def numbers_of_run(
    *tables: TableNumbers,
    names: Mapping[str, str] | None = None,
    published: Mapping[str, str] | None = None,
    **fields: Any,
) -> list[Number]:
    """Return all numbers of a run with these tables.

    Args:
        tables: Tables of the run.
        names: Printed names of models by name.
        published: Files with printed numbers; None for all.
        fields: Fields of `Requirements`.
    """
    return all_numbers(
        tables,
        PRINTED if published is None else published,
        CATALOGUE,
        {printed: [name] for name, printed in (names or {}).items()},
        requirements=Requirements.model_validate(fields),
        options=["--configfile", "config/a b.yaml"],
    )


@cache
def _any_number() -> Number:
    return numbers_of_run()[0]


def our_number(ours: float | None, verdict: str = "reproduced", **fields: Any) -> Number:
    """Return a number of ours that counts."""
    values = {"decimals": 9, "reason": "", "counts": True} | fields
    return replace(_any_number(), ours=ours, verdict=verdict, **values)
