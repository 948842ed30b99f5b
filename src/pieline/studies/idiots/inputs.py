"""Which raw file has the sentences of IdioTS."""

from pieline.reporting.displays import ConfiguredStudy

TABLE = "idiots/idioms_sentences.tsv"
"""Name of a raw file that may contain the sentences."""
ARRAY = "idiots/idiots.json"
"""Name of the other raw file that may contain the sentences."""


def raw_name(study: ConfiguredStudy) -> str:
    """Return the raw file name of the sentences.

    The file is a JSON array in the sample, and in own data that has an array but no table. In
    all other cases, the file is a table.
    """
    own_array = study.project.own_data and not study.project.is_available(TABLE)
    is_array = study.project.is_sample or (own_array and study.project.is_available(ARRAY))
    return ARRAY if is_array else TABLE


def no_data(study: ConfiguredStudy) -> str:
    """Return why the sentences are missing; empty if they are available."""
    name = raw_name(study)
    is_available = study.project.data != "released" or study.project.is_available(name)
    return "" if is_available else f"the mirror has no {name}"
