"""Explain in words why Snakemake runs a job again."""

import json
import re
import textwrap
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

_ORDINARY = ("Missing output files", "Input files updated by another job", "Rules with ")
_INPUTS = "Set of input files has changed since last execution"
_PARAMS = re.compile(r"Params have changed.*?before: (.*?)(; Software environment .*)?", re.DOTALL)
_FILE = re.compile(r"(\S+) [0-9a-f]{16}")
_DIGEST = re.compile(r"[0-9a-f]{16,64}")
_SHOWN = 3
"""Maximum number of names or differences to list."""


def explain(reason: str) -> str:
    """Return why a job runs again; empty if an output is missing or an input was remade.

    Args:
        reason: Reason in Snakemake's words.
    """
    text, mark, params = reason.partition("Params have changed")
    change = _PARAMS.fullmatch(mark + params)
    causes = [
        textwrap.shorten(part, 200, placeholder="…")
        for part in (text + ((change and change[2]) or "")).split("; ")
        if part and not part.startswith(_ORDINARY)
    ]
    changes = _changes(change[1]) if change else []
    # Other params say which inputs are new.
    return "; ".join(changes if changes and causes == [_INPUTS] else causes + changes)


def summarize(causes: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return a line per cause: the change, the models or displays that it affects, and the jobs.

    Args:
        causes: Records of jobs by cause (see `explain`); jobs without a cause are new, or follow
            from other jobs.
    """
    lines = []
    for cause, records in causes.items():
        jobs = [job for job in records if cause or job.reason.startswith("Missing output files")]
        if not jobs:
            continue
        wildcards = [dict(job.wildcards or {}) for job in jobs]
        kinds = ("model", "table", "figure")
        places = [str(path).split("/") for job in jobs for path in job.output]
        studies = [
            place[2]
            for place in places
            if len(place) > 3 and place[0] == "results" and place[1] != "raw"
        ]
        runs = {tuple(each.items()) for each in wildcards if "model" in each}
        affected = [
            _listed(studies),
            _listed([each[kind] for kind in kinds for each in wildcards if kind in each]),
            f"{len(runs)} run{'s' * (len(runs) > 1)}" if runs else "",
            f"{len(jobs)} job{'s' * (len(jobs) > 1)} of {_listed([job.rule_name for job in jobs])}",
        ]
        lines.append(f"  {cause or 'new'} ({', '.join(filter(None, affected))})")
    return lines


def _changes(change: str) -> list[str]:
    """Return the changed files and the differences of the other params, before and now."""
    before, now = _sides(change)
    parts = [
        {p for value in side if _is_files(value) for p in value.split(", ")}
        for side in (before, now)
    ]
    files = sorted({part.split()[0] for part in parts[0] ^ parts[1]})
    old, new = ([_parse(value) for value in side if not _is_files(value)] for side in (before, now))
    causes = list(dict.fromkeys(_differences_of_params(old, new)))
    # A display's other params follow from its models.
    causes = [cause for cause in causes if cause.startswith("models ")] or causes
    more = [f"{len(causes) - _SHOWN} more"] if len(causes) > _SHOWN else []
    return [*([f"changed {_listed(files)}"] if files else []), *causes[:_SHOWN], *more]


def _is_files(value: Any) -> bool:
    return isinstance(value, str) and all(map(_FILE.fullmatch, value.split(", ")))


def _sides(change: str) -> tuple[list[Any], list[Any]]:
    """Return the params before and now, given Snakemake's list of their representations."""
    for match in re.finditer(" now: ", change):
        with suppress(ValueError, SyntaxError):
            return _values(change[: match.start()]), _values(change[match.end() :])
    before, _, now = change.partition(" now: ")
    return [before.strip()], [now.strip()]


def _values(side: str) -> list[Any]:
    return [] if side.strip() == "<nothing exclusive>" else list(literal_eval(f"[{side}]"))


def _parse(value: Any) -> Any:
    """Return the content of a param that is JSON; other params unchanged."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with suppress(ValueError):
            return json.loads(value)
    return value


def _differences_of_params(old: list[Any], new: list[Any]) -> Iterator[str]:
    """Yield how params differ; each new object is compared with the most similar old one."""
    for value in new:
        same = [one for one in old if isinstance(one, Mapping) == isinstance(value, Mapping)]
        if not same:
            yield f"+ {_short(value)}"
            continue
        one = same[0]
        if isinstance(value, Mapping):
            one = max(same, key=lambda each: sum(each.get(k) == v for k, v in value.items()))
        old.remove(one)
        yield from _differences(one, value)
    yield from (f"- {_short(value)}" for value in old)


def _differences(old: Any, new: Any, name: str = "") -> Iterator[str]:
    """Yield how two JSON values differ, each difference with the place below `name`."""
    old, new = _parse(old), _parse(new)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
        if any("/" in key for key in changed):
            yield from _differences_of_lists(list(old), list(new), name)
            return
        for key in changed:
            place = f"{name}.{key}" if name else key
            if key not in new:
                yield f"{place} removed"
            elif key not in old:
                yield f"{place} {_short(new[key])} (new)"
            else:
                yield from _differences(old[key], new[key], place.removeprefix("settings."))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _differences_of_lists(old, new, name)
    elif all(isinstance(side, str) and _DIGEST.fullmatch(side) for side in (old, new)):
        yield f"{name} changed"
    else:
        yield f"{name} {_short(old)} → {_short(new)}".strip()


def _differences_of_lists(old: list[Any], new: list[Any], name: str) -> Iterator[str]:
    names = [[_name(item) for item in side] for side in (old, new)]
    added = [each for each in names[1] if each not in names[0]]
    removed = [each for each in names[0] if each not in names[1]]
    if added or removed:
        signs = (("+", added), ("-", removed))
        yield name + "".join(f" {sign} {_listed(each)}" for sign, each in signs if each)
    elif names[0] == names[1] and any(isinstance(item, Mapping) for item in old):
        for one, other, each in zip(old, new, names[0], strict=True):
            if one != other:
                yield from _differences(one, other, f"{name}.{each}")
    elif sorted(names[0]) == sorted(names[1]) and old != new:
        yield f"{name} in another order"
    else:
        yield f"{name} changed"


def _name(item: Any) -> str:
    """Return the name of an item of a list."""
    if isinstance(item, Mapping) and "name" in item:
        return str(item["name"])
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def _listed(several: list[str]) -> str:
    # Snakemake's order of jobs differs between runs.
    names = sorted(set(several))
    if len(names) > 1 and all("/" in name for name in names):
        return f"{len(names)} files"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(_short, names[:_SHOWN])) + more


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return textwrap.shorten(text, 60, placeholder="…") or "''"
