"""A stand-in for IdioTS."""

from collections import Counter
from pathlib import Path
from random import Random

from pieline.core.files import write_text
from pieline.rehearsal.corpora import english, spanish
from pieline.rehearsal.corpora.sizes import Size, scaled

PIES, IDIOMATIC, DISTRACTORS = 93, 164, 86
"""Idioms, idiomatic sentences and distractors of the test suite (section 3)."""


def suite(size: Size, random: Random) -> list[dict[str, str]]:
    """The sentences in the released format: idiomatic ones, then distractors.

    A distractor has its PIE in the literal meaning.
    """
    pies = random.sample(english.PIES, scaled(PIES, size))
    rows: list[dict[str, str]] = []
    taken: set[str] = set()
    written: Counter[str] = Counter()
    for kind, ending, count in (("FIGURATIVE", "id", IDIOMATIC), ("LITERAL", "di", DISTRACTORS)):
        for number in range(scaled(count, size)):
            place = number % len(pies)
            name = f"idi{place + 1:03d}"
            written[name] += 1
            found = english.GRAMMAR.new_sentence(kind, random, taken, pies[place])
            rows.append(
                {
                    "idiom_id": name,
                    "idiom": f"To {pies[place].base}",
                    "sentence_id": f"{name}-sen{written[name]:02d}-{ending}",
                    "sentence_has_idiom": str(ending == "id"),
                    "en": found.text,
                    "es": spanish.GRAMMAR.new_sentence(
                        kind, random, taken, random.choice(spanish.PIES)
                    ).text,
                }
            )
    return rows


def write_suite(path: Path, size: Size, random: Random) -> None:
    """Write them as a table with tabs."""
    rows = suite(size, random)
    lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
    write_text(path, "".join(f"{line}\n" for line in lines))
