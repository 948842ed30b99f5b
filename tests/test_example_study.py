"""The example study, copied and run as docs/adding/code.md describes, with scripted answers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from support import ROOT, copy_project
from test_adding import SECTIONS, carry_out

from pieline.core.errors import UserError
from pieline.core.files import read_json, sha256
from pieline.core.records import load_jsonl
from pieline.llm.answers import Answer
from pieline.llm.parsing import Parsed
from pieline.llm.questions import Question, make_question
from pieline.llm.recordings import read_answers, record
from pieline.llm.settings import LLMSettings
from pieline.llm.text_task import TextPrediction, TextTask
from pieline.models.llm import LLMEntry
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.text_study import TextSettings, TextStudy

FOLDER = ROOT / "examples" / "completion_study"
MODEL = "smollm2-135m-instruct"
RECORDINGS = f"recordings/completion/{MODEL}.jsonl"
ANSWERS = {"break the": "Ice.", "spill the": "the beans, which", "under the": "under the weather"}
TRUNCATED = "spill the"
REGISTRY = load_registry(ROOT / "models.yaml")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the study, with one of three answers truncated, and return the folder of the run."""
    project = copy_project(tmp_path_factory.mktemp("example") / "project")
    entry = REGISTRY[MODEL]
    assert isinstance(entry, LLMEntry)
    recorded = []
    for beginning, text in ANSWERS.items():
        turn = ("user", f"Complete this English idiom with one word: {beginning}")
        question = make_question(entry, [turn], {"temperature": 0, "max_tokens": 80})
        reason = "length" if beginning == TRUNCATED else "stop"
        answer = Answer(
            key=question.key, text=text, finish_reason=reason, returned_model=entry.checkpoint
        )
        recorded.append((question, answer))
    record(project / RECORDINGS, recorded)
    carry_out(SECTIONS["A study"], project)
    assert read_answers(project / RECORDINGS).keys() == {one.key for one, _ in recorded}
    return project / "mine"


def test_the_example_has_at_most_150_lines() -> None:
    files = [path for path in FOLDER.iterdir() if path.is_file() and path.name != "README.md"]
    assert {path.suffix for path in files} == {".py", ".smk", ".yaml", ".csv", ".jsonl", ".jinja"}
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= 150
    assert len((FOLDER / "README.md").read_text("utf-8").splitlines()) <= 30


def test_the_section_mentions_each_file_but_lists_none() -> None:
    section = SECTIONS["A study"]
    files = {path.name for path in FOLDER.iterdir() if path.is_file()}
    assert not [name for name in files - {"README.md", "__init__.py"} if f"`{name}`" not in section]
    assert "```python" not in section
    for mention in (
        "`items()`",
        "`figures()`",
        "`inputs.files`",
        "SHA-256",
        "python -m pieline.schemas",
    ):
        assert mention in section


def test_the_table_has_our_and_the_printed_numbers(example: Path) -> None:
    table = pd.read_csv(example / "paper_tables/completion_accuracy.csv", dtype=str)
    ours, not_run = table.fillna("").to_dict("records")
    assert (ours["model"], ours["metric"]) == (MODEL, "accuracy")
    assert (ours["ours"], ours["printed"]) == ("66.67", "66.67")
    assert (ours["comparable"], ours["reproduced"], ours["reason"]) == ("yes", "yes", "")
    assert ours["metrics"] == f"results/metrics/completion/{MODEL}.json"
    assert (not_run["model"], not_run["ours"], not_run["printed"]) == ("gpt-4o-mini", "", "100")
    assert (not_run["comparable"], not_run["reason"][:7]) == ("no", "not run")
    assert "GPT-4o mini" in (example / "paper_tables/completion_accuracy.tex").read_text("utf-8")


def test_the_metric_file_states_its_inputs(example: Path) -> None:
    metrics = read_json(example / f"results/metrics/completion/{MODEL}.json")
    predictions = f"results/predictions/completion/{MODEL}.jsonl"
    assert metrics["computed_from"] == {predictions: sha256(example / predictions)}
    assert metrics["conditions"]["settings"]["max_tokens"] == 80


def test_the_settings_are_in_the_schema(example: Path) -> None:
    schema = read_json(example.parent / "schemas/config.schema.json")
    assert "completion" in schema["properties"]
    assert "CompletionSettings" in schema["$defs"]


def test_the_figure_is_drawn(example: Path) -> None:
    figures = example / "paper_tables/figures"
    assert (figures / "completion_bars.pdf").read_bytes().startswith(b"%PDF")
    assert (figures / "completion_bars.png").stat().st_size > 1000


