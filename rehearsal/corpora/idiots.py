"""Stand-in for IdioTS."""

from collections import Counter
from pathlib import Path
from random import Random

from pieline.core.files import write_text
from rehearsal.corpora.prose import language_material
from rehearsal.corpora.sizes import Size, scaled

ENGLISH = language_material("english")

PIES, IDIOMATIC, DISTRACTORS = 93, 164, 86
"""Numbers of idioms, idiomatic sentences and distractors in the test suite (section 3)."""


def write_suite(path: Path, size: Size, random: Random) -> None:
    """Write the sentences as TSV: idiomatic ones, then distractors, which use a PIE literally."""
    pies = random.sample(ENGLISH.pies, scaled(PIES, size))
    columns = ("idiom_id", "idiom", "sentence_id", "sentence_has_idiom", "en", "es")
    rows: list[tuple[str, ...]] = [columns]
    used: set[str] = set()
    written: Counter[str] = Counter()
    for kind, ending, count in (("FIGURATIVE", "id", IDIOMATIC), ("LITERAL", "di", DISTRACTORS)):
        for number in range(scaled(count, size)):
            place = number % len(pies)
            name = f"idi{place + 1:03d}"
            written[name] += 1
            sentence = ENGLISH.grammar.new_sentence(kind, random, used, pies[place])
            rows.append(
                (
                    name,
                    f"To {pies[place].base}",
                    f"{name}-sen{written[name]:02d}-{ending}",
                    str(ending == "id"),
                    sentence.text,
                    "",
                )
            )
    write_text(path, "".join("\t".join(row) + "\n" for row in rows))
