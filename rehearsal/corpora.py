"""Write the sample data, repeated, in the formats of the public files."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pieline.core.files import read_json, write_text
from pieline.studies.idiolink.originals.splits import SPLITS
from pieline.studies.jam.bio import OUTSIDE, TAG_IDS
from pieline.studies.jam.originals import apply_decisions, load_decisions
from pieline.studies.jam.raw.id10m import TaggedSentence, format_id10m, read_id10m

T = TypeVar("T")


def write_corpora(sample: Path, folder: Path, copies: int) -> None:
    """Write the public files that config/paper.yaml reads, except mined tuples, as own data.

    Texts must not repeat, so each copy after the first ends with its number, such as "(2)".

    Args:
        sample: Folder of the sample data.
        folder: Output folder.
        copies: Number of copies of the sample, from 1 to 9.
    """
    for language in ("english", "german"):
        _write_jam(sample / "id10m", folder, language, copies)
    suite = _repeated(read_json(sample / "idiots/idiots.json"), copies)
    _write_rows(
        folder / "idiots/idiots.json",
        (
            row
            | {"en": row["en"] + mark, "sentence_id": row["sentence_id"].replace("n0", f"n{copy}")}
            for row, copy, mark in suite
        ),
    )
    for split in SPLITS:
        for name in ("indexes.json", "queries.json"):
            texts = _repeated(read_json(sample / "idiolink" / split / name), copies)
            _write_rows(
                folder / "idiolink" / split / name,
                (
                    # An id ends with the number of the text: 01, 11, 21, ...
                    row
                    | {"sentence": row["sentence"] + mark}
                    | {"id": f"{row['id'][:-2]}{copy}{row['id'][-1]}"}
                    for row, copy, mark in texts
                ),
            )


def _write_jam(sample: Path, folder: Path, language: str, copies: int) -> None:
    """Write a language's splits of ID10M, and originals and variants of ID10M-JAM."""
    for split in ("train", "dev", "test"):
        name = f"{split}_{language}.tsv"
        sentences = _repeated(read_id10m(sample / name, split=split), copies)
        text = format_id10m([_marked(item, mark) for item, _, mark in sentences])
        write_text(folder / "id10m" / name, text)
    where = sample / f"decisions/{language}.tsv"
    originals = apply_decisions(
        read_id10m(sample / f"test_{language}.tsv", split="test"),
        load_decisions(where),
        language=language,
        where=where,
    )
    rows = []
    for item, _, mark in _repeated(originals, copies):
        tagged = _marked(TaggedSentence(item.id, item.tokens, item.tags), mark)
        rows.append(
            {
                "sentence": tagged.text,
                "PIE": item.pies,
                "true_idioms": item.true_idioms,
                "is_figurative": item.is_figurative,
                "tokens": tagged.tokens,
                "tags": tagged.tags,
                "tag_ids": [TAG_IDS[tag] for tag in tagged.tags],
                "was_fixed": item.was_fixed,
            }
        )
    _write_rows(folder / f"id10m-jam/{language}.json", rows)
    variants = _repeated(read_json(sample / f"variants/{language}.json"), copies)
    _write_rows(
        folder / f"id10m-jam/variants/{language}.json",
        (
            {name: row[name] for name in ("PIE", "is_figurative", "variant_number")}
            | {name: row[name] + mark for name in ("sentence", "variant_sentence")}
            for row, _, mark in variants
        ),
    )


def _repeated(items: Iterable[T], copies: int) -> Iterator[tuple[T, int, str]]:
    """Yield each item of each copy with the number of the copy (from 0) and its mark."""
    items = list(items)
    for copy in range(copies):
        for item in items:
            yield item, copy, f" ({copy + 1})" if copy else ""


def _marked(sentence: TaggedSentence, mark: str) -> TaggedSentence:
    """Return a sentence with a mark as an additional token."""
    if not mark:
        return sentence
    *tokens, last = sentence.tokens
    return TaggedSentence(
        sentence.id, (*tokens, f"{last.rstrip()} ", mark.strip()), (*sentence.tags, OUTSIDE)
    )


def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    write_text(path, json.dumps(list(rows), ensure_ascii=False, indent=1) + "\n")
