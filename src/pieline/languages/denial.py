"""Detect statements that no idiom is present, in every supported language."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

from pieline.languages.language import AnswerWords
from pieline.languages.registry import answer_words
from pieline.languages.spelling import normalize

View = Literal["affirms", "denies", "doubts"]
"""View that a text expresses about an expression: the text calls it idiomatic, denies that it is
idiomatic, or mentions literal use in a way that leaves this open."""

Kind = Literal["candidates", "answer", "idioms", "expressions"]
"""Kind of content that a key or label announces: candidates, the answer or choice, idioms, or
idioms under a broader term such as "expression"."""

_BREAK = re.compile(r"([.!?;:,()\[\]\n…–—]| - )")
_QUOTE = re.compile(r"[\"“”„«»`]|(?<!\w)['‘’]|['’](?!\w)")
_QUOTED = re.compile(
    r"\"[^\"\n]+\"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|`[^`\n]+`|(?<!\w)['‘][^\n]+?['’](?!\w)"
    r"|\*+[^*\n:]+\*+(?!:)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s|\n")
_HEADING = re.compile(r"#.*|[*_]+[^.!?]*[*_]+|.*:\W*")
_NAMED, _OTHER = "thenamedidiom", "anotherphrase"
"""Words that replace named idioms and other quoted phrases in an explanation."""
_LONGEST_ERROR = 6
"""Maximum number of words in a clause such as "my answer was wrong"."""
_BEFORE_MEANING = {":", "(", " - ", "–", "—"}
"""Punctuation before the meaning of an idiom."""


def is_none_answer(text: str) -> bool:
    """Return whether a text, given in place of an idiom, states that there is no idiom.

    True for "None", "N/A", "-", "Keine Redewendung", "There are no idioms in this sentence." and
    empty texts.
    """
    answer = normalize(text)
    if not answer or answer in _terms("nothing", "no") or denies_idioms(text):
        return True
    # A negation and a word for idioms: "nessuna espressione".
    first_word, *other_words = answer.split()
    for vocabulary in answer_words():
        allowed = _denial_words(vocabulary) | vocabulary.candidates
        if (
            first_word in vocabulary.negations | vocabulary.concord
            and not vocabulary.expressions.isdisjoint(other_words)
            and allowed.issuperset(other_words)
        ):
            return True
    return False


def parse_boolean(text: str) -> bool | None:
    """Parse a text that is only "yes", "no" (in any language), 1 or 0; return None otherwise."""
    answer = normalize(text)
    if answer == "1" or answer in _terms("yes"):
        return True
    if answer == "0" or answer in _terms("no"):
        return False
    return None


def denies_idioms(prose: str) -> bool:
    """Return whether prose states, without contradicting itself, that there is no idiom.

    At least one clause must consist entirely of one language's known words for denials: "There are
    no idioms in this sentence", but not "There are no idioms but one". No other clause may mention
    expressions, unless that clause calls them literal or continues the denial. The result is False
    for prose with quoted words, because they may be an idiom. The sentence itself may be quoted
    ("the sentence '…' has no idioms").
    """
    tokens = set(normalize(prose).split())
    for vocabulary in answer_words():
        # Skip most texts before the slower check of clauses.
        has_negation = tokens & (vocabulary.negations | vocabulary.concord)
        names_idioms = tokens & (vocabulary.idioms | vocabulary.figurative)
        if has_negation and names_idioms and _denies_in_language(prose, vocabulary):
            return True
    return False


def find_views(text: str) -> set[View]:
    """Return the views (see `View`) that an explanation expresses about the explained text."""
    views: set[View] = set()
    clauses = list(_clauses(text))
    for clause in _relevant_clauses(clauses):
        affirmations = _affirmations(clause)
        # A single word denies only if it is the complete text.
        is_statement = len(clause) > 1 or len(clauses) == 1
        if affirmations == {False} and is_statement and _is_closed(clause):
            views.add("denies")
        elif False in affirmations:
            views.add("doubts")
        if True in affirmations:
            # "It literally means to hit a pail, but figuratively to die" leaves nothing open.
            views.discard("doubts")
            views.add("affirms")
    return views


def _relevant_clauses(clauses: Sequence[tuple[list[str], str]]) -> Iterator[list[str]]:
    """Yield the words of the clauses that can express a view on the explained text.

    Denials of further idioms ("There are no other idioms") and explanations of a literal meaning
    are left out.

    Args:
        clauses: Words of each clause, and the punctuation that closes it.
    """
    stop_before = ""
    end: tuple[list[str], str] = ([], "")
    for (clause, stop), (next_clause, _) in pairwise([*clauses, end]):
        is_about_others = _mentions(clause, "others") and not _mentions(clause, "literal")
        is_explanation = _explains_literal_meaning(clause, stop, stop_before, next_clause)
        if not is_about_others and not is_explanation:
            yield clause
        stop_before = stop


def _explains_literal_meaning(
    clause: list[str], stop: str, stop_before: str, next_clause: list[str]
) -> bool:
    """Return whether a clause only explains a literal meaning or use, which expresses no view.

    Args:
        clause: Words of the clause.
        stop: Punctuation after the clause.
        stop_before: Punctuation before the clause.
        next_clause: Words of the next clause.
    """
    if not _mentions(clause, "literal") or _mentions(clause, "figurative"):
        return False
    names_meaning = _mentions(clause, "meanings")
    is_one_word = len(clause) == 1
    # "die (literally: hit a pail)", "the literal meaning: hit a pail"
    is_label = stop == ":" and (names_meaning or (is_one_word and stop_before == "("))
    # "the literal meaning is a pail, but here"
    is_contrasted = names_meaning and _mentions(next_clause[:1], "contrast")
    # "it is often literal"; "literally, it would mean to hit a pail"
    is_general = _mentions(clause, "general") or (is_one_word and _mentions(next_clause, "general"))
    return is_label or is_contrasted or is_general


def has_denying_comment(name: str) -> bool:
    """Return whether a name has a comment that denies idiomatic use: "in hot water (literal)"."""
    is_comment = bool(re.search(r"[(\[:–—]| - |idiom|modism|redewendung", name, re.IGNORECASE))
    if not is_comment and not _mentions(normalize(name).split(), "literal"):
        return False
    views = find_views(name.replace(":", " "))
    return bool(views & {"denies", "doubts"})


def is_retracted(after: str, named: Collection[str]) -> bool:
    """Return whether the text after an answer retracts the answer or names another answer.

    An explanation does not retract the answer, even if it calls other phrases literal or mentions
    that a phrase is an idiom in general. Only these statements retract an answer:

    - The answer was wrong ("Wait, that is wrong."), or another answer is correct.
    - There is no idiom ("My answer: none"), or a named idiom is literal.
    - The sentence does have an idiom, although the answer names none. This statement must be about
      the sentence ("is an idiom here") or begin with a word such as "wait", and no words may
      suggest literal use.

    Args:
        after: Text after the answer.
        named: Idioms that the answer names; empty if it names none.
    """
    explanation = _mark_phrases(after, named)
    sentences = [text for text in _SENTENCE_END.split(explanation) if normalize(text)]
    for sentence in sentences:
        if _calls_wrong(sentence) or _names_another_answer(sentence, named):
            return True
    return _denies_named_idioms(sentences) if named else _affirms_an_idiom(sentences)


def views_about(text: str, named: Collection[str]) -> set[View]:
    """Return the views that an explanation expresses about the named idioms (see `find_views`).

    Sentences that quote only other phrases are ignored.
    """
    sentences = _SENTENCE_END.split(_mark_phrases(text, named))
    about_named = [sentence for sentence in sentences if not _is_about_other_phrases(sentence)]
    return find_views("\n".join(about_named))


def _mark_phrases(text: str, named: Collection[str]) -> str:
    """Return a text with named idioms replaced by `_NAMED`, and other phrases by `_OTHER`.

    Other phrases are quoted or bold texts, except parts of a named idiom and words such as
    "literal".
    """
    names = [name for name in named if normalize(name)]
    # Spaces around the texts make sure that only complete words match.
    idioms = [f" {normalize(name)} " for name in names]

    def mark(quotation: re.Match[str]) -> str:
        phrase = f" {normalize(quotation[0])} "
        if any(idiom in phrase for idiom in idioms):
            return f" {_NAMED} "
        is_part_of_idiom = any(phrase in idiom for idiom in idioms)
        if is_part_of_idiom or _statement_words().issuperset(phrase.split()):
            return quotation[0]
        return f" {_OTHER} "

    text = _QUOTED.sub(mark, text)
    for name in names:
        unquoted_name = rf"(?<!\w){re.escape(name)}(?!\w)"
        text = re.sub(unquoted_name, f" {_NAMED} ", text, flags=re.IGNORECASE)
    return text


def _is_about_other_phrases(sentence: str) -> bool:
    """Return whether a sentence with marked phrases quotes only phrases that were not named."""
    return _OTHER in sentence and _NAMED not in sentence


def _has_clause_starting_with(sentence: str, *fields: str) -> bool:
    """Return whether a clause of a sentence starts with a text in `fields` of `AnswerWords`."""
    beginnings = tuple(f"{text} " for text in _terms(*fields))
    return any(f"{' '.join(clause)} ".startswith(beginnings) for clause, _ in _clauses(sentence))


def _calls_wrong(sentence: str) -> bool:
    """Return whether a sentence states that the answer is wrong: "I was wrong"."""
    stop_before = ""
    for clause, stop in _clauses(sentence):
        # "to bark up the wrong tree (be wrong)"
        is_meaning = stop_before in _BEFORE_MEANING
        # "Wrong: …" alone is a label.
        fewest_words = 3 if stop == ":" else 2
        has_length_of_error = fewest_words <= len(clause) <= _LONGEST_ERROR
        is_about_idiom = _NAMED in clause or _OTHER in clause
        if (
            _contains_text(clause, "errors")
            and has_length_of_error
            and not is_meaning
            and not is_about_idiom
            and not _mentions(clause, "negations", "literal")
        ):
            return True
        stop_before = stop
    return False


def _names_another_answer(sentence: str, named: Collection[str]) -> bool:
    """Return whether a sentence states an answer other than the given one.

    Args:
        sentence: Sentence with marked phrases (see `_mark_phrases`).
        named: Idioms that the given answer names.
    """
    words = normalize(sentence).split()
    if _NAMED in words:
        return False
    return _corrects_answer(words, named) or _is_labeled_answer(sentence)


def _corrects_answer(words: list[str], named: Collection[str]) -> bool:
    """Return whether a sentence corrects the answer: "The correct answer is 'spill the beans'"."""
    has_only_known_words = (_words_about_answers() | {_OTHER}).issuperset(words)
    is_about_answer = _mentions(words, "answers") or has_only_known_words
    if not _mentions(words, "corrects") or not is_about_answer:
        return False
    contradicts = _mentions(words, "nothing", "no") if named else _mentions(words, "yes")
    # Some words, such as "instead", count as a negation and as a correction.
    negations = _terms("negations") - _terms("corrects")
    is_negated = bool(negations.intersection(words))
    return contradicts or (_OTHER in words and not is_negated)


def _is_labeled_answer(sentence: str) -> bool:
    """Return whether a sentence is a label with an answer: "Final answer: spill the beans"."""
    (first_clause, stop), *other_clauses = _clauses(sentence)
    is_label = (
        stop == ":"
        and _mentions(first_clause, "answers")
        and _words_about_answers().issuperset(first_clause)
    )
    content = {word for clause, _ in other_clauses for word in clause}
    # A word that is not about answers is part of a phrase.
    names_phrase = not _words_about_answers().issuperset(content)
    return (
        is_label
        and names_phrase
        and not _mentions(content, "negations")
        # A sentence with a view explains the phrase: "Final answer: it is used literally".
        and not find_views(sentence)
    )


def _denies_named_idioms(sentences: Iterable[str]) -> bool:
    """Return whether an explanation of an answer that names idioms denies that they are idioms."""
    # What the sentences so far state about the named idioms:
    calls_literal = False
    affirms = False
    # What precedes the sentence:
    follows_question = False
    follows_other_phrase = False
    for sentence in sentences:
        views = find_views(sentence)
        is_revision = _has_clause_starting_with(sentence, "revises")
        is_clarification = _has_clause_starting_with(sentence, "clarifies")
        if _is_about_other_phrases(sentence):
            # "Wait, 'spill the beans' is the idiom."
            if (is_revision or is_clarification) and "affirms" in views:
                return True
            follows_other_phrase = True
        else:
            if _NAMED in sentence:
                follows_other_phrase = False
            # "Wait.", "Actually, it is literal."
            retracts = is_revision or (is_clarification and views)
            if retracts and "affirms" not in views:
                return True
            if not follows_question and _says_none(sentence):
                return True
            affirms = affirms or "affirms" in views
            is_heading = _HEADING.fullmatch(sentence.strip())
            if not is_heading and _calls_literal(sentence, is_about_named=not follows_other_phrase):
                calls_literal = True
        follows_question = sentence.rstrip().endswith("?")
    return calls_literal and not affirms


def _says_none(sentence: str) -> bool:
    """Return whether a clause of a sentence answers that there is no idiom: "My answer: none"."""
    previous_clause: list[str] = []
    previous_stop = ""
    for clause, stop in _clauses(sentence):
        can_be_answer = _can_precede_answer(previous_clause, previous_stop)
        if can_be_answer and stop != "?" and _is_none_clause(clause):
            return True
        previous_clause, previous_stop = clause, stop
    return False


def _can_precede_answer(clause: list[str], stop: str) -> bool:
    """Return whether an answer can follow a clause that ends with a punctuation mark."""
    if stop != ":":
        # "There are no other idioms, none" is not about the named idioms.
        return not _mentions(clause, "others")
    # A label must announce an answer: "My answer: none", but not "Literal meaning: none".
    announces_answer = kind_of(" ".join(clause)) in ("answer", "idioms")
    return announces_answer or _mentions(clause, "answers")


def _is_none_clause(clause: list[str]) -> bool:
    """Return whether a clause states that there is no idiom, rather than no other idiom."""
    is_count = clause[0].isdecimal()  # "0 idioms" may count other idioms
    is_about_others = _mentions(clause, "others")
    return is_none_answer(" ".join(clause)) and not is_count and not is_about_others


def _calls_literal(sentence: str, *, is_about_named: bool) -> bool:
    """Return whether a sentence states that the named idioms are literal.

    Args:
        sentence: Sentence with marked phrases (see `_mark_phrases`).
        is_about_named: Whether a statement at the beginning of the sentence is about the named
            idioms ("It is used literally here."). A later statement must name an idiom.
    """
    # Only words such as "but" and "actually" may precede the beginning of a statement.
    introductions = _terms("contrast", "fillers", "revises", "clarifies") - _terms("others")
    clauses = list(_clauses(sentence))
    for clause, stop in clauses:
        is_single_word_of_longer_sentence = len(clause) == 1 and len(clauses) > 1
        if (
            (is_about_named or _NAMED in clause)
            and not is_single_word_of_longer_sentence
            and _states_literal_use([word for word in clause if word != _NAMED], stop)
        ):
            return True
        is_about_named = is_about_named and introductions.issuperset(clause)
    return False


def _states_literal_use(clause: list[str], stop: str) -> bool:
    """Return whether a clause before the punctuation `stop` states that a phrase is literal."""
    # "The literal meaning (hitting a pail) does not fit."
    introduces_meaning = stop in _BEFORE_MEANING and _mentions(clause, "meanings")
    return (
        stop not in (":", "?")
        and not introduces_meaning
        and _affirmations(clause) == {False}
        and not _mentions(clause, "others", "general")
        and _is_closed(clause)
    )


def _affirms_an_idiom(sentences: Sequence[str]) -> bool:
    """Return whether an explanation states that there is an idiom; its answer names none."""
    if find_views("\n".join(sentences)) != {"affirms"} or _suggests_literal_use(sentences):
        return False
    # A short objection is about the question's sentence, and so is all that follows "wait".
    is_about_question = _is_short_objection(_clauses_of(sentences))
    for sentence in sentences:
        if _revises(sentence):
            is_about_question = True
        # Otherwise, a clause must refer to the question before or when it affirms an idiom.
        refers_to_question = False
        for clause, stop in _clauses(sentence):
            refers_to_question = refers_to_question or _mentions(clause, "here", "sentences")
            affirms = stop != "?" and _affirmations(clause) == {True}
            if affirms and (refers_to_question or is_about_question):
                return True
    return False


def _revises(sentence: str) -> bool:
    """Return whether a clause of a sentence starts with words such as "wait" or "actually"."""
    return _has_clause_starting_with(sentence, "revises", "clarifies")


def _suggests_literal_use(sentences: Sequence[str]) -> bool:
    """Return whether an explanation has words that contradict or weaken the mention of an idiom."""
    clauses = _clauses_of(sentences)
    words = [word for clause in clauses for word in clause]
    if _is_short_objection(clauses):
        # The contrast at the beginning contradicts the answer, not the idiom.
        words = words[1:]
    if _mentions(words, "general", "actual"):
        return True
    if any(_revises(sentence) for sentence in sentences):
        # "doch" within a clause is no contrast in "Moment, das ist doch eine Redewendung".
        return any(_mentions(clause[:1], "contrast") for clause in clauses)
    # "the idiom is not used here", "although it is an idiom, it is not one here"
    return _mentions(words, "contrast") or any(_ends_in_negation(clause) for clause in clauses)


def _is_short_objection(clauses: Sequence[list[str]]) -> bool:
    """Return whether a text has one or two clauses and starts with a contrast: "However, it is"."""
    return 0 < len(clauses) <= 2 and _mentions(clauses[0][:1], "contrast")


def view_of_flag(key: str, truth: bool) -> View | None:
    """Return the view that a boolean value expresses under its key, or None if it expresses none.

    `"is_idiom": false` denies; `"literal": false` affirms.
    """
    affirmations = _affirmations(_words_of_key(key))
    if len(affirmations) == 1:
        return "affirms" if truth in affirmations else "denies"
    # A false value of another key ("valid", "used") may still refer to the idiom.
    return None if truth else "doubts"


def is_count(key: str) -> bool:
    """Return whether a number under a key is a number of idioms ("idiom_count", "idioms_found")."""
    if kind_of(key) in ("idioms", "expressions"):
        return True
    words = _words_of_key(key)
    return _mentions(words, "idioms", "expressions", "figurative") and _contains_text(
        words, "counts"
    )


def views_of_value(key: str, value: object) -> set[View] | None:
    """Return the views that a value expresses under its key.

    A literal meaning ("has_literal_meaning") expresses no view, because idioms can have one. The
    absence of a figurative meaning is a denial. The result is None if the key does not determine
    how to interpret the value.
    """
    words = _words_of_key(key)
    affirmations = _affirmations(words)
    text = normalize(f"{value:g}" if isinstance(value, float) else str(value))
    # "has_literal_meaning": true, "literal_candidates": []
    is_about_literal_use = affirmations == {False} and _mentions(words, "literal")
    if is_about_literal_use and _mentions(words, "meanings", "candidates"):
        return set()
    # "figurative_meaning": "none" denies; "is_idiom": "n/a" only doubts.
    is_nothing = text in _terms("negations") or bool(text and is_none_answer(text))
    is_affirmation = affirmations == {True} and _is_closed(words)
    if is_nothing and is_affirmation and parse_boolean(text) is None:
        return {"denies" if _mentions(words, "figurative") else "doubts"}
    # "number_of_idioms": 0
    if text == "0" and _contains_text(words, "counts"):
        return {"doubts"}
    # "start": 0 is an offset.
    if text in ("0", "1") and not _is_closed(words):
        return set()
    # "usage": "compositional" denies; "status": "rejected" only doubts.
    if text in _terms("rejected") and not _mentions(words, "meanings"):
        return {"denies" if _mentions(words, "uses") else "doubts"}
    return None


def kind_of(key: str) -> Kind | None:
    """Return the kind of a key or label: "idioms" for "Detected idioms" or `idiom_2`.

    If a key names several kinds, the first of answer, candidates, idioms and expressions counts.
    Returns None if the key names no kind of content or has unrelated words (`idiom_meaning`).
    """
    words = {word for word in _words_of_key(key) if not word.isdigit()}
    # The first language that has all words of the key decides.
    for vocabulary in answer_words():
        # In order of priority.
        words_by_kind: dict[Kind, frozenset[str]] = {
            "answer": vocabulary.answers,
            "candidates": vocabulary.candidates,
            "idioms": vocabulary.idioms,
            "expressions": vocabulary.expressions,
        }
        related = vocabulary.figurative | vocabulary.sentences | vocabulary.fillers
        if not words <= related.union(*words_by_kind.values()):
            continue
        kinds = [kind for kind, words_of_kind in words_by_kind.items() if words & words_of_kind]
        if kinds == ["expressions"] and words & vocabulary.figurative:
            return "idioms"  # "figurative expressions"
        return kinds[0] if kinds else None
    return None


def may_list_idioms(key: str) -> bool:
    """Return whether a list under a key without a kind is a list of idioms ("figurative")."""
    words = _words_of_key(key)
    allowed = _terms("figurative", "fillers", "uses")
    return _mentions(words, "figurative", "fillers") and allowed.issuperset(words)


def is_decision(key: str) -> bool:
    """Return whether a true value of a key can only mean that there is an idiom ("is_idiom")."""
    words = _words_of_key(key)
    return kind_of(key) == "answer" or (_affirmations(words) == {True} and _is_closed(words))


def is_conjunction(between: str) -> bool:
    """Return whether the text between two answers contains only fillers ("or") or no words."""
    return _terms("fillers").issuperset(normalize(between).split())


def announces_others(lead: str) -> bool:
    """Return whether a lead-in or key announces candidates or expressions that are not idioms."""
    words = _words_of_key(lead)
    announces_literal = False in _affirmations(words) or _mentions(words, "rejected")
    return announces_literal or announces_candidates(lead)


def announces_candidates(lead: str) -> bool:
    """Return whether a lead-in or key announces candidates for idioms."""
    return _mentions(_words_of_key(lead), "candidates")


def is_sentence_key(key: str) -> bool:
    """Return whether a key refers to the input sentence."""
    words = _words_of_key(key)
    return _mentions(words, "sentences") and _terms("sentences", "fillers").issuperset(words)


def _words_of_key(key: str) -> list[str]:
    """Return the normalized words of a key or label: "is", "idiom", "2" for `is_idiom2`."""
    return normalize(re.sub(r"(?<=[a-zß-ÿ])(?=[A-Z])|_|(?<=\D)(?=\d)", " ", key)).split()


def _denies_in_language(prose: str, vocabulary: AnswerWords) -> bool:
    """Return whether prose denies in one language that there is an idiom (see `denies_idioms`)."""
    prose = _quote_bold_text(_remove_quoted_sentence(prose, vocabulary), vocabulary)
    if _QUOTE.search(prose):
        return False  # the quoted words may be an idiom
    is_denied = False
    stop_before = ""
    for clause, stop in _clauses(prose):
        continues_denial = is_denied and stop_before == "," and _extends_list(clause, vocabulary)
        stop_before = stop
        if stop != "?" and _is_denial(clause, vocabulary):
            is_denied = True
            continue
        if not vocabulary.contrast.isdisjoint(clause):
            return False
        names_expression = not _expression_words(vocabulary).isdisjoint(clause)
        is_harmless = continues_denial or _is_literal_statement(clause, vocabulary)
        if names_expression and not is_harmless:
            return False
    return is_denied


def _is_denial(clause: list[str], vocabulary: AnswerWords) -> bool:
    """Return whether a clause denies that there is an idiom: "There are no idioms here"."""
    names_idiom = not (vocabulary.idioms | vocabulary.figurative).isdisjoint(clause)
    has_only_denial_words = _denial_words(vocabulary).issuperset(clause)
    return names_idiom and has_only_denial_words and _count_negations(clause, vocabulary) == 1


def _extends_list(clause: list[str], vocabulary: AnswerWords) -> bool:
    """Return whether a clause can add expressions to a denial: "or other figurative language"."""
    starts_with_expression = not _expression_words(vocabulary).isdisjoint(clause[:2])
    has_only_denial_words = _denial_words(vocabulary).issuperset(clause)
    has_negation = _count_negations(clause, vocabulary) > 0
    return starts_with_expression and has_only_denial_words and not has_negation


def _is_literal_statement(clause: list[str], vocabulary: AnswerWords) -> bool:
    """Return whether a clause only calls a phrase literal: "The phrase is used literally"."""
    calls_literal = not vocabulary.literal.isdisjoint(clause)
    has_only_known_words = (_denial_words(vocabulary) | vocabulary.literal).issuperset(clause)
    has_negation = _count_negations(clause, vocabulary) > 0
    return calls_literal and has_only_known_words and not has_negation


def _count_negations(clause: list[str], vocabulary: AnswerWords) -> int:
    """Return the number of negations in a clause of one language.

    All words of `AnswerWords.concord` together count as one negation, and only in a clause without
    other negations ("non c'è nessun…").
    """
    negations = sum(word in vocabulary.negations for word in clause)
    return negations or (0 if vocabulary.concord.isdisjoint(clause) else 1)


def _remove_quoted_sentence(prose: str, vocabulary: AnswerWords) -> str:
    """Remove quoted text after a word for the sentence: "the sentence '…' has no idioms"."""
    words = "|".join(map(re.escape, sorted(vocabulary.sentences)))
    quotation = r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|'.*?'(?!\w)"
    return re.sub(rf"\b({words})\b[:,]?\s*(?:{quotation})", r"\1", prose, flags=re.IGNORECASE)


def _quote_bold_text(prose: str, vocabulary: AnswerWords) -> str:
    """Replace bold text by a quotation mark, but keep bold text that has only denial words."""

    def replace(bold: re.Match[str]) -> str:
        has_only_denial_words = _denial_words(vocabulary).issuperset(normalize(bold[1]).split())
        return bold[1] if has_only_denial_words else '"'

    return re.sub(r"\*+([^*]+)\*+", replace, prose)


def _affirmations(clause: list[str]) -> set[bool]:
    """Return a set: True is in it if a word affirms idiomatic use, False if a word denies it."""
    affirmations: set[bool] = set()
    is_negated = False
    for word in clause:
        match _roles().get(word):
            case "negation":
                is_negated = True
            case "contrast":
                is_negated = False
            case "figurative":
                affirmations.add(not is_negated)
            case "literal":
                affirmations.add(is_negated)
    return affirmations


def _ends_in_negation(clause: list[str]) -> bool:
    """Return whether a negation follows all words about figurative and literal use in a clause."""
    roles = [_roles()[word] for word in clause if word in _roles()]
    return len(clause) > 1 and roles[-1:] == ["negation"]


def _is_closed(clause: list[str]) -> bool:
    """Return whether a clause has only words for denials and for literal use, in one language.

    The first word may also be a contrast. False for a clause without words, such as the key "_".
    """
    if not clause:
        return False
    words = clause[1:] if _mentions(clause[:1], "contrast") else clause
    return any(
        (_denial_words(vocabulary) | vocabulary.literal).issuperset(words)
        for vocabulary in answer_words()
    )


def _clauses(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words of each clause of a text, and the punctuation that closes the clause."""
    text = re.sub(r"(?i)\bnon-(?=\w)", "non", text)
    # The result of `split` alternates between clauses and punctuation.
    pieces = [*_BREAK.split(text), ""]
    for clause, stop in zip(pieces[::2], pieces[1::2], strict=True):
        words = normalize(clause).split()
        if words:
            yield words, stop


