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
    """Base class of the ID10M-JAM study; the study's modules use it as the type of the study."""

    def added_settings(self) -> list[str]:
        """Return the encoder settings that add training texts (see `ADDED`); the paper has none."""
        return []


def is_written(study: Jam, language: str) -> bool:
    """Return whether a model writes the variants of a language.

    With the source `generated`, it writes all variants. With `released`, it writes those of the
    languages that the release, or the user's own data, lacks.
    """
    source = study.settings.variants.source
    if source != "released":
        return source == "generated"
    # A language has either all public files or none.
    needed = paths.VALIDATED if study.project.own_data else paths.RELEASED
    return not _has(study, needed, language)


def written_languages(study: Jam) -> list[str]:
    """Return the languages whose variants a model writes."""
    return [name for name in study.settings.languages if is_written(study, name)]


def limit_of_originals(study: Jam, language: str) -> int | None:
    """Return the number of originals to use; None for all.

    Validated variants are matched with all originals, and the dataset is limited afterwards.
    """
    reads_variants = has_variants(study) and not is_written(study, language)
    return None if reads_variants else study.project.limit


def written_constraint(study: Jam) -> str:
    """Return a wildcard constraint for languages whose variants a model writes."""
    return alternatives(name for name in language_names() if is_written(study, name))


def validated_languages(study: Jam) -> str:
    """Return a wildcard constraint for languages whose variants no model writes."""
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

    The source is a decision file (the user's or the sample's) if there is one, else the released
    originals if the language has them, else ID10M's tags.
    """
    if study.project.is_sample or own_decisions(study, language):
        return "file"
    return "release" if _has(study, paths.RELEASED, language) else "tags"


def _has(study: Jam, name: str, language: str) -> bool:
    """Return whether a language's file exists in the user's own data, or else in the release."""
    name = name.format(language=language)
    if study.project.own_data:
        return study.project.is_available(name)
    return name in study.project.public_files


def released_originals(study: Jam, language: str) -> str | None:
    """Return the path of the released originals; None if decisions do not come from them."""
    released = decided_by(study, language) == "release"
    return paths.RELEASED_ORIGINALS.format(language=language) if released else None


def extra_pie_source(study: Jam, language: str) -> str | None:
    """Return the path of the dev split, whose tags provide further PIEs.

    The result is None if decisions do not come from tags, or if the user's data lacks the split.
    """
    if decided_by(study, language) != "tags":
        return None
    split = paths.DEV_SPLIT.format(language=language)
    if study.project.own_data and not study.project.is_available(raw_name(split)):
        return None
    return split


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
        UserError: This configuration has no variants. Files of an earlier configuration may exist.
    """
    if not has_variants(study):
        raise UserError(
            f"{paths.DATASET.format(language=language)} needs variants, but there are none",
            where="jam.variants.source",
            hint="choose 'sample', 'released' or 'generated'",
        )
    return paths.VARIANTS.format(language=language)


def released_variants(study: Jam, language: str) -> str | None:
    """Return the path of the released variants; None if the dataset does not use them."""
    released = study.settings.variants.source == "released" and not is_written(study, language)
    return variants_file(study, language) if released else None


def annotations(study: Jam, language: str) -> list[str]:
    """Return the paths of the Label Studio exports for a language; may be empty."""
    return study.settings.variants.annotations.get(language, [])


def adjudications(study: Jam, language: str) -> str | None:
    """Return the path of the decisions on a language's disputed variants; None if not set."""
    return study.settings.variants.adjudications.get(language)


def training_file(study: Jam, language: str) -> str | None:
    """Return the path of ID10M's train split; None if it is not available."""
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
    configured = study.settings.humans
    if isinstance(configured, str):
        return [configured]
    sample = study.project.here("data/sample/id10m/humans/english_simulated.csv")
    return configured or [sample]


def other_targets(study: Jam) -> list[str]:
    """Return the paths of the sentences and, with variants, of files for human annotators.

    Annotators get a labeling configuration per language, and the English form of the human
    baseline.
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
    """Return the paths of the raw files on which the configured results depend."""
    found: set[str | None] = set()
    for language in study.settings.languages:
        found.add(paths.TEST_SPLIT.format(language=language))
        found.add(training_file(study, language))
        found.add(released_originals(study, language))
        found.add(extra_pie_source(study, language))
        found.add(released_variants(study, language))
    for run in study.plan.made(experiment=""):
        if run.kind == "encoder" and not run.archive:
            found.add(paths.DEV_SPLIT.format(**run.where))
            found.add(train_split(study, run.where["language"]))
        elif run.kind == "llm":
            found.add(examples(study, run.where["language"], run.where["setting"]))
    return sorted(path for path in found if path)


def shows_neutral(study: Jam, setting: str) -> bool:
    """Return whether a setting shows or adds neutral contexts."""
    if setting in ADDED:
        return ADDED[setting] == "neutral"
    own = study.settings.prompts.get(setting)
    return own is not None and own.context == "neutral"
