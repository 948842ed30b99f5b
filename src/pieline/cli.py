"""Add and score models, manage archives and recorded answers, ask chat models, explain tables."""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pieline.core.errors import UserError, nearest, pluralize, run_command, suggest_name

if TYPE_CHECKING:
    from pieline.llm.answers import Answer
    from pieline.llm.settings import LLMSettings
    from pieline.models.llm import LLMEntry

_FIELDS = {
    "kind": "embedder (the default if the files are those of an embedder), encoder,"
    " late_interaction or reranker",
    "label": "name in tables and figures (default: the name of the repository or folder)",
    "licence": "license of the weights",
    "parameters": "number of parameters, such as 110M or 1.5B",
    "max_length": "maximum input length in tokens",
    "pooling": "pooling; overrides the value in the model's files",
    "trained_with_instructions": "whether the model was trained with instructions (true or false)",
    "instruction_format": "how an instruction and a query are combined (docs/adding/model.md)",
    "query_prefix": "prefix of a query without an instruction",
    "passage_prefix": "prefix of a document",
    "revision": "commit of the repository (default: the newest)",
}
"""Help text of each field of a model's entry that has its own option."""

_PLACE = (
    "name of a repository on the Hugging Face hub, or a folder saved by transformers or"
    " sentence-transformers"
)

Command = Callable[[argparse.Namespace], None]


def command(arguments: Sequence[str] | None = None) -> None:
    """Run `pieline`; on a user error, print one line on stderr and exit with status 2.

    Args:
        arguments: Command-line arguments (default: the arguments of the process).
    """
    options = parser().parse_args(arguments)
    try:
        run_command(lambda: options.run(options))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (such as `| head`) closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser() -> argparse.ArgumentParser:
    """Build the argument parser of `pieline` and its subcommands."""
    top = argparse.ArgumentParser(prog="pieline", description=__doc__)
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_model_parser(commands)
    _add_score_parser(commands)
    _add_tables_parser(commands)
    _add_recordings_parser(commands)
    _add_runs_parser(commands)
    _add_ask_parser(commands)
    _add_trace_parser(commands)
    return top


def _add_model_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `pieline model` and the actions and options of this command."""
    model = commands.add_parser("model", help="Add your own models.")
    actions = model.add_subparsers(title="actions", required=True, metavar="ACTION")
    about = (
        "Add a model to models.local.yaml, with the values in the model's files. Options are needed"
        " only for values that these files do not contain."
    )
    adding = actions.add_parser("add", help="Add a model to models.local.yaml.", description=about)
    adding.set_defaults(run=_add_model)
    adding.add_argument("name", metavar="NAME", help="name of the model in configurations")
    adding.add_argument("place", metavar="HUB_ID|FOLDER", help=_PLACE)
    _add_field_options(adding)


def _add_field_options(adding: argparse.ArgumentParser) -> None:
    """Add the options that set fields of a model's entry."""
    for field, help_text in _FIELDS.items():
        adding.add_argument(
            f"--{field.replace('_', '-')}", dest=f"field_{field}", metavar="VALUE", help=help_text
        )
    adding.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="any other field of schemas/models.schema.json, such as dtype=bfloat16 or"
        " 'languages=[english]'; can be repeated",
    )


def _add_model(options: argparse.Namespace) -> None:
    """Run `pieline model add`: add an entry, and print how to score the model."""
    from pieline.models.adding import add_model

    fields = _fields_from_options(options)
    added = add_model(options.name, options.place, fields, _models_file(), options=_FIELDS)
    print(f"added to {added.path}:\n{added.text}\nTo score it:", *added.commands, sep="\n  ")


def _models_file() -> Path:
    """Return the path of models.yaml in the working directory, which must be the project."""
    models = Path("models.yaml")
    if not models.exists():
        raise UserError("no such file", where=models, hint="run this in the project folder")
    return models


