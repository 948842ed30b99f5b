r"""Read, format and divide ID10M files, which have one `token<TAB>tag` per line.

A blank line separates two sentences. Tokens keep their trailing space ("A \tO"), so a sentence is
the concatenation of its tokens.
"""

import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError, pluralize
from pieline.core.files import read_text
from pieline.studies.jam.bio import BEGIN, INSIDE, OUTSIDE, TAGS, Span, Tag, span_text, spans_of

_VALID_TAG_PAIRS = frozenset(product(TAGS, TAGS)) - {(OUTSIDE, INSIDE)}
"""Pairs of successive tags that may occur."""
_LETTER = "[0-9A-Za-z\u00c0-\u0dff]"
"""Pattern of a digit, or of a letter in scripts that separate words with spaces."""
_GLUED = re.compile(rf"{_LETTER}\t(?={_LETTER})")
"""Boundary of two words without a space, in tokens separated by tabs."""
_SPACED = re.compile(rf"{_LETTER}(?:[^\S\t]+\t|\t[^\S\t]+)(?={_LETTER})")
"""Boundary of two words with a space, in tokens separated by tabs."""
_FEWEST_GLUED = 3
"""Minimum number of missing spaces for which a sentence is rejected."""
_FIRST_CJK = "\u2e80"
"""First character of the scripts of Chinese, Japanese and Korean, which use no spaces."""


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
        """Return the text of the sentence."""
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

    Surplus blank lines, which the public files contain, are skipped, and the number of these lines
    is printed on stderr.

    Args:
        path: File to read.
        split: Prefix of the sentence ids (`train`, `dev` or `test`).

    Raises:
        UserError: The file has invalid UTF-8, Windows line endings, a line without exactly two
            columns, an empty token, an unknown tag, an I tag that does not follow a B or I tag, a
            sentence whose tokens have lost their trailing spaces, or no sentences. The message
            states the file and, if possible, the line.
    """
    sentences: list[TaggedSentence] = []
    for first_line, lines in _lines_of_sentences(path):
        tokens: list[str] = []
        tags: list[Any] = []  # `_check_tags` ensures that each is a `Tag`
        for number, line in enumerate(lines, start=first_line):
            token, tag = _split_line(line, where=f"{path}:{number}")
            tokens.append(token)
            tags.append(tag)
        _check_tags(tags, path, first_line)
        if _lacks_spaces(tokens):
            raise UserError(
                f"no spaces between the words of {''.join(tokens)[:40]!r}",
                where=f"{path}:{first_line}",
                hint="keep the trailing space of each token, before its tab",
            )
        sentence_id = f"{split}-{len(sentences) + 1:04d}"
        sentences.append(TaggedSentence(sentence_id, tuple(tokens), tuple(tags), first_line))
    if not sentences:
        raise UserError("the file has no sentences", where=path, hint="download the file again")
    return sentences


def format_id10m(sentences: Sequence[TaggedSentence]) -> str:
    """Return the content of an ID10M file with a blank line after each sentence."""
    lines = []
    for sentence in sentences:
        for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
            lines.append(f"{token}\t{tag}\n")
        lines.append("\n")
    return "".join(lines)


def _lines_of_sentences(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each sentence, after the number (from 1) of the sentence's first line.

    At the end of the file, the number of surplus blank lines is printed on stderr.
    """
    content = read_text(path)
    # Avoid splitlines, because a token may contain other characters that Unicode treats as line
    # breaks.
    lines = content.removesuffix("\n").split("\n") if content else []
    sentence_lines: list[str] = []
    surplus_lines: list[int] = []
    for number, line in enumerate(lines, start=1):
        if line:
            sentence_lines.append(line)
        elif sentence_lines:
            first_line = number - len(sentence_lines)
            yield first_line, sentence_lines
            sentence_lines = []
        else:
            surplus_lines.append(number)
    if sentence_lines:
        first_line = len(lines) + 1 - len(sentence_lines)
        yield first_line, sentence_lines
    if surplus_lines:
        skipped = f"skipped {pluralize(len(surplus_lines), 'surplus blank line')}"
        print(f"{path}: {skipped}, the first is line {surplus_lines[0]}", file=sys.stderr)


def _split_line(line: str, *, where: str) -> tuple[str, str]:
    """Return the token and the tag in a line of an ID10M file.

    Raises:
        UserError: The line has a Windows line ending, or not exactly a token and a tag.
    """
    if line.endswith("\r"):
        raise UserError(
            "Windows line endings (carriage return)",
            where=where,
            hint="use line feeds only, like the public files",
        )
    columns = line.split("\t")
    if len(columns) != 2:
        raise UserError(
            f"{len(columns)} columns instead of 2",
            where=where,
            hint="write a token, a tab and a tag",
        )
    token, tag = columns
    if not token.strip():
        raise UserError("empty token", where=where, hint="delete this line")
    return token, tag


