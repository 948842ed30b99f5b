"""Render LaTeX and HTML from Jinja templates."""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from pieline.core.errors import UserError
from pieline.core.files import write_text

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "–": "--",
    "κ": r"$\kappa$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}

_LIGATURE = re.compile("(?<=-)(?=-)|(?<=,)(?=,)|(?<=`)(?=`)|(?<=')(?=')|(?<=[?!])(?=`)")
"""Places between characters that LaTeX would replace by one, such as a dash for two hyphens."""

_LETTERS = "αβγδεζηθικλμνξοπρςστυφχψωΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ"
_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi o pi rho varsigma"
    " sigma tau upsilon phi chi psi omega A B Gamma Delta E Z H Theta I K Lambda M N Xi O Pi P"
    " Sigma T Upsilon Phi X Psi Omega"
)
_GREEK = dict(zip(_LETTERS, _NAMES.split(), strict=True))
"""Names in math mode, because fonts for Greek text are in no common LaTeX distribution."""
_ACCENTS = {"\u0301": r"\acute", "\u0308": r"\ddot"}


def escape(value: object) -> str:
    """Escape text for LaTeX."""
    text = unicodedata.normalize("NFC", str(value))
    escaped = "{}".join(
        "".join(_ESCAPES.get(character) or _greek(character) for character in part)
        for part in _LIGATURE.split(text)
    )
    # At the start of a row, LaTeX would read these characters as options of the previous command.
    return f"{{}}{escaped}" if text.lstrip().startswith(("[", "*")) else escaped


def _greek(character: str) -> str:
    """Return a Greek letter in math mode, and any other character unchanged."""
    base, *marks = list(unicodedata.normalize("NFD", character))
    if base not in _GREEK or not _ACCENTS.keys() >= set(marks):
        return character
    name = _GREEK[base]
    formula = rf"\mathrm{{{name}}}" if len(name) == 1 else rf"\{name}"
    for mark in marks:
        formula = f"{_ACCENTS[mark]}{{{formula}}}"
    return f"${formula}$"


def render_latex(template: str | Path, output: str | Path, **values: Any) -> None:
    r"""Render a LaTeX template and write it atomically.

    The delimiters are `\VAR{…}` and `\BLOCK{…}`, which editors accept as LaTeX; `|tex` escapes a
    value.

    Raises:
        UserError: The template is invalid or uses an undefined name.
    """
    _render(_latex(Path(template).absolute().parent), template, output, values)


def render_html(template: str | Path, output: str | Path, **values: Any) -> None:
    """Render an HTML template with every value escaped, and write it atomically.

    Raises:
        UserError: The template is invalid or uses an undefined name.
    """
    _render(_html(Path(template).absolute().parent), template, output, values)


@cache  # keeps parsed templates, which Jinja reloads if they change
def _latex(folder: Path) -> jinja2.Environment:
    environment = jinja2.Environment(
        block_start_string=r"\BLOCK{",
        block_end_string="}",
        variable_start_string=r"\VAR{",
        variable_end_string="}",
        comment_start_string=r"\#{",
        comment_end_string="}",
        line_statement_prefix="%%",
        line_comment_prefix="%#",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - LaTeX, not HTML; |tex escapes
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(folder),
    )
    environment.filters["tex"] = escape
    return environment


@cache
def _html(folder: Path) -> jinja2.Environment:
    return jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(folder),
    )


def _render(
    environment: jinja2.Environment,
    template: str | Path,
    output: str | Path,
    values: Mapping[str, Any],
) -> None:
    try:
        text = environment.get_template(Path(template).name).render(**values)
    except jinja2.TemplateSyntaxError as error:
        raise UserError(
            f"invalid template: {error.message}",
            where=f"{template}:{error.lineno}",
            hint="fix this line",
        ) from None
    except jinja2.UndefinedError as error:
        raise UserError(str(error.message), where=template, hint="fix the name") from None
    write_text(output, text)
