"""Test the language modules and their inflected forms."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pieline.core.errors import UserError
from pieline.languages import registry
from pieline.languages.identification import is_in_language
from pieline.languages.inflection import base_forms, same_word
from pieline.languages.language import Language
from pieline.languages.matching import contains_pie
from pieline.languages.registry import get_language, language_names
from pieline.studies.jam.settings import JamSettings

WORDS = st.text(alphabet="abcdefgäöüßé", min_size=2, max_size=8)
ONE_WORD = {
    "english": """
        bring/brought break/broke/broken/breaking take/took/taken go/went/gone spill/spilt/spilling
        kick/kicked cry/cries/crying sit/sat/sitting cut/cutting build/built/building fix/fixed
        feel/felt/feeling foot/feet leaf/leaves leave/leaves life/lives die/dying bear/born
        child/children cross/crosses understand/understood big/biggest thank/thanks play/playing
        grow/growing sing/singing house/housing gather/gathering mass/masses sky/skies pass/passes
    """,
    "german": """
        gehen/geht/ging/gegangen losgehen/losgeht/losgegangen/loszugehen einpacken/eingepackt
        aufbinden/aufgebunden/aufzubinden wegwerfen/weggeworfen stehen/stand/standen/gestanden
        aufstehen/aufstand/aufgestanden beissen/biss/bissen/gebissen erscheinen/erschienen
        verlieren/verloren hören/gehört fallen/fällt/gefallen fuss/füsse baum/bäume haus/häuser
        hand/händen gross/grösser schiessen/schiesst/schoss nehmen/nahm/genommen
    """,
}
TWO_WORDS = {
    "english": """
        hand/handle ball/bald ice/ace bet/better the/thing kick/kicker this/thin
        car/cared star/stared see/seed fee/feed unit/united will/willing she/shed
    """,
    "german": "hand/handeln nach/nacht mit/mitte spielen/spieler nicht/nichts sein/seite wer/wert",
}


def pairs(entries: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return (language, base form, form) triples."""
    return [
        (language, base, form)
        for language, text in entries.items()
        for base, *forms in (entry.split("/") for entry in text.split())
        for form in forms
    ]


@pytest.mark.parametrize(("language", "base", "form"), pairs(ONE_WORD))
def test_forms_of_one_word(language: str, base: str, form: str) -> None:
    assert base in base_forms(form, language)
    assert same_word(base, form, language)


@pytest.mark.parametrize(("language", "one", "other"), pairs(TWO_WORDS))
def test_different_words(language: str, one: str, other: str) -> None:
    assert not same_word(one, other, language)


@given(WORDS, WORDS, st.sampled_from(language_names()))
def test_inflection_is_symmetric(one: str, other: str, language: str) -> None:
    assert same_word(one, other, language) == same_word(other, one, language)


@pytest.mark.parametrize("name", language_names())
def test_each_language_is_a_module_of_its_name(name: str) -> None:
    language = get_language(name)
    assert sys.modules[f"pieline.languages.{name}"].LANGUAGE is language
    assert language.light_words < language.stop_words
    assert language.stop_words.isdisjoint(language.particles | language.bound_words)


def test_a_language_without_a_module_is_an_error() -> None:
    with pytest.raises(
        UserError, match="unknown language 'klingon'; choose english, german, italian,"
    ):
        get_language("klingon")
    with pytest.raises(ValidationError, match="unknown language 'klingon'"):
        JamSettings(languages=["klingon"])


def test_a_language_without_lemmas_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = {"light_words": frozenset(), "stop_words": frozenset()}
    japanese = Language(name="japanese", label="Japanese", code="ja", **lists)
    monkeypatch.setattr(registry, "_languages", lambda: {"japanese": japanese})
    message = r"^pieline\.languages: japanese: simplemma has no lemmas for the code 'ja' of Japan"
    with pytest.raises(UserError, match=message):
        contains_pie("猫 の 手", "猫", language="japanese")
    klingon = Language(name="klingon", label="Klingon", code="tlh", **lists)
    monkeypatch.setattr(registry, "_languages", lambda: {"klingon": klingon})
    with pytest.raises(UserError, match=r"^py3langid cannot identify a language: .*tlh"):
        is_in_language("a text of more than twenty-five letters", "tlh", registry.language_codes())
