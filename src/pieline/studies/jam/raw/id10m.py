r"""The format of ID10M: one `token<TAB>tag` a line, a blank line after each sentence.

Tokens keep their trailing space ("A \tO"), so a sentence is the concatenation of its tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.studies.jam.bio import TAGS, Span, Tag, span_text, spans_of

_KNOWN: dict[str, Tag] = {tag: tag for tag in TAGS}


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence of ID10M.

    Attributes:
        id: split and place in its file, as in `test-0001`.
        tokens: with their trailing spaces.
        tags: one BIO tag a token.
        line: where in its file the sentence begins, from 1.
    """

    id: str
    tokens: tuple[str, ...]
    tags: tuple[Tag, ...]
    line: int = 0

    @property
    def text(self) -> str:
        """The sentence."""
        return "".join(self.tokens)

    @cached_property
    def spans(self) -> list[Span]:
        """The tokens of each idiom."""
        return spans_of(self.tags)

    @property
    def idioms(self) -> list[str]:
        """The words of each idiom as they stand in the sentence."""
        return [span_text(self.tokens, span) for span in self.spans]


def read_id10m(path: str | Path, *, split: str) -> list[TaggedSentence]:
    """Read a file of ID10M, of whatever language.

    Args:
        path: the file.
        split: first part of the sentences' ids (`train`, `dev` or `test`).

    Raises:
        UserError: bad UTF-8, a line without exactly two columns, an empty token, an unknown tag,
            an I that follows no B or I, an empty sentence (two blank lines) or an empty file; names
            file and line.
    """
    sentences: list[TaggedSentence] = []
    for start, rows in _blocks(path):
        tags: list[Tag] = []
        for offset, (_, tag) in enumerate(rows):
            tags.append(_checked(tag, tags, path, start + offset))
        sentences.append(
            TaggedSentence(
                id=f"{split}-{len(sentences) + 1:04d}",
                tokens=tuple(token for token, _ in rows),
                tags=tuple(tags),
                line=start,
            )
        )
    if not sentences:
        raise UserError("no sentences", where=path, mend="fetch the file again")
    return sentences


def write_id10m(sentences: Sequence[TaggedSentence]) -> str:
    """Text of a file in ID10M's format, with a blank line after each sentence."""
    return "".join(
        "".join(f"{token}\t{tag}\n" for token, tag in zip(item.tokens, item.tags, strict=True))
        + "\n"
        for item in sentences
    )


def _blocks(path: str | Path) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Line of its first token and rows (token, tag) of each sentence."""
    rows: list[tuple[str, str]] = []
    number = 0
    # Not splitlines: a token may hold one of the other characters that Unicode calls line ends.
    lines = read_text(path).removesuffix("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        if line == "":
            if not rows and lines != [""]:
                mend = "keep one blank line after each sentence"
                raise UserError("an empty sentence", where=f"{path}:{number}", mend=mend)
            if rows:
                yield number - len(rows), rows
            rows = []
            continue
        columns = line.split("\t")
        if len(columns) != 2:
            raise UserError(
                f"{len(columns)} columns, not 2",
                where=f"{path}:{number}",
                mend="write the token, a tab and its tag",
            )
        if not columns[0].strip():
            raise UserError("an empty token", where=f"{path}:{number}", mend="delete this line")
        rows.append((columns[0], columns[1]))
    if rows:
        yield number + 1 - len(rows), rows


def _checked(tag: str, before: Sequence[Tag], path: str | Path, line: int) -> Tag:
    """The tag, if it may follow these."""
    found = _KNOWN.get(tag)
    if found is None:
        mend = f"write one of {', '.join(TAGS)}"
        if tag.endswith("\r"):
            mend = "end lines with a line feed only, as upstream does"
        raise UserError(f"unknown tag {tag!r}", where=f"{path}:{line}", mend=mend)
    if found == "I-IDIOM" and (not before or before[-1] == "O"):
        mend = "begin the idiom with B-IDIOM"
        raise UserError("I-IDIOM without B-IDIOM", where=f"{path}:{line}", mend=mend)
    return found