def _fields_from_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a model's entry that are set by options, with their values."""
    from pieline.core.yamls import parse_yaml

    fields: dict[str, Any] = {}
    for field in _FIELDS:
        value = getattr(options, f"field_{field}")
        if value is None:
            continue
        # The values of other fields are texts, which YAML might read as numbers or null.
        is_text = field not in ("max_length", "trained_with_instructions")
        option = f"--{field.replace('_', '-')}"
        fields[field] = value if is_text else parse_yaml(value, where=option)
    for assignment in options.set:
        field, equals_sign, value = assignment.partition("=")
        if not equals_sign:
            raise UserError("no = in it", where=f"--set {assignment}", hint="write FIELD=VALUE")
        fields[field] = parse_yaml(value, where=f"--set {assignment}")
    return fields


def _add_score_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `pieline score` and the options of this command."""
    about = (
        "Score models on the papers' data, and show the scores beside those of the papers' models."
        " Embedders, rerankers and late-interaction models are scored on IdioLink, chat models on"
        " ID10M-JAM and IdioTS, and encoders on ID10M-JAM. If a folder or repository has no entry,"
        " an entry is added first, as with `pieline model add` and with the same options."
    )
    scoring = commands.add_parser("score", help="Score models.", description=about)
    scoring.set_defaults(run=_score_models)
    scoring.add_argument(
        "places",
        metavar="NAME|HUB_ID|FOLDER",
        nargs="+",
        help=f"name of an entry, or {_PLACE}; if there are several, they are compared",
    )
    scoring.add_argument(
        "--name", help="name of the new entry (default: derived from the repository or folder)"
    )
    scoring.add_argument(
        "--limit", type=int, help="score only the first LIMIT sentences or queries, to try a model"
    )
    scoring.add_argument(
        "--max-cost-usd",
        type=float,
        metavar="USD",
        help="maximum total cost of all requests of this project, in US dollars; -n shows an"
        " estimate",
    )
    scoring.add_argument("--cores", default="all", help="number of cores (default: all)")
    scoring.add_argument(
        "-n",
        "--dry-run",
        action="store_true",
        help="only show what would run, and the estimated cost of chat models",
    )
    _add_configfile_option(scoring)
    _add_field_options(scoring)


def _score_models(options: argparse.Namespace) -> None:
    """Run `pieline score`: add missing entries, and run Snakemake to score the models."""
    from pieline.models.adding import scoring_commands
    from pieline.models.llm import LLMEntry
    from pieline.models.registry import load_registry

    names = list(dict.fromkeys(_entries_to_score(options)))
    registry = load_registry(_models_file())
    entries = {name: registry[name] for name in names}
    chat_models = {name: entry for name, entry in entries.items() if isinstance(entry, LLMEntry)}
    if not options.dry_run:
        paid_models = [name for name, entry in chat_models.items() if entry.paid]
        _check_cost_limit(paid_models, options)
    folder = f"runs/{names[0]}"
    settings: list[str] = []
    if options.limit is not None:
        # The results of a trial must not be mixed with complete results in the same folder.
        folder += f"-limit-{options.limit}"
        settings.append(f"limit={options.limit}")
    if options.max_cost_usd is not None:
        settings.append(f"llm={{max_cost_usd: {options.max_cost_usd:g}}}")
    if not options.dry_run:
        # The last job prints the scores, so it also runs if all results are up to date.
        run_options = ["--cores", options.cores, "--forcerun", "provenance"]
    elif chat_models:
        run_options = ["--cores", "1"]  # to run the job that estimates the cost
    else:
        run_options = ["-n"]
    commands = scoring_commands(
        entries,
        folder=folder,
        options=run_options,
        files=[str(path) for path in options.configfile],
        settings=settings,
    )
    if options.dry_run:
        # Omit the download of weights; for chat models, estimate the cost instead of scoring.
        scoring_command = commands[-1]
        if chat_models:
            scoring_command[-1] = "estimate_cost"  # the last word is the target
        commands = [scoring_command]
    for command in commands:
        print(f"$ {shlex.join(command)}", flush=True)
        if status := subprocess.run([sys.executable, "-m", *command], check=False).returncode:
            raise SystemExit(status)


def _check_cost_limit(paid_models: Sequence[str], options: argparse.Namespace) -> None:
    """Raise a `UserError` if there are paid models and the maximum cost is 0 or not set."""
    max_cost = options.max_cost_usd
    if max_cost is None:
        llm_settings = _merged_settings(Path(), options.configfile).get("llm") or {}
        max_cost = llm_settings.get("max_cost_usd")
    if paid_models and not max_cost:
        raise UserError(
            "its answers cost money, and the cap is 0",
            where=paid_models[0],
            hint="set --max-cost-usd; the same command with -n shows the estimate",
        )


def _entries_to_score(options: argparse.Namespace) -> Iterator[str]:
    """Yield the names of the models to score; add an entry for each model that has none."""
    from pieline.models.adding import add_model, default_name, find_entry
    from pieline.models.registry import load_registry

    fields = _fields_from_options(options)
    models = _models_file()
    for place in options.places:
        registry = load_registry(models)
        existing_entry = find_entry(place, registry)
        if existing_entry:
            if fields or options.name:
                raise UserError(
                    "has an entry, so options do not apply",
                    where=existing_entry,
                    hint="edit its entry, or add another one with pieline model add",
                )
            yield existing_entry
            continue
        is_name = "/" not in place and not Path(place).exists()
        if is_name and (suggestion := suggest_name(place, registry)):
            raise UserError(f"no such model or folder{suggestion}", where=place)
        name = options.name or default_name(place)
        added = add_model(name, place, fields, models, options=_FIELDS)
        print(f"added to {added.path}:\n{added.text}")
        yield name


def _add_tables_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `pieline tables` and the option of this command."""
    about = "List the tables and figures, with their files, places in the papers and requirements."
    tables = commands.add_parser("tables", help=about, description=about)
    tables.set_defaults(run=_list_tables)
    _add_configfile_option(tables)


