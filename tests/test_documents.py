"""Names in the documents exist: files, modules, rules, settings, options and the rule graph."""

import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal, get_args

import pytest
from support import ROOT, run_snakemake

from pieline.config import config_class, layered, load_config, load_studies, study_classes
from pieline.core.yamls import read_yaml
from pieline.models.registry import load_registry
from pieline.results.claims.claim import load_claims
from pieline.results.report_labels import PARTS
from pieline.studies.idiolink.variants.validation import Action, Cause
from pieline.studies.idiots.verdicts import ErrorType
from pieline.studies.jam.metrics.humans import Label
from pieline.studies.jam.variants.validation import HumanVerdict

DOCUMENTS = [
    path
    for path in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("rehearsal/*.md"),
        *ROOT.glob("data/sample/*/*.md"),
    ]
    # Those in adding/ have their own test, and use names that the reader adds.
    if path.parent.name != "adding"
]
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}
OUTPUTS = {"results", "paper_tables", "logs", "runs"}
STAGES = (
    "raw originals variants datasets training predictions metrics items provenance.json"
    " export.csv mteb"
    " runs.tar.zst archives"
)
CODE = [
    "src",
    "rehearsal",
    "rules",
    "scripts",
    "tools",
    "config",
    "profiles",
    "envs",
    "data",
    "published",
]
CODE_ENDINGS = {".py", ".smk", ".yaml", ".json", ".csv", ".tsv", ".txt", ".sh"}


def code_in(path: Path) -> list[str]:
    """Return the code in a document (backticks and indented blocks), split at spaces."""
    text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
    blocks = re.findall(r"(?m)^(?: {4}|\t)(.+)$", text.replace("\\\n", " "))
    return [" ".join(span.split()) for span in [*re.findall(r"`([^`]+)`", text), *blocks]]


def words(path: Path) -> list[str]:
    return [word.strip("(),.:;'\"") for code in code_in(path) for word in code.split()]


def alternatives(word: str) -> list[str]:
    """Expand `a/{b,c}.{d,e}`, with placeholders as wildcards."""
    match = re.search(r"\{([^{}]*)\}", word)
    if match:
        chosen = [
            word[: match.start()] + part + word[match.end() :] for part in match[1].split(",")
        ]
        return [name for part in chosen for name in alternatives(part)]
    return [re.sub(r"<[^<>]+>|…", "*", word)]


def all_code() -> str:
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*")]
    files += [ROOT / "models.yaml", ROOT / "config.yaml", ROOT / "pyproject.toml"]
    files += [ROOT / "data/sample/magpie/MAGPIE_sample.jsonl"]
    endings = {*CODE_ENDINGS, ".toml", ".jsonl"}
    chosen = [path for path in files if path.is_file() and path.suffix in endings]
    return "\n".join(path.read_text(encoding="utf-8") for path in chosen)


@pytest.fixture(scope="module")
def known_words() -> set[str]:
    """Return all names that occur in code or data."""
    return set(re.findall(r"[A-Za-z_]\w*", all_code()))


