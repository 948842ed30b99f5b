r"""Read and write ID10M files: one `token<TAB>tag` per line, blank lines between sentences.

Tokens keep their trailing space ("A \tO"), so a sentence is the concatenation of its tokens.
"""

import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from pathlib import Path

from pieline.core.errors import UserError, pluralize
from pieline.core.files import read_text
from pieline.studies.jam.bio import BEGIN, INSIDE, OUTSIDE, TAGS, Span, Tag, span_text, spans_of

_FOLLOWS = frozenset(product(TAGS, TAGS)) - {(OUTSIDE, INSIDE)}
"""Pairs of a tag and a tag that may follow it."""
_LETTER = "[0-9A-Za-z\u00c0-\u0dff]"
"""Pattern of a digit, or of a letter in scripts that separate words with spaces."""
_GLUED = re.compile(rf"{_LETTER}\t(?={_LETTER})")
_SPACED = re.compile(rf"{_LETTER}(?:[^\S\t]+\t|\t[^\S\t]+)(?={_LETTER})")
_FEWEST_GLUED = 3
_FIRST_CJK = "\u2e80"


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence of ID10M.

    Attributes:
        id: Split and position in the file, such as `test-0001`.
        tokens: Tokens with their trailing spaces.
        tags: BIO tag of each token.
        line: Number (from 1) of the line at which the sentence begins in the file; 0 if unknown.
    """

    id: str
    tokens: tuple[str, ...]
    tags: tuple[Tag, ...]
    line: int = 0

    @property
    def text(self) -> str:
        """Return the sentence text."""
        return "".join(self.tokens)

    @cached_property
    def spans(self) -> list[Span]:
        """Return the token span of each idiom."""
        return spans_of(self.tags)

    @property
    def idioms(self) -> list[str]:
        """Return the text of each idiom in the sentence."""
        return [span_text(self.tokens, span) for span in self.spans]


def read_id10m(path: str | Path, *, split: str) -> list[TaggedSentence]:
    """Read an ID10M file in any language.

    Skips surplus blank lines, which the released files contain, and reports their number on stderr.

    Args:
        path: File to read.
        split: Prefix of the sentence ids (`train`, `dev` or `test`).

    Raises:
        UserError: The file has invalid UTF-8, Windows line endings, a line without exactly two
            columns, an empty token, an unknown tag, an I tag that does not follow a B or I tag, a
            sentence whose tokens have lost their trailing spaces, or no sentences; the message
            states the file and, if possible, the line.
    """
    sentences: list[TaggedSentence] = []
    for start, rows in _blocks(path):
        tokens, tags = zip(*rows, strict=True)
        previous: str = OUTSIDE
        for line, tag in enumerate(tags, start=start):
            if (previous, tag) not in _FOLLOWS:
                raise _tag_error(tag, where=f"{path}:{line}")
            previous = tag
        if _is_glued("\t".join(tokens)):
            raise UserError(
                f"no spaces between the words of {''.join(tokens)[:40]!r}",
                where=f"{path}:{start}",
                hint="keep the trailing space of each token, before its tab",
            )
        name = f"{split}-{len(sentences) + 1:04d}"
        sentences.append(TaggedSentence(id=name, tokens=tokens, tags=tags, line=start))
    if not sentences:
        raise UserError("the file has no sentences", where=path, hint="download the file again")
    return sentences


def write_id10m(sentences: Sequence[TaggedSentence]) -> str:
    """Return the content of an ID10M file with a blank line after each sentence."""
    lines = []
    for item in sentences:
        for token, tag in zip(item.tokens, item.tags, strict=True):
            lines.append(f"{token}\t{tag}\n")
        lines.append("\n")
    return "".join(lines)


def _blocks(path: str | Path) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield the first line number and the (token, tag) rows of each sentence."""
    rows: list[list[str]] = []
    surplus: list[int] = []
    number = 0
    text = read_text(path)
    # Avoid splitlines, because a token may contain other characters that Unicode treats as line
    # breaks.
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, start=1):
        if line.endswith("\r"):
            raise UserError(
                "Windows line endings (carriage return)",
                where=f"{path}:{number}",
                hint="use line feeds only, like the public files",
            )
        if line == "":
            if rows:
                yield number - len(rows), rows
                rows = []
            else:
                surplus.append(number)
            continue
        rows.append(_columns(line, where=f"{path}:{number}"))
    if rows:
        yield number + 1 - len(rows), rows
    if surplus:
        skipped = f"skipped {pluralize(len(surplus), 'surplus blank line')}"
        print(f"{path}: {skipped}, the first is line {surplus[0]}", file=sys.stderr)


