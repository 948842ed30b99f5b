"""Select the files that the jobs of the ID10M-JAM study read."""

from pathlib import Path
from typing import get_args

from pieline.core.errors import UserError
from pieline.languages.registry import language_names
from pieline.project import alternatives, raw_name
from pieline.studies.jam import paths
from pieline.studies.jam.predictions.prompt_settings import FEW_SHOT, PromptSetting
from pieline.studies.jam.records import DecidedBy
from pieline.studies.jam.settings import ADDED, FINE_TUNED, JamSettings
from pieline.study import Study


class Jam(Study[JamSettings]):
    """Base class of `JamStudy`, for type annotations in the modules that `study.py` imports."""

    def added_settings(self) -> list[str]:
        """Return the encoder settings that add training texts; the paper has no such settings."""
        return []


def model_writes_variants(study: Jam, language: str) -> bool:
    """Return whether a model writes the variants of a language.

    With the source `generated`, a model writes the variants of all languages. With `released`, a
    model writes the variants of languages for which the data (the user's own data, or else the
    public data) contains none. With other sources, no model writes variants.
    """
    source = study.settings.variants.source
    if source == "generated":
        return True
    if source != "released":
        return False
    if study.project.own_data:
        return not _has_file(study, paths.VALIDATED, language)
    # The public data has originals and variants of the same languages.
    return not _has_file(study, paths.RELEASED, language)


def written_languages(study: Jam) -> list[str]:
    """Return the languages whose variants a model writes."""
    return [name for name in study.settings.languages if model_writes_variants(study, name)]


def limit_of_originals(study: Jam, language: str) -> int | None:
    """Return the maximum number of originals to write for a language; None means all originals.

    Validated variants must be matched with all originals. Therefore, the result is None if the
    study reads validated variants, and the dataset is limited instead.
    """
    reads_variants = has_variants(study) and not model_writes_variants(study, language)
    return None if reads_variants else study.project.limit


def written_constraint(study: Jam) -> str:
    """Return a wildcard constraint for languages whose variants a model writes."""
    return alternatives(name for name in language_names() if model_writes_variants(study, name))


def validated_constraint(study: Jam) -> str:
    """Return a wildcard constraint for languages whose variants no model writes."""
    return alternatives(name for name in language_names() if not model_writes_variants(study, name))


def has_variants(study: Jam) -> bool:
    """Return whether the study uses hard variants."""
    return study.settings.variants.source != "none"


def constraints(study: Jam, *kinds: str) -> dict[str, str]:
    """Map the wildcards `language`, `model` and `setting` to the patterns that they must match.

    `kinds` are the kinds of the models that the wildcard `model` matches.
    """
    settings = {
        *get_args(PromptSetting),
        FINE_TUNED,
        *ADDED,
        *study.settings.prompts,
        *study.external_settings(),
    }
    return {
        "language": alternatives(language_names()),
        "model": study.project.constraint(*kinds),
        "setting": alternatives(settings),
    }


def metrics_on(study: Jam, language: str) -> list[str]:
    """Return the paths of the metric files of all language models and encoders in a language."""
    return study.plan.metrics(kind=("llm", "encoder"), experiment="", language=language)


def own_decisions(study: Jam, language: str) -> str:
    """Return the path of the user's decision file for a language; empty if there is none."""
    folder = study.settings.decisions
    if not folder:
        return ""
    path = Path(folder, f"{language}.tsv")
    return str(path) if path.exists() else ""


def decided_by(study: Jam, language: str) -> DecidedBy:
    """Return the source of the decisions on a language's raw sentences.

    The source is a decision file of the user or of the sample, if any. Otherwise, the source is the
    public originals or, for languages without public originals, ID10M's tags.
    """
    if study.project.is_sample or own_decisions(study, language):
        return "file"
    return "release" if _has_file(study, paths.RELEASED, language) else "tags"


def _has_file(study: Jam, pattern: str, language: str) -> bool:
    """Return whether a language has a raw file in the user's own data or in the public data.

    The public data counts only if the user has no own data. `pattern` is the path pattern of
    the raw file, relative to results/raw.
    """
    name = pattern.format(language=language)
    if study.project.own_data:
        return study.project.is_available(name)
    return name in study.project.public_files


def released_originals(study: Jam, language: str) -> str | None:
    """Return the path of a language's public originals; None if decisions have another source."""
    if decided_by(study, language) != "release":
        return None
    return paths.RELEASED_ORIGINALS.format(language=language)


def extra_pie_source(study: Jam, language: str) -> str | None:
    """Return the path of ID10M's dev split in a language, whose tags provide further PIEs.

    The result is None if decisions are not derived from tags, or if the user's own data has no dev
    split.
    """
    if decided_by(study, language) != "tags":
        return None
    dev_split = paths.DEV_SPLIT.format(language=language)
    if study.project.own_data and not study.project.is_available(raw_name(dev_split)):
        return None
    return dev_split