def _list_tables(options: argparse.Namespace) -> None:
    """Run `pieline tables`: print a line for each table and figure."""
    from pieline.config import layered, load_config, load_studies
    from pieline.models.registry import load_registry
    from pieline.results.run_report import RunReport

    registry = load_registry(_models_file())
    settings = _merged_settings(Path(), options.configfile)
    config = load_config(layered(settings, Path("config", "sample.yaml")))
    displays = RunReport(load_studies(config, registry, Path()), config).list_displays()
    file_width = max(len(file) for file, _, _ in displays)
    place_width = max(len(place) for _, place, _ in displays)
    for file, place, requirements in displays:
        print(f"{file:{file_width}}  {place:{place_width}}  {requirements}".rstrip())


def _add_runs_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `pieline runs` and the actions and options of this command."""
    about = "Pack finished runs for machines without a GPU or API key, or check a packed file."
    runs = commands.add_parser("runs", help=about, description=about)
    actions = runs.add_subparsers(title="actions", required=True, metavar="ACTION")

    exporting = actions.add_parser(
        "export", help="Pack the finished runs of this folder into one .tar.zst file (an archive)."
    )
    exporting.set_defaults(run=_export_runs)
    exporting.add_argument("archive", type=Path, help="file (or folder) to write")
    exporting.add_argument(
        "--format",
        choices=["pieline", "every-eval-ever"],
        default="pieline",
        help="pieline: a file that pieline can score on other machines; every-eval-ever: a folder"
        " with scores and items in the format of Every Eval Ever (default: %(default)s)",
    )
    for name in ("study", "model", "setting", "seed"):
        exporting.add_argument(
            f"--{name}", action="append", help=f"only runs of this {name}; can be repeated"
        )
    exporting.add_argument(
        "--hardware", default="", help="hardware that computed the runs (default: this machine)"
    )
    verifying = actions.add_parser("verify", help="Check an archive without extracting it.")
    verifying.set_defaults(run=_verify_runs)
    verifying.add_argument("archive", type=Path, help="file to check")


def _run_is_selected(metrics: str, options: argparse.Namespace) -> bool:
    """Return whether the options --study, --model, --setting and --seed select a run.

    An option that was not given selects all runs.

    Args:
        metrics: Path of the run's metric file: results/metrics/STUDY/…/MODEL/SETTING/seed-N.json.
        options: Options of `pieline runs export`.
    """
    study, *_, model, setting, seed_stem = Path(metrics).with_suffix("").parts[2:]
    seed = seed_stem.removeprefix("seed-")
    for value, selected_values in (
        (study, options.study),
        (model, options.model),
        (setting, options.setting),
        (seed, options.seed),
    ):
        if selected_values and value not in selected_values:
            return False
    return True


def _export_runs(options: argparse.Namespace) -> None:
    """Run `pieline runs export`: write an archive, or records of Every Eval Ever."""
    from pieline.archives.export import export_runs
    from pieline.every_eval_ever import export_records
    from pieline.results.provenance import code_state

    def is_selected(metrics: str) -> bool:
        return _run_is_selected(metrics, options)

    if options.format == "every-eval-ever":
        count = export_records(options.archive, time=int(time.time()), is_selected=is_selected)
        print(f"{options.archive}: {pluralize(count, 'run')}")
        return
    code = code_state(Path(__file__).parents[2]).commit
    manifest = export_runs(
        options.archive, is_selected=is_selected, code=code, hardware=options.hardware
    )
    size = options.archive.stat().st_size / 1e6
    print(f"{options.archive}: {pluralize(len(manifest.runs), 'run')}, {size:.1f} MB")


def _verify_runs(options: argparse.Namespace) -> None:
    """Run `pieline runs verify`: raise a `UserError` if the archive is invalid."""
    from pieline.archives.extraction import check_archive

    print(f"{options.archive}: {pluralize(check_archive(options.archive), 'run')} verified")


def _merged_settings(root: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Merge config.yaml in `root` and configuration files; later files take precedence."""
    from pieline.core.yamls import merge, read_settings

    settings: dict[str, Any] = {}
    for file in (root / "config.yaml", *files):
        settings = merge(settings, read_settings(file))
    return settings


