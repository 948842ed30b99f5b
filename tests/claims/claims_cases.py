"""Shared helpers of the tests of claims."""

from typing import NamedTuple

from pieline.reporting.published import PrintedTable
from pieline.results.claims.claim import Claim
from pieline.results.claims.tables import PrintedNumbers


class Ledger(NamedTuple):
    """Contents of published/."""

    catalogue: dict[str, PrintedTable]
    printed: PrintedNumbers
    claims: list[Claim]
