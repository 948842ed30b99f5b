"""One document with all tables and figures in the papers' order: its LaTeX, and its PDF."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import sha256, write_bytes
from pieline.reporting.latex import render_table
from pieline.results.artifacts import Artifact, made_artifacts
from pieline.results.claims.tables import PAPERS, Paper

_RUNS = 3
"""Longtables settle their columns, and references their numbers, by the third run."""

_LONGEST_SECONDS = 300


@dataclass(frozen=True)
class Part:
    """A table or figure of the document: what to input, and the digest of its numbers."""

    artifact: Artifact
    source: str
    file: str
    digest: str


def write_paper_source(
    output: str | Path,
    *,
    template: str | Path,
    known: Sequence[Artifact],
    tables: Iterable[str | Path],
    figures: Iterable[str | Path],
    models: Sequence[Mapping[str, str | None]],
    data: str,
) -> None:
    """Write the document's LaTeX, which inputs the tables and figures from beside it.

    Args:
        output: the LaTeX file; tables lie in its folder, figures in `figures/` there.
        template: LaTeX template.
        known: what templates/artifacts.yaml lists.
        tables: CSVs of the run; each has a LaTeX file of the same name.
        figures: PDFs of the run.
        models: of the run, for its provenance.
        data: `sample` or `released`.
    """
    folder = Path(output).parent
    parts: dict[Paper, list[Part]] = {paper: [] for paper in PAPERS}
    for artifact, path in made_artifacts(known, tables, figures):
        shown = path.with_suffix(".tex") if artifact.kind == "table" else path
        source = Path(os.path.relpath(shown, folder)).as_posix()
        parts[artifact.paper].append(Part(artifact, source, path.name, sha256(path)))
    render_table(
        template,
        output,
        papers={PAPERS[paper]: found for paper, found in parts.items() if found},
        models=models,
        data=data,
    )


def compile_pdf(source: str | Path, output: str | Path) -> None:
    """Compile a LaTeX file with pdflatex; equal sources give equal bytes.

    Raises:
        UserError: there is no pdflatex, or it stops at an error, which is named.
    """
    program = shutil.which("pdflatex")
    if program is None:
        mend = "install texlive-latex-recommended, or read paper_tables/index.html"
        raise UserError("no pdflatex on this machine", where=source, mend=mend)
    source = Path(source)
    environment = os.environ | {
        "SOURCE_DATE_EPOCH": "0",
        "FORCE_SOURCE_DATE": "1",
        # Error messages in one line each.
        "max_print_line": "1000",
    }
    with tempfile.TemporaryDirectory(prefix="paper-") as folder:
        command = [
            program,
            "-interaction=nonstopmode",
            "-halt-on-error",
            "-no-shell-escape",
            f"-output-directory={folder}",
            source.name,
        ]
        for _ in range(_RUNS):
            result = subprocess.run(
                command,
                cwd=source.parent,
                env=environment,
                capture_output=True,
                check=False,
                timeout=_LONGEST_SECONDS,
            )
            if result.returncode:
                log = result.stdout.decode("utf-8", errors="replace")
                raise UserError(
                    _first_error(log), where=source, mend="correct the table or its template"
                )
        write_bytes(output, (Path(folder) / source.with_suffix(".pdf").name).read_bytes())


def _first_error(log: str) -> str:
    """The first error of a LaTeX log, with the line that it points at."""
    found = re.search(r"^! (.*)(?:\n(?!l\.).*)*(?:\n(l\.\d+ .*))?", log, flags=re.MULTILINE)
    return " ".join(filter(None, found.groups())) if found else "pdflatex failed"
