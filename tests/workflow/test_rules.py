"""Every rule says what a cluster must know of it, and the SLURM profile places every rule."""

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.api import SnakemakeApi
from snakemake.rules import Rule
from snakemake.settings.types import ConfigSettings, OutputSettings, Quietness, ResourceSettings
from support import ROOT

from pieline.core import code
from pieline.core.code import imports_of, modules_behind
from pieline.study import Study

LONG_MINUTES = 60
"""A rule that asks for at least so much keeps a benchmark of each job."""

GENERATED = {"jam": {"variants": {"source": "generated", "model": "gpt-4o-mini"}}}
CONFIGURATIONS: dict[str, ConfigSettings] = {
    "default": ConfigSettings(),
    "generated variants": ConfigSettings(config=GENERATED),
    **{
        path.name: ConfigSettings(configfiles=[path])
        for path in sorted((ROOT / "config").glob("*.yaml"))
    },
    "rehearsal.yaml": ConfigSettings(
        configfiles=[ROOT / "config/rehearsal.yaml"], config={"rehearsal": {"size": "small"}}
    ),
}


class RuleSet:
    """The rules of the workflow under one configuration that run a command."""

    def __init__(self, settings: ConfigSettings, workdir: Path | None) -> None:
        with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
            workflow = api.workflow(
                resource_settings=ResourceSettings(cores=1),
                config_settings=settings,
                workdir=workdir,
                snakefile=ROOT / "Snakefile",
            )._workflow
            self.rules: list[Rule] = [rule for rule in workflow.rules if rule.shellcmd]
            self.local = set(workflow._localrules)
            self.studies: list[Study[Any]] = workflow.globals["STUDIES"]
            self.targets = set(map(str, workflow.get_rule("all").input))
        self.submitted = [rule for rule in self.rules if rule.name not in self.local]


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def rule_set(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RuleSet]:
    # A rehearsal makes its stand-ins where it is read.
    rehearsed = request.param == "rehearsal.yaml"
    workdir = tmp_path_factory.mktemp("rehearsal") if rehearsed else None
    with pytest.MonkeyPatch.context() as patch:
        # Reading the Snakefile sets both for its jobs.
        patch.setenv("PATH", ".")
        patch.setenv("PYTHONPATH", ".")
        patch.delenv("PIELINE_MIRROR", raising=False)
        patch.chdir(ROOT)
        yield RuleSet(CONFIGURATIONS[request.param], workdir)