def _clauses_of(sentences: Iterable[str]) -> list[list[str]]:
    """Return the words of each clause of several sentences."""
    return [clause for sentence in sentences for clause, _ in _clauses(sentence)]


def _mentions(words: Iterable[str], *fields: str) -> bool:
    """Return whether one of the words is in `fields` of `AnswerWords`, in any language."""
    return not _terms(*fields).isdisjoint(words)


def _contains_text(words: Iterable[str], field: str) -> bool:
    """Return whether words contain, in sequence, a text in a field of `AnswerWords`."""
    padded_words = f" {' '.join(words)} "
    return any(f" {text} " in padded_words for text in _terms(field))


@cache
def _denial_words(vocabulary: AnswerWords) -> frozenset[str]:
    """Return all words that can occur in a denial in one language."""
    return frozenset().union(
        vocabulary.idioms, vocabulary.expressions, vocabulary.figurative, vocabulary.uses,
        vocabulary.meanings, vocabulary.sentences, vocabulary.negations, vocabulary.concord,
        vocabulary.fillers,
    )  # fmt: skip


@cache
def _expression_words(vocabulary: AnswerWords) -> frozenset[str]:
    """Return all words of one language that can refer to an idiom."""
    return frozenset().union(
        vocabulary.idioms, vocabulary.figurative, vocabulary.expressions, vocabulary.candidates
    )


