"""Automatic checks of IdioLink's data (sections 3.1, 3.2.2 and 3.2.3).

The checks apply to generated data and to the public data. They list findings and never fail.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

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
    """A finding of a check: the ids of the affected texts, if any, and a description."""

    texts: list[str]
    detail: str


class CheckResult(Record):
    """The result of a check: what the check looks for, the number of findings and the findings."""

    looks_for: str
    count: int
    findings: list[CheckFinding]


def run_checks(texts: Sequence[LooseText]) -> dict[str, CheckResult]:
    """Run all checks on the texts of all splits, and return the results by check name."""
    results = {}
    for check_name, (looks_for, find) in CHECKS.items():
        findings = list(find(texts))
        results[check_name] = CheckResult(
            looks_for=looks_for, count=len(findings), findings=findings
        )
    return results


class _TextKind(NamedTuple):
    """Collection, PIE, domain and usage of texts. Texts of equal kind are counted together."""

    collection: str
    pie: str
    domain: str
    usage: str


def _find_wrong_counts(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find (PIE, domain) pairs with a wrong number of texts of a usage."""
    actual_counts = Counter(
        _TextKind(text.collection, text.pie, text.subject, text.usage) for text in texts
    )
    pies = {text.pie for text in texts}
    domains = {text.subject for text in texts}
    expected_counts: Counter[_TextKind] = Counter()
    for collection, texts_per_usage in TEXTS_PER_PAIR.items():
        for usage, pie, domain in product(texts_per_usage, pies, domains):
            expected_counts[_TextKind(collection, pie, domain, usage)] = texts_per_usage[usage]
    for kind in sorted(expected_counts.keys() | actual_counts.keys()):
        actual, expected = actual_counts[kind], expected_counts[kind]
        if actual != expected:
            counted = f"{actual} {kind.usage} {kind.collection}"
            detail = f"{kind.pie!r}, {kind.domain}: {counted} instead of {expected}"
            yield CheckFinding(texts=[], detail=detail)