def decisions(study: Jam, language: str) -> str:
    """Return the path of a language's decision file: the user's, the sample's or a derived one."""
    own_file = own_decisions(study, language)
    if own_file:
        return own_file
    if study.project.is_sample:
        return study.project.here(f"data/sample/id10m/decisions/{language}.tsv")
    return paths.DECISIONS.format(language=language)


def variants_file(study: Jam, language: str) -> str:
    """Return the path of a language's validated variants: the sample's or the public file."""
    if study.settings.variants.source == "sample":
        return study.project.here(f"data/sample/id10m/variants/{language}.json")
    return paths.RELEASED_VARIANTS.format(language=language)


def variants_of(study: Jam, language: str) -> str:
    """Return the path of a language's checked variants.

    Raises:
        UserError: The configuration includes no variants.
    """
    if not has_variants(study):
        raise UserError(
            f"{paths.DATASET.format(language=language)} needs variants, but there are none",
            where="jam.variants.source",
            hint="choose 'sample', 'released' or 'generated'",
        )
    return paths.VARIANTS.format(language=language)


def released_variants(study: Jam, language: str) -> str | None:
    """Return the path of a language's public variants; None if variants have another source."""
    has_public_source = study.settings.variants.source == "released"
    is_public = has_public_source and not model_writes_variants(study, language)
    return variants_file(study, language) if is_public else None


def annotations(study: Jam, language: str) -> list[str]:
    """Return the paths of the configured Label Studio exports with reviews of variants."""
    return study.settings.variants.annotations.get(language, [])


def adjudications(study: Jam, language: str) -> str | None:
    """Return the path of a language's decisions on disputed variants; None if not configured."""
    return study.settings.variants.adjudications.get(language)


def training_file(study: Jam, language: str) -> str | None:
    """Return the path of ID10M's train split in a language; None if the split is not available."""
    split = paths.TRAIN_SPLIT.format(language=language)
    return split if study.project.is_available(raw_name(split)) else None


def manifest(study: Jam, language: str) -> str | None:
    """Return the path of the manifest of a dataset; None if the study uses only originals."""
    return paths.MANIFEST.format(language=language) if has_variants(study) else None


def sentences(study: Jam, language: str) -> str:
    """Return the path of the sentences that models judge in a language.

    The sentences are those of the dataset or, if the study uses no variants, the originals.
    """
    pattern = paths.DATASET if has_variants(study) else paths.ORIGINALS
    return pattern.format(language=language)


def train_split(study: Jam, language: str) -> str | None:
    """Return the path of ID10M's train split; None if encoders are trained on ID10M's dev split."""
    if study.settings.train_split == "dev":
        return None
    return paths.TRAIN_SPLIT.format(language=language)


def examples(study: Jam, language: str, setting: str) -> str | None:
    """Return the path of ID10M's split from which few-shot examples in a language are drawn.

    The result is None for settings without examples.
    """
    if setting != FEW_SHOT:
        return None
    return paths.SPLIT.format(split=study.settings.train_split, language=language)


def human_labels(study: Jam) -> list[str]:
    """Return the paths of the files with two people's labels of variants (section 5.1).

    If no file is configured, the result is the sample's file of simulated labels.
    """
    configured = study.settings.humans
    if isinstance(configured, str):
        return [configured]
    if configured:
        return configured
    return [study.project.here("data/sample/id10m/humans/english_simulated.csv")]


def other_targets(study: Jam) -> list[str]:
    """Return the paths of the sentences that models judge, and of the files for annotators.

    If the study uses variants, the files for annotators are a labeling configuration per language,
    and the English form of the human baseline. Otherwise, there are no such files.
    """
    languages = study.settings.languages
    targets = [sentences(study, language) for language in languages]
    if not has_variants(study):
        return targets
    targets += [paths.LABELLING.format(language=language) for language in languages]
    if "english" in languages:
        targets.append(paths.HUMAN_FORM)
    return targets


def raw_files(study: Jam) -> list[str]:
    """Return the paths of the raw files on which the configured results depend, sorted."""
    # The functions return None for files that a language or setting does not need.
    raw_paths: set[str | None] = set()
    for language in study.settings.languages:
        raw_paths.add(paths.TEST_SPLIT.format(language=language))
        raw_paths.add(training_file(study, language))
        raw_paths.add(released_originals(study, language))
        raw_paths.add(extra_pie_source(study, language))
        raw_paths.add(released_variants(study, language))
    for run in study.plan.made(experiment=""):  # without side experiments
        language = run.where["language"]
        if run.kind == "encoder" and not run.archive:
            raw_paths.add(paths.DEV_SPLIT.format(language=language))
            raw_paths.add(train_split(study, language))
        elif run.kind == "llm":
            raw_paths.add(examples(study, language, run.where["setting"]))
    return sorted(path for path in raw_paths if path)


def uses_neutral_contexts(study: Jam, setting: str) -> bool:
    """Return whether a setting uses neutral contexts, in a prompt or as added training texts."""
    if setting in ADDED:
        return ADDED[setting] == "neutral"
    custom_prompt = study.settings.prompts.get(setting)
    return custom_prompt is not None and custom_prompt.context == "neutral"
