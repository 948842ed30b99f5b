"""Fixtures of the tests of claims."""

import pytest
from claims_cases import Ledger
from frame_cases import CATALOGUE, PUBLISHED

from pieline.results.claims.claim import load_claims
from pieline.results.claims.tables import load_printed


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    printed = load_printed(PUBLISHED, CATALOGUE)
    return Ledger(CATALOGUE, printed, load_claims(PUBLISHED / "claims.yaml"))