def _find_wrong_ids(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find wrong ids, and PIE numbers that are used for several PIEs.

    An id is wrong if it does not have the format of the public ids, contradicts its text or occurs
    more than once.
    """
    pies_by_number: dict[int, set[str]] = defaultdict(set)
    for text in texts:
        try:
            parsed = parse_id(text.id)
        except UserError:
            yield CheckFinding(texts=[text.id], detail="not in the released format")
            continue
        pies_by_number[parsed.pie_number].add(text.pie)
        actual = (text.collection, text.subject, text.usage)
        if (parsed.collection, parsed.domain, parsed.usage) != actual:
            yield CheckFinding(texts=[text.id], detail=f"the text is {', '.join(actual)}")
    for pie_number, pies in sorted(pies_by_number.items()):
        if len(pies) > 1:
            listed_pies = ", ".join(sorted(pies))
            detail = f"number {pie_number:03d} is used for {listed_pies}"
            yield CheckFinding(texts=[], detail=detail)
    for text_id, count in sorted(Counter(text.id for text in texts).items()):
        if count > 1:
            yield CheckFinding(texts=[text_id], detail=f"occurs {count} times")


def _find_unknown_domains(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find texts whose domain is not among the ten domains of the paper."""
    for text in texts:
        if text.subject not in DOMAIN_CODES:
            yield CheckFinding(texts=[text.id], detail=f"domain {text.subject!r}")


def _find_missing_spans(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find texts whose span is empty or is not in their sentence."""
    for text in texts:
        if not text.span or text.span not in text.sentence:
            yield CheckFinding(texts=[text.id], detail=f"span {text.span!r}")


def _find_repeated_spans(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find texts whose span occurs more than once in their sentence."""
    for text in texts:
        count = text.sentence.count(text.span) if text.span else 0
        if count > 1:
            yield CheckFinding(texts=[text.id], detail=f"span {text.span!r} occurs {count} times")


def _find_spans_without_pie(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find literal and idiomatic texts whose span does not name their PIE (see `names_pie`)."""
    for text in texts:
        if text.usage in ("literal", "idiomatic") and not names_pie(text.span, text.pie):
            yield CheckFinding(texts=[text.id], detail=f"span {text.span!r} of {text.pie!r}")


def _find_pies_outside_spans(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find literal and idiomatic texts in which their PIE also occurs outside the span."""
    for text in texts:
        if text.usage not in ("literal", "idiomatic"):
            continue
        if any(count_occurrences(part, text.pie) for part in text.outside_span):
            yield CheckFinding(texts=[text.id], detail=f"{text.pie!r} outside its span")


def _find_unexpected_pies(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find simplifications and sense texts that contain their PIE."""
    for text in texts:
        if text.usage in ("simplification", "sense") and count_occurrences(text.sentence, text.pie):
            yield CheckFinding(texts=[text.id], detail=f"contains {text.pie!r}")


def _find_changed_simplifications(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find simplifications that lack an idiomatic original, or differ from it outside the span."""
    documents = [text for text in texts if text.collection == "documents"]
    idiomatic_by_id = {text.id: text for text in documents if text.usage == "idiomatic"}
    for text in documents:
        if text.usage != "simplification":
            continue
        original = idiomatic_by_id.get(_original_id(text))
        if original is None:
            yield CheckFinding(texts=[text.id], detail="no idiomatic document with the same number")
            continue
        similarity = _similarity_outside_spans(text, original)
        if similarity < 100:
            detail = f"{similarity:.0f}% similar outside the spans"
            yield CheckFinding(texts=[text.id, original.id], detail=detail)


def _similarity_outside_spans(text: LooseText, other: LooseText) -> float:
    """Return the similarity (0 to 100) of two texts outside their spans.

    The words before the spans and the words after the spans are compared separately, and the lower
    similarity is returned. Case, punctuation and indefinite articles are ignored.
    """
    before, after = text.outside_span
    other_before, other_after = other.outside_span
    return min(
        fuzz.ratio(
            _without_indefinite_articles(before), _without_indefinite_articles(other_before)
        ),
        fuzz.ratio(_without_indefinite_articles(after), _without_indefinite_articles(other_after)),
    )


def _without_indefinite_articles(text: str) -> str:
    # Replacing a PIE may change the preceding "a" to "an".
    return " ".join(word for word in normalize(text).split() if word not in ("a", "an"))


def _find_texts_in_index_and_queries(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find texts that are both a document and a query."""
    for group in _equal_texts(texts):
        if len({text.collection for text in group}) > 1:
            yield CheckFinding(texts=[text.id for text in group], detail="the same text")


def _find_duplicates(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find texts that occur more than once in a collection."""
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


def _find_pies_in_several_splits(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find PIEs with texts in more than one split."""
    splits_by_pie = defaultdict(set)
    for text in texts:
        splits_by_pie[text.pie].add(text.split)
    for pie, splits in sorted(splits_by_pie.items()):
        if len(splits) > 1:
            yield CheckFinding(texts=[], detail=f"{pie!r} in {' and '.join(sorted(splits))}")


def _find_near_duplicates(texts: Sequence[LooseText]) -> Iterator[CheckFinding]:
    """Find pairs of texts that are similar but not equal.

    A simplification and its idiomatic original are not reported.
    """
    for first_index, second_index, similarity in near_duplicates([text.sentence for text in texts]):
        first, second = texts[first_index], texts[second_index]
        if not _is_simplification(first, second) and not _is_simplification(second, first):
            detail = f"{similarity:.0f}% similar"
            yield CheckFinding(texts=[first.id, second.id], detail=detail)


def _is_simplification(text: LooseText, original: LooseText) -> bool:
    """Return whether `text` is the simplification of the idiomatic text `original`."""
    if text.usage != "simplification" or original.usage != "idiomatic":
        return False
    return _original_id(text) == _original_id(original)


def _original_id(text: LooseText) -> str:
    """Return the id of the idiomatic text that a simplification rewords.

    For any other text, return the id of the text.
    """
    return text.id.replace("_sim_", "_idiom_")


SLOTS = frozenset({"someone", "someones", "somebody", "somebodys", "something", "ones", "oneself"})
"""Placeholders in the canonical forms of PIEs, as spelled by `normalize`."""

_LONGEST_FILLER = 4
"""Maximum number of words that a placeholder matches."""


def count_occurrences(text: str, pie: str) -> int:
    """Count the occurrences of a PIE in a text, in any inflection.

    The words of the PIE must be adjacent and in order. A placeholder, such as "someone" in "take
    someone for a ride", matches one to four arbitrary words.
    """
    words, pie_words = normalize(text).split(), normalize(pie).split()
    if not pie_words:
        return 0
    count = 0
    start = 0
    while start < len(words):
        end = _end_of_match(words, pie_words, start)
        if end is None:
            start += 1
        else:
            count += 1
            start = end
    return count


def _end_of_match(words: Sequence[str], pie_words: Sequence[str], start: int) -> int | None:
    """Return the exclusive end of the shortest match of `pie_words` that starts at `words[start]`.

    The result is None if no match starts there.
    """
    if not pie_words:
        return start
    first_pie_word, *other_pie_words = pie_words
    if first_pie_word in SLOTS:
        max_words = _LONGEST_FILLER
    elif start < len(words) and same_word(words[start], first_pie_word, _LANGUAGE):
        max_words = 1
    else:
        return None
    last_possible_end = min(start + max_words, len(words))
    for first_word_end in range(start + 1, last_possible_end + 1):
        end = _end_of_match(words, other_pie_words, first_word_end)
        if end is not None:
            return end
    return None


def names_pie(span: str, pie: str) -> bool:
    """Return whether a span is a form of a PIE, or contains the PIE's content words in order.

    For example, "out of her own pocket" names the PIE "out of pocket".
    """
    if matches_pie(span, pie, language=_LANGUAGE):
        return True
    light_words = get_language(_LANGUAGE).light_words
    content_words = [word for word in normalize(pie).split() if word not in light_words]
    if not content_words:
        return False
    # The span must contain the content words in their order, possibly with words in between.
    remaining_words = normalize(span).split()
    for pie_word in content_words:
        positions = [
            position
            for position, word in enumerate(remaining_words)
            if same_word(word, pie_word, _LANGUAGE)
        ]
        if not positions:
            return False
        first_position = positions[0]
        remaining_words = remaining_words[first_position + 1 :]
    return True


Check = Callable[[Sequence[LooseText]], Iterator[CheckFinding]]
CHECKS: dict[str, tuple[str, Check]] = {
    "counts_per_pair": (
        "pairs with a wrong number of texts of a usage",
        _find_wrong_counts,
    ),
    "ids": (
        "ids that have another format, contradict their text or occur more than once",
        _find_wrong_ids,
    ),
    "domains": ("domains that are not among the ten", _find_unknown_domains),
    "span_missing": ("spans that are not in their sentence", _find_missing_spans),
    "span_repeated": ("spans that occur more than once in their sentence", _find_repeated_spans),
    "span_is_not_pie": (
        "literal or idiomatic texts whose span is not the PIE",
        _find_spans_without_pie,
    ),
    "pie_repeated": (
        "literal or idiomatic texts with the PIE outside the span",
        _find_pies_outside_spans,
    ),
    "pie_present": ("simplification and sense texts with the PIE", _find_unexpected_pies),
    "simplification_is_no_copy": (
        "simplifications that differ from their idiomatic text outside the spans",
        _find_changed_simplifications,
    ),
    "shared_by_index_and_queries": (
        "texts that are both a document and a query",
        _find_texts_in_index_and_queries,
    ),
    "duplicates": ("texts that occur more than once in a collection", _find_duplicates),
    "pie_across_splits": ("PIEs in more than one split", _find_pies_in_several_splits),
    "near_duplicates": (
        f"pairs of texts that are at least {NEAR_DUPLICATE:g}% similar, but not equal",
        _find_near_duplicates,
    ),
}
"""Description and function of each check, by check name."""
