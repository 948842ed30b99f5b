"""Tables, figures and items of the IdioTS study."""

from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiots import files, paths, questions
from pieline.studies.idiots.files import Idiots
from pieline.study import Figure, Items, Table


def tables(study: Idiots) -> list[Table]:
    """Return the paper's tables and, if `prompts_against` is set, the comparison of prompts."""
    inputs = _display_inputs(study)
    text = study.project.here("published/text_numbers.csv")
    obstacle = files.no_data(study)
    manifest = {} if obstacle else {"manifest": paths.MANIFEST}

    def printed(number: int) -> DisplayInputs:
        return inputs.with_files(
            published=study.project.here(f"published/idiots_table{number}.csv")
        )

    return [
        Table(
            "idiots_dataset",
            "Section 3",
            "PIEs and sentences of the test suite.",
            "pieline.studies.idiots.tables:dataset",
            DisplayInputs(
                files={**manifest, "text_numbers": text}, notes=(obstacle,) if obstacle else ()
            ),
        ),
        Table(
            "idiots_detection",
            "Table 1",
            "Automatic metrics of idiom detection.",
            "pieline.studies.idiots.tables:detection",
            printed(1),
        ),
        Table(
            "idiots_consistency",
            "Table 2",
            "True positives that name the right idiom.",
            "pieline.studies.idiots.tables:consistency",
            printed(2),
        ),
        Table(
            "idiots_distractors",
            "Table 3",
            "Distractors whose PIE was given a figurative meaning.",
            "pieline.studies.idiots.tables:distractors",
            printed(3),
        ),
        Table(
            "idiots_errors",
            "Section 5.2.1",
            "Errors, and their types as people sorted them.",
            "pieline.studies.idiots.tables:errors",
            inputs.with_files(text_numbers=text),
        ),
        Table(
            "idiots_prompt",
            "Figures 1 and 2",
            "The prompt, and its layout for Llama 2.",
            "pieline.studies.idiots.tables:prompt",
            DisplayInputs(files={"prompt": study.project.here(questions.PROMPT)}),
        ),
        *(
            [
                Table(
                    "idiots_bias",
                    "not in the paper",
                    "Effects of prompts on the criterion and on d′.",
                    "pieline.studies.idiots.tables:bias",
                    _bias(study),
                )
            ]
            if study.settings.prompts_against
            else []
        ),
    ]


def figures(study: Idiots) -> list[Figure]:
    """Return the figure of recall and specificity.

    If `prompts_against` is set, the figure of signal detection is also returned.
    """
    return [
        Figure(
            "idiots_recall_specificity",
            "Section 5.1",
            "Recall against specificity of each run.",
            "pieline.studies.idiots.figures:recall_against_specificity",
            _display_inputs(study).with_files(
                published=study.project.here("published/idiots_table1.csv")
            ),
        ),
        *(
            [
                Figure(
                    "idiots_bias",
                    "not in the paper",
                    "Sensitivity d′ against the criterion.",
                    "pieline.studies.idiots.figures:sensitivity_against_criterion",
                    _bias(study),
                )
            ]
            if study.settings.prompts_against
            else []
        ),
    ]


def _bias(study: Idiots) -> DisplayInputs:
    """Return the inputs of the table and figure that compare settings by signal detection."""
    inputs = study.display_inputs(study.plan.others, study.settings.models, "llm")
    return inputs.model_copy(
        update={"absent": (), "options": {"against": study.settings.prompts_against}}
    )


def _display_inputs(study: Idiots) -> DisplayInputs:
    return study.display_inputs(study.plan.metrics(), study.settings.models, "llm")


def items(study: Idiots) -> Items:
    """Return the specification of the items, one per sentence and run."""
    made = study.plan.made()
    behind = [*(run.predictions for run in made), *([paths.SENTENCES] if made else [])]
    reviewed = {"verdicts": study.settings.verdicts} if study.settings.verdicts else {}
    return study.items_of(study.plan.metrics(), study.settings.models, behind, **reviewed)
