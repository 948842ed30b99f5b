"""A run of its own on one core: the bytes of the default run on two."""

from pathlib import Path

from support import output_digests, run_snakemake

METRICS = "results/metrics/idiolink"
ASKED = [
    "paper_tables/idiolink_bm25.tex",
    "paper_tables/idiolink_dataset.tex",
    "paper_tables/jam_statistics.tex",
    f"{METRICS}/test/bm25/significance/seed-0.json",
    f"{METRICS}/test-lit_idiom/bm25/sentence/seed-0.json",
]
"""What no other test makes twice: others embed on a cluster, ask models again and train again."""


def test_run_from_scratch_with_one_core_gives_the_same_bytes(
    project: Path, default_run: Path
) -> None:
    result = run_snakemake(project, "--cores", "1", *ASKED)
    assert result.returncode == 0, result.stderr[-4000:]
    again = output_digests(project)
    assert set(ASKED) <= set(again)
    assert len(again) > 10
    before = output_digests(default_run)
    assert again == {name: before[name] for name in again}
