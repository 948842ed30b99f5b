"""A plan of jobs: what a dry run of Snakemake says, and how long it takes on so many GPUs."""

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pieline.core.errors import UserError

_RULE = re.compile(r"^ *(?:local)?(?:rule|checkpoint) (\w+):$")
_FIELD = re.compile(r"^ +(input|output|jobid|wildcards|resources): (.*)$")
_NO_JOBS = {"all"}
"""Rules that do nothing."""


class PlannedJob(NamedTuple):
    """A job of a dry run.

    Attributes:
        name: its number.
        rule: its rule.
        wildcards: by name.
        gpus: that it asks for.
        needs: names of the jobs that make its inputs.
    """

    name: str
    rule: str
    wildcards: Mapping[str, str]
    gpus: int
    needs: tuple[str, ...]


class Job(NamedTuple):
    """A job to schedule.

    Attributes:
        name: of the job.
        seconds: that it takes.
        pool: what it holds while it runs: `gpu`, `cpu`, or a provider of language models.
        units: how many of the pool; where the pool is smaller, all of it.
        needs: names of the jobs that must have ended.
    """

    name: str
    seconds: float
    pool: str = "cpu"
    units: int = 1
    needs: tuple[str, ...] = ()


class Schedule(NamedTuple):
    """How long a plan takes.

    Attributes:
        seconds: of the list schedule, which starts what the longest chain of jobs hangs on first.
        critical: seconds of the longest chain: no number of machines is faster.
        chain: names of the jobs of this chain, the first one first.
    """

    seconds: float
    critical: float
    chain: tuple[str, ...]


def read_plan(lines: Iterable[str]) -> list[PlannedJob]:
    """The jobs of a dry run (`snakemake -n`), each with those that make its inputs.

    They are sorted: Snakemake lists them in an order that depends on where it runs.

    Raises:
        UserError: there is no job in it.
    """
    told: list[dict[str, str]] = []
    for line in lines:
        if rule := _RULE.match(line.rstrip()):
            told.append({"rule": rule[1]})
        elif told and (field := _FIELD.match(line.rstrip())):
            told[-1].setdefault(field[1], field[2])
    jobs = sorted(
        (each for each in told if each["rule"] not in _NO_JOBS),
        key=lambda job: (job["rule"], job.get("wildcards", ""), job.get("output", "")),
    )
    if not jobs:
        raise UserError("no job in it", where="the plan", mend="pipe `snakemake -n -F all` into it")
    maker = {path: job["jobid"] for job in jobs for path in _listed(job.get("output"))}
    return [
        PlannedJob(
            name=job["jobid"],
            rule=job["rule"],
            wildcards=_pairs(job.get("wildcards")),
            gpus=int(_pairs(job.get("resources")).get("gpu", "0")),
            needs=tuple(
                dict.fromkeys(maker[path] for path in _listed(job.get("input")) if path in maker)
            ),
        )
        for job in jobs
    ]


def _listed(text: str | None) -> list[str]:
    return text.split(", ") if text else []


def _pairs(text: str | None) -> dict[str, str]:
    return dict(part.split("=", maxsplit=1) for part in _listed(text) if "=" in part)


def schedule(jobs: Sequence[Job], pools: Mapping[str, int]) -> Schedule:
    """List scheduling: whenever something is free, the ready job with the longest rest starts.

    Args:
        jobs: of the plan, in any order.
        pools: how many jobs hold a pool at once; one that is not named has room for one.

    Raises:
        UserError: jobs wait for each other, or for one that is not there.
    """
    by_name = {job.name: job for job in jobs}
    ordered = _in_order(by_name)
    after: dict[str, list[str]] = {name: [] for name in by_name}
    for job in jobs:
        for needed in job.needs:
            after[needed].append(job.name)
    rest: dict[str, float] = {}
    for name in reversed(ordered):
        rest[name] = by_name[name].seconds + max((rest[each] for each in after[name]), default=0)

    free = {job.pool: pools.get(job.pool, 1) for job in jobs}
    units = {job.name: min(job.units, pools.get(job.pool, 1)) for job in jobs}
    waiting_for = {job.name: len(set(job.needs)) for job in jobs}
    # Of equally urgent jobs the first one in the order, so that the schedule is always the same.
    place = {name: number for number, name in enumerate(ordered)}
    ready: dict[str, list[tuple[float, int, str]]] = {pool: [] for pool in free}
    running: list[tuple[float, int, str]] = []

    def make_ready(name: str) -> None:
        heapq.heappush(ready[by_name[name].pool], (-rest[name], place[name], name))

    for name in ordered:
        if not waiting_for[name]:
            make_ready(name)
    now = 0.0
    while running or any(ready.values()):
        for pool, queue in ready.items():
            while queue and units[queue[0][2]] <= free[pool]:
                *_, name = heapq.heappop(queue)
                free[pool] -= units[name]
                heapq.heappush(running, (now + by_name[name].seconds, place[name], name))
        now, _, ended = heapq.heappop(running)
        free[by_name[ended].pool] += units[ended]
        for name in dict.fromkeys(after[ended]):
            waiting_for[name] -= 1
            if not waiting_for[name]:
                make_ready(name)
    chain: list[str] = []
    following = ordered
    while following:
        chain.append(max(following, key=lambda name: (rest[name], -place[name])))
        following = after[chain[-1]]
    return Schedule(now, max(rest.values(), default=0.0), tuple(chain))


def _in_order(jobs: Mapping[str, Job]) -> list[str]:
    """Every job behind those that it needs."""
    ordered: dict[str, None] = {}
    left = dict(jobs)
    while left:
        found = [name for name, job in left.items() if all(each in ordered for each in job.needs)]
        if not found:
            name, job = next(iter(left.items()))
            raise UserError(
                f"job {name} waits for {', '.join(job.needs)}, which never ends",
                where="the plan",
                mend="name all jobs, and no circle of them",
            )
        ordered |= dict.fromkeys(found)
        for name in found:
            del left[name]
    return list(ordered)
