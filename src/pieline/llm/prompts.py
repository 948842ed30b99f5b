r"""Load prompt templates: files with one Jinja template per turn of the conversation.

A file may begin with YAML front matter, between two `---` lines, that describes the prompt. In the
front matter, the key `answer` maps each field of the answer to a JSON schema, which the provider
then enforces. Each turn of the conversation begins with a line that names the role of the turn:

    ---
    source: "IdioTS, Figure 2"
    ---
    === system ===
    You annotate idioms.
    === user ===
    Sentence: {{ sentence }}

The file is split into turns before values are filled in, so a value cannot create a turn. Blank
lines around a turn are not sent, but a `{{ "\n" }}` at the end of a turn is.

Templates run in Jinja's sandbox, so they cannot run arbitrary code. They cannot include other
files, because prompts are compared by the content of their file.
"""

import re
import signal
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from jinja2 import nodes
from jinja2.sandbox import SandboxedEnvironment

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_text, sha256_of
from pieline.core.yamls import parse_yaml
from pieline.llm.questions import Message

_TURN = re.compile(r"^=== (\w+) ===[ \t]*$", re.MULTILINE)
_NODES_WITH_OTHER_FILES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
_ROLES = ("system", "user", "assistant")
_PROBES = (
    "Ann broke the ice at work.",
    "Bob broke the ice at work.",
    "Ann drank the ice at work.",
    "Ann broke the ice at home.",
)
"""Sentences of equal length that differ only at the beginning, in the middle or at the end."""
_LONGEST_S = 5.0
"""Maximum number of seconds to compile or fill in a template."""
_LONG_TEXT = 40 * f"{_PROBES[0]} "
"""Text to detect a template that shows only the first or last words of a field."""


class PromptTurn(NamedTuple):
    """One turn of a prompt file.

    Attributes:
        role: `system`, `user` or `assistant`.
        line: Number of the first line of the template in the file.
        template: Template of the text.
        source: Source of the template, without comments.
    """

    role: str
    line: int
    template: jinja2.Template
    source: str


@dataclass(frozen=True)
class Prompt:
    """A loaded prompt file.

    Attributes:
        path: Path of the file.
        about: Front matter.
        turns: Turns of the conversation.
        digest: SHA-256 of all that determines the requests: the roles, the templates without
            comments, and the fields of the answer.
    """

    path: Path
    about: Mapping[str, Any]
    turns: tuple[PromptTurn, ...]
    digest: str

    @property
    def response_format(self) -> dict[str, Any] | None:
        """Request parameter with which the provider enforces the fields of the answer, in order.

        None if the front matter does not define the fields.
        """
        fields = self.about.get("answer")
        if not fields:
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
        """Return the turns of the prompt, with values filled in for the fields of the templates.

        Raises:
            UserError: A template uses an undefined value or fails; the message states the line.
        """
        messages = []
        for turn in self.turns:
            try:
                with _time_limit():
                    text = turn.template.render(**values)
                messages.append(Message(turn.role, text.lstrip("\n").removesuffix("\n")))
            except Exception as error:  # a user's template can fail in any way
                raise UserError(
                    f"cannot fill in the template: {error}",
                    where=f"{self.path}:{_line_of(error, turn.line)}",
                    hint="provide the value or fix the template",
                ) from None
        return tuple(messages)

    def check_shows(self, field: str, **other_values: Any) -> None:
        """Raise a `UserError` unless different values of a field produce different messages.

        Args:
            field: Name of the field in the templates.
            other_values: Values of the other fields, by name.
        """
        # A template may cut long values off.
        values = list(_PROBES)
        for sentence in _PROBES:
            values += [_LONG_TEXT + sentence, f"{sentence} {_LONG_TEXT}"]
        distinct_messages = {self.messages(**other_values, **{field: value}) for value in values}
        if len(distinct_messages) < len(values):
            raise UserError(
                f"does not show the full {field}",
                where=self.path,
                hint=f"write {{{{ {field} }}}} where it belongs",
            )


def _reject_function(value: Any) -> Any:
    """Return a value that a template prints; raise a `TypeError` for a function."""
    if callable(value) and not isinstance(value, jinja2.Undefined):
        raise TypeError("cannot print a function; call it")
    return value


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise a `TimeoutError` if the block runs too long, for example because of nested loops.

    Has no effect outside the main thread, because only the main thread can be interrupted. This
    suffices, because the main thread checks all prompts before a run.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_timeout(*_: object) -> None:
        raise TimeoutError(f"it takes more than {_LONGEST_S:g} seconds")

    earlier_handler = signal.signal(signal.SIGALRM, raise_timeout)
    # Again each second, because an exception is lost if it is raised during garbage collection.
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_S, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier_handler)


