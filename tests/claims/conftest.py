"""Fixtures of the tests of claims."""

import pytest
from claims_cases import PUBLISHED, Ledger

from pieline.results.claims.claim import load_claims
from pieline.results.claims.tables import load_catalogue, load_printed


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    catalogue = load_catalogue(PUBLISHED / "tables.yaml")
    printed = load_printed(PUBLISHED, catalogue)
    return Ledger(catalogue, printed, load_claims(PUBLISHED / "claims.yaml"))
