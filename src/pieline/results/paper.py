"""Write one LaTeX document with all tables and figures in the papers' order, and compile it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.core.files import read_text, sha256, write_bytes
from pieline.reporting.latex import render_latex
from pieline.reporting.numbers import STATES, Number
from pieline.results.numbers import counted, in_words, summarize
from pieline.results.provenance import Model
from pieline.results.run_results import RunResults, Shown

_RUNS = 3
"""Number of pdflatex runs after which longtable columns and references are stable."""

_MOST_REPRODUCED = 24
"""Maximum number of reproduced scores on the first page."""
_LONGEST_SECONDS = 300
_LONGEST_TEXT = 80
"""Maximum number of characters of a text in a message."""


def write_paper_source(
    output: str | Path,
    *,
    template: str | Path,
    results: RunResults,
    models: Sequence[Model],
    numbers: Sequence[Number],
) -> None:
    """Write the LaTeX document, which includes tables and figures by relative paths.

    Args:
        output: LaTeX file; its folder contains the tables, and its `figures/` subfolder contains
            the figures.
        template: LaTeX template.
        results: What the run shows.
        models: Models of the run, for the provenance section.
        numbers: Numbers of the run, for the summary on the first page.
    """
    folder = Path(output).parent
    of_papers = counted(numbers)
    by_paper = {}
    for study, title in results.papers().items():
        verdicts = [number.verdict for number in of_papers if number.study == study]
        if verdicts:
            by_paper[title] = Counter(verdicts)
    scores = [number for number in of_papers if number.kind == "score"]
    reproduced = [number for number in scores if number.verdict == "reproduced"]
    render_latex(
        template,
        output,
        papers={
            study.paper: [_part(each, folder) for each in study.displays]
            for study in results.studies
            if study.displays
        },
        models=models,
        summary=f"{summarize(numbers)}.",
        by_paper=by_paper,
        states=STATES,
        reproduced=[
            (number, in_words(number, results.labels)) for number in reproduced[:_MOST_REPRODUCED]
        ],
        data=results.data,
        mark=results.mark,
    )


def _part(shown: Shown, folder: Path) -> dict[str, Any]:
    """Return the source file of a table or figure, and the file and digest of its numbers."""
    source, numbers = ("tex", "csv") if shown.kind == "table" else ("pdf", "pdf")
    path = shown.files[numbers]
    return {
        "shown": shown,
        "source": Path(os.path.relpath(shown.files[source], folder)).as_posix(),
        "file": Path(path).name,
        "digest": sha256(path),
    }


def compile_pdf(source: str | Path, output: str | Path) -> None:
    """Compile a LaTeX file with pdflatex; identical sources produce byte-identical PDFs.

    Prints which texts have characters that the document shows only by their code points.

    Raises:
        UserError: pdflatex is not installed, or it fails; the message contains its first error.
    """
    program = shutil.which("pdflatex")
    if program is None:
        hint = "install texlive-latex-recommended, or read paper_tables/index.html"
        raise UserError("pdflatex is not installed", where=source, hint=hint)
    source = Path(source)
    environment = os.environ | {
        "SOURCE_DATE_EPOCH": "0",
        "FORCE_SOURCE_DATE": "1",
        # This prevents line breaks within error messages.
        "max_print_line": "1000",
    }
    with tempfile.TemporaryDirectory(prefix="paper-") as folder:
        # TeX requires HOME to be set. Files in the user's texmf tree must not replace others.
        environment.setdefault("HOME", folder)
        environment["TEXMFHOME"] = folder
        command = [
            program,
            "-interaction=nonstopmode",
            "-halt-on-error",
            "-no-shell-escape",
            f"-output-directory={folder}",
            source.name,
        ]
        for _ in range(_RUNS):
            try:
                result = subprocess.run(
                    command,
                    cwd=source.parent,
                    env=environment,
                    capture_output=True,
                    check=False,
                    timeout=_LONGEST_SECONDS,
                )
            except subprocess.TimeoutExpired:
                problem = f"pdflatex did not finish within {_LONGEST_SECONDS} s"
                raise UserError(problem, where=source, hint="run pdflatex on it") from None
            log = result.stdout.decode("utf-8", errors="replace")
            if result.returncode:
                raise UserError(
                    _first_error(log), where=source, hint="correct the table or its template"
                )
        missing = {chr(int(code, 16)) for code in re.findall(r"no glyph: U\+([0-9A-F]+)", log)}
        for line in _texts_with(missing, source):
            print(f"{line}; {Path(output).name} shows the code points", file=sys.stderr)
        write_bytes(output, (Path(folder) / source.with_suffix(".pdf").name).read_bytes())


def _texts_with(characters: Collection[str], source: Path) -> list[str]:
    """Return a line for each text of a document that contains one of the characters."""
    if not characters:
        return []
    names = re.findall(r"\\input(?:table)?\{(.+\.tex)\}", read_text(source))
    lines: dict[str, str] = {}
    for path in (source, *(source.parent / name for name in names)):
        for number, line in enumerate(read_text(path).split("\n"), start=1):
            for text in re.split(r" & |\\\\", line):
                if found := sorted(set(text) & set(characters)):
                    codes = ", ".join(f"{one} (U+{ord(one):04X})" for one in found)
                    shown = text.strip("& ")[:_LONGEST_TEXT]
                    lines.setdefault(shown, f"{path}:{number}: no glyph for {codes} in {shown!r}")
    return list(lines.values())


def _first_error(log: str) -> str:
    """Return the first error in a LaTeX log, with the line to which it refers."""
    match = re.search(r"^! (.*)(?:\n(?!l\.).*)*(?:\n(l\.\d+ .*))?", log, flags=re.MULTILINE)
    return " ".join(filter(None, match.groups())) if match else "pdflatex failed"
