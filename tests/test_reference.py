"""A changed entry of a paper's model makes its numbers incomparable, with a reason."""

from importlib import import_module
from typing import Any

import pytest
from support import ROOT

from pieline.config import load_config, load_studies
from pieline.core.conditions import Conditions
from pieline.core.yamls import read_yaml
from pieline.models.llm import LLMEntry
from pieline.models.reference import entry_deviations, load_reference
from pieline.models.registry import load_registry
from pieline.models.sizing import server_gpus

REGISTRY = load_registry(ROOT / "models.yaml")
REFERENCE = load_reference(ROOT / "published/model_entries.json")


def test_the_reference_is_models_yaml() -> None:
    """If this fails, run `python -m pieline.models.reference`."""
    printed = {entry.published_as for entry in REGISTRY.values() if entry.published_as}
    assert REFERENCE.keys() == printed
    assert not any(entry_deviations(entry, REFERENCE) for entry in REGISTRY.values())


@pytest.mark.parametrize(
    ("model", "change", "reason"),
    [
        ("sbert", {"pooling": "cls"}, "pooling cls, the paper's model checkpoint"),
        ("sbert", {"max_length": 64}, "max length 64, the paper's model 256"),
        ("sbert", {"query_prefix": "q: "}, "query prefix q: , the paper's model"),
        ("sbert", {"dtype": "float16"}, "dtype float16, the paper's model float32"),
        ("sbert", {"source": "folder"}, "source folder, the paper's model package"),
        ("e5-base-v2", {"revision": "0" * 40}, "revision 0000"),
        ("gpt-4o-mini", {"litellm_id": "openai/gpt-4o"}, "litellm id openai/gpt-4o, the"),
    ],
)
def test_a_changed_entry_states_what_differs(
    model: str, change: dict[str, Any], reason: str
) -> None:
    (deviation,) = entry_deviations(REGISTRY[model].model_copy(update=change), REFERENCE)
    assert deviation.startswith(reason)


def test_a_gguf_file_of_an_idiots_model_needs_no_gpu_and_is_not_compared() -> None:
    """docs/studies/idiots.md describes how to serve it; the paper names no file."""
    entry = read_yaml(ROOT / "examples/served_models.yaml")["llama-2-7b-chat-gguf"]
    own = LLMEntry.model_validate(entry | {"published_as": "Llama-2-7b-chat"})
    assert server_gpus(own) == 0
    assert any(
        text.startswith("path weights/llama-2-7b-chat.Q4_K_M.gguf")
        for text in entry_deviations(own, REFERENCE)
    )


def test_irrelevant_changes_are_no_deviations() -> None:
    assert not entry_deviations(REGISTRY["sbert"].model_copy(update={"batch_size": 1}), REFERENCE)
    assert not entry_deviations(
        REGISTRY["sbert"].model_copy(update={"published_as": None, "pooling": "cls"}), REFERENCE
    )


@pytest.mark.parametrize(
    ("study", "model", "wildcards"),
    [
        ("idiolink", "sbert", {}),
        ("jam", "gpt-4o-mini", {"setting": "zero_shot"}),
        ("jam", "bert", {"setting": "fine_tuned"}),
        ("idiots", "gpt-4o-mini", {"setting": "zero_shot"}),
    ],
)
def test_the_conditions_of_every_study_list_changed_entries(
    study: str, model: str, wildcards: dict[str, str]
) -> None:
    def deviations(registry: dict[str, Any]) -> list[str]:
        studies = load_studies(load_config({}), registry, ROOT)
        runs = import_module(f"pieline.studies.{study}.runs")
        return list(runs.conditions(studies[study], model, **wildcards).deviations)

    field = "litellm_id" if hasattr(REGISTRY[model], "litellm_id") else "checkpoint"
    usual = getattr(REGISTRY[model], field)
    changed = {**REGISTRY, model: REGISTRY[model].model_copy(update={field: "other/model"})}
    (added,) = set(deviations(changed)) - set(deviations(REGISTRY))
    assert added == f"{field.replace('_', ' ')} other/model, the paper's model {usual}"


def test_permutations_affect_only_the_tests_between_modes() -> None:
    def asked(path: str, **settings: int) -> Conditions | None:
        config = load_config({"idiolink": settings})
        return load_studies(config, REGISTRY, ROOT)["idiolink"].plan.conditions(path)

    scores = "results/metrics/idiolink/test/sbert/span/seed-0.json"
    tests = "results/metrics/idiolink/test/sbert/significance/seed-0.json"
    assert asked(scores) == asked(scores, permutations=77) != asked(scores, top_k=77)
    assert asked(tests) != asked(tests, permutations=77)
