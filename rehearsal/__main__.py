"""Run all jobs of config/paper.yaml with stand-ins for data, weights and providers.

Usage: `python -m rehearsal [--size small] [-- ARGUMENTS OF SNAKEMAKE]`.
"""

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

from pieline.core.code import code_digest
from pieline.core.errors import UserError, exit_with
from pieline.core.files import canonical_json, read_text, sha256, write_text
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry
from pieline.reporting.latex import render_html
from rehearsal.bill import BILL, reconcile
from rehearsal.corpora import write_corpora
from rehearsal.formats import api_bases
from rehearsal.provider import CORPORA, STANDINS, ScriptedProvider, start_provider
from rehearsal.weights.standins import common_words, write_weights

ROOT = Path(__file__).absolute().parents[1]
COPIES = {"full": 4, "small": 1}
"""Copies of the sample data, by size. Four have about the papers' numbers of test sentences."""
KEYS = sorted(
    entry.api_key_env
    for entry in load_registry(ROOT / "models.yaml").values()
    if isinstance(entry, LLMEntry) and entry.api_key_env
)
"""Environment variables of the providers' keys."""


def prepare(standins: Path, size: str) -> None:
    """Write corpora and weights, unless they are up to date."""
    made = standins / "made.json"
    sample = [sha256(path) for path in sorted((ROOT / "data/sample").rglob("*.*"))]
    wanted = canonical_json(
        {
            "copies": COPIES[size],
            "sample": sample,
            "models": sha256(ROOT / "models.yaml"),
            "code": code_digest("rehearsal.corpora", "rehearsal.weights.standins"),
        }
    )
    if made.exists() and read_text(made) == wanted:
        return
    print(f"rehearsal: writing corpora and weights to {standins}", file=sys.stderr, flush=True)
    write_corpora(ROOT / "data/sample", standins / CORPORA, COPIES[size])
    registry = load_registry(ROOT / "models.yaml")
    write_weights(standins, registry, common_words(standins / CORPORA))
    write_text(made, wanted)


def environment(standins: Path) -> dict[str, str]:
    """Return environment variables with the stand-ins and placeholder API keys."""
    program = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "rehearsal.provider"]
    return dict.fromkeys(KEYS, "rehearsal") | {
        "HF_HUB_CACHE": str(standins / "hub"),
        "HF_HUB_OFFLINE": "1",
        # transformers identifies remote code by commit, so a shared cache would mix it with the
        # code of the real weights.
        "HF_MODULES_CACHE": str(standins / "modules"),
        "PIELINE_VLLM": shlex.join(program),
        STANDINS: str(standins),
    }


def snakemake(folder: Path, size: str) -> list[str]:
    """Return the command that runs the configuration of a rehearsal."""
    files = ["config/paper.yaml", "rehearsal/config.yaml"]
    files += ["rehearsal/small.yaml"] if size == "small" else []
    places = [*(str(ROOT / file) for file in files), str(folder / "standins/config.yaml")]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    return [*command, "--directory", str(folder), "--configfile", *places]


def port_of(folder: Path) -> int:
    """Return the port of a folder, so that repeated rehearsals have the same addresses."""
    digest = hashlib.sha256(str(folder).encode()).digest()
    return 20_000 + int.from_bytes(digest[:4]) % 12_000


def check_plan(command: list[str], env: dict[str, str]) -> int:
    """Return the number of jobs of the grid; raise a `UserError` if a second run has any."""
    run = subprocess.run([*command, "-n"], env=env, capture_output=True, text=True, check=True)
    if "Nothing to be done" not in run.stdout + run.stderr:
        raise UserError("a second run would run jobs again", hint=shlex.join([*command, "-n"]))
    run = subprocess.run(
        [*command, "-n", "--forceall"], env=env, capture_output=True, text=True, check=True
    )
    return int(re.findall(r"^total +(\d+)$", run.stdout + run.stderr, re.MULTILINE)[0])


def rehearse(folder: Path, size: str, arguments: list[str]) -> None:
    """Run the grid and write `rehearsal.html`.

    Raises:
        UserError: A job failed, a second run would have jobs, or the bill and the ledger disagree.
    """
    standins, recordings = folder / "standins", folder / "recordings"
    prepare(standins, size)
    provider = ScriptedProvider(standins, load_registry(ROOT / "models.yaml"))
    address = start_provider(provider, port_of(folder))
    settings = {
        "own_data": f"standins/{CORPORA}",
        "llm": {
            "api_bases": api_bases(address),
            "recordings_folder": os.path.relpath(recordings, ROOT),
        },
    }
    write_text(standins / "config.yaml", yaml.safe_dump(settings))
    env = os.environ | environment(standins)
    command = snakemake(folder, size)
    if subprocess.run([*command, *arguments, "--", "all"], env=env, check=False).returncode:
        raise UserError("the rehearsal failed", where=folder, hint="see the failed job above")
    jobs = check_plan(command, env)
    models = reconcile(standins / BILL, recordings)
    render_html(
        Path(__file__).with_name("rehearsal.html.jinja"),
        folder / "rehearsal.html",
        style=read_text(ROOT / "templates/page.css"),
        size=size,
        jobs=jobs,
        models=models,
    )
    if faults := [f"{item.model}: {fault}" for item in models for fault in item.faults]:
        hint = "report this as a bug in pieline"
        raise UserError("; ".join(faults), where=standins / BILL, hint=hint)
    answers = sum(item.recorded for item in models)
    print(
        f"Plumbing complete: {jobs} jobs done, and a second run has none. The provider billed each"
        f" of {answers} recorded answers once, and the ledger agrees with the bill."
        f"\nSee {folder / 'rehearsal.html'}"
    )


def main() -> None:
    """Run a rehearsal from the command line."""
    parser = argparse.ArgumentParser(prog="python -m rehearsal", description=__doc__)
    parser.add_argument(
        "--size",
        choices=COPIES,
        default="full",
        help="small: one seed and fewer modes (default: %(default)s)",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=ROOT / "runs/rehearsal",
        help="folder of the run (default: runs/rehearsal)",
    )
    parser.add_argument("arguments", nargs="*", help="arguments for snakemake, after --")
    options = parser.parse_args()
    folder = options.directory.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        rehearse(folder, options.size, options.arguments or ["--cores", "all"])
    except UserError as error:
        exit_with(error)


if __name__ == "__main__":
    main()