@cache
def _statement_words() -> frozenset[str]:
    """Return all words that can occur in statements about figurative and literal use."""
    words: frozenset[str] = frozenset()
    for vocabulary in answer_words():
        words |= _denial_words(vocabulary) | vocabulary.literal
    return words


@cache
def _words_about_answers() -> frozenset[str]:
    """Return all words that can occur in statements about the answer, without named phrases."""
    return _statement_words() | _terms("answers", "corrects", "nothing", "no", "yes")


@cache
def _roles() -> dict[str, str]:
    """Map each word that affects `_affirmations`, in any language, to its role in a clause."""
    fields_by_role = {
        "contrast": ("contrast",), "literal": ("literal",), "figurative": ("idioms", "figurative"),
        "negation": ("negations", "concord"),
    }  # fmt: skip
    roles: dict[str, str] = {}
    for role, fields in fields_by_role.items():
        # If a word has several roles, the last one counts.
        roles |= dict.fromkeys(_terms(*fields), role)
    return roles


@cache
def _terms(*fields: str) -> frozenset[str]:
    """Return the words or texts in `fields` of `AnswerWords`, in all languages."""
    terms: set[str] = set()
    for vocabulary in answer_words():
        for field in fields:
            terms |= getattr(vocabulary, field)
    return frozenset(terms)