def _add_ask_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `pieline ask` and the options of this command."""
    about = (
        "Ask a chat model one question, and show the request body, the answer, the number of tokens"
        " and the cost. The answer is recorded in recordings/ask, so you never pay twice for the"
        " same question."
    )
    ask = commands.add_parser("ask", help="Ask a chat model one question.", description=about)
    ask.add_argument(
        "question", help="text of the question, which is sent as a single user message"
    )
    ask.add_argument(
        "--model",
        required=True,
        metavar="NAME",
        help="name of the model in models.yaml or models.local.yaml",
    )
    ask.add_argument(
        "--parameters",
        default="{}",
        metavar="JSON",
        help='request parameters, such as \'{"temperature": 0, "max_tokens": 100}\'',
    )
    _add_configfile_option(ask)
    ask.set_defaults(run=_ask_question)


def _add_configfile_option(parser: argparse.ArgumentParser) -> None:
    """Add the option --configfile."""
    parser.add_argument(
        "--configfile",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="configuration file that takes precedence over config.yaml; can be repeated",
    )


def _add_recordings_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `pieline recordings` and the actions and options of this command."""
    about = "Manage recorded answers of language models, and show their cost."
    recordings = commands.add_parser("recordings", help=about, description=about)
    actions = recordings.add_subparsers(title="actions", required=True, metavar="ACTION")

    def add_action(name: str, run: Command, about: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=about, description=about)
        parser.set_defaults(run=run)
        return parser

    listing = add_action(
        "list",
        _list_recordings,
        "List the files of recorded answers, with their models and"
        " their numbers of answers and tokens.",
    )
    _add_folder_argument(listing)
    verifying = add_action(
        "verify", _verify_recordings, "Check that each answer is stored under its own question."
    )
    _add_folder_argument(verifying)
    importing = add_action(
        "import",
        _import_recordings,
        "Add another person's recorded answers, packed into one file, to a folder; existing answers"
        " are kept. To pack your answers, run `tar --zstd --exclude=.locks -cf FILE.tar.zst -C"
        " recordings jam`.",
    )
    _add_import_options(importing)
    renaming = add_action(
        "rename",
        _rename_recordings,
        "Keep the recorded answers of a model after its entry in models.yaml or models.local.yaml"
        " was renamed.",
    )
    renaming.add_argument("old", help="earlier name of the entry")
    renaming.add_argument("new", help="new name of the entry")
    _add_configfile_option(renaming)
    asking_again = add_action(
        "reask",
        _set_aside_answers,
        "Move recorded answers to FILE.replaced, so that the next run asks these questions again.",
    )
    _add_reask_options(asking_again)
    spending = add_action(
        "spending",
        _show_spending,
        "Show the cost of all requests, including requests of killed runs.",
    )
    _add_folder_argument(spending)
    spending.add_argument(
        "--release",
        action="store_true",
        help="release the budget that killed runs reserved; use this if no run is active and the"
        " provider's bill does not contain their requests",
    )


