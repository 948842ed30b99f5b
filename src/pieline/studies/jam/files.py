"""Files that the jobs of the ID10M-JAM study read."""

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
    """Base class of the ID10M-JAM study, as its modules know it."""

    def added_settings(self) -> list[str]:
        """Return the encoder settings that add training texts (see `ADDED`), none in the paper."""
        return []


def is_written(study: Jam, language: str) -> bool:
    """Return whether a model writes the variants of a language.

    The result is True if the source is `generated`, or if it is `released` and the release or
    the user's own data lacks the language.
    """
    source = study.settings.variants.source
    # A language has either all public files or none.
    wanted = paths.VALIDATED if study.project.own_data else paths.RELEASED
    return source == "generated" or (source == "released" and not _has(study, wanted, language))


def written_languages(study: Jam) -> list[str]:
    """Return the languages whose variants a model writes."""
    return [name for name in study.settings.languages if is_written(study, name)]


def limit_of_originals(study: Jam, language: str) -> int | None:
    """Return the number of originals to use if no validated variants are read; None for all.

    Validated variants are matched with all originals; the dataset is limited afterwards.
    """
    reads_variants = has_variants(study) and not is_written(study, language)
    return None if reads_variants else study.project.limit


def written_constraint(study: Jam) -> str:
    """Return a wildcard constraint for languages whose variants a model writes."""
    return alternatives(name for name in language_names() if is_written(study, name))


def validated_languages(study: Jam) -> str:
    """Return a wildcard constraint for languages whose variants are not written by a model."""
    return alternatives(name for name in language_names() if not is_written(study, name))


def has_variants(study: Jam) -> bool:
    """Return whether the study uses hard variants."""
    return study.settings.variants.source != "none"


def constraints(study: Jam, *kinds: str) -> dict[str, str]:
    """Return the wildcard constraints of runs of models of these kinds."""
    return {
        "language": alternatives(language_names()),
        "model": study.project.constraint(*kinds),
        "setting": alternatives(
            {
                *get_args(PromptSetting),
                FINE_TUNED,
                *ADDED,
                *study.settings.prompts,
                *study.external_settings(),
            }
        ),
    }


def metrics_on(study: Jam, language: str) -> list[str]:
    """Return the metric files of the runs of language models and encoders in a language."""
    return study.plan.metrics(kind=("llm", "encoder"), experiment="", language=language)


def own_decisions(study: Jam, language: str) -> str:
    """Return the path of the user's decision file for a language; empty if there is none."""
    path = Path(study.settings.decisions or "", f"{language}.tsv")
    return str(path) if study.settings.decisions and path.exists() else ""


def decided_by(study: Jam, language: str) -> DecidedBy:
    """Return the source of the decisions on raw sentences.

    The source is a decision file of the user or of the sample, else the released originals. If
    a language has neither, the source is ID10M's tags.
    """
    if study.project.is_sample or own_decisions(study, language):
        return "file"
    return "release" if _has(study, paths.RELEASED, language) else "tags"


def _has(study: Jam, name: str, language: str) -> bool:
    """Return whether a language's file is in the user's own data, if set, or in the release."""
    name = name.format(language=language)
    if study.project.own_data:
        return study.project.is_available(name)
    return name in study.project.public_files


def released_originals(study: Jam, language: str) -> str | None:
    """Return the path of the released originals if decisions are derived from them."""
    released = decided_by(study, language) == "release"
    return paths.RELEASED_ORIGINALS.format(language=language) if released else None


def extra_pie_source(study: Jam, language: str) -> str | None:
    """Return the path of the dev split, whose tags provide further PIEs.

    The result is None if decisions do not come from tags, or if the user's data lacks the split.
    """
    split = paths.DEV_SPLIT.format(language=language)
    lacks = study.project.own_data and not study.project.is_available(raw_name(split))
    by_tags = decided_by(study, language) == "tags"
    return split if by_tags and not lacks else None


def decisions(study: Jam, language: str) -> str:
    """Return the path of the decision file: the user's, the sample's or a derived one."""
    if own := own_decisions(study, language):
        return own
    if study.project.is_sample:
        return study.project.here(f"data/sample/id10m/decisions/{language}.tsv")
    return paths.DECISIONS.format(language=language)


