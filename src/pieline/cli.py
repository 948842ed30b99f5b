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

from pieline.core.errors import UserError, meant, nearest, pluralize, run_command

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
"""Fields of a model's entry that have an option of their own, with their help texts."""

_PLACE = (
    "name of a repository on the Hugging Face hub, or a folder saved by transformers or"
    " sentence-transformers"
)

Command = Callable[[argparse.Namespace], None]


def command(arguments: Sequence[str] | None = None) -> None:
    """Run `pieline` with these arguments (default: the arguments of the process).

    If a user error occurs, print one line on stderr and exit with status 2.
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
    _add_model(commands)
    _add_score(commands)
    _add_tables(commands)
    _add_recordings(commands)
    _add_runs(commands)
    _add_ask(commands)
    _add_trace(commands)
    return top


def _add_model(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    model = commands.add_parser("model", help="Add your own models.")
    actions = model.add_subparsers(title="actions", required=True, metavar="ACTION")
    about = (
        "Add a model to models.local.yaml, with the values in the model's files. Options are needed"
        " only for values that these files do not contain."
    )
    adding = actions.add_parser("add", help="Add a model to models.local.yaml.", description=about)
    adding.set_defaults(run=_add)
    adding.add_argument("name", metavar="NAME", help="name of the model in configurations")
    adding.add_argument("place", metavar="HUB_ID|FOLDER", help=_PLACE)
    _add_fields(adding)


def _add_fields(adding: argparse.ArgumentParser) -> None:
    """Add the options that set fields of an entry."""
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


def _add(options: argparse.Namespace) -> None:
    from pieline.models.adding import add_model

    given, models = _given_fields(options), _models_file()
    added = add_model(options.name, options.place, given, models, options=_FIELDS)
    print(f"added to {added.path}:\n{added.text}\nTo score it:", *added.commands, sep="\n  ")


def _models_file() -> Path:
    """Return the path of models.yaml in the working directory, which must be the project."""
    models = Path("models.yaml")
    if not models.exists():
        raise UserError("no such file", where=models, hint="run this in the project folder")
    return models


def _given_fields(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of an entry that options set."""
    from pieline.core.yamls import parse_yaml

    given: dict[str, Any] = {
        field: value
        for field in _FIELDS
        if (value := getattr(options, f"field_{field}")) is not None
    }
    for field in given.keys() & {"max_length", "trained_with_instructions"}:
        given[field] = parse_yaml(given[field], where=f"--{field.replace('_', '-')}")
    for item in options.set:
        field, sign, value = item.partition("=")
        if not sign:
            raise UserError("no = in it", where=f"--set {item}", hint="write FIELD=VALUE")
        given[field] = parse_yaml(value, where=f"--set {item}")
    return given


