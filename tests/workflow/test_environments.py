"""The conda environments and container recipes agree with the lock file."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support import ROOT

ENVS = ROOT / "envs"
KINDS = ["core", "llm", "gpu", "report"]


def lock(name: str) -> set[str]:
    """Return the pins of a lock file without hashes."""
    text = (ENVS / name).read_text(encoding="utf-8")
    return set(re.findall(r"^([^#\s]\S+)", text, flags=re.MULTILINE))


def environment(kind: str) -> dict[str, Any]:
    return dict(yaml.safe_load((ENVS / f"{kind}.yaml").read_text(encoding="utf-8")))


def pins(kind: str) -> list[str]:
    """Return the packages that pip installs into a conda environment."""
    [packages] = [
        part["pip"] for part in environment(kind)["dependencies"] if isinstance(part, dict)
    ]
    return list(packages)


def installed_after(kind: str) -> list[str]:
    """Return the packages that are installed after a conda environment was created."""
    script = ENVS / f"{kind}.post-deploy.sh"
    text = script.read_text(encoding="utf-8") if script.exists() else ""
    return re.findall(r"^python -m pip install --no-deps (\S+)$", text, flags=re.MULTILINE)


def tool(name: str) -> Any:
    """Import a program of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_environment_files_match_their_program() -> None:
    """The program includes all requirements of the packages."""
    conda_environments = tool("conda_environments")
    assert sorted(conda_environments.DIRECT) == sorted(KINDS)
    for kind in KINDS:
        text = (ENVS / f"{kind}.yaml").read_text(encoding="utf-8")
        assert text == conda_environments.environment(kind), "run tools/conda_environments.py"
        assert set(installed_after(kind)) - lock("requirements-no-deps.lock") == set()


def test_the_environment_of_gpu_jobs_pins_cuda() -> None:
    """torch of the index requires it on Linux; the other environments have no torch."""
    cuda = {
        f"{pin}; platform_system == 'Linux' and platform_machine == 'x86_64'"
        for pin in lock("requirements-cuda.lock")
    }
    assert cuda
    for kind in KINDS:
        assert cuda & {*pins(kind)} == (cuda if kind == "gpu" else set())


def rules() -> Iterator[tuple[str, Path, str]]:
    """Return the name, script and environment of each rule in any configuration."""
    for path in sorted(ROOT.glob("rules/*.smk")):
        text = path.read_text(encoding="utf-8")
        for part in re.split(r"^ *(?:rule|checkpoint) (?=\w+:)", text, flags=re.MULTILINE)[1:]:
            script = re.search(r'"((?:\.\./)?scripts/\w+\.py)"', part)
            kind = re.search(r'"\.\./envs/(\w+)\.yaml"', part)
            assert script, part
            assert kind, part
            yield part.split(":")[0], path.parent / script[1], kind[1]


FOLDERS = {"pieline": ROOT / "src", "rehearsal": ROOT}
"""Folders of the project's own packages."""


@cache
def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def reached(script: Path) -> set[str]:
    """Return the external top-level modules that a program imports directly or indirectly."""
    waiting, seen, others = [script], {script}, set()
    while waiting:
        for name in imports(waiting.pop()):
            parts = name.split(".")
            if parts[0] not in FOLDERS:
                others |= {parts[0]} - sys.stdlib_module_names
                continue
            for depth in range(1, len(parts) + 1):
                place = FOLDERS[parts[0]].joinpath(*parts[:depth])
                for module in (place / "__init__.py", place.with_suffix(".py")):
                    if module.is_file() and module not in seen:
                        seen.add(module)
                        waiting.append(module)
    return others


def test_each_environment_has_the_imports_of_its_rules() -> None:
    providers = metadata.packages_distributions()
    lacking = []
    for rule, script, kind in rules():
        present = {canonicalize_name(pin.split("==")[0]) for pin in pins(kind)}
        for module in sorted(reached(script)):
            packages = {canonicalize_name(name) for name in providers.get(module, [module])}
            if not packages & present:
                lacking.append(f"{rule}: {module} is not in envs/{kind}.yaml")
    assert lacking == []


@pytest.mark.parametrize("name", ["", "-cpu", "-cuda", "-dev", "-no-deps"])
def test_each_pin_has_hashes(name: str) -> None:
    text = (ENVS / f"requirements{name}.lock").read_text(encoding="utf-8")
    hashes = r" \\\n    --hash=sha256:[0-9a-f]{64}"
    assert re.fullmatch(rf"#[^\n]+\n(?:[\w.-]+==[\w.+]+(?:{hashes})+\n)+", text)


def names(*locks: str) -> set[str]:
    """Return the canonical names of the packages in lock files."""
    return {canonicalize_name(pin.split("==")[0]) for name in locks for pin in lock(name)}


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_locks_have_all_requirements() -> None:
    """Packages are installed without resolving their requirements."""
    closure = tool("conda_environments").closure
    locked = names("requirements.lock", "requirements-cuda.lock")
    project = pyproject()
    assert closure(project["project"]["dependencies"]) - locked == set()
    assert closure(project["dependency-groups"]["dev"]) - names("requirements-dev.lock") == set()
    # The locks list the packages of all supported platforms and versions of Python.
    installed = {canonicalize_name(package.name) for package in metadata.distributions()}
    assert closure(sorted(locked & installed)) - locked == set()