def _columns(line: str, *, where: str) -> list[str]:
    """Return the token and the tag of a line."""
    columns = line.split("\t")
    if len(columns) != 2:
        raise UserError(
            f"{len(columns)} columns instead of 2",
            where=where,
            hint="write a token, a tab and a tag",
        )
    if not columns[0].strip():
        raise UserError("empty token", where=where, hint="delete this line")
    return columns


def _is_glued(text: str) -> bool:
    """Return whether most adjacent words of a sentence lack a space between them.

    `text` has a tab between tokens. The result is False for scripts that do not use spaces.
    """
    glued = len(_GLUED.findall(text))
    is_frequent = glued >= _FEWEST_GLUED and glued >= len(_SPACED.findall(text))
    return is_frequent and max(text) < _FIRST_CJK


def _tag_error(tag: str, *, where: str) -> UserError:
    """Return the error for a tag that may not follow the previous one."""
    if tag == INSIDE:
        return UserError(
            f"{tag} without {BEGIN}", where=where, hint=f"begin the idiom with {BEGIN}"
        )
    hint = f"write one of {', '.join(TAGS)}"
    return UserError(f"unknown tag {tag!r}", where=where, hint=hint)


SENTENCE_ENDS = frozenset(".!?")
"""Tokens at which the authors' code ends a training sentence."""
HELD_OUT = 10
"""Inverse of the share of sentences that are held out (one in ten)."""


def hold_out(
    sentences: Sequence[TaggedSentence], *, seed: int
) -> tuple[list[TaggedSentence], list[TaggedSentence]]:
    """Hold out a tenth of the sentences, stratified by whether they contain an idiom.

    This split is used if an encoder is trained on ID10M's dev split, which must then also provide
    the sentences that score each epoch.

    Returns:
        The training sentences and the held-out sentences.
    """
    chooser = random.Random(f"hold out {seed}")  # noqa: S311 - not for secrets
    numbers: set[int] = set()
    for has_idiom in (True, False):
        kind = [number for number, item in enumerate(sentences) if bool(item.spans) == has_idiom]
        numbers.update(chooser.sample(kind, len(kind) // HELD_OUT))
    train = [item for number, item in enumerate(sentences) if number not in numbers]
    held_out = [item for number, item in enumerate(sentences) if number in numbers]
    return train, held_out


def thin_out(
    sentences: Sequence[TaggedSentence], *, per_idiom: float | None, seed: int
) -> list[TaggedSentence]:
    """Keep at most `per_idiom` sentences without an idiom per sentence with one, in input order.

    Four in five ID10M sentences have no idiom, so a model trained briefly on all of them predicts
    only O. If `per_idiom` is None, all sentences are kept, as in the paper.
    """
    if per_idiom is None:
        return list(sentences)
    empty = [number for number, item in enumerate(sentences) if not item.spans]
    limit = min(len(empty), round(per_idiom * (len(sentences) - len(empty))))
    chooser = random.Random(f"thin out {seed}")  # noqa: S311 - not for secrets
    selected = set(chooser.sample(empty, limit))
    return [item for number, item in enumerate(sentences) if item.spans or number in selected]


def cut_at_sentence_ends(sentences: Sequence[TaggedSentence]) -> list[TaggedSentence]:
    """Divide all tokens into sentences as the authors' code does.

    A sentence ends only at a token of `SENTENCE_ENDS`; a sentence without such a token is joined to
    the next. An idiom that is cut begins again in the next sentence.
    """
    pieces: list[TaggedSentence] = []
    tokens: list[str] = []
    tags: list[Tag] = []
    all_tokens = list(chain.from_iterable(item.tokens for item in sentences))
    all_tags = chain.from_iterable(item.tags for item in sentences)
    for number, (token, tag) in enumerate(zip(all_tokens, all_tags, strict=True), start=1):
        tokens.append(token)
        tags.append(BEGIN if tag == INSIDE and not tags else tag)
        if token.strip() in SENTENCE_ENDS or number == len(all_tokens):
            name = f"piece-{len(pieces) + 1}"
            pieces.append(TaggedSentence(name, tuple(tokens), tuple(tags)))
            tokens, tags = [], []
    return pieces
