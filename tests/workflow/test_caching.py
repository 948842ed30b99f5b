"""Changes make exactly those jobs stale that depend on them (contract 1 of the design).

For each kind of change, the plan of a dry run is compared with the workflow's graph: the jobs that
the change affects directly, and all that depend on them.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import copy_run, succeed

CHAT = "smollm2-135m-instruct"
TAGGER = "minilm-tagger"
COMPUTES_VECTORS = {"embed", "rank_by_embedding", "bm25_search"}
TRAINS = {"fine_tune", "fine_tune_tagger"}


@dataclass(frozen=True)
class Job:
    """Job of a plan."""

    rule: str
    inputs: frozenset[str]
    outputs: frozenset[str]
    modules: frozenset[str]
    reason: str

    @property
    def name(self) -> tuple[str, str]:
        return self.rule, min(self.outputs)

    def is_of(self, model: str) -> bool:
        """Return whether the job uses a model."""
        return any(re.search(rf"/{re.escape(model)}(?=[/+.])", path) for path in self.outputs)


@dataclass(frozen=True)
class Change:
    """Change of a file, and the jobs that the change affects directly."""

    path: str
    edit: Callable[[str], str]
    touches: Callable[[Job], bool]


def entry(model: str, old: str, new: str) -> Callable[[str], str]:
    """Return an edit that changes one field of a model's entry."""

    def edit(text: str) -> str:
        match = re.search(rf"^{re.escape(model)}:\n(?:  .*\n|\n)+", text, flags=re.MULTILINE)
        assert match
        assert match[0].count(old) == 1, match[0]
        return text.replace(match[0], match[0].replace(old, new))

    return edit


def replaced(old: str, new: str) -> Callable[[str], str]:
    """Return an edit that replaces a unique text."""

    def edit(text: str) -> str:
        assert text.count(old) == 1, (old, text.count(old))
        return text.replace(old, new)

    return edit


def commented(text: str) -> str:
    """Return the text with a comment at its end."""
    return text + "\n# changed\n"


def module(path: str) -> Change:
    """Return a change of a module; the change affects the jobs that load the module."""
    return Change(path, commented, lambda job: path in job.modules)


def file(path: str, edit: Callable[[str], str] = commented) -> Change:
    """Return a change of a file; the change affects the jobs that have the file as input."""
    return Change(path, edit, lambda job: path in job.inputs)


LIBRARY = "src/pieline"
CHANGES = {
    "a chat model's entry": Change(
        "models.yaml",
        entry(CHAT, "context_length: 4096", "context_length: 4095"),
        lambda job: job.is_of(CHAT) and "/predictions/" in min(job.outputs)
        and not min(job.outputs).endswith(("cases.csv", "cases.jsonl")),
    ),
    "an encoder's entry": Change(
        "models.yaml",
        entry(TAGGER, "max_length: 512", "max_length: 511"),
        lambda job: job.rule == "fine_tune_tagger",
    ),
    "an embedder's entry": Change(
        "models.yaml",
        entry("sbert", "batch_size: 64", "batch_size: 32"),
        lambda job: job.rule in {"embed", "fine_tune"}
        and (job.is_of("sbert") or "/sbert/" in min(job.outputs)),
    ),
    "an embedder's way of writing queries": Change(
        "models.yaml",
        entry("sbert", "instruction_newline_query", "instruct_query"),
        lambda job: job.rule == "embed" and job.is_of("sbert"),
    ),
    "BM25's grid": Change(
        "config.yaml",
        replaced("models: [bm25, sbert]",
                 "models: [bm25, sbert]\n  bm25: {k1: [0.6, 0.9]}"),
        lambda job: job.rule == "bm25_tune",
    ),
    "a prompt": file("prompts/idiots/detect.jinja"),
    "a setting": Change(
        "config/sample.yaml",
        replaced("{zero_shot: 96", "{zero_shot: 95"),
        lambda job: job.rule == "prompt_idioms" and "/zero_shot/" in min(job.outputs),
    ),
    "the form of fine-tuning": Change(
        "config/sample.yaml",
        replaced("finetuning: {seeds", "finetuning: {form: released, seeds"),
        lambda job: job.rule == "fine_tune"
        or "idiolink_hyperparameters" in min(job.outputs),
    ),
    "a table's function": module(f"{LIBRARY}/studies/idiots/tables.py"),
    "a module of one study": module(f"{LIBRARY}/studies/idiolink/metrics/scores.py"),
    "a script": module("scripts/jam_metrics.py"),
    "a language": module(f"{LIBRARY}/languages/german.py"),
    "a module of llm": module(f"{LIBRARY}/llm/parsing.py"),
    "a template": file("templates/table.html.jinja", lambda text: text + "\n"),
    "printed numbers": file("published/idiolink_bm25.csv", lambda text: text + "\n"),
}  # fmt: skip