def variants_file(study: Jam, language: str) -> str:
    """Return the path of the file with validated variants: the sample's or the released one."""
    if study.settings.variants.source == "sample":
        return study.project.here(f"data/sample/id10m/variants/{language}.json")
    return paths.RELEASED_VARIANTS.format(language=language)


def variants_of(study: Jam, language: str) -> str:
    """Return the path of a language's checked variants.

    Raises:
        UserError: This configuration has no variants, although files of an earlier one may
            exist.
    """
    if not has_variants(study):
        raise UserError(
            f"{paths.DATASET.format(language=language)} needs variants, but there are none",
            where="jam.variants.source",
            hint="choose 'sample', 'released' or 'generated'",
        )
    return paths.VARIANTS.format(language=language)


def released_variants(study: Jam, language: str) -> str | None:
    """Return the path of the released variants if the dataset uses them."""
    released = study.settings.variants.source == "released" and not is_written(study, language)
    return variants_file(study, language) if released else None


def annotations(study: Jam, language: str) -> list[str]:
    """Return the paths of the Label Studio exports for a language; may be empty."""
    return study.settings.variants.annotations.get(language, [])


def adjudications(study: Jam, language: str) -> str | None:
    """Return the path of the decisions on a language's disputed variants, if set."""
    return study.settings.variants.adjudications.get(language)


def training_file(study: Jam, language: str) -> str | None:
    """Return the path of ID10M's train split if it is available."""
    split = paths.TRAIN_SPLIT.format(language=language)
    return split if study.project.is_available(raw_name(split)) else None


def manifest(study: Jam, language: str) -> str | None:
    """Return the path of the dataset's manifest; None if the study uses only originals."""
    return paths.MANIFEST.format(language=language) if has_variants(study) else None


def sentences(study: Jam, language: str) -> str:
    """Return the path of the dataset, or of the originals if there are no variants."""
    return (paths.DATASET if has_variants(study) else paths.ORIGINALS).format(language=language)


def train_split(study: Jam, language: str) -> str | None:
    """Return the path of ID10M's train split; None if encoders are trained on its dev split."""
    dev = study.settings.train_split == "dev"
    return None if dev else paths.TRAIN_SPLIT.format(language=language)


def examples(study: Jam, language: str, setting: str) -> str | None:
    """Return the path of the split that examples are drawn from; None without examples."""
    if setting != FEW_SHOT:
        return None
    return paths.SPLIT.format(split=study.settings.train_split, language=language)


def human_labels(study: Jam) -> list[str]:
    """Return the paths of two annotators' labels; by default, the sample's simulated labels."""
    named, sample = study.settings.humans, "data/sample/id10m/humans/english_simulated.csv"
    return [named] if isinstance(named, str) else named or [study.project.here(sample)]


def other_targets(study: Jam) -> list[str]:
    """Return the paths of the sentences and, with variants, of files for human annotators.

    The latter are the labeling configurations and the English form of the human baseline.
    """
    languages = study.settings.languages
    names = [sentences(study, language) for language in languages]
    if not has_variants(study):
        return names
    names += [paths.LABELLING.format(language=language) for language in languages]
    return [*names, paths.HUMAN_FORM] if "english" in languages else names


def raw_files(study: Jam) -> list[str]:
    """Return the paths of the raw files on which the configured results depend."""
    names: list[str | None] = []
    for language in study.settings.languages:
        names += [paths.TEST_SPLIT.format(language=language), training_file(study, language)]
        names += [released_originals(study, language), extra_pie_source(study, language)]
        names.append(released_variants(study, language))
    for run in study.plan.made(experiment=""):
        if run.kind == "encoder" and not run.archive:
            names.append(paths.DEV_SPLIT.format(**run.where))
            names.append(train_split(study, run.where["language"]))
        elif run.kind == "llm":
            names.append(examples(study, run.where["language"], run.where["setting"]))
    return sorted({name for name in names if name})


def shows_neutral(study: Jam, setting: str) -> bool:
    """Return whether a setting shows or adds neutral contexts."""
    if setting in ADDED:
        return ADDED[setting] == "neutral"
    own = study.settings.prompts.get(setting)
    return own is not None and own.context == "neutral"
