"""Automatic checks of IdioLink's data (sections 3.1, 3.2.2 and 3.2.3).

The checks apply to generated and released data, list their findings, and never fail.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from rapidfuzz import fuzz

from pieline.core.errors import UserError
from pieline.core.records import Record
from pieline.languages.inflection import same_word
from pieline.languages.matching import matches_pie
from pieline.languages.near_duplicates import NEAR_DUPLICATE, near_duplicates
from pieline.languages.registry import get_language
from pieline.languages.spelling import normalize
from pieline.studies.idiolink.datasets.reading import LooseText
from pieline.studies.idiolink.records import DOMAIN_CODES, TEXTS_PER_PAIR, parse_id

_LANGUAGE = "english"


class CheckFinding(Record):
    """A finding of a check: the ids of the texts and a description."""

    texts: list[str]
    detail: str


class CheckResult(Record):
    """The result of a check: a description, the number of findings and the findings."""

    looks_for: str
    count: int
    findings: list[CheckFinding]


def run_checks(texts: Sequence[LooseText]) -> dict[str, CheckResult]:
    """Return the results of all checks on the texts of all splits, by check."""
    results = {}
    for name, (looks_for, check) in CHECKS.items():
        findings = list(check(texts))
        results[name] = CheckResult(looks_for=looks_for, count=len(findings), findings=findings)
    return results


def _counts_per_pair(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    counts = Counter[tuple[str, str, str, str]]()
    for text in texts:
        counts[text.collection, text.pie, text.subject, text.usage] += 1
    pies = {text.pie for text in texts}
    domains = {text.subject for text in texts}
    expected = Counter[tuple[str, str, str, str]]()
    for collection, usages in TEXTS_PER_PAIR.items():
        for usage, pie, domain in product(usages, pies, domains):
            expected[collection, pie, domain, usage] = usages[usage]
    for key in sorted(expected.keys() | counts.keys()):
        if counts[key] != expected[key]:
            of, pie, domain, usage = key
            where = f"{pie!r}, {domain}: {counts[key]} {usage} {of}"
            yield CheckFinding(texts=[], detail=f"{where} instead of {expected[key]}")


def _ids(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    pies_of: dict[int, set[str]] = defaultdict(set)
    for text in texts:
        try:
            parsed = parse_id(text.id)
        except UserError:
            yield CheckFinding(texts=[text.id], detail="not in the released format")
            continue
        pies_of[parsed.pie_number].add(text.pie)
        actual = (text.collection, text.subject, text.usage)
        if (parsed.collection, parsed.domain, parsed.usage) != actual:
            yield CheckFinding(texts=[text.id], detail=f"the text is {', '.join(actual)}")
    for number, pies in sorted(pies_of.items()):
        if len(pies) > 1:
            names = ", ".join(sorted(pies))
            yield CheckFinding(texts=[], detail=f"number {number:03d} is used for {names}")
    for name, count in sorted(Counter(text.id for text in texts).items()):
        if count > 1:
            yield CheckFinding(texts=[name], detail=f"occurs {count} times")


def _domains(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    for text in texts:
        if text.subject not in DOMAIN_CODES:
            yield CheckFinding(texts=[text.id], detail=f"domain {text.subject!r}")


def _span_missing(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    for text in texts:
        if not text.span or text.span not in text.sentence:
            yield CheckFinding(texts=[text.id], detail=f"span {text.span!r}")


def _span_repeated(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    for text in texts:
        count = text.sentence.count(text.span) if text.span else 0
        if count > 1:
            yield CheckFinding(texts=[text.id], detail=f"span {text.span!r} occurs {count} times")


def _span_is_not_pie(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    for text in texts:
        if text.usage in ("literal", "idiomatic") and not names_pie(text.span, text.pie):
            yield CheckFinding(texts=[text.id], detail=f"span {text.span!r} of {text.pie!r}")


def _pie_repeated(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    for text in texts:
        if text.usage not in ("literal", "idiomatic"):
            continue
        if any(occurrences(part, text.pie) for part in text.outside_span):
            yield CheckFinding(texts=[text.id], detail=f"{text.pie!r} outside its span")


def _pie_present(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    for text in texts:
        if text.usage in ("simplification", "sense") and occurrences(text.sentence, text.pie):
            yield CheckFinding(texts=[text.id], detail=f"contains {text.pie!r}")


def _not_a_copy(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    documents = [text for text in texts if text.collection == "documents"]
    originals = {text.id: text for text in documents if text.usage == "idiomatic"}
    for text in documents:
        if text.usage != "simplification":
            continue
        original = originals.get(_original_id(text))
        if original is None:
            yield CheckFinding(texts=[text.id], detail="no idiomatic document with the same number")
            continue
        similarity = min(
            fuzz.ratio(_without_articles(one), _without_articles(other))
            for one, other in zip(text.outside_span, original.outside_span, strict=True)
        )
        if similarity < 100:
            detail = f"{similarity:.0f}% similar outside the spans"
            yield CheckFinding(texts=[text.id, original.id], detail=detail)


def _without_articles(text: str) -> str:
    # Replacing a PIE may change the preceding "a" to "an".
    return " ".join(word for word in normalize(text).split() if word not in ("a", "an"))


def _shared_by_index_and_queries(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    for group in _equal_texts(texts):
        if len({text.collection for text in group}) > 1:
            yield CheckFinding(texts=[text.id for text in group], detail="the same text")


def _duplicates(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    for collection in TEXTS_PER_PAIR:
        for group in _equal_texts(text for text in texts if text.collection == collection):
            yield CheckFinding(
                texts=[text.id for text in group], detail=f"the same text, {collection}"
            )


def _equal_texts(texts: Iterable[LooseText]) -> Iterator[list[LooseText]]:
    """Yield groups of texts that differ only in case, punctuation and spaces."""
    groups = defaultdict(list)
    for text in texts:
        groups[normalize(text.sentence)].append(text)
    yield from (group for group in groups.values() if len(group) > 1)


def _across_splits(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    splits = defaultdict(set)
    for text in texts:
        splits[text.pie].add(text.split)
    for pie, names in sorted(splits.items()):
        if len(names) > 1:
            yield CheckFinding(texts=[], detail=f"{pie!r} in {' and '.join(sorted(names))}")


def _near_duplicates(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find pairs of similar but not equal texts, except simplifications and their originals."""
    for one, other, similarity in near_duplicates([text.sentence for text in texts]):
        first, second = texts[one], texts[other]
        if not _is_simplification(first, second) and not _is_simplification(second, first):
            detail = f"{similarity:.0f}% similar"
            yield CheckFinding(texts=[first.id, second.id], detail=detail)


