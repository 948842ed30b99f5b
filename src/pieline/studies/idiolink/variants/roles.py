"""Which model does what in the construction, and recording the sample's script in their names."""

from collections.abc import Sequence
from pathlib import Path

from pieline.core.files import write_text
from pieline.llm.prompts import PromptFolder
from pieline.llm.recordings import record
from pieline.models.llm import LLMEntry
from pieline.models.registry import Registry
from pieline.studies.idiolink.originals.domains import Collection
from pieline.studies.idiolink.originals.pairs import FilterOptions, filter_magpie
from pieline.studies.idiolink.settings import Construction
from pieline.studies.idiolink.variants.generation import Writer
from pieline.studies.idiolink.variants.scripted import (
    Scripted,
    read_script,
    scripted_generation,
    scripted_texts,
    scripted_validation,
)
from pieline.studies.idiolink.variants.votes import Judge

COLLECTIONS: tuple[Collection, ...] = ("documents", "queries")


def writers(root: Path, settings: Construction, registry: Registry) -> dict[Collection, Writer]:
    """The writer of each collection."""
    prompts = PromptFolder(root / "prompts" / "idiolink")
    names: dict[Collection, str] = {
        "documents": settings.index_writer,
        "queries": settings.query_writer,
    }
    return {
        collection: Writer(
            name,
            _llm(registry, name),
            prompts.load(f"{collection}.jinja"),
            settings.parameters.model_dump(),
            settings.attempts,
        )
        for collection, name in names.items()
    }


def validator(root: Path, settings: Construction, registry: Registry) -> Judge:
    """The validating model."""
    return Judge(
        settings.validator,
        _llm(registry, settings.validator),
        PromptFolder(root / "prompts" / "idiolink").load("validate.jinja"),
        settings.parameters.model_dump(),
        settings.runs,
    )


def record_script(
    root: Path, settings: Construction, registry: Registry, output: Path
) -> Sequence[Path]:
    """Write the recordings of the sample's script, as the configuration asks; the files written.

    Raises:
        UserError: the sample, a prompt or the script is wrong.
    """
    sample = root / "data" / "sample"
    options = FilterOptions(
        semantics=settings.semantics,
        thresholds=settings.thresholds,
        pies=settings.pies,
        domains=settings.domains,
    )
    _, pairs, _ = filter_magpie(
        sample / "magpie" / "MAGPIE_sample.jsonl",
        sample / "magpie" / "exclusions.tsv",
        options,
        candidates=None,
        documents=[],
        computed_from={},
    )
    script = read_script(sample / "idiolink_construction")
    judge = validator(root, settings, registry)
    files: dict[str, Scripted] = {}
    for collection, writer in writers(root, settings, registry).items():
        texts = scripted_texts(script, pairs, writer, collection)
        files[f"{writer.name}/write_{collection}.jsonl"] = scripted_generation(
            script, pairs, writer, collection
        )
        files[f"{judge.name}/validate_{collection}.jsonl"] = scripted_validation(
            script, texts, judge, collection
        )
    written = []
    for name, answers in files.items():
        path = output / name
        # Old answers to questions that nobody asks any more would stay for ever.
        write_text(path, "")
        record(path, answers)
        written.append(path)
    return written


def _llm(registry: Registry, name: str) -> LLMEntry:
    entry = registry[name]
    if not isinstance(entry, LLMEntry):
        raise TypeError(f"{name} is no language model")
    return entry