def _lacks_spaces(tokens: Sequence[str]) -> bool:
    """Return whether at least half of the word boundaries in a sentence lack a space.

    The result is False if fewer than `_FEWEST_GLUED` boundaries lack a space, and for scripts that
    do not separate words with spaces.
    """
    tabbed_text = "\t".join(tokens)
    glued_count = len(_GLUED.findall(tabbed_text))
    spaced_count = len(_SPACED.findall(tabbed_text))
    uses_spaces = all(character < _FIRST_CJK for character in tabbed_text)
    return uses_spaces and glued_count >= _FEWEST_GLUED and glued_count >= spaced_count


def _check_tags(tags: Sequence[str], path: str | Path, first_line: int) -> None:
    """Raise a `UserError` if a tag is unknown, or an I tag does not follow a B or I tag.

    `first_line` is the number (from 1) of the line in the file that contains the first tag.
    """
    previous_tag: str = OUTSIDE
    for number, tag in enumerate(tags, start=first_line):
        if (previous_tag, tag) not in _VALID_TAG_PAIRS:
            if tag == INSIDE:
                problem, hint = f"{tag} without {BEGIN}", f"begin the idiom with {BEGIN}"
            else:
                problem, hint = f"unknown tag {tag!r}", f"write one of {', '.join(TAGS)}"
            raise UserError(problem, where=f"{path}:{number}", hint=hint)
        previous_tag = tag


SENTENCE_ENDS = frozenset(".!?")
"""Tokens at which the authors' code ends a training sentence."""
HOLD_OUT_DIVISOR = 10
"""One in this number of sentences is held out."""


def hold_out(
    sentences: Sequence[TaggedSentence], *, seed: int
) -> tuple[list[TaggedSentence], list[TaggedSentence]]:
    """Hold out a tenth of the sentences with an idiom, and a tenth of the sentences without one.

    If an encoder is trained on ID10M's dev split, each epoch is scored on the held-out sentences.

    Returns:
        The sentences that remain for training, and the held-out sentences.
    """
    with_idiom = [index for index, sentence in enumerate(sentences) if sentence.spans]
    without_idiom = [index for index, sentence in enumerate(sentences) if not sentence.spans]
    chooser = random.Random(f"hold out {seed}")  # noqa: S311 - not for secrets
    held_out_indices: set[int] = set()
    for indices in (with_idiom, without_idiom):
        held_out_indices.update(chooser.sample(indices, len(indices) // HOLD_OUT_DIVISOR))
    train, held_out = [], []
    for index, sentence in enumerate(sentences):
        if index in held_out_indices:
            held_out.append(sentence)
        else:
            train.append(sentence)
    return train, held_out


def thin_out(
    sentences: Sequence[TaggedSentence], *, per_idiom: float | None, seed: int
) -> list[TaggedSentence]:
    """Remove sentences without an idiom at random, keeping the order of the sentences.

    At most `per_idiom` sentences without an idiom are kept per sentence with an idiom. If
    `per_idiom` is None, all sentences are kept, as in the paper. Four in five sentences of ID10M
    have no idiom. Therefore, a model trained briefly on all sentences would predict only O.
    """
    if per_idiom is None:
        return list(sentences)
    without_idiom = [index for index, sentence in enumerate(sentences) if not sentence.spans]
    with_idiom_count = len(sentences) - len(without_idiom)
    kept_count = min(len(without_idiom), round(per_idiom * with_idiom_count))
    chooser = random.Random(f"thin out {seed}")  # noqa: S311 - not for secrets
    kept_indices = chooser.sample(without_idiom, kept_count)
    removed_indices = set(without_idiom).difference(kept_indices)
    return [sentence for index, sentence in enumerate(sentences) if index not in removed_indices]


def cut_at_sentence_ends(sentences: Sequence[TaggedSentence]) -> list[TaggedSentence]:
    """Divide the tokens of all sentences into new sentences, as the authors' code does.

    A new sentence ends only at a token in `SENTENCE_ENDS`, so a sentence without such a token is
    joined to the next sentence. If an idiom is cut, its second part begins a new idiom.
    """
    tagged_tokens: list[tuple[str, Tag]] = []
    for sentence in sentences:
        tagged_tokens += zip(sentence.tokens, sentence.tags, strict=True)
    new_sentences: list[TaggedSentence] = []
    tokens: list[str] = []
    tags: list[Tag] = []
    for number, (token, tag) in enumerate(tagged_tokens, start=1):
        is_cut_idiom = tag == INSIDE and not tags
        tokens.append(token)
        tags.append(BEGIN if is_cut_idiom else tag)
        is_last_token = number == len(tagged_tokens)
        if is_last_token or token.strip() in SENTENCE_ENDS:
            sentence_id = f"piece-{len(new_sentences) + 1}"
            new_sentences.append(TaggedSentence(sentence_id, tuple(tokens), tuple(tags)))
            tokens, tags = [], []
    return new_sentences
