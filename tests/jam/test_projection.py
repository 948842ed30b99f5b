"""Test projecting the original's tags onto a variant."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pieline.studies.jam.bio import Span, spans_of, tags_of
from pieline.studies.jam.variants.projection import (
    _only_letters,
    added_context,
    count_words,
    find_context,
    find_original,
    project_tags,
    tokenize,
)

TOKENS = ["Come ", "on", ", ", "it", "'s ", "not ", "rocket ", "science", "!"]
TAGS = ["O", "O", "O", "B-IDIOM", "I-IDIOM", "I-IDIOM", "I-IDIOM", "I-IDIOM", "O"]
ORIGINAL = "".join(TOKENS)

SENTENCE = st.lists(
    st.sampled_from(["ice", "rope", "tea", "it's", "well-known", "Haß", "ümm", "a"]), min_size=1
)
CONTEXT = st.lists(
    st.sampled_from(["The", "boat", "sank", ".", ",", "oars", "’", "(wet)"]), max_size=8
)


@st.composite
def tagged(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Draw tokens of a sentence and tags with at most one idiom."""
    tokens = tokenize(" ".join(draw(SENTENCE)) + draw(st.sampled_from(["", ".", "!", " …"])))
    start = draw(st.integers(0, len(tokens)))
    end = draw(st.integers(start, len(tokens)))
    spans = [Span(start, end)] if end > start else []
    return tokens, tags_of(spans, len(tokens))


@given(st.text(max_size=60).filter(lambda text: text.strip()))
def test_tokens_are_the_text(text):
    tokens = tokenize(text)
    assert "".join(tokens) == text
    assert all(token.strip() for token in tokens)


@given(tagged(), CONTEXT, CONTEXT)
def test_projection_preserves_the_originals_tags(case, before, after):
    tokens, tags = case
    original = "".join(tokens)
    head = f"{' '.join(before)} " if before else ""
    tail = f" {' '.join(after)}" if after else ""
    variant = head + original + tail
    assume(original not in head + original[:-1])
    projected = project_tags(tokens, tags, variant)
    assert projected is not None
    new_tokens, new_tags = projected
    assert "".join(new_tokens) == variant
    start = len(tokenize(head))
    # The original's tokens are unchanged, except for the space after the last one.
    stop = start + len(tokens)
    assert [token.rstrip() for token in new_tokens[start:stop]] == [t.rstrip() for t in tokens]
    assert new_tags == ["O"] * start + tags + ["O"] * (len(new_tokens) - stop)


@given(tagged(), CONTEXT, st.sampled_from([",", ";", " –", "!"]))
def test_words_keep_their_tags_when_punctuation_changes(case, before, mark):
    tokens, tags = case
    assume(any(token[0].isalnum() for token in tokens))
    original = "".join(tokens)
    changed = original.replace("'", "’").replace(" ", f"{mark} ").rstrip(".!… ") + "?"
    variant = " ".join([*before, changed])
    projected = project_tags(tokens, tags, variant)
    assert projected is not None
    assert "".join(projected[0]) == variant
    spans_of(projected[1])  # still valid BIO

    def marked(tokens, tags):
        words = [list(_only_letters(token)) for token in tokens]
        return [(word, tag != "O") for word, tag in zip(words, tags, strict=True) if word]

    words = marked(tokens, tags)
    assert marked(*projected)[-len(words) :] == words


@pytest.mark.parametrize(
    ("variant", "context"),
    [
        (f"A rocket stood there. {ORIGINAL}", "A rocket stood there."),
        ("We saw one; come on, it’s not rocket science.", "We saw one;"),
        (ORIGINAL, ""),
        ("Nothing of the kind.", None),
        ("Come on, it's not rockets, science!", None),
        ("Welcome on, it's not rocket science!", None),
        ("Come on, it's not rocket sciences!", None),
        ("Come on, it is not rocket science!", None),
    ],
)
def test_only_minor_punctuation_differences_are_allowed(variant, context):
    assert find_context(ORIGINAL, variant) == context
    assert (project_tags(TOKENS, TAGS, variant) is None) == (context is None)


def test_context_of_an_edited_original():
    assert added_context(ORIGINAL, f"He built engines. {ORIGINAL}") == "He built engines."
    edited = ORIGINAL.replace("on", "in")
    assert added_context(ORIGINAL, f"He built engines. {edited}").strip() == "He built engines."
    assert added_context(ORIGINAL, "Come in!") == ""


def test_last_occurrence_counts():
    variant = f"{ORIGINAL} they said. {ORIGINAL}"
    place = find_original(ORIGINAL, variant)
    assert place is not None
    assert place == (len(variant) - len(ORIGINAL), len(variant))


def test_punctuation_within_an_idiom_belongs_to_it():
    projected = project_tags(TOKENS, TAGS, "Come on, it’s not rocket-science!")
    assert projected is not None
    tokens, tags = projected
    (span,) = spans_of(tags)
    assert "".join(tokens[span.start : span.end]) == "it’s not rocket-science"


@pytest.mark.parametrize("context", ["L'oste apre l'uscio. Cerca", "Quando l'oste cerca"])
def test_an_elided_word_keeps_its_apostrophe_and_its_tag(context):
    tokens = ["Cerca ", "l'", "ago ", "nell'", "erba"]
    tags = ["O", "B-IDIOM", "I-IDIOM", "I-IDIOM", "I-IDIOM"]
    text = f"{context} l’ago nell’erba"
    projected = project_tags(tokens, tags, text, elides=True)
    assert projected is not None
    assert "".join(projected[0]) == text
    token_tags = list(zip(*projected, strict=True))
    assert token_tags[-4:] == [
        ("l’", "B-IDIOM"),
        ("ago ", "I-IDIOM"),
        ("nell’", "I-IDIOM"),
        ("erba", "I-IDIOM"),
    ]
    assert {"L'", "l'"} & set(projected[0])


def test_words_are_counted_without_punctuation_and_space() -> None:
    assert count_words(" Two words, and\n2 more. ") == 5