def _is_simplification(text: LooseText, original: LooseText) -> bool:
    """Return whether a text simplifies another: their ids differ only in the usage."""
    usages = (text.usage, original.usage)
    return usages == ("simplification", "idiomatic") and _original_id(original) == _original_id(
        text
    )


def _original_id(text: LooseText) -> str:
    """Return the id of the idiomatic text that a simplification rewords, or an unchanged id."""
    return text.id.replace("_sim_", "_idiom_")


SLOTS = frozenset({"someone", "someones", "somebody", "somebodys", "something", "ones", "oneself"})
"""Placeholders in the canonical forms of PIEs."""

_LONGEST_FILLER = 4


def occurrences(text: str, pie: str) -> int:
    """Count the occurrences of a PIE in a text, in any inflection.

    The words must be adjacent and in order; a placeholder ("take someone for a ride") matches
    one to four arbitrary words.
    """
    words, pie_words = normalize(text).split(), normalize(pie).split()
    count = place = 0
    while pie_words and place < len(words):
        end = _end_of_match(words, pie_words, place)
        count += end is not None
        place = place + 1 if end is None else end
    return count


def _end_of_match(words: Sequence[str], pie_words: Sequence[str], start: int) -> int | None:
    """Return the end index of the shortest match of a PIE that begins at `start`, or None."""
    if not pie_words:
        return start
    if pie_words[0] in SLOTS:
        lengths = range(1, _LONGEST_FILLER + 1)
    elif start < len(words) and same_word(words[start], pie_words[0], _LANGUAGE):
        lengths = range(1, 2)
    else:
        return None
    for length in lengths:
        if start + length <= len(words):
            end = _end_of_match(words, pie_words[1:], start + length)
            if end is not None:
                return end
    return None


def names_pie(span: str, pie: str) -> bool:
    """Return whether a span is a form of a PIE, possibly with inserted words.

    "out of her own pocket" is a form of "out of pocket".
    """
    if matches_pie(span, pie, language=_LANGUAGE):
        return True
    light_words = get_language(_LANGUAGE).light_words
    needed = [word for word in normalize(pie).split() if word not in light_words]
    if not needed:
        return False
    remaining = normalize(span).split()
    for pie_word in needed:
        places = [
            place for place, word in enumerate(remaining) if same_word(word, pie_word, _LANGUAGE)
        ]
        if not places:
            return False
        # The next word of the PIE must follow this one.
        remaining = remaining[places[0] + 1 :]
    return True


Check = Callable[[Sequence[LooseText]], Iterator[CheckFinding]]
CHECKS: dict[str, tuple[str, Check]] = {
    "counts_per_pair": (
        "pairs with a wrong number of texts of a usage",
        _counts_per_pair,
    ),
    "ids": ("ids that have another format, contradict their text or occur more than once", _ids),
    "domains": ("domains that are not among the ten", _domains),
    "span_missing": ("spans that are not in their sentence", _span_missing),
    "span_repeated": ("spans that occur more than once in their sentence", _span_repeated),
    "span_is_not_pie": (
        "literal or idiomatic texts whose span is not the PIE",
        _span_is_not_pie,
    ),
    "pie_repeated": (
        "literal or idiomatic texts with the PIE outside the span",
        _pie_repeated,
    ),
    "pie_present": ("simplification and sense texts with the PIE", _pie_present),
    "simplification_is_no_copy": (
        "simplifications that differ from their idiomatic text outside the spans",
        _not_a_copy,
    ),
    "shared_by_index_and_queries": (
        "texts that are both a document and a query",
        _shared_by_index_and_queries,
    ),
    "duplicates": ("texts that occur more than once in a collection", _duplicates),
    "pie_across_splits": ("PIEs in more than one split", _across_splits),
    "near_duplicates": (
        f"pairs of texts that are at least {NEAR_DUPLICATE:g}% similar, but not equal",
        _near_duplicates,
    ),
}
"""Description and function of each check, by name."""