def _add_folder_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the folder with recorded answers."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("recordings"),
        help="folder (or single file) of recorded answers (default: recordings)",
    )


def _add_reask_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `pieline recordings reask`."""
    parser.add_argument(
        "--outcome",
        required=True,
        choices=("failed", "truncated", "filtered", "refused", "empty", "tool_call", "any"),
        help="outcome of the answers to move",
    )
    _add_folder_argument(parser)


def _add_import_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `pieline recordings import`."""
    parser.add_argument("archive", type=Path, help="file to read")
    _add_folder_argument(parser)
    parser.add_argument(
        "--max-size",
        type=float,
        default=8,
        metavar="GIB",
        help="maximum size of the unpacked file (default: %(default)s GiB), which is unpacked in"
        " the folder for temporary files (TMPDIR)",
    )


def _ask_question(options: argparse.Namespace) -> None:
    """Run `pieline ask`: ask the model, and print the request and the answer."""
    from pieline.core.records import validated
    from pieline.llm.client import ask
    from pieline.llm.questions import make_question
    from pieline.llm.recordings import read_answers
    from pieline.llm.wire import restore_body
    from pieline.models.llm import Parameters

    entry, settings = _chat_model(options.model, "--model", options.configfile)
    parameters = validated(
        Parameters,
        options.parameters,
        where="--parameters",
        hint="pass a JSON object with names from accepts",
        is_json=True,
    )
    question = make_question(entry, [("user", options.question)], parameters, name=options.model)
    recordings = settings.recordings_folder / "ask" / f"{options.model}.jsonl"
    is_recorded = settings.mode != "fresh" and question.key in read_answers(recordings)
    answer = ask([question], entry, settings, recordings)[question.key]
    if answer.sent:
        body = json.dumps(restore_body(question, answer.sent), ensure_ascii=False, indent=2)
        print(f"sent to {answer.sent.path}:\n{body}")
    print(_format_answer(answer, entry))
    print(f"{'already ' if is_recorded else ''}recorded in {recordings}")


def _chat_model(name: str, where: str, files: Sequence[Path]) -> "tuple[LLMEntry, LLMSettings]":
    """Return the entry of a chat model, and the settings of requests to language models.

    Args:
        name: Name of the model.
        where: Argument that names the model, for error messages.
        files: Configuration files that take precedence over config.yaml.
    """
    from pieline.core.records import validated
    from pieline.llm.settings import LLMSection
    from pieline.models.llm import LLMEntry
    from pieline.models.registry import load_registry

    registry = load_registry("models.yaml")
    chat_models = {model: entry for model, entry in registry.items() if isinstance(entry, LLMEntry)}
    if name not in chat_models:
        hint = nearest(name, chat_models)
        raise UserError(f"unknown chat model {name!r}", where=where, hint=hint)
    llm_settings = _merged_settings(Path(), files).get("llm") or {}
    hint = "see schemas/config.schema.json"
    section = validated(LLMSection, llm_settings, where="llm", hint=hint)
    return chat_models[name], section.for_jobs(Path(), registry.values())