def test_the_items_reproduce_the_number_of_the_table(example: Path) -> None:
    items = pd.read_parquet(example / "results/items/completion.parquet")
    assert list(items["word"]) == ["ice", "beans", "weather"]
    assert list(items["answer"].fillna("")) == ["Ice.", "", "under the weather"]
    assert list(items["outcome"]) == ["ok", "truncated", "ok"]
    assert list(items["correct"]) == [True, False, True]
    assert set(items["metrics"]) == {f"results/metrics/completion/{MODEL}.json"}


class SmallStudy(TextStudy[TextSettings]):
    name = "small"
    paper = "Small"
    Settings = TextSettings
    rows = "rows.jsonl"
    rows_sha256 = sha256(FOLDER / "idioms.jsonl")
    prompt = "prompt.jinja"
    prompt_sha256 = sha256(FOLDER / "complete.jinja")
    published = "published.csv"
    predictions = "results/predictions/small/{model}.jsonl"
    scores = "results/metrics/small/{model}.json"

    def tables(self) -> list:
        return []


def small(folder: Path, **settings: object) -> SmallStudy:
    for source, name in (("idioms.jsonl", "rows.jsonl"), ("complete.jinja", "prompt.jinja")):
        if not (folder / name).exists():
            (folder / name).write_bytes((FOLDER / source).read_bytes())
    run = Project(REGISTRY, LLMSettings(), root=folder)
    return SmallStudy(TextSettings.model_validate(settings), run)


@pytest.mark.parametrize("changed", ["rows.jsonl", "prompt.jinja", "max_tokens", None])
def test_other_data_prompts_or_settings_are_deviations(tmp_path: Path, changed: str | None) -> None:
    if changed and "." in changed:
        small(tmp_path)
        (tmp_path / changed).write_text((tmp_path / changed).read_text("utf-8") + "\n", "utf-8")
    settings = {"max_tokens": 7} if changed == "max_tokens" else {}
    conditions = small(tmp_path, **settings).conditions(MODEL).canonical()
    reason = {
        "max_tokens": "max tokens 7, the paper 80",
        None: "",
    }.get(changed, f"{changed} is not the paper's")
    assert f'"deviations":[{reason and chr(34) + reason + chr(34)}]' in conditions


def test_a_model_that_cannot_be_queried_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    study = small(tmp_path, models=[MODEL, "gpt-4o-mini"])
    assert list(study.left_out()) == ["gpt-4o-mini/0"]
    assert study.shown().metrics == (f"results/metrics/small/{MODEL}.json",)
    assert "nothing is recorded" in study.shown().why_not("gpt-4o-mini")
    assert len(study.tasks()) == 2


class FirstWordTask(TextTask):
    def reading(self, answer: Answer) -> Parsed[str]:
        parsed = super().reading(answer)
        return replace(parsed, value=(parsed.value or "").split(" ")[0])


class FirstWordStudy(SmallStudy):
    Task = FirstWordTask


def test_a_prompt_without_a_field_is_rejected(tmp_path: Path) -> None:
    small(tmp_path)
    (asking,) = FirstWordStudy(
        TextSettings(), Project(REGISTRY, LLMSettings(), root=tmp_path)
    ).llm_tasks()
    (task,) = asking.tasks()
    prompt = Path(task.inputs["prompt"])
    prompt.write_text("=== user ===\nComplete this idiom.\n", "utf-8")
    with pytest.raises(UserError, match=f"{prompt.name}: asks the same question for each row"):
        task.questions(task.entry())


def test_a_study_can_customize_answer_parsing(tmp_path: Path) -> None:
    small(tmp_path)
    study = FirstWordStudy(TextSettings(), Project(REGISTRY, LLMSettings(), root=tmp_path))
    (asking,) = study.llm_tasks()
    assert asking.task is FirstWordTask
    (task,) = asking.tasks()
    output = tmp_path / "predictions.jsonl"
    task = task.model_copy(update={"outputs": {"predictions": str(output)}})
    assert [question.name for question in task.questions(task.entry())] == ["1", "2", "3"]

    def ask(questions: Sequence[Question]) -> dict[str, Answer]:
        return {
            one.key: Answer(key=one.key, text=f"word{one.name} and more", finish_reason="stop")
            for one in questions
        }

    task.run(task.entry(), ask)
    rows = load_jsonl(output, TextPrediction)
    assert [row.answer for row in rows] == ["word1", "word2", "word3"]
    assert rows[0].model_dump()["word"] == "ice"
