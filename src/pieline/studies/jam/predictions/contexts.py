"""Move, remove or exchange the context of variants."""

from collections.abc import Sequence

from pieline.studies.jam.predictions.prompt_settings import Context
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.variants.projection import find_original


def arranged_texts(sentences: Sequence[JamSentence], context: Context) -> dict[str, str]:
    """Return the text to show to a model, by sentence id.

    Originals, variants in which the original cannot be located, and all texts for "first" and
    "neutral" are unchanged. "other" replaces the context of a variant with the context of another
    original's variant. Of these contexts, the one with the most similar number of words is chosen
    (the first if tied), so that the topic changes but the length hardly does.
    """
    texts = {item.id: item.sentence for item in sentences}
    if context in ("first", "neutral"):  # neutral variants are read from a separate file
        return texts
    parts: dict[str, tuple[str, str]] = {}
    for item in sentences:
        if item.is_original or item.original_id not in texts:
            continue
        text, original = item.sentence, texts[item.original_id]
        if place := find_original(original, text):
            parts[item.id] = text[: place.start].strip(), text[place.start :].strip()
    owners = {item.id: item.original_id for item in sentences}
    for name, (own_context, target) in parts.items():
        others = [part[0] for other, part in parts.items() if owners[other] != owners[name]]
        new_context = {"last": own_context, "none": "", "other": own_context}[context]
        if context == "other" and others:
            length = len(own_context.split())
            new_context = min(others, key=lambda text: abs(len(text.split()) - length))
        order = (target, new_context) if context == "last" else (new_context, target)
        texts[name] = " ".join(filter(None, order))
    return texts
