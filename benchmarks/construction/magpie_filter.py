"""Measure time and memory of filtering a MAGPIE file of real size: 56,622 rows, 1,756 PIEs."""

import argparse
import json
import platform
import random
import tempfile
import time
from pathlib import Path

from pieline.core.files import write_json
from pieline.studies.idiolink.originals.pairs import filter_magpie
from pieline.studies.idiolink.originals.pie_filter import FilterOptions

ROWS, PIES = 56_622, 1_756

_WORDS = [
    "river",
    "stone",
    "garden",
    "window",
    "letter",
    "morning",
    "engine",
    "winter",
    "market",
    "teacher",
]


def write_magpie(path: Path, *, rows: int, pies: int) -> None:
    """Write synthetic occurrences in MAGPIE's format, about 1 kB each as in the real file."""
    generator = random.Random(0)
    with path.open("w", encoding="utf-8") as stream:
        for number in range(rows):
            pie = f"pie {number % pies}"
            sentence = " ".join(generator.choices(_WORDS, k=22))
            label = generator.choice("iiilllfo?")
            row = {
                "confidence": generator.choice([1.0, 1.0, 1.0, 0.75]),
                "context": [sentence, sentence, f"{pie} {sentence}", sentence, sentence],
                "document_id": "A01",
                "genre": "W fict prose",
                "id": number,
                "idiom": pie,
                "judgment_count": 4,
                "label": label,
                "label_distribution": {"?": 0.0, "f": 0.0, "i": 1.0, "l": 0.0, "o": 0.0},
                "non_standard_usage_explanations": [],
                "offsets": [[0, 3], [4, len(pie)]],
                "sentence_no": str(number),
                "split": "training",
                "variant_type": "identical",
            }
            stream.write(json.dumps(row) + "\n")


def peak_memory_mb() -> int:
    """Return the peak resident memory of this process in MiB (Linux)."""
    # getrusage would include the memory of the parent process, if that was larger.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return round(int(line.split()[1]) / 1024)


def main() -> None:
    """Measure, and print and save the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--pies", type=int, default=PIES)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).with_name("magpie_filter.json")
    )
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        magpie, exclusions = Path(folder) / "magpie.jsonl", Path(folder) / "exclusions.tsv"
        write_magpie(magpie, rows=arguments.rows, pies=arguments.pies)
        exclusions.write_text("pie\treason\n", encoding="utf-8")
        start = time.perf_counter()
        verdicts, _, _ = filter_magpie(
            magpie, exclusions, FilterOptions(), candidates=None, documents=[], computed_from={}
        )
        seconds = time.perf_counter() - start
        size = magpie.stat().st_size
    figures = {
        "rows": arguments.rows,
        "pies": len(verdicts),
        "kept": sum(verdict.kept for verdict in verdicts),
        "megabytes_of_file": round(size / 1e6, 1),
        "seconds": round(seconds, 2),
        "peak_memory_mb": peak_memory_mb(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
    }
    write_json(arguments.output, figures)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