@pytest.fixture(scope="module")
def profile() -> dict[str, Any]:
    text = (ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def test_all_makes_every_table_figure_and_item_file(rule_set: RuleSet) -> None:
    for study in rule_set.studies:
        items = study.items()
        declared = [
            *(table.files["tex"] for table in study.tables()),
            *(figure.files["pdf"] for figure in study.figures()),
            *([items.files["parquet"]] if items else []),
            *study.other_targets(),
        ]
        assert len(declared) > 3
        assert [file for file in declared if file not in rule_set.targets] == []


def names(rules: list[Rule], wrong: Callable[[Rule], object]) -> list[str]:
    return sorted(rule.name for rule in rules if wrong(rule))


def script_of(rule: Rule) -> Path:
    """The program that the rule runs: all rules name it as their input `script`."""
    return ROOT / "scripts" / Path(dict(rule.input._allitems())["script"]).name


@cache
def options_of(script: Path) -> set[str]:
    """The options that the program declares, without importing what it needs."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    declared = [
        keyword.arg or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"program", "add_options"}
        for keyword in node.keywords
    ]
    return {f"--{name.replace('_', '-')}" for name in declared}


def growth(rule: Rule, resource: str) -> Callable[..., int] | None:
    """The function that `growing` made of a resource, if that is how the rule asks for it."""
    function = rule.resources[resource]._evaluator
    function = inspect.unwrap(function) if function else None
    return function if function and function.__qualname__.startswith("growing.") else None


def minutes(rule: Rule) -> float:
    """What the first try of a job asks for; endless where that depends on the job."""
    function = growth(rule, "runtime") if "runtime" in rule.resources else None
    if "runtime" not in rule.resources:
        return 10
    amount = inspect.getclosurevars(function).nonlocals["amount"] if function else None
    return amount if isinstance(amount, int) else float("inf")


def test_there_are_rules(rule_set: RuleSet) -> None:
    assert len(rule_set.rules) >= 15
    assert {rule.name for rule in rule_set.rules} >= {"embed_documents", "raw_file"}


def test_the_cluster_grants_memory_and_time_to_what_asks_for_none(profile: dict[str, Any]) -> None:
    granted = profile["default-resources"]
    assert granted["mem_mb"] == "1000 * 2 ** (attempt - 1)"
    assert granted["runtime"] == "10 * 2 ** (attempt - 1)"


@pytest.mark.parametrize("resource", ["mem_mb", "runtime"])
def test_a_retry_gets_twice_of_it(rule_set: RuleSet, resource: str) -> None:
    asking = [rule for rule in rule_set.submitted if resource in rule.resources]
    assert names(asking, lambda rule: growth(rule, resource) is None) == [], "write growing(…)"
    for rule in asking:
        function = growth(rule, resource)
        assert function
        if isinstance(inspect.getclosurevars(function).nonlocals["amount"], int):
            assert function(None, 3) == 4 * function(None, 1), rule.name


SCRIPTS = ["jam_metrics", "table", "items", "estimate_cost"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_rule_names_every_module_that_its_script_loads(name: str) -> None:
    """Python itself says what it loads; imports inside functions come on top."""
    script = ROOT / "scripts" / f"{name}.py"
    told = (
        "import runpy, sys\n"
        f"runpy.run_path({str(script)!r}, run_name='loaded')\n"
        "print(*(name for name in sys.modules if name.partition('.')[0] == 'pieline'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", told], check=True, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert len(loaded) > 10
    assert loaded <= set(modules_behind(imports_of(script)))


def test_modules_loaded_by_name_count_too() -> None:
    """The languages are found by name: a user of one depends on all of them."""
    found = modules_behind(["pieline.languages.registry"])
    assert {"pieline.languages.german", "pieline.languages.italian", "pieline"} <= set(found)
    assert "pieline.study" not in found


@pytest.mark.parametrize("name", ["fine_tune", "bm25_tune"])
def test_a_new_measure_retrains_and_tunes_nothing(name: str) -> None:
    found = modules_behind(imports_of(ROOT / "scripts" / f"{name}.py"))
    assert "pieline.studies.idiolink.metrics.validation" in found
    assert "pieline.studies.idiolink.metrics.ranking" not in found


def test_a_digest_of_code_changes_with_any_module_behind_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = code.code_digest("pieline.languages.matching")
    changed = tmp_path / "errors.py"
    changed.write_bytes(code.source_of("pieline.core.errors").read_bytes() + b"# changed\n")
    monkeypatch.setattr(
        code,
        "source_of",
        lambda name: (
            changed if name == "pieline.core.errors" else ROOT / "src" / "pieline/__init__.py"
        ),
    )
    monkeypatch.setattr(code, "code_digest", code.code_digest.__wrapped__)
    assert code.code_digest("pieline.languages.matching") != before


def test_has_log_and_environment(rule_set: RuleSet) -> None:
    assert names(rule_set.rules, lambda rule: not rule.log) == []
    assert names(rule_set.rules, lambda rule: not rule.conda_env) == []


def test_logs_what_its_program_says(rule_set: RuleSet) -> None:
    assert names(rule_set.rules, lambda rule: "tee {log:q} >&2" not in rule.shellcmd) == []


def test_quotes_what_it_is_given(rule_set: RuleSet) -> None:
    """A clone, a folder or a name may hold a space; what is not quoted are flags of our own."""
    flags = r"params\.(sample|fetch|recorded)"

    def unquoted(rule: Rule) -> list[str]:
        found = re.findall(r"\{([^{}]*)\}", rule.shellcmd)
        bare = [
            name for name in found if not re.fullmatch(rf".*:q|(params\.)?threads|{flags}", name)
        ]
        return bare + re.findall(r'[^"]\$\(.*?\)', rule.shellcmd)

    assert {rule.name: unquoted(rule) for rule in rule_set.rules if unquoted(rule)} == {}
    told = [
        str(rule.params.get(name, "")) for rule in rule_set.rules for name in ("sample", "fetch")
    ]
    assert all(text in {"", "--sample", "--fetch"} or "function" in text for text in told)


def test_names_its_threads_to_a_program_that_takes_them(rule_set: RuleSet) -> None:
    def forgets(rule: Rule) -> bool:
        return "--threads" in options_of(script_of(rule)) and not re.search(
            r"--threads (1|\{(params\.)?threads\})", rule.shellcmd
        )

    assert names(rule_set.rules, forgets) == []


def test_passes_only_options_that_its_program_declares(rule_set: RuleSet) -> None:
    def passed(rule: Rule) -> set[str]:
        given = " ".join([rule.shellcmd, *map(str, rule.params)])
        return set(re.findall(r"(?<!\S)--[a-z][\w-]*", given))

    assert any(map(passed, rule_set.rules))
    assert {rule.name: passed(rule) - options_of(script_of(rule)) for rule in rule_set.rules} == {
        rule.name: set() for rule in rule_set.rules
    }


def test_keeps_a_benchmark_where_it_runs_long(rule_set: RuleSet) -> None:
    long = [rule for rule in rule_set.submitted if minutes(rule) >= LONG_MINUTES]
    assert long
    assert names(long, lambda rule: rule.benchmark is None) == []


def test_the_cluster_has_a_place_for_each_rule(rule_set: RuleSet, profile: dict[str, Any]) -> None:
    """In a group if its jobs are many and small; alone only with a GPU or for long."""
    placeless = names(
        rule_set.submitted,
        lambda rule: (
            rule.name not in profile["groups"]
            and "gpu" not in rule.resources
            and minutes(rule) < LONG_MINUTES
        ),
    )
    assert placeless == [], "name their group in profiles/slurm/config.yaml"


def test_no_gpu_waits_in_a_group(rule_set: RuleSet, profile: dict[str, Any]) -> None:
    with_gpu = [rule for rule in rule_set.rules if "gpu" in rule.resources]
    assert with_gpu
    assert names(with_gpu, lambda rule: rule.name in profile["groups"]) == []


def test_language_models_are_asked_in_one_submission(
    rule_set: RuleSet, profile: dict[str, Any]
) -> None:
    """The lock that keeps a provider's limits holds between processes of one node."""
    groups, sizes = profile["groups"], profile["group-components"]
    asking = [
        rule
        for rule in rule_set.submitted
        # What a served model's own job has recorded is only read.
        if "LLM_SETTINGS" in rule.shellcmd and not rule.name.endswith("_served")
    ]
    assert names(asking, lambda rule: sizes.get(groups.get(rule.name), 1) < 10_000) == []


def test_the_profile_names_only_rules_that_exist(profile: dict[str, Any]) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "rules").rglob("*.smk"))]
    named = r"^\s*(?:(?:rule|checkpoint) |use rule \w+ as )(\w+)(?::| with:)"
    known = set(re.findall(named, "\n".join(texts), flags=re.MULTILINE))
    # Rules that ask language models have their names from the studies.
    declared = [
        path.read_text(encoding="utf-8") for path in ROOT.glob("src/pieline/studies/*/study.py")
    ]
    askings = set(re.findall(r'LLMTaskSpec\(\s*(?:name=)?"(\w+)"', "\n".join(declared)))
    known |= askings | {f"{name}_served" for name in askings}
    assert set(profile["groups"]) - known == set()
    assert set(profile["set-resources"]) - known == set()
    assert set(profile["groups"].values()) == set(profile["group-components"])
