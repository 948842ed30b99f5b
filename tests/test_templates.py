"""Rendering of values from data in templates."""

import os
import re
import shutil
from pathlib import Path

import pytest
from support import ROOT

from pieline.core.errors import UserError
from pieline.reporting.latex import escape, render_html, render_latex
from pieline.results.paper import compile_pdf

VALUE = 'R&D <b>"5%"</b>'


def test_values_are_escaped(tmp_path: Path) -> None:
    template, output = tmp_path / "template", tmp_path / "output"
    template.write_text("<p>{{ value }}</p>")
    render_html(template, output, value=VALUE)
    assert output.read_text() == "<p>R&amp;D &lt;b&gt;&#34;5%&#34;&lt;/b&gt;</p>"
    template.write_text(r"{\VAR{value|tex}}")
    render_latex(template, output, value="R&D 5% {a}_b")
    assert output.read_text() == r"{R\&D 5\% \{a\}\_b}"


def test_a_changed_template_is_reloaded(tmp_path: Path) -> None:
    template, output = tmp_path / "template", tmp_path / "output"
    for time, text in enumerate(("one", "another")):
        template.write_text(text)
        os.utime(template, (time, time))
        render_html(template, output)
        assert output.read_text() == text


def test_an_undefined_name_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    template, output = tmp_path / "template", tmp_path / "output"
    template.write_text("{{ value }}")
    with pytest.raises(UserError, match="'value' is undefined; fix the name"):
        render_html(template, output)
    assert not output.exists()


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("[CLS] MiniLM", "{}[CLS] MiniLM"),
        (" [a]", "{} [a]"),
        ("*starred", "{}*starred"),
        ("a [b]*", "a [b]*"),
        ("base--v2 ---", "base-{}-v2 -{}-{}-"),
        ("''a'' ,, ?`", "'{}'a'{}' ,{}, ?{}`"),
        ("1–2", "1--2"),
        ("αΩ", r"$\alpha$$\Omega$"),
        ("Αό", r"$\mathrm{A}$$\acute{\mathrm{o}}$"),
        ("ς κ", r"$\varsigma$ $\kappa$"),
        ("e\u0301", "é"),
        ("日本", "日本"),
    ],
)
def test_labels_that_latex_would_read_otherwise(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_characters_without_a_glyph_are_listed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    labels = ["[CLS] MiniLM", "*star", "αβγ ΐ", "日本BERT", "emoji 🎉", "e\u0301cole"]
    rows = "".join(f"{escape(label)} & 1 \\\\\n\\midrule\n" for label in labels)
    table = f"\\begin{{tabular}}{{ll}}\n\\toprule\n{rows}\\bottomrule\n\\end{{tabular}}\n"
    (tmp_path / "table.tex").write_text(table, encoding="utf-8")
    template = (ROOT / "templates/paper.tex.jinja").read_text(encoding="utf-8")
    preamble = template.partition(r"\begin{document}")[0].replace("%#", "%")
    macros = re.search(r"% Any character.*?\\makeatother\n", template, re.DOTALL)
    assert macros
    body = f"\\begin{{document}}\n{macros[0]}\\input{{table.tex}}\n\\end{{document}}\n"
    source = tmp_path / "paper.tex"
    source.write_text(preamble + body, encoding="utf-8")
    compile_pdf(source, tmp_path / "paper.pdf")
    lines = capfd.readouterr().err.splitlines()
    assert lines == [
        f"{tmp_path}/table.tex:9: no glyph for 日 (U+65E5), 本 (U+672C) in '日本BERT';"
        " paper.pdf shows the code points",
        f"{tmp_path}/table.tex:11: no glyph for 🎉 (U+1F389) in 'emoji 🎉';"
        " paper.pdf shows the code points",
    ]