def load_prompt(path: str | Path) -> Prompt:
    """Read a prompt file.

    Raises:
        UserError: The file is missing, or has no turns, an unknown role, invalid front matter, or a
            template that is invalid or uses another file.
    """
    path = Path(path)
    text = re.sub("\r\n?", "\n", read_text(path))  # line endings of Windows and old Macs
    about, body, lines_before_body = _split_front_matter(path, text)
    answer_fields = about.get("answer", {})
    if not isinstance(answer_fields, dict):
        raise UserError(
            "`answer` is not a mapping",
            where=f"{path}:1",
            hint="map each field of the answer to its JSON schema",
        )
    turns = _parse_turns(path, body, first_line=lines_before_body + 1)
    sources = [[turn.role, turn.source] for turn in turns]
    try:
        digested = canonical_json([sources, list(answer_fields.items())])
    except (TypeError, ValueError) as error:
        raise UserError(
            f"`answer` is not JSON: {error}", where=f"{path}:1", hint="write JSON schemas"
        ) from None
    return Prompt(path, about, tuple(turns), sha256_of(digested.encode()))


def _parse_turns(path: Path, body: str, *, first_line: int) -> list[PromptTurn]:
    """Parse the turns of a prompt file.

    Args:
        path: Path of the file, for error messages.
        body: Text after the front matter.
        first_line: Number of the first line of the body.

    Raises:
        UserError: There are no turns, a role is unknown, or a template is invalid or uses another
            file.
    """
    # Splitting at the lines with roles yields a role and the text of its turn in alternation.
    before_turns, *roles_and_texts = _TURN.split(body)
    if before_turns.strip() or not roles_and_texts:
        raise UserError(
            "does not begin with a turn", where=path, hint="write a line like '=== user ==='"
        )
    environment = SandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_reject_function,
    )
    turns = []
    role_line = first_line + before_turns.count("\n")
    for role, turn_text in zip(roles_and_texts[::2], roles_and_texts[1::2], strict=True):
        if role not in _ROLES:
            raise UserError(
                f"unknown role {role!r}", where=f"{path}:{role_line}", hint=f"one of {_ROLES}"
            )
        source = turn_text.removeprefix("\n").rstrip("\n") + "\n"
        template, without_comments = _compile(source, environment, path, role_line)
        turns.append(PromptTurn(role, role_line + 1, template, without_comments))
        role_line += turn_text.count("\n")
    return turns


def _compile(
    source: str, environment: jinja2.Environment, path: Path, role_line: int
) -> tuple[jinja2.Template, str]:
    """Return the template of a turn, and the source of the template without comments.

    Args:
        source: Source of the template.
        environment: Jinja environment.
        path: Path of the prompt file, for error messages.
        role_line: Number of the line with the role; the template begins in the next line.

    Raises:
        UserError: The template is invalid or uses another file.
    """
    try:
        with _time_limit():
            template = environment.from_string(source)
        tokens = list(environment.lex(source.lstrip("\n")))
        nodes_with_other_files = environment.parse(source).find_all(_NODES_WITH_OTHER_FILES)
        lines_with_other_files = [node.lineno for node in nodes_with_other_files]
    except Exception as error:  # Jinja evaluates constant expressions here
        error_line = error.lineno if isinstance(error, jinja2.TemplateSyntaxError) else 1
        raise UserError(
            f"invalid template: {error}", where=f"{path}:{role_line + error_line}"
        ) from None
    if lines_with_other_files:
        raise UserError(
            "uses another file, but a prompt is one file",
            where=f"{path}:{role_line + lines_with_other_files[0]}",
            hint="copy the text of that file into the prompt",
        )
    return template, "".join(token for _, kind, token in tokens if not kind.startswith("comment"))


def _split_front_matter(path: Path, text: str) -> tuple[dict[str, Any], str, int]:
    """Return a prompt file's front matter, its body, and the number of lines before the body."""
    match = re.match(r"---\n(.*?)^---[ \t]*\n", text, re.DOTALL | re.MULTILINE)
    if not match:
        return {}, text, 0
    about = parse_yaml(match[1], where=path, lines_above=1) or {}
    if not isinstance(about, dict):
        raise UserError("front matter is not a mapping", where=f"{path}:1")
    return about, text[match.end() :], match[0].count("\n")


def _line_of(error: Exception, first_line: int) -> int:
    """Return the number of the line in which a template failed to render.

    Args:
        error: Error that rendering raised.
        first_line: Number of the first line of the template.
    """
    frames = traceback.extract_tb(error.__traceback__)
    lines_in_template = [frame.lineno or 1 for frame in frames if frame.filename == "<template>"]
    if not lines_in_template:
        return first_line
    return first_line + lines_in_template[-1] - 1
