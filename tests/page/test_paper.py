"""The LaTeX document with all tables and figures."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from frame_cases import our_number
from support import ROOT

from pieline.core.errors import UserError
from pieline.reporting.displays import Figure, Table
from pieline.reporting.figures import save_figure
from pieline.reporting.tables import Cell, Group, Head, Row, TableContent, write_table
from pieline.results.paper import compile_pdf, write_paper_source
from pieline.results.provenance import Model
from pieline.results.run_results import RunResults, Shown, ShownStudy, shown_display

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="no pdflatex on this machine (apt-get install texlive-latex-recommended)",
)
TABLE = r"""\begin{table}[t]
\centering
\begin{tabular}{lr}
\toprule
\multirow{2}{*}{Model} & nDCG@10 \\
\midrule
a & 1.00 \\
\bottomrule
\end{tabular}
\caption{A table.}
\end{table}
"""


def results() -> RunResults:
    """Return displays of two studies with outputs, without the third study."""

    def table(name: str, place: str) -> Shown:
        return shown_display(Table(name, place, "A caption.", print, print))

    modes = shown_display(Figure("idiolink_modes", "Figure 4", "A caption.", print, print))
    return RunResults(
        studies=(
            ShownStudy(name="jam", paper="ID10M-JAM", tables=(table("jam_statistics", "Table 2"),)),
            ShownStudy(
                name="idiolink",
                paper="IdioLink",
                tables=(table("idiolink_bm25", "Table 4"),),
                figures=(modes,),
            ),
            ShownStudy(name="idiots", paper="IdioTS"),
        )
    )


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the LaTeX document of a run with two tables and a figure."""
    monkeypatch.chdir(tmp_path)
    folder = Path("paper_tables")
    figure = folder / "figures/idiolink_modes.pdf"
    figure.parent.mkdir(parents=True)
    names = ["idiolink_bm25", "jam_statistics"]
    for name in names:
        (folder / f"{name}.csv").write_text("x\n1\n", encoding="utf-8")
        (folder / f"{name}.tex").write_text(TABLE, encoding="utf-8")
    for name in ("claims", "comparison"):
        (folder / f"{name}.tex").write_text(f"\\label{{tab:{name}}}\n", encoding="utf-8")
    drawn, axis = plt.subplots(figsize=(2, 2))
    axis.plot([1, 2])
    save_figure(drawn, pdf=figure, png=figure.with_suffix(".png"))
    output = tmp_path / folder / "paper.tex"
    reproduced = {"printed": 40.88, "released": 40.88}
    write_paper_source(
        output,
        template=ROOT / "templates/paper.tex.jinja",
        results=results(),
        models=[
            Model(
                name="m",
                label="M_1",
                kind="embedder",
                checkpoint=None,
                revision=None,
                package="weights",
                licence="MIT",
            )
        ],
        numbers=[
            our_number(40.884, study="idiolink", kind="score", decimals=2, **reproduced),
            our_number(None, "not run", study="idiolink", kind="score"),
        ],
    )
    return output