def _rename_recordings(options: argparse.Namespace) -> None:
    """Run `pieline recordings rename`: rename a model's files, and print the new paths."""
    from pieline.llm.renaming import rename

    entry, settings = _chat_model(options.new, "NEW", options.configfile)
    for path, answers in rename(options.old, options.new, entry, settings).items():
        print(f"{path}: {pluralize(answers, 'answer')}")


def _set_aside_answers(options: argparse.Namespace) -> None:
    """Run `pieline recordings reask`: move answers, and print the files that contained them."""
    from pieline.llm.archive import recording_files
    from pieline.llm.renaming import reask

    questions_by_file = reask(recording_files(options.folder), options.outcome)
    for path, questions in questions_by_file.items():
        print(f"{path}: {pluralize(questions, 'question')} to ask again")
    if not questions_by_file:
        print("no such answers")


def _format_answer(answer: "Answer", entry: "LLMEntry") -> str:
    """Format an answer with the numbers of tokens and the cost as lines of text."""
    lines = []
    if answer.reasoning:
        lines.append(f"reasoning: {answer.reasoning}")
    if answer.refusal:
        lines.append(f"refusal: {answer.refusal}")
    lines.append(f"answer: {answer.text}")
    if answer.tool_calls:
        calls = ", ".join(f"{call.name} {call.arguments}" for call in answer.tool_calls)
        lines.append(f"calls: {calls}")
    model = answer.returned_model or "an unnamed model"
    address = f" at {answer.address}" if answer.address else ""
    provider_reason = f" ({answer.provider_reason})" if answer.provider_reason else ""
    lines += [
        f"answered by {model}{address}, finish reason {answer.finish_reason}{provider_reason}",
        f"tokens: {_format_tokens(answer)}",
        f"cost: {_format_cost(answer, entry)}",
    ]
    return "\n".join(lines)


def _format_tokens(answer: "Answer") -> str:
    """Format the numbers of tokens that the provider reported."""
    tokens_by_kind = {
        "in": answer.input_tokens,
        "read from the cache": answer.cached_tokens,
        "written to the cache": answer.cache_write_tokens,
        "out": answer.output_tokens,
        "for reasoning": answer.reasoning_tokens,
    }
    reported = [f"{count} {kind}" for kind, count in tokens_by_kind.items() if count is not None]
    return ", ".join(reported) or "not counted"


def _format_cost(answer: "Answer", entry: "LLMEntry") -> str:
    """Format the cost of an answer in US dollars."""
    from pieline.llm.costs import answer_usd

    if not entry.paid:
        return "free"
    usd = answer_usd(answer, entry)
    return "unknown" if usd is None else f"${usd:.6f}"


def _list_recordings(options: argparse.Namespace) -> None:
    """Run `pieline recordings list`: print a line for each file of recorded answers."""
    from pieline.llm.archive import recording_files, summarize

    for path in recording_files(options.folder):
        summary = summarize(path)
        models = ", ".join(summary.models)
        hand_written = f" ({summary.hand_written} hand-written)" if summary.hand_written else ""
        print(
            f"{path}: {pluralize(summary.answers, 'answer')}{hand_written},"
            f" {summary.input_tokens} tokens in, {summary.output_tokens} out; {models}"
        )


def _verify_recordings(options: argparse.Namespace) -> None:
    """Run `pieline recordings verify`: raise a `UserError` if a recorded answer is invalid."""
    from pieline.llm.archive import recording_files, verify

    files = recording_files(options.folder)
    problems = [problem for path in files for problem in verify(path, path)]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        raise UserError(
            pluralize(len(problems), "invalid line"),
            where=options.folder,
            hint="restore or delete them",
        )
    print(f"{pluralize(len(files), 'file')} verified")


def _import_recordings(options: argparse.Namespace) -> None:
    """Run `pieline recordings import`: add answers, and print their number for each file."""
    from pieline.core.packing import GIB
    from pieline.llm.archive import import_archive

    most_bytes = int(options.max_size * GIB)
    results = import_archive(options.archive, options.folder, most_bytes=most_bytes)
    for file, merged in results.items():
        conflicts = len(merged.conflicts)
        kept = f"; {pluralize(conflicts, 'different answer')} kept" if conflicts else ""
        print(f"{file}: {pluralize(merged.added, 'answer')} added{kept}")


