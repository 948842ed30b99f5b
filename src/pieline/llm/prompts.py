r"""Load prompt templates: files with one Jinja template per turn of the conversation.

A file may begin with YAML front matter, between two `---` lines, that describes the prompt. The key
`answer` maps the fields of the answer to their JSON schemas, which the provider then enforces. Each
turn begins with a line that names its role:

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
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.sandbox import SandboxedEnvironment

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_text, sha256_of
from pieline.core.yamls import parse_yaml
from pieline.llm.questions import Message

_TURN = re.compile(r"^=== (\w+) ===[ \t]*$", re.MULTILINE)
_OTHER_FILES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
_ROLES = ("system", "user", "assistant")
_PROBES = (
    "Ann broke the ice at work.",
    "Bob broke the ice at work.",
    "Ann drank the ice at work.",
    "Ann broke the ice at home.",
)
"""Sentences of equal length that differ at the beginning, in the middle or at the end."""
_LONGEST_S = 5.0
"""Maximum number of seconds to compile or fill in a template."""
_LONG = 40 * f"{_PROBES[0]} "


@dataclass(frozen=True)
class Prompt:
    """A loaded prompt file.

    Attributes:
        path: Path of the file.
        about: Front matter.
        turns: Role, line number and template of each turn.
        digest: SHA-256 of the roles, the templates without comments, and the fields of the answer.
    """

    path: Path
    about: Mapping[str, Any]
    turns: tuple[tuple[str, int, jinja2.Template], ...]
    digest: str

    @property
    def response_format(self) -> dict[str, Any] | None:
        """Request parameter that makes the provider enforce the fields of the answer, in order.

        None if the front matter does not define the fields.
        """
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
        """Return the turns with the values filled in.

        Raises:
            UserError: A template uses an undefined value or fails; the message states the line.
        """
        messages = []
        for role, line, template in self.turns:
            try:
                with _time_limit():
                    text = template.render(**values)
                messages.append(Message(role, text.lstrip("\n").removesuffix("\n")))
            except Exception as error:  # a user's template can fail in any way
                raise UserError(
                    f"cannot fill in the template: {error}",
                    where=f"{self.path}:{_line_of(error, line)}",
                    hint="provide the value or fix the template",
                ) from None
        return tuple(messages)

    def check_shows(self, field: str, **others: Any) -> None:
        """Raise a `UserError` unless different values of a field produce different messages.

        Args:
            field: Name of the field in the templates.
            others: Values of the other fields.
        """
        probes = [text for one in _PROBES for text in (one, _LONG + one, f"{one} {_LONG}")]
        asked = {self.messages(**others, **{field: text}) for text in probes}
        if len(asked) < len(probes):
            raise UserError(
                f"does not show the full {field}",
                where=self.path,
                hint=f"write {{{{ {field} }}}} where it belongs",
            )


def _printable(value: Any) -> Any:
    if callable(value) and not isinstance(value, jinja2.Undefined):
        raise TypeError("cannot print a function; call it")
    return value


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise a `TimeoutError` if a template takes too long, as nested loops and filters may.

    Only the main thread can be interrupted; it checks all prompts before a run.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise TimeoutError(f"it takes more than {_LONGEST_S:g} seconds")

    before = signal.signal(signal.SIGALRM, end)
    # Again each second, because an exception is lost if it is raised during garbage collection.
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_S, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def load_prompt(path: str | Path) -> Prompt:
    """Read a prompt file.

    Raises:
        UserError: The file is missing, or has no turns, an unknown role, invalid front matter, or a
            template that is invalid or uses another file.
    """
    path = Path(path)
    # Line endings of any system.
    text = re.sub("\r\n?", "\n", read_text(path))
    about, body, skipped = _split_front_matter(path, text)
    if not isinstance(answer := about.get("answer", {}), dict):
        hint = "map each field of the answer to its JSON schema"
        raise UserError("`answer` is not a mapping", where=f"{path}:1", hint=hint)
    before, *pieces = _TURN.split(body)
    if before.strip() or not pieces:
        raise UserError(
            "does not begin with a turn", where=path, hint="write a line like '=== user ==='"
        )
    environment = SandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_printable,
    )
    turns, sent = [], []
    line = skipped + before.count("\n") + 1
    for role, piece in zip(pieces[::2], pieces[1::2], strict=True):
        if role not in _ROLES:
            raise UserError(
                f"unknown role {role!r}", where=f"{path}:{line}", hint=f"one of {_ROLES}"
            )
        text = piece.removeprefix("\n").rstrip("\n") + "\n"
        template, without_comments = _compile(text, environment, path, line)
        turns.append((role, line + 1, template))
        sent.append([role, without_comments])
        line += piece.count("\n")
    try:
        content = canonical_json([sent, list(answer.items())])
    except (TypeError, ValueError) as error:
        raise UserError(
            f"`answer` is not JSON: {error}", where=f"{path}:1", hint="write JSON schemas"
        ) from None
    return Prompt(path, about, tuple(turns), sha256_of(content.encode()))


def _compile(
    text: str, environment: jinja2.Environment, path: Path, line: int
) -> tuple[jinja2.Template, str]:
    """Return the template of a turn, and its text without comments; its role is in `line`.

    Raises:
        UserError: The template is invalid or uses another file.
    """
    try:
        with _time_limit():
            template = environment.from_string(text)
        tokens = list(environment.lex(text.lstrip("\n")))
        others = [node.lineno for node in environment.parse(text).find_all(_OTHER_FILES)]
    except Exception as error:  # Jinja evaluates constant expressions here
        at = error.lineno if isinstance(error, jinja2.TemplateSyntaxError) else 1
        raise UserError(f"invalid template: {error}", where=f"{path}:{line + at}") from None
    if others:
        raise UserError(
            "uses another file, but a prompt is one file",
            where=f"{path}:{line + others[0]}",
            hint="copy the text of that file into the prompt",
        )
    return template, "".join(token for _, kind, token in tokens if not kind.startswith("comment"))


def _split_front_matter(path: Path, text: str) -> tuple[dict[str, Any], str, int]:
    """Return the front matter, the body, and the number of lines before the body."""
    match = re.match(r"---\n(.*?)^---[ \t]*\n", text, re.DOTALL | re.MULTILINE)
    if not match:
        return {}, text, 0
    about = parse_yaml(match[1], where=path, above=1) or {}
    if not isinstance(about, dict):
        raise UserError("front matter is not a mapping", where=f"{path}:1")
    return about, text[match.end() :], match[0].count("\n")


def _line_of(error: Exception, first: int) -> int:
    """Return the number of the line in which a turn failed; the turn starts in line `first`."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno or 1 for frame in frames if frame.filename == "<template>"]
    return first + lines[-1] - 1 if lines else first