def test_the_document_is_ordered_by_paper(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    places = [
        text.index(part)
        for part in (
            "2 printed numbers: 1 reproduced (1 score), 1 not run.",
            "& 40.88 & 40.88 & 40.88",
            r"\section*{ID10M-JAM}",
            r"\inputtable{jam_statistics.tex}",
            r"\section*{IdioLink}",
            r"\inputtable{idiolink_bm25.tex}",
            r"{figures/idiolink_modes.pdf}",
            r"\section*{Provenance}",
            r"\input{claims.tex}",
        )
    ]
    assert places == sorted(places)
    assert "IdioTS" not in text  # not part of the run
    assert r"M\_1" in text
    assert "no basis for a scientific conclusion" in text


@pytest.mark.full
@needs_latex
def test_the_pdf_is_reproducible(source: Path) -> None:
    first, second = source.with_name("a.pdf"), source.with_name("b.pdf")
    compile_pdf(source, first)
    compile_pdf(source, second)
    assert first.read_bytes().startswith(b"%PDF")
    assert first.read_bytes() == second.read_bytes()
    assert str(source.parent).encode() not in first.read_bytes()
    # LaTeX leaves no auxiliary files.
    assert not source.with_suffix(".aux").exists()


def number(ours: float | None) -> Cell:
    """Return a cell with our number."""
    shown = our_number(ours, "not comparable", printed=483.21, decimals=2, reason="x", files=())
    return Cell(shown, best=ours is not None)


REASON = "50% of a GPU " * 9
WIDE = TableContent(
    heads=(
        (Head("", 2), Head("English", 5), Head("German", 4)),
        (Head("Group"), Head("Model"), *(Head(f"Score {place} ↑") for place in range(9))),
    ),
    groups=(
        Group(
            (
                Row(("A model with a name",), (number(48.321),) * 9),
                Row(("One_other",), (number(None),) * 9, REASON),
                Row(("A third",), (number(None),) * 9, "needs the key A_KEY & more"),
            ),
            "Encoders",
        ),
    ),
    caption="Scores of 100% of the models.",
)
LONG = TableContent(
    heads=((Head("Model"), Head("Score")),),
    groups=(Group((*[Row(("m",), (number(1.0),))] * 120, Row(("n",), (number(None),), REASON))),),
    caption="Scores of many models.",
    long=True,
)
MANY_ROWS = replace(LONG, long=False)
LABELS = TableContent(
    heads=((Head("Run"), Head("Other"), Head("Score")),),
    groups=(Group((Row(("A model, its setting and what of it " * 3,) * 2, (number(1.0),)),) * 90),),
    caption="Scores of pairs.",
    long=True,
    label_widths=(0.4, 0.4),
)
TEXT = TableContent(
    heads=((Head("Prompt"), Head("Turn"), Head("Text")),),
    groups=(
        Group((Row(("system",), (Cell(text="Mark idioms & more. " * 30 + "\n\nJSON."),)),), "A"),
    ),
    caption="A prompt.",
    wraps=True,
)


@pytest.mark.full
@needs_latex
@pytest.mark.parametrize("content", [WIDE, LONG, MANY_ROWS, LABELS, TEXT])
def test_a_table_fits_the_page(tmp_path: Path, content: TableContent) -> None:
    """Test nine columns with printed numbers, many rows, and long reasons for missing rows."""
    files = {ending: tmp_path / f"wide.{ending}" for ending in ("tex", "csv", "html")}
    write_table("wide", content, None, templates=ROOT / "templates", **files)
    source = tmp_path / "document.tex"
    source.write_text(
        r"\documentclass{article}\usepackage{array,booktabs,graphicx,longtable}"
        r"\providecommand{\multirow}[3]{#3}\begin{document}\input{wide}\end{document}",
        encoding="utf-8",
    )
    result = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", source.name],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    log = result.stdout.decode("utf-8", errors="replace")
    assert result.returncode == 0, log[-2000:]
    assert not re.search("Overfull|Float too large", log)


ROWS_NOT_RUN = TableContent(
    heads=((Head(""), Head("Model"), Head("Score")),),
    groups=(
        Group((Row(("Absent",), (number(None),), "its key is missing"),) * 2, "Group of none"),
        Group(
            (
                Row(("Unmade",), (number(None),), "its key is missing"),
                Row(("Made",), (number(12.5),)),
                Row(("Unmade",), (number(None),), "needs a key"),
                Row(("Last",), (number(75.25),)),
            ),
            "Group of two",
        ),
    ),
    caption="Some rows were not run.",
)


@pytest.mark.full
@pytest.mark.skipif(
    not all(map(shutil.which, ("pdflatex", "pdftotext"))),
    reason="no pdflatex or no pdftotext on this machine (apt-get install poppler-utils)",
)
def test_the_document_hides_rows_that_were_not_run(source: Path) -> None:
    """A group keeps its title if its first row is hidden; a table alone shows every row."""
    tex = source.parent / "jam_statistics.tex"
    files = {ending: source.parent / f"jam_statistics.{ending}" for ending in ("csv", "html")}
    folder = ROOT / "templates"
    write_table("jam_statistics", ROWS_NOT_RUN, None, templates=folder, tex=tex, **files)
    only = TableContent(ROWS_NOT_RUN.heads, ROWS_NOT_RUN.groups[:1], "None was run.")
    tex = source.parent / "idiolink_bm25.tex"
    write_table("idiolink_bm25", only, None, templates=folder, tex=tex, **files)
    shown = " ".join(_text_of(source).split())
    assert "Group of two Made 12.50" in shown.replace("(12.50)", "")
    assert "Last 75.25" in shown
    assert not re.search("Absent|Unmade|Group of none", shown)
    assert "Not shown: 3 rows, its key is missing; Not shown: 1 row, needs a key" in shown
    assert "Model Score not run Not shown: 2 rows, its key is missing" in shown

    source.write_text(
        source.read_text("utf-8").replace(r"{\unrun}[2]{#2}", r"{\unrun}[2]{#1}"), "utf-8"
    )
    every = " ".join(_text_of(source).split())
    assert (every.count("Absent"), every.count("Unmade"), every.count("Group of")) == (4, 2, 3)
    assert "Not shown" not in every


def _text_of(source: Path) -> str:
    pdf = source.with_suffix(".pdf")
    compile_pdf(source, pdf)
    text = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, check=True)
    return text.stdout.decode("utf-8")


@pytest.mark.full
@needs_latex
def test_any_script_and_no_home_directory_are_no_error(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users' data can contain any script."""
    monkeypatch.delenv("HOME")
    table = source.parent / "jam_statistics.tex"
    table.write_text(TABLE.replace("Model", "Идиома"), encoding="utf-8")
    compile_pdf(source, source.with_suffix(".pdf"))
    assert source.with_suffix(".pdf").exists()


@pytest.mark.full
@needs_latex
def test_an_error_in_a_table_is_one_line(source: Path) -> None:
    (source.parent / "jam_statistics.tex").write_text("\\unheardof\n", encoding="utf-8")
    with pytest.raises(UserError) as raised:
        compile_pdf(source, source.with_suffix(".pdf"))
    assert "Undefined control sequence" in str(raised.value)
    assert r"\unheardof" in str(raised.value)
    assert not source.with_suffix(".pdf").exists()


def test_without_latex(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="pdflatex is not installed; install"):
        compile_pdf(source, source.with_suffix(".pdf"))