def _show_spending(options: argparse.Namespace) -> None:
    """Run `pieline recordings spending`: print the costs of each model and the total."""
    from pieline.llm.spending import Ledger

    if not options.folder.is_dir():
        raise UserError("no such folder", where=options.folder, hint="check the path")
    ledger = Ledger(options.folder)
    if options.release:
        print(f"released ${ledger.release():.4f}")
    spending = ledger.spending()
    for model, usd in spending.settled.items():
        print(f"{model}: ${usd:.4f} for {pluralize(spending.requests[model], 'request')}")
    for model, usd in spending.possibly_billed.items():
        unanswered = pluralize(spending.unanswered[model], "unanswered request")
        print(f"{model}: at most ${usd:.4f} possibly billed for {unanswered}")
    if spending.reserved:
        unfinished = pluralize(len(spending.reserved), "unfinished request")
        print(f"at most ${spending.held:.4f} for {unfinished}")
    for model, usd in spending.excess.items():
        print(f"{model}: ${usd:.4f} reported above the maximum of its requests")
    excluded = ", not including possibly billed requests" if spending.possibly_billed else ""
    print(f"total: ${spending.usd:.4f}{excluded}")


def _add_trace_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `pieline trace` and the options of this command."""
    about = (
        "Show how a table or figure is made: the rules, scripts and functions in order, the"
        " measure, and the files behind its first number if the run has finished."
    )
    trace = commands.add_parser(
        "trace", help="Show how a table or figure is made.", description=about
    )
    trace.set_defaults(run=_show_trace)
    trace.add_argument(
        "name", metavar="NAME", help="name of the table or figure, such as jam_drift"
    )
    trace.add_argument(
        "measure",
        metavar="MEASURE",
        nargs="?",
        default="",
        help="measure in the table to show as well, such as success",
    )
    trace.add_argument("--directory", default=".", help="folder of the run (default: this folder)")
    for option, value in (("--configfile", "FILE"), ("--config", "NAME=VALUE")):
        trace.add_argument(
            option,
            nargs="+",
            default=[],
            metavar=value,
            help="as in the snakemake command of the run",
        )


def _show_trace(options: argparse.Namespace) -> None:
    """Run `pieline trace`: print the steps behind a table or figure, and the files of the run."""
    from pieline.results import trace

    root = Path.cwd()
    display_steps = list(trace.steps_of_display(options.name, root))
    measures = trace.measures_of(options.name, options.measure, root) if options.measure else []
    output = trace.output_of(options.name, display_steps[0])
    rule_graph = _rule_graph(output, options)
    rule_steps = trace.steps_of_rules(trace.rules_in_order(rule_graph), root)
    for step in [*rule_steps, *measures, *display_steps]:
        print(step)
    numbers = Path(options.directory, "paper_tables/numbers.csv")
    if files := trace.files_of(numbers, options.name, options.measure):
        print("\nIn this run:", *files, sep="\n  ")


def _rule_graph(output: str, options: argparse.Namespace) -> str:
    """Return Snakemake's graph of the rules that make a file, in Mermaid syntax.

    Raises:
        UserError: The file is not made with this configuration, or the configuration is invalid.
    """
    command = [sys.executable, "-m", "snakemake", "--rulegraph", "mermaid-js"]
    if options.configfile:
        command += ["--configfile", *options.configfile]
    if options.config:
        command += ["--config", *options.config]
    command += ["--", output]
    graph = subprocess.run(command, capture_output=True, text=True, check=False)
    if graph.returncode:
        # The last line with "Error" or "error" states the problem.
        errors = [line for line in graph.stderr.splitlines() if "rror" in line]
        problem = errors[-1] if errors else graph.stderr
        raise UserError(
            problem.strip(),
            where=output,
            hint="name a --configfile that makes this table or figure",
        )
    return graph.stdout


if __name__ == "__main__":
    command()
