"""Explain in words why Snakemake runs a job again."""

import json
import re
import textwrap
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

_NEW_JOB = "Missing output files"
_ORDINARY = (_NEW_JOB, "Input files updated by another job", "Rules with ")
"""Beginnings of the reasons that need no explanation."""
_NEW_INPUTS = "Set of input files has changed since last execution"
_PARAMS_CHANGED = "Params have changed"
_PARAMS = re.compile(
    rf"{_PARAMS_CHANGED}.*?before: (?P<values>.*?)(?P<others>; Software environment .*)?",
    re.DOTALL,
)
"""Snakemake's reason about params: the values before and now, and the reasons that follow."""
_FILE = re.compile(r"(\S+) [0-9a-f]{16}")
"""Path and digest of a file in a param that lists the contents of files."""
_DIGEST = re.compile(r"[0-9a-f]{16,64}")
_SHOWN = 3
"""Maximum number of names or differences to list."""
_MAX_CAUSE_LENGTH = 200
_MAX_VALUE_LENGTH = 60


def explain(reason: str) -> str:
    """Return why a job runs again; empty if an output is missing or an input was remade.

    Args:
        reason: Reason in Snakemake's words.
    """
    other_reasons, marker, after_marker = reason.partition(_PARAMS_CHANGED)
    changed_params = _PARAMS.fullmatch(marker + after_marker)
    differences: list[str] = []
    if changed_params:
        other_reasons += changed_params["others"] or ""
        differences = _describe_changed_params(changed_params["values"])
    causes = [
        textwrap.shorten(cause, _MAX_CAUSE_LENGTH, placeholder="…")
        for cause in other_reasons.split("; ")
        if cause and not cause.startswith(_ORDINARY)
    ]
    if differences and causes == [_NEW_INPUTS]:
        causes = []  # the changed params state which inputs are new
    return "; ".join(causes + differences)


