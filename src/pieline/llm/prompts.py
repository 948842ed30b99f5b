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


class PromptFolder:
    """Prompt files of one folder; `{% include %}` finds files of the same folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(self.folder),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # noqa: S701 - prompts are plain text
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    def load(self, name: str) -> Prompt:
        """Read `<folder>/<name>`.

        Raises:
            UserError: no such file, no turns, an unknown role, wrong YAML or Jinja.
        """
        path = self.folder / name
        about, body, skipped = _split_front_matter(path, read_text(path))
        marks = list(_TURN.finditer(body))
        if not marks or body[: marks[0].start()].strip():
            raise UserError(
                "does not begin with a turn", where=path, mend="write a line like '=== user ==='"
            )
        turns, sent = [], []
        for mark, following in zip(marks, [*marks[1:], None], strict=True):
            role, line = mark[1], skipped + body.count("\n", 0, mark.end()) + 2
            if role not in _ROLES:
                raise UserError(
                    f"unknown role {role!r}", where=f"{path}:{line - 1}", mend=f"one of {_ROLES}"
                )
            text = body[mark.end() + 1 : following.start() if following else None]
            text = text.rstrip("\n") + "\n"
            try:
                turns.append((role, line, self._environment.from_string(text)))
                sent.append([role, self._without_comments(text)])
            except jinja2.TemplateSyntaxError as error:
                raise UserError(
                    f"not a template: {error.message}", where=f"{path}:{line + error.lineno - 1}"
                ) from None
        if not isinstance(answer := about.get("answer", {}), dict):
            mend = "give each field of the answer its JSON schema"
            raise UserError("`answer` is not a mapping", where=f"{path}:1", mend=mend)
        content = canonical_json([sent, list(answer.items())])
        return Prompt(path, about, tuple(turns), hashlib.sha256(content.encode()).hexdigest())

    def _without_comments(self, text: str) -> str:
        tokens = self._environment.lex(text.lstrip("\n"))
        return "".join(token for _, kind, token in tokens if not kind.startswith("comment"))


def load_prompt(path: str | Path) -> Prompt:
    """Read a prompt file (see `PromptFolder.load`)."""
    return PromptFolder(Path(path).parent).load(Path(path).name)


def _split_front_matter(path: Path, text: str) -> tuple[dict[str, Any], str, int]:
    """Front matter, body, and the number of lines before the body."""
    found = re.match(r"---\n(.*?)^---[ \t]*\n", text, re.DOTALL | re.MULTILINE)
    if not found:
        return {}, text, 0
    try:
        about = yaml.safe_load(found[1]) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        raise UserError("front matter is not YAML", where=f"{path}:{line}") from None
    if not isinstance(about, dict):
        raise UserError("front matter is not a mapping", where=f"{path}:1")
    return about, text[found.end() :], found[0].count("\n")


def _line_of(error: Exception, first: int) -> int:
    """The line of the file in which a turn that begins at line `first` failed."""
    trace = error.__traceback__
    line = first
    while trace:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = first + trace.tb_lineno - 1
        trace = trace.tb_next
    return line
