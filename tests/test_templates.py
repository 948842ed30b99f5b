"""Rendering of values from data in templates."""

import os
from pathlib import Path

import pytest

from pieline.core.errors import UserError
from pieline.reporting.latex import render_html, render_latex

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
