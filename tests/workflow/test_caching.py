"""What a change makes stale, from Snakemake's own dry run (contract 1 of the design)."""

import re
from pathlib import Path

import pytest
from support import run_snakemake

ABOVE_THE_TABLES = {
    "claims",
    "comparison",
    "paper_source",
    "paper_pdf",
    "results_page",
    "provenance",
}
"""What shows or lists the tables, and so follows each of them."""
TABLES = [f"paper_tables/idiolink_{name}.tex" for name in ("zero_shot", "bm25", "ablation")]
MODEL_RULES = {"embed_documents", "embed_queries", "rank_by_embedding", "idiolink_metrics"}


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def planned(folder: Path, *arguments: str) -> list[tuple[str, str]]:
    """Rule and outputs of each job that a dry run lists."""
    result = run_snakemake(folder, "-n", *arguments, *TABLES)
    assert result.returncode == 0, result.stderr[-3000:]
    text = result.stdout + result.stderr
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)", text, flags=re.MULTILINE)
    return [
        (rule, "".join(re.findall(r"    output: (.*)\n", body)))
        for rule, body in jobs
        if rule != "all" and rule not in ABOVE_THE_TABLES
    ]


def test_nothing_is_stale_after_touching_every_file(finished: Path) -> None:
    for path in [*finished.glob("src/**/*.py"), *finished.glob("scripts/*.py")]:
        path.touch()
    (finished / "models.yaml").touch()
    assert planned(finished) == []


def test_an_entry_reruns_only_its_model_and_the_tables_that_show_it(finished: Path) -> None:
    text = (finished / "models.yaml").read_text(encoding="utf-8")
    entry = re.search(r"^sbert:\n(?:  .*\n|\n)+", text, flags=re.MULTILINE)
    assert entry
    changed = re.sub(r"batch_size: \d+", "batch_size: 7", entry[0])
    assert changed != entry[0]
    (finished / "models.yaml").write_text(text.replace(entry[0], changed), encoding="utf-8")

    jobs = planned(finished)

    rules = {rule for rule, _ in jobs}
    assert rules >= MODEL_RULES | {"idiolink_zero_shot", "idiolink_ablation"}
    assert "idiolink_bm25" not in rules
    outputs = [output for _, output in jobs]
    assert not any("smollm2" in output or "/bm25/" in output for output in outputs)
    assert all("sbert" in output or output.startswith("paper_tables/") for output in outputs)


def test_a_query_side_field_embeds_no_document_again(finished: Path) -> None:
    text = (finished / "models.yaml").read_text(encoding="utf-8")
    changed = text.replace(
        "instruction_format: instruction_newline_query", "instruction_format: instruct_query", 1
    )
    assert changed != text
    (finished / "models.yaml").write_text(changed, encoding="utf-8")
    rules = {rule for rule, _ in planned(finished)}
    assert "embed_queries" in rules
    assert "embed_documents" not in rules


def test_a_note_or_a_comment_reruns_nothing(finished: Path) -> None:
    path = finished / "models.yaml"
    text = "# a comment\n" + path.read_text(encoding="utf-8")
    text = re.sub(r"^(sbert:\n)", r"\1  notes: another note\n", text, flags=re.MULTILINE)
    text = re.sub(r"(another note\n(?:  (?!notes:).*\n)*)  notes: .*\n(?:    .*\n)*", r"\1", text)
    path.write_text(text, encoding="utf-8")
    assert planned(finished) == []


@pytest.mark.parametrize("module", ["ranking", "idiolink"])
def test_the_metrics_rerun_metrics_and_tables_and_no_embedding(finished: Path, module: str) -> None:
    path = finished / f"src/pieline/metrics/{module}.py"
    path.write_text(path.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    # Fine-tuning stops by nDCG@10, so it reaches the metrics, and a trained model is embedded anew.
    rules = {rule for rule, output in planned(finished) if "+" not in output}
    assert rules >= {"idiolink_metrics", "idiolink_zero_shot", "idiolink_bm25"}
    assert not rules & {"embed_documents", "embed_queries", "rank_by_embedding", "raw_file"}

    text = path.read_text(encoding="utf-8").removesuffix("\n# changed\n")
    path.write_text(text, encoding="utf-8")
    assert planned(finished) == []


def test_a_template_reruns_its_table_only(finished: Path) -> None:
    replace(finished / "templates/idiolink_bm25.tex.jinja", r"\centering", r"\centering %")
    assert [rule for rule, _ in planned(finished)] == ["idiolink_bm25"]


def test_removing_a_model_leaves_it_out_of_the_tables(finished: Path) -> None:
    replace(
        finished / "config.yaml",
        "models: [bm25, sbert, smollm2-135m]",
        "models: [bm25, sbert]",
    )
    result = run_snakemake(finished, "--cores", "2", *TABLES)
    assert result.returncode == 0, result.stderr[-3000:]
    table = (finished / "paper_tables/idiolink_zero_shot.tex").read_text(encoding="utf-8")
    assert "SmolLM2-135M" not in table.split(r"\caption")[0]
    assert "SmolLM2-135M" in table.split(r"\caption")[1]  # named as not run
