"""What tests of the ledger share."""

from typing import NamedTuple

from support import ROOT

from pieline.results.claims.claim import Claim
from pieline.results.claims.tables import PrintedNumbers, PrintedTable

PUBLISHED = ROOT / "published"


class Ledger(NamedTuple):
    """What published/ holds."""

    catalogue: dict[str, PrintedTable]
    printed: PrintedNumbers
    claims: list[Claim]
