"""`snakemake --profile profiles/paper -n` plans the full study."""

import re
from pathlib import Path

from support import succeed

from pieline.reporting.printed import read_published

MODES = 4
SEEDS = 3
EMBEDDERS = 24
COMPOSITIONS = 3
# Models in Table 5, training modes, and losses.
TRAININGS = 5 * 4 * 2
# With and without instructions: two query modes after training on sentences, one on spans.
EVALUATIONS = 5 * 2 * (2 + 1) * 2


def test_the_whole_grid(project: Path) -> None:
    result = succeed(project, "--profile", "profiles/paper", "-n", "-q", "rules")
    text = result.stdout + result.stderr
    # The plan ends with the models that are left out: one line per reason, each model once.
    lines = [line for line in result.stderr.splitlines() if line.startswith("left out of ")]
    assert result.stderr.endswith("\n".join(lines) + "\n")
    assert len(lines) < 10
    named = [
        name
        for line in lines
        if "_neutral" not in line
        for name in re.findall(r"[:,] (\S+), \d+ run", line)
    ]
    assert sorted(named) == sorted({*named})
    assert {"gpt-4o", "llama-4-scout", "deepseek-r1", "vicuna-7b"} <= {*named}
    assert len(named) == 12
    jobs = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)}
    assert jobs["fine_tune"] == TRAININGS * SEEDS
    assert jobs["embed"] == EMBEDDERS + TRAININGS * SEEDS
    assert jobs["rank_by_embedding"] == EMBEDDERS * COMPOSITIONS + TRAININGS * SEEDS
    zero_shot = EMBEDDERS * MODES * COMPOSITIONS
    bm25 = 2 * COMPOSITIONS
    assert jobs["idiolink_metrics"] == zero_shot + bm25 + EVALUATIONS * SEEDS
    # Only models trained on sentences have two modes to compare.
    assert jobs["idiolink_significance"] == EMBEDDERS + 1 + TRAININGS // 2 * SEEDS
    # The mined tuples are public, so none are sampled.
    assert jobs["released_tuples"] == 1
    assert "sampled_tuples" not in jobs
    keys = ["train_mode", "model", "query_mode"]
    assert len(read_published(project / "published/idiolink_table5.csv", keys)) * 2 == EVALUATIONS