@pytest.fixture(scope="module")
def rules() -> set[str]:
    names = set(
        re.findall(
            r"(?m)^ *rule (\w+):",
            "".join(map(_text, ROOT.glob("rules/*.smk"))),
        )
    )
    return names | {"all"}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def displays() -> set[str]:
    """Return the names of the displays of the default configuration and config/beyond.yaml."""
    raw = layered(read_yaml(ROOT / "config.yaml"), ROOT / "config" / "sample.yaml")
    raw |= {"beyond": read_yaml(ROOT / "config/beyond.yaml")["beyond"]}
    studies = load_studies(load_config(raw), load_registry(ROOT / "models.yaml"), ROOT)
    names = {
        display.name
        for study in studies.values()
        for display in [*study.tables(), *study.figures()]
    }
    return (
        names
        | {Path(part).stem for part in PARTS}
        | {"cells", "paper", "html", "figures", "report"}
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
class TestNames:
    def test_files(self, document: Path, displays: set[str]) -> None:
        for name in (name for word in words(document) for name in alternatives(word)):
            folder, _, rest = name.partition("/")
            if not rest or folder not in FOLDERS | OUTPUTS or not re.fullmatch(r"[\w./*-]+", name):
                continue
            if folder == "results":
                assert rest.split("/")[0] in {*STAGES.split(), "*"}, name
            elif folder == "paper_tables":
                shown = re.escape(Path(rest).name.split(".")[0]).replace(r"\*", ".*")
                assert any(re.fullmatch(shown, display) for display in displays), name
            elif folder not in OUTPUTS and not name.endswith(".sqlite"):
                assert next(ROOT.glob(name.rstrip("/")), None), name

    def test_links(self, document: Path) -> None:
        for link in re.findall(r"\]\(([^)#:]+)\)", _text(document)):
            assert (document.parent / link).exists(), link

    def test_modules(self, document: Path) -> None:
        for name in words(document):
            if re.fullmatch(r"pieline(\.\w+)+", name) and not name.endswith(".sif"):
                assert _resolves(name), name

    def test_settings(self, document: Path) -> None:
        sections = "|".join([*study_classes(), "llm", "page"])
        for name in words(document):
            setting = re.fullmatch(rf"(beyond\.)?({sections})(\.[a-z_]+)+", name)
            if setting and not name.endswith(".json"):
                kind: Any = config_class()
                for part in name.split("."):
                    kind = _section(kind, part, name)

    def test_identifiers(self, document: Path, known_words: set[str]) -> None:
        for code in code_in(document):
            if re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", code):
                assert code in known_words, code

    def test_commands(self, document: Path, rules: set[str]) -> None:
        for command in (code for code in code_in(document) if " " in code):
            program, *rest = command.removeprefix("$ ").partition("#")[0].split()
            if program == "snakemake":
                targets = {word for word in rest if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", word)}
                assert targets <= rules, command
            if program == "make" and re.fullmatch(r"[a-z]+", rest[0]):
                assert f"\n{rest[0]}:" in _text(ROOT / "Makefile"), command
            if program == "python" and rest[0].endswith(".py"):
                own = re.findall(r"(?<= )--[a-z-]+", re.split("snakemake| -- ", command)[0])
                assert all(f'"{option}"' in _text(ROOT / rest[0]) for option in own), command


FORMS: dict[str, tuple[Any, ...]] = {
    "idiolink_construction": (Action, Cause),
    "idiots": (Literal["yes", "no"], ErrorType),
    "jam_experiments": (HumanVerdict, Label),
}


@pytest.mark.parametrize("study", FORMS)
def test_the_allowed_values_of_forms_are_documented(study: str) -> None:
    documented = code_in(ROOT / f"docs/studies/{study}.md")
    allowed = {value for kind in FORMS[study] for value in get_args(kind) if value}
    assert allowed <= set(documented), allowed - set(documented)


def _resolves(name: str) -> bool:
    """Return whether a dotted name is a module or an object in one."""
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:depth]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:]:
            value = getattr(value, part, None)
        return value is not None
    return False


def _section(kind: Any, part: str, name: str) -> Any:
    assert part in getattr(kind, "model_fields", {}), name
    annotation = kind.model_fields[part].annotation
    # an optional section
    return next(
        (each for each in get_args(annotation) if hasattr(each, "model_fields")), annotation
    )