def plan(folder: Path, *arguments: str) -> list[Job]:
    """Return the jobs of a dry run."""
    result = succeed(folder, "-n", "-p", *arguments)
    text = result.stdout + result.stderr
    jobs = []
    for rule, body in re.findall(r"(?m)^(?:local)?rule (\w+):\n((?:    .*\n)*)", text):
        files = {
            kind: frozenset(", ".join(re.findall(rf"(?m)^    {kind}: (.*)$", body)).split(", "))
            for kind in ("input", "output")
        }
        reason = re.search(r"(?m)^    reason: (.*)$", body)
        if rule != "all":
            assert reason
            loaded = recorded_modules(folder, min(files["output"]))
            jobs.append(Job(rule, files["input"], files["output"], loaded, reason[1]))
    return jobs


def recorded_modules(folder: Path, output: str) -> frozenset[str]:
    """Return the modules among the recorded params of the job that made a file."""
    name = base64.urlsafe_b64encode(output.encode()).decode()
    parts = [name[start : start + 254] for start in range(0, len(name), 254)]
    path = folder.joinpath(".snakemake/metadata", *(f"@{part}" for part in parts[:-1]), parts[-1])
    params = json.loads(path.read_text(encoding="utf-8"))["params"] if path.exists() else []
    return frozenset(
        re.findall(r"'((?:scripts|src/pieline)/\S+\.py) [0-9a-f]{16}'", "\n".join(params))
    )


def dependants(jobs: list[Job], touched: list[Job]) -> list[Job]:
    """Return the affected jobs and all jobs that depend on them."""
    affected = list(touched)
    outputs = set().union(*(job.outputs for job in touched))
    while more := [job for job in jobs if job not in affected and job.inputs & outputs]:
        affected += more
        outputs.update(*(job.outputs for job in more))
    return affected


@pytest.fixture(scope="module")
def folder(default_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the finished default run; each test restores the copy."""
    return copy_run(default_run, tmp_path_factory.mktemp("caching") / "project")


@pytest.fixture(scope="module")
def everything(folder: Path) -> list[Job]:
    """Return all jobs of the default run."""
    return plan(folder, "--forceall")


TOGETHER = [
    ("a chat model's entry", "an embedder's entry"),
    ("an encoder's entry", "an embedder's way of writing queries"),
    ("BM25's grid", "a prompt", "a setting"),
    ("the form of fine-tuning", "a table's function"),
    ("a module of one study", "a script"),
    ("a language",),
    ("a module of llm",),
    ("a template",),
    ("printed numbers",),
]
"""Changes that affect different studies directly, so that one plan shows the jobs of each."""


def test_every_change_is_planned() -> None:
    assert {name for names in TOGETHER for name in names} == CHANGES.keys()


@pytest.mark.parametrize("names", TOGETHER, ids=", ".join)
def test_the_plan_has_exactly_the_jobs_that_depend_on_changes(
    names: tuple[str, ...], folder: Path, everything: list[Job]
) -> None:
    changes = [CHANGES[name] for name in names]
    before = {change.path: (folder / change.path).read_text("utf-8") for change in changes}
    try:
        for change in changes:
            assert any(map(change.touches, everything)), "the change touches no job"
            path = folder / change.path
            path.write_text(change.edit(path.read_text("utf-8")), "utf-8")
        planned = plan(folder)
    finally:
        for name, text in before.items():
            (folder / name).write_text(text, "utf-8")
    touched = [job for job in everything if any(change.touches(job) for change in changes)]
    expected = {job.name for job in dependants(everything, touched)}
    assert {job.name for job in planned} == expected
    outputs = set().union(*(job.outputs for job in planned))
    first = [job for job in planned if not job.inputs & outputs]
    for change in changes:
        if change.path.endswith(".py"):
            of_change = [job.reason for job in first if change.touches(job)]
            assert all(f"changed {change.path}" in reason for reason in of_change)


def test_changes_of_languages_and_llm_rerun_no_embedding_ranking_or_training(
    everything: list[Job],
) -> None:
    for name in ("a language", "a module of llm"):
        touched = [job for job in everything if CHANGES[name].touches(job)]
        rules = {job.rule for job in dependants(everything, touched)}
        assert not rules & (COMPUTES_VECTORS | TRAINS)


def test_changes_without_effect_on_results_rerun_nothing(folder: Path) -> None:
    """Change comments in models.yaml, and how models are asked."""
    models, config = folder / "models.yaml", folder / "config.yaml"
    before = {path: path.read_text(encoding="utf-8") for path in (models, config)}
    noted = entry("sbert", "label: SBERT", "label: SBERT  # another")(before[models])
    models.write_text(commented(noted), encoding="utf-8")
    asked = replaced("mode: record", "mode: replay\n  timeout_s: 60")(before[config])
    config.write_text(asked, encoding="utf-8")
    try:
        # Provenance contains the full configuration.
        assert {job.rule for job in plan(folder)} <= {"provenance"}
    finally:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")


def test_nothing_is_stale_after_touching_every_file(folder: Path) -> None:
    for path in [*folder.glob("src/**/*.py"), *folder.glob("scripts/*.py")]:
        path.touch()
    (folder / "models.yaml").touch()
    assert plan(folder) == []