def summarize(causes: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return a line for each cause, with the affected studies, models, displays and jobs.

    Args:
        causes: Snakemake's records of jobs by cause (see `explain`). Jobs without a cause are new,
            or run only because other jobs run.
    """
    lines = []
    for cause, jobs in causes.items():
        if cause:
            lines.append(_summary_line(cause, jobs))
        elif new_jobs := [job for job in jobs if job.reason.startswith(_NEW_JOB)]:
            lines.append(_summary_line("new", new_jobs))
    return lines


def _summary_line(cause: str, jobs: Sequence[Any]) -> str:
    """Return a line with a cause, and with the studies, models and displays of the jobs."""
    studies = {_study_of(str(path)) for job in jobs for path in job.output} - {""}
    affected = [_list_names(list(studies))]
    wildcards = [dict(job.wildcards or {}) for job in jobs]
    names: list[str] = []
    for kind in ("model", "table", "figure"):
        names += [values[kind] for values in wildcards if kind in values]
    affected.append(_list_names(names))
    # Jobs with the same wildcards, including a model, belong to the same run.
    runs = {tuple(values.items()) for values in wildcards if "model" in values}
    if runs:
        affected.append(_count(len(runs), "run"))
    rules = _list_names([job.rule_name for job in jobs])
    affected.append(f"{_count(len(jobs), 'job')} of {rules}")
    return f"  {cause} ({', '.join(filter(None, affected))})"


def _study_of(path: str) -> str:
    """Return the study in a path `results/STAGE/STUDY/…`; empty for raw files and other paths."""
    folders = path.split("/")[:-1]
    is_of_study = len(folders) >= 3 and folders[0] == "results" and folders[1] != "raw"
    return folders[2] if is_of_study else ""


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _describe_changed_params(change: str) -> list[str]:
    """Return descriptions of the changed files, and of the changes of other params.

    Args:
        change: Snakemake's text about the params: `VALUES now: VALUES`.
    """
    before, now = _values_before_and_now(change)
    contents_before, contents_now = _file_contents(before), _file_contents(now)
    files = {content.split()[0] for content in contents_before ^ contents_now}
    others_before = [_parse(value) for value in before if not _lists_files(value)]
    others_now = [_parse(value) for value in now if not _lists_files(value)]
    differences = list(dict.fromkeys(_differences_of_params(others_before, others_now)))
    # If the models of a display changed, other params of the display changed as a result.
    model_differences = [text for text in differences if text.startswith("models ")]
    differences = model_differences or differences
    descriptions = [f"changed {_list_names(list(files))}"] if files else []
    descriptions += differences[:_SHOWN]
    if len(differences) > _SHOWN:
        descriptions.append(f"{len(differences) - _SHOWN} more")
    return descriptions


def _lists_files(value: Any) -> bool:
    """Return whether the value of a param lists the paths and digests of files."""
    return isinstance(value, str) and all(_FILE.fullmatch(part) for part in value.split(", "))


def _file_contents(values: list[Any]) -> set[str]:
    """Return `PATH DIGEST` for each file in the params that list files."""
    contents: set[str] = set()
    for value in values:
        if _lists_files(value):
            contents.update(value.split(", "))
    return contents


def _values_before_and_now(change: str) -> tuple[list[Any], list[Any]]:
    """Return the values of params before and now, given Snakemake's text (`VALUES now: VALUES`)."""
    # A value may contain the separator, so try all positions until both sides can be parsed.
    for separator in re.finditer(" now: ", change):
        with suppress(ValueError, SyntaxError):
            before, now = change[: separator.start()], change[separator.end() :]
            return _parse_values(before), _parse_values(now)
    before, _, now = change.partition(" now: ")
    return [before.strip()], [now.strip()]


def _parse_values(text: str) -> list[Any]:
    """Parse values that Snakemake printed as Python literals."""
    return [] if text.strip() == "<nothing exclusive>" else list(literal_eval(f"[{text}]"))


def _parse(value: Any) -> Any:
    """Parse the value of a param if it is JSON; return other values unchanged."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with suppress(ValueError):
            return json.loads(value)
    return value


def _differences_of_params(old: list[Any], new: list[Any]) -> Iterator[str]:
    """Yield descriptions of how the values of params differ.

    A new JSON object is compared with the most similar old object, and any other new value with the
    first old value that is not an object. Each old value is used once.
    """
    unmatched = list(old)
    for value in new:
        is_object = isinstance(value, Mapping)
        candidates = [before for before in unmatched if isinstance(before, Mapping) == is_object]
        if not candidates:
            yield f"+ {_shorten(value)}"
            continue
        counterpart = _most_similar(value, candidates) if is_object else candidates[0]
        unmatched.remove(counterpart)
        yield from _differences(counterpart, value)
    for value in unmatched:
        yield f"- {_shorten(value)}"


def _most_similar(new: Mapping[str, Any], candidates: list[Any]) -> Any:
    """Return the candidate that has the most fields with the same values as a new object."""

    def number_of_equal_fields(candidate: Mapping[str, Any]) -> int:
        return len([key for key, value in new.items() if candidate.get(key) == value])

    return max(candidates, key=number_of_equal_fields)


def _differences(old: Any, new: Any, name: str = "") -> Iterator[str]:
    """Yield descriptions of how two JSON values differ.

    Args:
        old: Value before.
        new: Value now.
        name: Dotted name of the value, with which the descriptions start.
    """
    old, new = _parse(old), _parse(new)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
        keys_are_paths = any("/" in key for key in changed)
        if keys_are_paths:
            yield from _differences_of_lists(list(old), list(new), name)
            return
        for key in changed:
            dotted_name = f"{name}.{key}" if name else key
            if key not in new:
                yield f"{dotted_name} removed"
            elif key not in old:
                yield f"{dotted_name} {_shorten(new[key])} (new)"
            else:
                yield from _differences(old[key], new[key], dotted_name.removeprefix("settings."))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _differences_of_lists(old, new, name)
    elif _is_digest(old) and _is_digest(new):
        yield f"{name} changed"
    else:
        yield f"{name} {_shorten(old)} → {_shorten(new)}".strip()


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _differences_of_lists(old: list[Any], new: list[Any], name: str) -> Iterator[str]:
    """Yield descriptions of how two lists differ; `name` is the dotted name of the list."""
    old_names = [_item_name(item) for item in old]
    new_names = [_item_name(item) for item in new]
    added = [item for item in new_names if item not in old_names]
    removed = [item for item in old_names if item not in new_names]
    if added or removed:
        plus = f" + {_list_names(added)}" if added else ""
        minus = f" - {_list_names(removed)}" if removed else ""
        yield name + plus + minus
    elif old_names == new_names and any(isinstance(item, Mapping) for item in old):
        for old_item, new_item, item_name in zip(old, new, old_names, strict=True):
            if old_item != new_item:
                yield from _differences(old_item, new_item, f"{name}.{item_name}")
    elif sorted(old_names) == sorted(new_names) and old != new:
        yield f"{name} in another order"
    else:
        yield f"{name} changed"


def _item_name(item: Any) -> str:
    """Return the name of an item of a list, or the item itself as text."""
    if isinstance(item, Mapping) and "name" in item:
        return str(item["name"])
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def _list_names(names: list[str]) -> str:
    """Return the first names in alphabetical order, and the number of other names.

    For several paths, only their number is returned.
    """
    # Sorted, because Snakemake's order of jobs differs between runs.
    unique_names = sorted(set(names))
    if len(unique_names) > 1 and all("/" in name for name in unique_names):
        return f"{len(unique_names)} files"
    listed = ", ".join(_shorten(name) for name in unique_names[:_SHOWN])
    others = len(unique_names) - _SHOWN
    return f"{listed} and {others} more" if others > 0 else listed


def _shorten(value: Any) -> str:
    """Return a value as text of at most `_MAX_VALUE_LENGTH` characters; `''` for an empty text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return textwrap.shorten(text, _MAX_VALUE_LENGTH, placeholder="…") or "''"