def _add_score(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    about = (
        "Score models on the papers' data, and show the scores beside those of the papers' models."
        " Embedders, rerankers and late-interaction models are scored on IdioLink, chat models on"
        " ID10M-JAM and IdioTS, and encoders on ID10M-JAM. If a folder or repository has no entry,"
        " an entry is added first, as with `pieline model add` and with the same options."
    )
    scoring = commands.add_parser("score", help="Score models.", description=about)
    scoring.set_defaults(run=_score)
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
    _add_configfile(scoring)
    _add_fields(scoring)


def _score(options: argparse.Namespace) -> None:
    from pieline.models.adding import scoring_commands
    from pieline.models.llm import LLMEntry
    from pieline.models.registry import load_registry

    names = list(dict.fromkeys(_entries_to_score(options)))
    registry = load_registry(_models_file())
    entries = {name: registry[name] for name in names}
    chat = {name: entry for name, entry in entries.items() if isinstance(entry, LLMEntry)}
    configured = _settings(Path(), options.configfile).get("llm") or {}
    cap = configured.get("max_cost_usd") if options.max_cost_usd is None else options.max_cost_usd
    paid = [name for name, entry in chat.items() if entry.paid]
    if paid and not (cap or options.dry_run):
        hint = "set --max-cost-usd; the same command with -n shows the estimate"
        raise UserError("its answers cost money, and the cap is 0", where=paid[0], hint=hint)
    # Results of a trial do not match those of the archive in the same folder.
    folder, settings = f"runs/{names[0]}", []
    if options.limit is not None:
        folder += f"-limit-{options.limit}"
        settings.append(f"limit={options.limit}")
    if options.max_cost_usd is not None:
        settings.append(f"llm={{max_cost_usd: {cap:g}}}")
    if not options.dry_run:
        # The last job prints the scores, also if nothing else is to do.
        run = ["--cores", options.cores, "--forcerun", "provenance"]
    elif chat:
        run = ["--cores", "1"]
    else:
        run = ["-n"]
    files = map(str, options.configfile)
    commands = scoring_commands(entries, folder=folder, options=run, files=files, settings=settings)
    if options.dry_run:
        *start, target = commands[-1]
        commands = [[*start, "estimate_cost" if chat else target]]
    for command in commands:
        print(f"$ {shlex.join(command)}", flush=True)
        if status := subprocess.run([sys.executable, "-m", *command], check=False).returncode:
            raise SystemExit(status)


def _entries_to_score(options: argparse.Namespace) -> Iterator[str]:
    """Yield the names of the models to score; add those without an entry."""
    from pieline.models.adding import add_model, default_name, find_entry
    from pieline.models.registry import load_registry

    given, models = _given_fields(options), _models_file()
    for place in options.places:
        registry = load_registry(models)
        if name := find_entry(place, registry):
            if given or options.name:
                hint = "edit its entry, or add another one with pieline model add"
                raise UserError("has an entry, so options do not apply", where=name, hint=hint)
            yield name
            continue
        if "/" not in place and not Path(place).exists() and (hint := meant(place, registry)):
            raise UserError(f"no such model or folder{hint}", where=place)
        name = options.name or default_name(place)
        added = add_model(name, place, given, models, options=_FIELDS)
        print(f"added to {added.path}:\n{added.text}")
        yield name


def _add_tables(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    about = "List the tables and figures, with their files, places in the papers and requirements."
    tables = commands.add_parser("tables", help=about, description=about)
    tables.set_defaults(run=_tables)
    _add_configfile(tables)


def _tables(options: argparse.Namespace) -> None:
    from pieline.config import layered, load_config, load_studies
    from pieline.models.registry import load_registry
    from pieline.results.run_report import RunReport

    registry = load_registry(_models_file())
    settings = _settings(Path(), options.configfile)
    config = load_config(layered(settings, Path("config", "sample.yaml")))
    lines = RunReport(load_studies(config, registry, Path()), config).list_displays()
    widths = [max(len(line[column]) for line in lines) for column in range(2)]
    for file, place, needs in lines:
        print(f"{file:{widths[0]}}  {place:{widths[1]}}  {needs}".rstrip())


def _add_runs(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
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


def _is_selected(metrics: str, options: argparse.Namespace) -> bool:
    """Return whether the run of a metric file has a value of each option that was given."""
    study, *_, model, setting, seed = Path(metrics).with_suffix("").parts[2:]
    pairs = (
        (study, options.study),
        (model, options.model),
        (setting, options.setting),
        (seed.removeprefix("seed-"), options.seed),
    )
    return all(not given or value in given for value, given in pairs)


def _export_runs(options: argparse.Namespace) -> None:
    from pieline.archives.export import export_runs
    from pieline.every_eval_ever import export_records
    from pieline.results.provenance import code_state

    def is_selected(metrics: str) -> bool:
        return _is_selected(metrics, options)

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
    from pieline.archives.extraction import check_archive

    print(f"{options.archive}: {pluralize(check_archive(options.archive), 'run')} verified")


def _settings(root: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Merge config.yaml and other configuration files; later files take precedence."""
    from pieline.core.yamls import merge, read_settings

    settings: dict[str, Any] = {}
    for file in (root / "config.yaml", *files):
        settings = merge(settings, read_settings(file))
    return settings


def _add_ask(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
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
    _add_configfile(ask)
    ask.set_defaults(run=_ask)


def _add_configfile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--configfile",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="configuration file that takes precedence over config.yaml; can be repeated",
    )


def _add_recordings(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    about = "Manage recorded answers of language models, and show their cost."
    recordings = commands.add_parser("recordings", help=about, description=about)
    actions = recordings.add_subparsers(title="actions", required=True, metavar="ACTION")

    def add_action(name: str, run: Command, about: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=about, description=about)
        parser.set_defaults(run=run)
        return parser

    listing = add_action(
        "list",
        _list,
        "List the files of recorded answers, with their models and"
        " their numbers of answers and tokens.",
    )
    _add_folder(listing)
    verifying = add_action(
        "verify", _verify, "Check that each answer is stored under its own question."
    )
    _add_folder(verifying)
    importing = add_action(
        "import",
        _import,
        "Add another person's recorded answers, packed into one file, to a folder; existing answers"
        " are kept. To pack your answers, run `tar --zstd --exclude=.locks -cf FILE.tar.zst -C"
        " recordings jam`.",
    )
    _add_import_options(importing)
    renaming = add_action(
        "rename",
        _rename,
        "Keep the recorded answers of a model after its entry in models.yaml or models.local.yaml"
        " was renamed.",
    )
    renaming.add_argument("old", help="earlier name of the entry")
    renaming.add_argument("new", help="new name of the entry")
    _add_configfile(renaming)
    asking_again = add_action(
        "reask",
        _reask,
        "Move recorded answers to FILE.replaced, so that the next run asks these questions again.",
    )
    asking_again.add_argument(
        "--outcome",
        required=True,
        choices=("failed", "truncated", "filtered", "refused", "empty", "tool_call", "any"),
        help="outcome of the answers to move",
    )
    _add_folder(asking_again)
    spending = add_action(
        "spending", _spending, "Show the cost of all requests, including requests of killed runs."
    )
    _add_folder(spending)
    spending.add_argument(
        "--release",
        action="store_true",
        help="release the budget that killed runs reserved; use this if no run is active and the"
        " provider's bill does not contain their requests",
    )


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("recordings"),
        help="folder (or single file) of recorded answers (default: recordings)",
    )


def _add_import_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", type=Path, help="file to read")
    _add_folder(parser)
    parser.add_argument(
        "--max-size",
        type=float,
        default=8,
        metavar="GIB",
        help="maximum size of the unpacked file (default: %(default)s GiB), which is unpacked in"
        " the folder for temporary files (TMPDIR)",
    )


def _ask(options: argparse.Namespace) -> None:
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
    """Return the entry of a chat model, and the settings for querying it."""
    from pieline.core.records import validated
    from pieline.llm.settings import LLMSection
    from pieline.models.llm import LLMEntry
    from pieline.models.registry import load_registry

    registry = load_registry("models.yaml")
    models = {name: entry for name, entry in registry.items() if isinstance(entry, LLMEntry)}
    if name not in models:
        raise UserError(f"unknown chat model {name!r}", where=where, hint=nearest(name, models))
    config = _settings(Path(), files)
    hint = "see schemas/config.schema.json"
    section = validated(LLMSection, config.get("llm") or {}, where="llm", hint=hint)
    return models[name], section.for_jobs(Path(), registry.values())


def _rename(options: argparse.Namespace) -> None:
    from pieline.llm.renaming import rename

    entry, settings = _chat_model(options.new, "NEW", options.configfile)
    for path, answers in rename(options.old, options.new, entry, settings).items():
        print(f"{path}: {pluralize(answers, 'answer')}")


def _reask(options: argparse.Namespace) -> None:
    from pieline.llm.archive import recording_files
    from pieline.llm.renaming import reask

    counts = reask(recording_files(options.folder), options.outcome)
    for path, questions in counts.items():
        print(f"{path}: {pluralize(questions, 'question')} to ask again")
    if not counts:
        print("no such answers")


def _format_answer(answer: "Answer", entry: "LLMEntry") -> str:
    """Format an answer with its token counts and cost."""
    from pieline.llm.costs import answer_usd

    parts = {"reasoning": answer.reasoning, "refusal": answer.refusal, "answer": answer.text}
    parts["calls"] = ", ".join(f"{call.name} {call.arguments}" for call in answer.tool_calls or ())
    lines = [f"{name}: {text}" for name, text in parts.items() if text or name == "answer"]
    counts = {
        "in": answer.input_tokens,
        "read from the cache": answer.cached_tokens,
        "written to the cache": answer.cache_write_tokens,
        "out": answer.output_tokens,
        "for reasoning": answer.reasoning_tokens,
    }
    tokens = [f"{count} {what}" for what, count in counts.items() if count is not None]
    usd = answer_usd(answer, entry)
    cost = "unknown" if usd is None else f"${usd:.6f}"
    model, reason = answer.returned_model or "an unnamed model", answer.finish_reason
    if answer.provider_reason:
        reason = f"{reason} ({answer.provider_reason})"
    place = f" at {answer.address}" if answer.address else ""
    return "\n".join(
        [
            *lines,
            f"answered by {model}{place}, finish reason {reason}",
            f"tokens: {', '.join(tokens) or 'not counted'}",
            f"cost: {cost if entry.paid else 'free'}",
        ]
    )


def _list(options: argparse.Namespace) -> None:
    from pieline.llm.archive import recording_files, summarize

    for path in recording_files(options.folder):
        summary = summarize(path)
        models = ", ".join(summary.models)
        hand_written = f" ({summary.hand_written} hand-written)" if summary.hand_written else ""
        print(
            f"{path}: {pluralize(summary.answers, 'answer')}{hand_written},"
            f" {summary.input_tokens} tokens in, {summary.output_tokens} out; {models}"
        )


def _verify(options: argparse.Namespace) -> None:
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


def _import(options: argparse.Namespace) -> None:
    from pieline.core.packing import GIB
    from pieline.llm.archive import import_archive

    most_bytes = int(options.max_size * GIB)
    results = import_archive(options.archive, options.folder, most_bytes=most_bytes)
    for name, merged in results.items():
        conflicts = len(merged.conflicts)
        kept = f"; {pluralize(conflicts, 'different answer')} kept" if conflicts else ""
        print(f"{name}: {pluralize(merged.added, 'answer')} added{kept}")


def _spending(options: argparse.Namespace) -> None:
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


def _add_trace(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    about = (
        "Show how a table or figure is made: the rules, scripts and functions in order, the"
        " measure, and the files behind its first number if the run has finished."
    )
    trace = commands.add_parser(
        "trace", help="Show how a table or figure is made.", description=about
    )
    trace.set_defaults(run=_trace)
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


def _trace(options: argparse.Namespace) -> None:
    from pieline.results import trace

    root = Path.cwd()
    shown = list(trace.steps_of_display(options.name, root))
    measures = trace.measures_of(options.name, options.measure, root) if options.measure else []
    chosen: list[str] = []
    for option, values in (("--configfile", options.configfile), ("--config", options.config)):
        chosen += [option, *values] if values else []
    output = trace.output_of(options.name, shown[0])
    graph = subprocess.run(
        [sys.executable, "-m", "snakemake", "--rulegraph", "mermaid-js", *chosen, "--", output],
        capture_output=True,
        text=True,
        check=False,
    )
    if graph.returncode:
        lines = [line for line in graph.stderr.splitlines() if "rror" in line] or [graph.stderr]
        raise UserError(
            lines[-1].strip(),
            where=output,
            hint="name a --configfile with which this table or figure is made",
        )
    for step in [
        *trace.steps_of_rules(trace.rules_in_order(graph.stdout), root),
        *measures,
        *shown,
    ]:
        print(step)
    numbers = Path(options.directory, "paper_tables/numbers.csv")
    if files := trace.files_of(numbers, options.name, options.measure):
        print("\nIn this run:", *files, sep="\n  ")


if __name__ == "__main__":
    command()
