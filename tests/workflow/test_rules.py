"""Rules declare what clusters and reruns need, and the SLURM profile covers every rule."""

import ast
import hashlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from snakemake.api import SnakemakeApi
from snakemake.rules import Rule
from snakemake.settings.types import ConfigSettings, OutputSettings, Quietness, ResourceSettings
from support import ROOT

from pieline.core import code
from pieline.core.code import imports_of, modules_behind, source_of
from pieline.study import Study

LONG_MINUTES = 60
"""Rules that request at least this runtime must keep a benchmark."""

UNREAD = {
    # The task reads and writes these files; `fresh` only makes jobs stale.
    "ask": {
        "input.files", "output.predictions", "output.report", "output.texts", "output.variants",
        "output.vectors", "output.verdicts", "params.fresh",
    },
    "serve": {"input.files"},
    # Read or written through the folder of another file.
    "numbers": {"input.published", "input.files"},
    "idiolink_checks": {"input.data"},
    "idiolink_composition": {
        "input.documents", "input.queries",
        "output.documents", "output.meanings", "output.qrels", "output.queries",
    },
    "idiolink_dataset": {
        "output.documents", "output.meanings", "output.qrels", "output.queries",
    },
    "idiolink_metrics": {"input.meanings"},
    "idiots_dataset": {"output.sentences"},
    "idiots_metrics": {"params.fresh"},
    "jam_metrics": {"params.fresh"},
    "jam_neutral_metrics": {"params.fresh"},
    "embed": {"output.manifests", "input.local"},
    # Weights whose path is in the model's entry; `threads` only makes the job stale.
    "fine_tune": {"input.local", "params.threads"},
    "fine_tune_tagger": {"input.model_files"},
    "jam_attention": {"input.model_files"},
    "late_interaction": {"input.local"},
    "rerank": {"input.local"},
    "unpack_weights": {"input.local"},
    # Read through paths in the params.
    "table": {"input.files"},
    "figure": {"input.files"},
    "items": {"input.predictions", "input.files"},
    "paper_pdf": {"input.figures", "input.latex", "input.ledger"},
    "paper_source": {"input.figures", "input.latex", "input.ledger", "input.tables"},
    "provenance": {
        "input.figures", "input.html", "input.latex", "input.metrics", "input.tables",
    },
    "results_page": {
        "input.predictions", "input.figures", "input.html", "input.parts", "input.tables",
    },
}  # fmt: skip
"""Names that rules declare and their scripts do not read."""

RULES_FILES = sorted(ROOT.glob("rules/*.smk"))
SCRIPT_FILES = {path.stem: path for path in sorted(ROOT.glob("scripts/*.py"))}

MODELS = ("smollm2-135m-instruct", "minilm-tagger")
"""A language model and an encoder."""

GENERATED = {"jam": {"variants": {"source": "generated", "model": "gpt-4o-mini"}}}
CONFIGURATIONS: dict[str, ConfigSettings] = {
    "default": ConfigSettings(),
    "generated variants": ConfigSettings(config=GENERATED),
    **{
        path.name: ConfigSettings(configfiles=[path])
        for path in sorted((ROOT / "config").glob("*.yaml"))
    },
}


class RuleSet:
    """Rules of the workflow with a script, under one configuration."""

    def __init__(self, settings: ConfigSettings) -> None:
        with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
            workflow = api.workflow(
                resource_settings=ResourceSettings(cores=1),
                config_settings=settings,
                snakefile=ROOT / "Snakefile",
            )._workflow
            self.rules: list[Rule] = [rule for rule in workflow.rules if rule.script]
            self.others = {rule.name for rule in workflow.rules} - {
                rule.name for rule in self.rules
            }
            self.local = set(workflow._localrules)
            known = {"table": "TABLES", "figure": "FIGURES", "study": "ITEMS"}
            self.wildcards = {name: min(workflow.globals[all_]) for name, all_ in known.items()}
            self.studies: list[Study[Any]] = workflow.globals["STUDIES"]
            self.targets = set(map(str, workflow.get_rule("all").input))
        self.submitted = [rule for rule in self.rules if rule.name not in self.local]


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def rule_set(request: pytest.FixtureRequest) -> Iterator[RuleSet]:
    with pytest.MonkeyPatch.context() as patch:
        # When it is parsed, the Snakefile sets this variable for its jobs.
        patch.setenv("PYTHONPATH", ".")
        patch.delenv("PIELINE_MIRROR", raising=False)
        patch.chdir(ROOT)
        yield RuleSet(CONFIGURATIONS[request.param])


