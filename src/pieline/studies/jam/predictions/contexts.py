"""The text of a variant with its context elsewhere, left out, or exchanged for another's."""

from collections.abc import Sequence

from pieline.studies.jam.predictions.prompt_settings import Context
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.variants.projection import find_original


def arranged_texts(sentences: Sequence[JamSentence], context: Context) -> dict[str, str]:
    """Return the text that a model is shown of each sentence, by its id.

    Originals have no context and stay as they are, and so does a variant in which its original is
    not found. "other" takes the context of a variant of another original whose number of words is
    nearest, of equally near ones the first: it speaks of something else, and is about as long.
    """
    texts = {item.id: item.sentence for item in sentences}
    if context in ("first", "neutral"):  # neutral sentences come from a file of their own
        return texts
    parts: dict[str, tuple[str, str]] = {}
    for item in sentences:
        if item.is_original or item.original_id not in texts:
            continue
        text, original = item.sentence, texts[item.original_id]
        if place := find_original(original, text):
            parts[item.id] = text[: place.start].strip(), text[place.start :].strip()
    owners = {item.id: item.original_id for item in sentences}
    for name, (own, target) in parts.items():
        others = [part[0] for other, part in parts.items() if owners[other] != owners[name]]
        shown = {"last": own, "none": "", "other": own}[context]
        if context == "other" and others:
            length = len(own.split())
            shown = min(others, key=lambda text: abs(len(text.split()) - length))
        order = (target, shown) if context == "last" else (shown, target)
        texts[name] = " ".join(filter(None, order))
    return texts
