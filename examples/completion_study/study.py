"""Declaration of the study."""

from pieline.studies.completion.results import ACCURACY, BARS
from pieline.study import Items
from pieline.text_study import TextSettings, TextStudy


class CompletionSettings(TextSettings):
    """Section `completion` of config.yaml; the defaults are the paper's values."""

    max_tokens: int = 80


class CompletionStudy(TextStudy[CompletionSettings]):
    """Study of idiom completion: its inputs, predictions, metrics and displays."""

    name = "completion"
    paper = "Completion"
    Settings = CompletionSettings
    rows = "src/pieline/studies/completion/idioms.jsonl"
    rows_sha256 = "48b6d3519a455f5590db44a48a49753d4636178891c3e8fcd1c8c3ba61620eaa"
    prompt = "src/pieline/studies/completion/complete.jinja"
    prompt_sha256 = "2168a7922fe8350eae3d54a7404aecd2ba2faa634eae413315ec9cc3041c0de7"
    published = "src/pieline/studies/completion/published.csv"
    predictions = "results/predictions/completion/{model}.jsonl"
    scores = "results/metrics/completion/{model}.json"
    displays = (ACCURACY, BARS)

    def items(self) -> Items:
        """Return the declaration of the items: every answer as a row."""
        record = "pieline.studies.completion.results:CompletionItem"
        predictions = tuple(run.predictions for run in self.plan.made())
        return Items("completion", record, self.all_runs(), predictions)
