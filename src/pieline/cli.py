"""The command `pieline`: looking after what the workflow keeps."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pieline.core.errors import UserError, number_of, run_command

if TYPE_CHECKING:
    from pieline.llm.archive import Merged

Command = Callable[[argparse.Namespace], None]


def command(arguments: Sequence[str] | None = None) -> None:
    """Run `pieline` with these arguments (default: those of the process).

    A user's mistake ends it with one line on stderr and status 2.
    """
    options = parser().parse_args(arguments)
    try:
        run_command(lambda: options.run(options))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (`| head`) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser() -> argparse.ArgumentParser:
    """The parser of `pieline` and its subcommands."""
    top = argparse.ArgumentParser(prog="pieline", description=__doc__)
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_recordings(commands)
    return top


def _add_recordings(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    about = "Recorded answers of language models: list, verify, merge, ship; and what was spent."
    recordings = commands.add_parser("recordings", help=about, description=about)
    actions = recordings.add_subparsers(title="actions", required=True, metavar="ACTION")

    def action(name: str, run: Command, about: str) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=about, description=about)
        added.set_defaults(run=run)
        return added

    def folder(of: argparse.ArgumentParser) -> None:
        of.add_argument(
            "folder",
            nargs="?",
            type=Path,
            default=Path("recordings"),
            help="folder (or one file) of recordings; default: recordings",
        )

    folder(action("list", _list, "List each file: models, answers, tokens."))
    folder(action("verify", _verify, "Check that every answer stands under its own question."))
    merging = action("merge", _merge, "Add the answers that a file lacks; its own stay.")
    merging.add_argument("target", type=Path, help="the file to add to")
    merging.add_argument("sources", type=Path, nargs="+", help="the files to take answers from")
    exporting = action("export", _export, "Write a folder of recordings to one .tar.zst file.")
    exporting.add_argument("archive", type=Path, help="the file to write")
    folder(exporting)
    importing = action("import", _import, "Merge an exported file into a folder of recordings.")
    importing.add_argument("archive", type=Path, help="the file to read")
    folder(importing)
    importing.add_argument(
        "--max-size",
        type=float,
        default=8,
        metavar="GIB",
        help="most that the file may unpack to (default: %(default)s GiB); it is unpacked in the"
        " folder for temporary files (TMPDIR)",
    )
    spending = action("spending", _spending, "Show what was spent, and what killed runs may have.")
    folder(spending)
    spending.add_argument(
        "--release",
        action="store_true",
        help="forget requests of killed runs, when the provider's bill shows that they cost nothing"
        " (no run may be under way)",
    )


def _list(options: argparse.Namespace) -> None:
    from pieline.llm.archive import recording_files, summarise

    for path in recording_files(options.folder):
        found = summarise(path)
        hand_written = f" ({found.hand_written} hand-written)" if found.hand_written else ""
        print(
            f"{path}: {number_of(found.answers, 'answer')}{hand_written},"
            f" {found.input_tokens} tokens in, {found.output_tokens} out; {', '.join(found.models)}"
        )


def _verify(options: argparse.Namespace) -> None:
    from pieline.llm.archive import recording_files, verify

    files = recording_files(options.folder)
    problems = [problem for path in files for problem in verify(path)]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        raise UserError(
            number_of(len(problems), "faulty line"),
            where=options.folder,
            mend="restore or delete them",
        )
    print(f"{number_of(len(files), 'file')} verified")


def _merge(options: argparse.Namespace) -> None:
    from pieline.llm.archive import merge

    _tell(merge(options.target, options.sources))


def _export(options: argparse.Namespace) -> None:
    from pieline.llm.archive import export_folder

    answers = export_folder(options.folder, options.archive)
    print(f"{options.archive}: {number_of(answers, 'answer')}")


def _import(options: argparse.Namespace) -> None:
    from pieline.core.packing import GIB
    from pieline.llm.archive import import_archive

    most_bytes = int(options.max_size * GIB)
    _tell(import_archive(options.archive, options.folder, most_bytes=most_bytes))


def _tell(done: "Mapping[str, Merged]") -> None:
    for name, merged in done.items():
        others = len(merged.conflicts)
        have = "has" if others == 1 else "have"
        kept = f"; {others} {have} another answer already, which stays" if others else ""
        print(f"{name}: {number_of(merged.added, 'answer')} added{kept}")


def _spending(options: argparse.Namespace) -> None:
    from pieline.llm.spending import Ledger

    if not options.folder.is_dir():
        raise UserError("no such folder", where=options.folder, mend="check the path")
    ledger = Ledger(options.folder)
    if options.release:
        print(f"released ${ledger.release():.4f}")
    spending = ledger.spending()
    for model, usd in spending.settled.items():
        print(f"{model}: ${usd:.4f} for {number_of(spending.requests[model], 'request')}")
    for model, usd in spending.perhaps.items():
        unanswered = spending.unanswered[model]
        print(
            f"{model}: at most ${usd:.4f} perhaps billed for {unanswered} of them without an answer"
        )
    if spending.reserved:
        open_ones = number_of(len(spending.reserved), "request")
        print(f"at most ${spending.held:.4f} for {open_ones} without an end")
    apart = ", apart from what is perhaps billed" if spending.perhaps else ""
    print(f"total: ${spending.usd:.4f}{apart}")


if __name__ == "__main__":
    command()
