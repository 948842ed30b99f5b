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

_LATEX_RUNS = 3
"""Number of pdflatex runs after which the columns of long tables and the references are stable."""

_MOST_REPRODUCED = 24
"""Largest number of reproduced scores on the first page."""
_TIMEOUT_SECONDS = 300
"""Time after which one run of pdflatex is stopped."""
_LONGEST_TEXT = 80
"""Largest number of characters of a text in a message."""


def write_paper_source(
    output: str | Path,
    *,
    template: str | Path,
    results: RunResults,
    models: Sequence[Model],
    numbers: Sequence[Number],
) -> None:
    """Write a LaTeX document that includes the files of all tables and figures of a run.

    Args:
        output: Path of the LaTeX file, in the folder that contains the tables.
        template: LaTeX template.
        results: Studies, tables and figures of the run.
        models: Models of the run, for the provenance section.
        numbers: Numbers of the run, for the summary on the first page.
    """
    folder = Path(output).parent
    numbers_of_papers = counted(numbers)
    verdict_counts_by_paper = {}
    for study_name, title in results.papers().items():
        verdicts = [number.verdict for number in numbers_of_papers if number.study == study_name]
        if verdicts:
            verdict_counts_by_paper[title] = Counter(verdicts)
    displays_by_paper = {}
    for study in results.studies:
        if study.displays:
            displays = [_describe_display(display, folder) for display in study.displays]
            displays_by_paper[study.paper] = displays
    reproduced_scores = [
        number
        for number in numbers_of_papers
        if number.kind == "score" and number.verdict == "reproduced"
    ]
    render_latex(
        template,
        output,
        papers=displays_by_paper,
        models=models,
        summary=f"{summarize(numbers)}.",
        by_paper=verdict_counts_by_paper,
        states=STATES,
        reproduced=[
            (number, in_words(number, results.labels))
            for number in reproduced_scores[:_MOST_REPRODUCED]
        ],
        data=results.data,
        mark=results.mark,
    )


def _describe_display(display: Shown, folder: Path) -> dict[str, Any]:
    """Return the template's values for including a table or figure and for listing its digest.

    Args:
        display: Table or figure.
        folder: Folder of the document.
    """
    if display.kind == "table":
        included_file, listed_file = display.files["tex"], display.files["csv"]
    else:
        included_file = listed_file = display.files["pdf"]
    return {
        "shown": display,
        "source": Path(os.path.relpath(included_file, folder)).as_posix(),
        "file": Path(listed_file).name,
        "digest": sha256(listed_file),
    }


def compile_pdf(source: str | Path, output: str | Path) -> None:
    """Compile a LaTeX file with pdflatex; identical sources produce byte-identical PDFs.

    If fonts lack characters of a text, print the text and a message that the document shows the
    code points of these characters.

    Raises:
        UserError: pdflatex is not installed, fails or does not finish in time. If pdflatex fails,
            the message contains the first error.
    """
    source = Path(source)
    with tempfile.TemporaryDirectory(prefix="paper-") as folder:
        logs = [_run_pdflatex(source, folder) for _ in range(_LATEX_RUNS)]
        codes = re.findall(r"no glyph: U\+([0-9A-F]+)", logs[-1])
        missing_characters = {chr(int(code, 16)) for code in codes}
        for message in _locate_characters(source, missing_characters):
            print(f"{message}; {Path(output).name} shows the code points", file=sys.stderr)
        write_bytes(output, (Path(folder) / source.with_suffix(".pdf").name).read_bytes())


def _run_pdflatex(source: Path, folder: str) -> str:
    """Run pdflatex once on a file, write its outputs to a folder, and return its log.

    Raises:
        UserError: pdflatex is not installed, fails or does not finish in time.
    """
    program = shutil.which("pdflatex")
    if program is None:
        hint = "install texlive-latex-recommended, or read paper_tables/index.html"
        raise UserError("pdflatex is not installed", where=source, hint=hint)
    command = [
        program,
        "-interaction=nonstopmode",
        "-halt-on-error",
        "-no-shell-escape",
        f"-output-directory={folder}",
        source.name,
    ]
    environment = {
        # TeX requires HOME to be set.
        "HOME": folder,
        **os.environ,
        # Files in the user's texmf tree must not replace other files.
        "TEXMFHOME": folder,
        # The PDF must not contain the current time.
        "SOURCE_DATE_EPOCH": "0",
        "FORCE_SOURCE_DATE": "1",
        # Error messages must not be broken into lines.
        "max_print_line": "1000",
    }
    try:
        result = subprocess.run(
            command,
            cwd=source.parent,
            env=environment,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        problem = f"pdflatex did not finish within {_TIMEOUT_SECONDS} s"
        raise UserError(problem, where=source, hint="run pdflatex on it") from None
    log = result.stdout.decode("utf-8", errors="replace")
    if result.returncode:
        hint = "correct the table or its template"
        raise UserError(_first_error(log), where=source, hint=hint)
    return log


def _locate_characters(source: Path, characters: Collection[str]) -> list[str]:
    """Return a message for each text that contains characters without a glyph.

    The message states the place of the text.

    Args:
        source: LaTeX document. A text is a table cell or a line, in the document or in a file that
            the document includes.
        characters: The characters without a glyph.
    """
    if not characters:
        return []
    included_names = re.findall(r"\\input(?:table)?\{(.+\.tex)\}", read_text(source))
    included_files = [source.parent / name for name in included_names]
    message_by_text: dict[str, str] = {}
    for path in (source, *included_files):
        for line_number, line in enumerate(read_text(path).split("\n"), start=1):
            for cell in re.split(r" & |\\\\", line):
                missing = sorted(set(cell) & set(characters))
                if not missing:
                    continue
                codes = ", ".join(f"{character} (U+{ord(character):04X})" for character in missing)
                text = cell.strip("& ")[:_LONGEST_TEXT]
                message = f"{path}:{line_number}: no glyph for {codes} in {text!r}"
                message_by_text.setdefault(text, message)
    return list(message_by_text.values())


def _first_error(log: str) -> str:
    """Return the first error message in pdflatex's log, with the line that causes the error.

    If the log contains no error message, the result states only that pdflatex failed.
    """
    # An error starts with `! `. Any number of lines later, `l.12 …` shows line 12 of the document.
    error = re.search(r"^! (.*)(?:\n(?!l\.).*)*(?:\n(l\.\d+ .*))?", log, flags=re.MULTILINE)
    if error is None:
        return "pdflatex failed"
    return " ".join(filter(None, error.groups()))