@pytest.fixture(scope="module")
def profile() -> dict[str, Any]:
    text = (ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


@pytest.mark.parametrize("mode", ["record", "fresh"])
def test_answers_that_are_asked_again_make_their_metrics_stale(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, metrics stay when the job that asks fails, and the next run lacks predictions."""
    monkeypatch.setenv("PYTHONPATH", ".")
    monkeypatch.chdir(ROOT)
    rules = RuleSet(ConfigSettings(config={"llm": {"mode": mode}})).rules
    fresh = {rule.name: rule.params.fresh for rule in rules if "fresh" in rule.params.keys()}  # noqa: SIM118
    metrics = {name for name in fresh if name.endswith("_metrics")}
    assert metrics == {"idiots_metrics", "jam_metrics", "jam_neutral_metrics"}
    for name in metrics:
        asked = [fresh[name](SimpleNamespace(model=model)) for model in MODELS]
        assert asked == [mode == "fresh", False]


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
    """Return the script of a rule."""
    return (ROOT / str(rule.basedir) / rule.script).resolve()


@cache
def attributes_of(script: Path) -> set[str]:
    """Return the attributes of `snakemake` that a script reads, such as `input.tuning`."""
    text = script.read_text(encoding="utf-8")
    conditions = {"params.conditions"} if re.search(r"j\.(conditions|evidence)\b", text) else set()
    return conditions | {
        f"{node.value.attr}.{node.attr}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and ast.unparse(node.value.value) == "snakemake"
    }


def declared(rule: Rule) -> set[str]:
    """Return the names that a rule declares, such as `input.tuning`."""
    declared_names = {f"wildcards.{name}" for name in rule.wildcard_names}
    for part in ("input", "output", "params"):
        items = getattr(rule, part)._allitems()
        declared_names |= {f"{part}.{name}" for name, _ in items if name}
    return declared_names


def modules_of(rule: Rule, wildcards: Mapping[str, str]) -> set[str]:
    """Return the params of a rule that are a script or module with its digest."""
    values = [value for name, value in rule.params._allitems() if not name]
    return {value(wildcards) if callable(value) else value for value in values}


def growth(rule: Rule, resource: str) -> Callable[..., int] | None:
    """Return the function that `growing` returned for a resource; None if it did not."""
    function = rule.resources[resource]._evaluator
    function = inspect.unwrap(function) if function else None
    return function if function and function.__qualname__.startswith("growing.") else None


def minutes(rule: Rule) -> float:
    """Return the runtime of a job's first attempt; infinite if it depends on the wildcards."""
    function = growth(rule, "runtime") if "runtime" in rule.resources else None
    if "runtime" not in rule.resources:
        return 10
    amount = inspect.getclosurevars(function).nonlocals["amount"] if function else None
    return amount if isinstance(amount, int) else float("inf")


@pytest.mark.parametrize("resource", ["mem_mb", "runtime"])
def test_a_retry_gets_twice_the_resources(rule_set: RuleSet, resource: str) -> None:
    asking = [rule for rule in rule_set.submitted if resource in rule.resources]
    assert names(asking, lambda rule: growth(rule, resource) is None) == [], "write growing(…)"
    for rule in asking:
        function = growth(rule, resource)
        assert function
        if isinstance(inspect.getclosurevars(function).nonlocals["amount"], int):
            assert function(None, 3) == 4 * function(None, 1), rule.name


SCRIPTS = ["jam_metrics", "table", "items", "estimate_cost"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_rule_lists_every_module_that_its_script_loads(name: str) -> None:
    """Compare with the modules that Python loads, plus imports inside functions."""
    script = ROOT / "scripts" / f"{name}.py"
    program = (
        "import ast, sys\n"
        f"tree = ast.parse(open({str(script)!r}).read())\n"
        "imports = ast.Import | ast.ImportFrom\n"
        "tree.body = [node for node in tree.body if isinstance(node, imports)]\n"
        "exec(compile(tree, 'imports', 'exec'))\n"
        "print(*(name for name in sys.modules if name.partition('.')[0] == 'pieline'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert len(loaded) > 10
    assert loaded <= set(modules_behind(imports_of(script)))


def test_modules_loaded_by_name_count_too() -> None:
    """Languages are imported by name, so a module that uses one depends on all of them."""
    modules = modules_behind(["pieline.languages.registry"])
    assert {"pieline.languages.german", "pieline.languages.italian", "pieline"} <= set(modules)
    assert "pieline.study" not in modules


@pytest.mark.parametrize("name", ["fine_tune", "bm25_tune"])
def test_a_change_of_metrics_reruns_no_training_or_tuning(name: str) -> None:
    modules = modules_behind(imports_of(ROOT / "scripts" / f"{name}.py"))
    assert "pieline.studies.idiolink.metrics.validation" in modules
    assert "pieline.studies.idiolink.metrics.scores" not in modules


def test_a_code_digest_changes_with_any_imported_module(
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


def test_every_rule_runs_a_script_and_every_script_is_run(rule_set: RuleSet) -> None:
    assert rule_set.others == {"all"}
    assert names(rule_set.rules, lambda rule: not script_of(rule).is_file()) == []
    texts = [path.read_text(encoding="utf-8") for path in RULES_FILES]
    run = set(re.findall(r'"(?:\.\./)?scripts/(\w+)\.py"', "\n".join(texts)))
    assert run == set(SCRIPT_FILES)


def test_a_rule_lists_script_and_modules_with_digests(rule_set: RuleSet) -> None:
    for rule in rule_set.rules:
        script = script_of(rule)
        sources = [script, *map(source_of, modules_behind(imports_of(script)))]
        expected = {
            f"{path.resolve().relative_to(ROOT)}"
            f" {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
            for path in sources
        }
        runs_anyway = not rule.output or rule.name == "serve"
        named = modules_of(rule, rule_set.wildcards)
        assert (not named) if runs_anyway else named >= expected, rule.name


def test_a_rule_declares_what_its_script_reads(rule_set: RuleSet) -> None:
    def undeclared(rule: Rule) -> set[str]:
        return attributes_of(script_of(rule)) - declared(rule)

    assert {rule.name: undeclared(rule) for rule in rule_set.rules if undeclared(rule)} == {}
    for rule in rule_set.rules:
        # Uses without a name are by position.
        text = (
            script_of(rule).read_text(encoding="utf-8").replace("j.write(", "snakemake.output[0]")
        )
        for part in re.findall(r"snakemake\.(input|output)\b(?!\.)", text):
            items = getattr(rule, part)._allitems()
            assert None in {name for name, _ in items}, f"{rule.name}: {part}"


def test_a_script_reads_what_its_rule_declares(rule_set: RuleSet) -> None:
    """Check that every declared name is read by the script or listed in UNREAD."""

    def unread(rule: Rule) -> set[str]:
        script = script_of(rule)
        named = {name for name in declared(rule) if not name.startswith("wildcards.")}
        # `contents` only makes the job stale.
        return named - attributes_of(script) - UNREAD.get(script.stem, set()) - {"params.contents"}

    assert {rule.name: unread(rule) for rule in rule_set.rules if unread(rule)} == {}


def test_the_profile_covers_every_rule(rule_set: RuleSet, profile: dict[str, Any]) -> None:
    """Small jobs must be in a group; only long jobs and jobs with a GPU may be separate."""
    placeless = names(
        rule_set.submitted,
        lambda rule: (
            rule.name not in profile["groups"]
            and "gpu" not in rule.resources
            and minutes(rule) < LONG_MINUTES
        ),
    )
    assert placeless == [], "name their group in profiles/slurm/config.yaml"


def test_no_gpu_job_is_in_a_group(rule_set: RuleSet, profile: dict[str, Any]) -> None:
    with_gpu = [rule for rule in rule_set.rules if "gpu" in rule.resources]
    assert with_gpu
    assert names(with_gpu, lambda rule: rule.name in profile["groups"]) == []


def test_language_models_are_asked_in_one_submission(
    rule_set: RuleSet, profile: dict[str, Any]
) -> None:
    """The lock that enforces a provider's limits works only within a node."""
    groups, sizes = profile["groups"], profile["group-components"]
    asking = [
        rule
        for rule in rule_set.submitted
        # Answers of served models are only read from the recordings.
        if rule.script.endswith("/ask.py") and not rule.name.endswith("_served")
    ]
    assert names(asking, lambda rule: sizes.get(groups.get(rule.name), 1) < 10_000) == []


def test_the_profile_names_only_rules_that_exist(profile: dict[str, Any]) -> None:
    texts = [path.read_text(encoding="utf-8") for path in RULES_FILES]
    named = r"^\s*(?:(?:rule|checkpoint) |use rule \w+ as )(\w+)(?::| with:)"
    known = set(re.findall(named, "\n".join(texts), flags=re.MULTILINE))
    assert set(profile["groups"]) - known == set()
    assert set(profile["set-resources"]) - known == set()
    assert set(profile["groups"].values()) == set(profile["group-components"])