def test_the_project_declares_what_it_imports() -> None:
    declared = {
        canonicalize_name(Requirement(text).name) for text in pyproject()["project"]["dependencies"]
    }
    providers = metadata.packages_distributions()
    own = {"pieline", "rehearsal", "snakemake_logger_plugin_pieline"}
    undeclared = set()
    for folder in ("src", "scripts", "rehearsal"):
        for path in (ROOT / folder).rglob("*.py"):
            if "tests" in path.relative_to(ROOT).parts:
                continue
            for module in {name.split(".")[0] for name in imports(path)} - own:
                packages = {canonicalize_name(name) for name in providers.get(module, [])}
                if module not in sys.stdlib_module_names and not packages & declared:
                    undeclared.add(module)
    # pydantic requires both, pydantic_core in exactly one version.
    assert undeclared == {"pydantic_core", "typing_extensions"}


def bounds() -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the oldest supported Python version and the first unsupported one after it."""
    low, high = re.findall(r"3\.(\d+)", pyproject()["project"]["requires-python"])
    return (3, int(low)), (3, int(high))


def test_ci_runs_on_the_oldest_and_newest_python() -> None:
    path = ROOT / ".github" / "workflows" / "ci.yml"
    # YAML 1.1 parses the key `on` as true.
    forge = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert forge["permissions"] == {"contents": "read"}
    linux = forge["jobs"]["run"]
    (_, low), (_, high) = bounds()
    assert linux["strategy"]["matrix"]["python"] == [f"3.{low}", f"3.{high - 1}"]
    assert "${{ matrix.python }}" in linux["container"]


@pytest.mark.parametrize(("system", "asks_for_cuda"), [("Linux", True), ("Darwin", False)])
def test_make_installs_cuda_only_on_linux(
    system: str, asks_for_cuda: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even torch's macOS wheel lists its requirements for Linux."""
    (tmp_path / "uname").write_text(f"#!/bin/sh\necho {system}\n", encoding="utf-8")
    (tmp_path / "uname").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    shown = subprocess.check_output(["make", "-B", "-n", "environment"], cwd=ROOT, text=True)
    assert ("requirements-cuda.lock" in shown) is asks_for_cuda
    assert "requirements.lock" in shown


def test_make_rejects_an_unsupported_python_and_one_without_venv() -> None:
    problem = tool("check_python").problem
    (three, low), (_, high) = bounds()
    supported = f">=3.{low},<3.{high}"
    for minor in range(low, high):
        assert problem((three, minor), supported, ["ensurepip"]) is None
    for minor in (low - 1, high):
        assert f"Python 3.{minor} is not supported" in problem((three, minor), supported, [])
    lacking = problem((three, low), supported, ["no_such_module"])
    assert lacking.endswith("install the package python3-venv")


@pytest.mark.parametrize(
    ("name", "is_accepted"),
    [
        *((name, True) for name in ("it's mine", "ü & [x] (y) #1 100%")),
        *((name, False) for name in ("{a}", "a:b", "$HOME", '"a"', "`a`", "a\\b", "a\nb")),
    ],
)
def test_folders_in_which_programs_can_start(name: str, is_accepted: bool) -> None:
    assert (tool("check_python").folder_problem(f"/home/{name}") is None) is is_accepted


@pytest.mark.parametrize("name", ["a:b", "$HOME", "a\nb"])
def test_make_rejects_a_folder_in_which_programs_cannot_start(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    for path in ("Makefile", "pyproject.toml", "tools/check_python.py", "envs"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).symlink_to(ROOT / path)
    result = subprocess.run(
        ["make", "environment"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "the path of this folder contains" in result.stderr
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize("name", ["Containerfile", "pieline.def"])
def test_container_copies_files_that_exist(name: str) -> None:
    text = (ENVS / name).read_text(encoding="utf-8")
    sources = re.findall(
        r"^COPY (.+) \S+$|^    ([^-\s]\S*) /opt/pieline/\S+$", text, flags=re.MULTILINE
    )
    paths = [path for both in sources for path in "".join(both).split()]
    assert "src" in paths
    assert "--require-hashes" in text
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_later_installations_run_in_bash() -> None:
    scripts = sorted(ENVS.glob("*.post-deploy.sh"))
    assert [script.name.split(".")[0] for script in scripts] == ["gpu", "llm"]
    for script in scripts:
        assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
        assert installed_after(script.name.split(".")[0])


def test_the_published_pages_are_those_of_reproduce(tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text("utf-8"))
    steps = workflow["jobs"]["build"]["steps"]
    assert {"run": "make reproduce"} in steps
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    opened = set(re.findall(r"(?<=[ /])(?:runs/\w+/)?paper_tables/index\.html", makefile))
    assert {"paper_tables/index.html", "runs/shipped/paper_tables/index.html"} <= opened
    for run in (tmp_path, tmp_path / "runs/shipped"):
        for file in ("paper_tables/index.html", "results/provenance.json"):
            (run / file).parent.mkdir(parents=True)
            (run / file).touch()
    (tmp_path / "src").mkdir()
    (script,) = (step["run"] for step in steps if step.get("name") == "site")
    subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, check=True)
    (upload,) = (step for step in steps if "upload-pages" in step.get("uses", ""))
    site = tmp_path / upload["with"]["path"]
    links = re.findall(r'href="(.*?)"', (site / "index.html").read_text(encoding="utf-8"))
    assert len(links) == 2
    assert all((site / link).is_file() for link in links)


def test_actions_are_pinned_to_commits() -> None:
    for path in (ROOT / ".github/workflows").iterdir():
        for action in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8")):
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action), action


def test_the_package_states_that_it_is_typed() -> None:
    """Without the marker, mypy ignores the annotations of an installed package."""
    assert (ROOT / "src/pieline/py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["package-data"]["pieline"] == ["py.typed"]
