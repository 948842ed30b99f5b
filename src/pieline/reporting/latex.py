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
"""Places between two characters that LaTeX would join, such as two hyphens to a dash."""

_GREEK_LETTERS = "αβγδεζηθικλμνξοπρςστυφχψωΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ"
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi o pi rho varsigma"
    " sigma tau upsilon phi chi psi omega A B Gamma Delta E Z H Theta I K Lambda M N Xi O Pi P"
    " Sigma T Upsilon Phi X Psi Omega"
)
_GREEK = dict(zip(_GREEK_LETTERS, _GREEK_NAMES.split(), strict=True))
"""Names of Greek letters in math mode, since common LaTeX distributions lack a font for them."""
_ACCENTS = {"\u0301": r"\acute", "\u0308": r"\ddot"}


def escape(value: object) -> str:
    """Return the text of a value, escaped for LaTeX."""
    text = unicodedata.normalize("NFC", str(value))
    parts_without_ligatures = _LIGATURE.split(text)
    escaped_parts = ["".join(map(_escape_character, part)) for part in parts_without_ligatures]
    # An empty group keeps LaTeX from joining the characters around it.
    escaped = "{}".join(escaped_parts)
    # At the start of a row, LaTeX would read these characters as options of the previous command.
    starts_like_options = text.lstrip().startswith(("[", "*"))
    return f"{{}}{escaped}" if starts_like_options else escaped


def _escape_character(character: str) -> str:
    """Return a character escaped for LaTeX; a Greek letter is set in math mode."""
    if character in _ESCAPES:
        return _ESCAPES[character]
    letter, *accents = list(unicodedata.normalize("NFD", character))
    if letter not in _GREEK or any(accent not in _ACCENTS for accent in accents):
        return character
    name = _GREEK[letter]
    is_like_latin = len(name) == 1  # LaTeX has no command for such a letter
    formula = rf"\mathrm{{{name}}}" if is_like_latin else rf"\{name}"
    for accent in accents:
        formula = f"{_ACCENTS[accent]}{{{formula}}}"
    return f"${formula}$"


def render_latex(template: str | Path, output: str | Path, **values: Any) -> None:
    r"""Render a LaTeX template and write the result atomically.

    In the template, `\VAR{…}` contains a value, `\VAR{…|tex}` a value to escape, and `\BLOCK{…}` a
    statement of Jinja. Editors accept these delimiters as LaTeX.

    Raises:
        UserError: The template is invalid or uses an undefined name.
    """
    _render(_latex_environment(Path(template).absolute().parent), template, output, values)


def render_html(template: str | Path, output: str | Path, **values: Any) -> None:
    """Render an HTML template with every value escaped, and write the result atomically.

    Raises:
        UserError: The template is invalid or uses an undefined name.
    """
    _render(_html_environment(Path(template).absolute().parent), template, output, values)


@cache  # An environment keeps its parsed templates; Jinja reloads a template that has changed.
def _latex_environment(folder: Path) -> jinja2.Environment:
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
def _html_environment(folder: Path) -> jinja2.Environment:
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
