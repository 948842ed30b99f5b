r"""Prompt templates: files with one Jinja template for each turn of the conversation.

A file may begin with YAML front matter between two lines `---` (where the prompt comes from, what
it is for). Its key `answer` lists fields of the answer with their JSON schemas, which the provider
then enforces. After it each turn begins with a line that names its role:

    ---
    source: "IdioTS, Figure 2"
    ---
    === system ===
    You annotate idioms.
    === user ===
    Sentence: {{ sentence }}

The file is cut into turns before anything is filled in, so a value can never become a turn. Blank
lines around a turn are not sent; `{{ "\n" }}` at its end is.
"""

import hashlib
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import yaml

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_text
from pieline.llm.questions import Message

_TURN = re.compile(r"^=== (\w+) ===[ \t]*$", re.MULTILINE)
_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Prompt:
    """One prompt file, ready to be filled in.

    Attributes:
        path: the file.
        about: its front matter.
        turns: role, first line and template of each turn.
        digest: SHA-256 of what is sent whatever is filled in: roles and templates without comments,
            and the fields of the answer.
    """

    path: Path
    about: Mapping[str, Any]
    turns: tuple[tuple[str, int, jinja2.Template], ...]
    digest: str

    @property
    def response_format(self) -> dict[str, Any] | None:
        """The parameter that has the provider enforce the fields of the answer, in their order."""
        if not (fields := self.about.get("answer")):
            return None
        schema = {
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }
        return {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        }

    def messages(self, **values: Any) -> tuple[Message, ...]:
        """Fill in the templates.

        Raises:
            UserError: a template uses a value that was not given, or fails; names file and line.
        """
        messages = []
        for role, line, template in self.turns:
            try:
                text = template.render(**values).lstrip("\n").removesuffix("\n")
                messages.append(Message(role, text))
            except (jinja2.TemplateError, TypeError, ValueError) as error:
                raise UserError(
                    f"cannot be filled in: {error}",
                    where=f"{self.path}:{_line_of(error, line)}",
                    mend="give the value or correct the template",
                ) from None
        return tuple(messages)


def load_prompt(path: str | Path) -> Prompt:
    """Read a prompt file; `{% include %}` finds files of the same folder.

    Raises:
        UserError: no such file, no turns, an unknown role, wrong YAML or Jinja.
    """
    path = Path(path)
    about, body, skipped = _split_front_matter(path, read_text(path))
    if not isinstance(answer := about.get("answer", {}), dict):
        mend = "give each field of the answer its JSON schema"
        raise UserError("`answer` is not a mapping", where=f"{path}:1", mend=mend)
    before, *pieces = _TURN.split(body)
    if before.strip() or not pieces:
        raise UserError(
            "does not begin with a turn", where=path, mend="write a line like '=== user ==='"
        )
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(path.parent),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - prompts are plain text
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    turns, sent = [], []
    line = skipped + before.count("\n") + 1
    for role, piece in zip(pieces[::2], pieces[1::2], strict=True):
        if role not in _ROLES:
            raise UserError(
                f"unknown role {role!r}", where=f"{path}:{line}", mend=f"one of {_ROLES}"
            )
        text = piece.removeprefix("\n").rstrip("\n") + "\n"
        try:
            turns.append((role, line + 1, environment.from_string(text)))
            tokens = list(environment.lex(text.lstrip("\n")))
        except jinja2.TemplateSyntaxError as error:
            raise UserError(
                f"not a template: {error.message}", where=f"{path}:{line + error.lineno}"
            ) from None
        content = (token for _, kind, token in tokens if not kind.startswith("comment"))
        sent.append([role, "".join(content)])
        line += piece.count("\n")
    digest = hashlib.sha256(canonical_json([sent, list(answer.items())]).encode()).hexdigest()
    return Prompt(path, about, tuple(turns), digest)


def _split_front_matter(path: Path, text: str) -> tuple[dict[str, Any], str, int]:
    """Front matter, body, and the number of lines before the body."""
    match = re.match(r"---\n(.*?)^---[ \t]*\n", text, re.DOTALL | re.MULTILINE)
    if not match:
        return {}, text, 0
    try:
        about = yaml.safe_load(match[1]) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        raise UserError("front matter is not YAML", where=f"{path}:{line}") from None
    if not isinstance(about, dict):
        raise UserError("front matter is not a mapping", where=f"{path}:1")
    return about, text[match.end() :], match[0].count("\n")


def _line_of(error: Exception, first: int) -> int:
    """Return the line of the file in which a turn that begins at line `first` failed."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno or 1 for frame in frames if frame.filename == "<template>"]
    return first + lines[-1] - 1 if lines else first