def test_the_rule_graph_is_current(project: Path) -> None:
    drawn = run_snakemake(
        project, "--rulegraph", "mermaid-js", "paper_tables/idiolink_zero_shot.tex"
    )
    assert drawn.returncode == 0, drawn.stderr
    ours = subprocess.run(
        [sys.executable, ROOT / "tools" / "rule_graph.py"],
        input=drawn.stdout,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"```mermaid\n{ours}```" in _text(ROOT / "docs/design.md")


def test_release_metadata_is_consistent() -> None:
    """Titles, authors and URLs of the papers; version and license of the artifact."""
    cited, archived = read_yaml(ROOT / "CITATION.cff"), json.loads(_text(ROOT / ".zenodo.json"))
    project = tomllib.loads(_text(ROOT / "pyproject.toml"))["project"]
    for name in ("title", "version", "license", "keywords"):
        assert cited[name] == archived[name], name
    assert (project["version"], project["license"]) == (cited["version"], cited["license"])
    addresses = [paper["url"] for paper in cited["references"]]
    assert [each["identifier"] for each in archived["related_identifiers"]] == addresses
    readme = " ".join(_text(ROOT / "README.md").split())
    for paper in cited["references"]:
        assert f"[*{paper['title']}*]({paper['url']})" in readme
        authors = [f"{each['family-names']}, {each['given-names']}" for each in paper["authors"]]
        title, names = f"title = {{{paper['title']}}}", f"author = {{{' and '.join(authors)}}}"
        assert f"{title}, {names}" in readme


def _benchmark(name: str) -> Any:
    return json.loads(_text(ROOT / "benchmarks" / f"{name}.json"))


def _three_seeds(mode: str) -> str:
    """Return R-Precision and nDCG@10 (in percent) of the released choices for all seeds."""
    runs = _benchmark("idiolink/finetuning_choices")["released"].values()
    numbers = zip(*(run["test"][mode] for run in runs), strict=True)
    return " / ".join(f"{mean(values):.2f} ± {stdev(values):.2f}" for values in numbers)


def _one_choice(choice: str, seed: str) -> str:
    run = _benchmark("idiolink/finetuning_choices")[choice if choice != "nothing" else "released"]
    numbers = [
        f"{run[seed]['test'][mode][0]:.2f} / {run[seed]['test'][mode][1]:.2f}"
        for mode in ("sentence", "span")
    ]
    return f"| {choice} | {seed} | {numbers[0]} | {numbers[1]} | {run[seed]['kept']} |"


def _stated() -> dict[str, list[str]]:
    """Return the statements that documents must contain, computed from the data files."""
    ledger = load_claims(ROOT / "published" / "claims.yaml")
    claims = [claim for claim in ledger if not claim.restates and claim.reading is None]
    modes = _benchmark("idiolink/zero_shot_modes")
    seconds = modes["seconds"]
    null, _, observed, _ = _benchmark("idiolink/shortcuts_level")
    calls = _benchmark("construction/calls_and_cost")["all"]
    return {
        "docs/results.md": [
            f"{len(claims)} claims",
            *(_three_seeds(mode) for mode in ("sentence", "span")),
            *(_one_choice("nothing", seed) for seed in ("42", "43")),
            *(_one_choice("no dropout", seed) for seed in ("42", "43")),
            _one_choice("no weight decay", "42"),
        ],
        "docs/reviewers.md": [
            f"{len(claims)} claims",
        ],
        "docs/beyond.md": [
            f"{null['interval_leaves_out_0_pct']}% of {null['studies']:,} simulations",
            f"{observed['mean_correlation']}, the interval excludes 0 in"
            f" {observed['interval_leaves_out_0_pct']}%",
        ],
        "benchmarks/README.md": [
            f"all modes in {seconds['library']} s.",
            f"The authors' method takes {seconds['each_mode']} s",
        ],
        "docs/studies/idiolink_construction.md": [
            f"this project makes {calls['calls']:,} calls",
            f"${calls['usd_without_thoughts']} without thinking",
            f"${calls['usd_of_1000_thought_tokens_a_call']} more",
        ],
    }


@pytest.mark.parametrize(
    ("document", "stated"),
    [(document, stated) for document, all_stated in _stated().items() for stated in all_stated],
)
def test_stated_numbers_match_their_files(document: str, stated: str) -> None:
    assert stated in " ".join(_text(ROOT / document).split())
