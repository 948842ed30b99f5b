"""Read the input sentences: a dataset, or the originals if there are no variants."""

from pathlib import Path

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.records import load_jsonl
from pieline.studies.jam.records import JamSentence, Original, as_sentence


def load_sentences(path: str | Path) -> list[JamSentence]:
    """Read input sentences from `results/datasets/jam/…` or `results/originals/jam/…`.

    Raises:
        UserError: The file is missing or empty, or a line is invalid; the message states the file
            and, for an invalid line, its number.
    """
    if not read_text(path).strip():
        raise UserError("the file has no sentences", where=path, hint="create it again")
    if '"original_id"' in read_text(path).split("\n", 1)[0]:
        return load_jsonl(path, JamSentence)
    return [as_sentence(item) for item in load_jsonl(path, Original)]
