"""Shared helpers of the tests of claims."""

from typing import NamedTuple

from support import ROOT

from pieline.results.claims.claim import Claim
from pieline.results.claims.tables import PrintedNumbers, PrintedTable

PUBLISHED = ROOT / "published"


class Ledger(NamedTuple):
    """Contents of published/."""

    catalogue: dict[str, PrintedTable]
    printed: PrintedNumbers
    claims: list[Claim]
