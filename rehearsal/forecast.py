"""What the real run of a configuration will take: money, GPU-hours, bytes and jobs.

Everything here is an estimate from sizes; nothing is measured. `ASSUMED` has the formulas, which
the page shows with the numbers of `Assumptions`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pieline.core.errors import UserError
from pieline.core.records import Frozen, load_jsonl
from pieline.llm.costs import BYTES_PER_TOKEN
from pieline.llm.estimates import TaskEstimate
from pieline.models.entries import ModelEntry
from pieline.models.fetching import estimated_bytes
from pieline.models.hub import on_hub
from pieline.models.llm import LLMEntry
from pieline.models.registry import AnyEntry, Registry
from pieline.models.sizing import parameter_count
from pieline.studies.idiolink.datasets.tuples import HARD_NEGATIVES, SOFT_NEGATIVES
from pieline.studies.idiolink.predictions.query_texts import INSTRUCTION
from pieline.studies.idiolink.records import QUERY_MODES, Document, PieText, Query

_RULE = re.compile(r"^ *(?:local)?(?:rule|checkpoint) (\w+):$")
_FIELD = re.compile(r"^ +(wildcards|resources): (.*)$")
_QUERY_MODES = len(QUERY_MODES)


class Assumptions(Frozen):
    """What the estimates rest on; a card of another kind changes the first four.

    Attributes:
        gpu: the card.
        float32_flops: its peak in float32, operations per second.
        bfloat16_flops: the same in bfloat16 and float16.
        memory_bandwidth: bytes per second that it reads of its memory.
        efficiency: share of peak and bandwidth that is reached.
        load_bandwidth: bytes per second at which weights are loaded from disk.
        start_seconds: until a job with torch begins to compute.
        tokens_per_word: of ID10M's words, which are counted instead of their bytes.
        run_line_bytes: of a ranked document in a gzipped run, as measured on stand-ins.
    """

    gpu: str = "NVIDIA A100, 80 GB"
    float32_flops: float = 19.5e12
    bfloat16_flops: float = 312e12
    memory_bandwidth: float = 2.0e12
    efficiency: float = 0.3
    load_bandwidth: float = 1e9
    start_seconds: float = 60
    tokens_per_word: float = 1.5
    run_line_bytes: float = 6


ASSUMED = (
    "computing = 2 (training: 6) * parameters * tokens / (peak * efficiency)",
    "writing = bytes of weights * tokens / (memory bandwidth * efficiency * answers at once)",
    "every job with a model = its start + bytes of weights / load bandwidth + the above",
    f"tokens = UTF-8 bytes / {BYTES_PER_TOKEN}; of ID10M words * tokens per word",
    f"a training = epochs * (tuples * (query + {1 + SOFT_NEGATIVES + HARD_NEGATIVES} documents),"
    " with the way back, + validation), all epochs, in float32",
    f"vectors = (documents + {_QUERY_MODES} * queries) * dimension * 4 bytes; trained weights = 4 *"
    " parameters",
)
"""The formulas, for the page."""

_DIMENSIONS = {50e6: 384, 400e6: 768, 1e9: 1024, 3e9: 2048, 5e9: 2560, float("inf"): 4096}
"""Length of the vectors of models with fewer parameters than this."""


class PlannedJob(NamedTuple):
    """A job of a dry run: its rule, its wildcards by name, and the GPUs that it asks for."""

    rule: str
    wildcards: Mapping[str, str]
    gpus: int = 0

    @property
    def model(self) -> str:
        """Name in models.yaml of its model; of a fine-tuned one that of its base."""
        return self.wildcards.get("model", "").partition("+")[0]


def read_plan(lines: Iterable[str]) -> list[PlannedJob]:
    """The jobs of a dry run (`snakemake -n`), sorted.

    Raises:
        UserError: there is no job in it.
    """
    jobs: list[dict[str, str]] = []
    for line in lines:
        if rule := _RULE.match(line.rstrip()):
            jobs.append({"rule": rule[1]})
        elif jobs and (field := _FIELD.match(line.rstrip())):
            jobs[-1].setdefault(field[1], field[2])

    def pairs(text: str) -> dict[str, str]:
        return dict(part.split("=", maxsplit=1) for part in text.split(", ") if "=" in part)

    found = [
        PlannedJob(
            job["rule"],
            pairs(job.get("wildcards", "")),
            int(pairs(job.get("resources", "")).get("gpu", "0")),
        )
        for job in jobs
        if job["rule"] != "all"
    ]
    if not found:
        raise UserError("no job in it", where="the plan", mend="pipe `snakemake -n -F all` into it")
    return sorted(found, key=lambda job: (job.rule, sorted(job.wildcards.items())))


class Texts(NamedTuple):
    """How much there is to read.

    Attributes:
        documents: number and tokens of IdioLink's documents, by split.
        queries: the same of its queries without instruction.
        words: words of ID10M's training split, its dev split and the sentences of ID10M-JAM, by
            language.
    """

    documents: Mapping[str, tuple[int, float]]
    queries: Mapping[str, tuple[int, float]]
    words: Mapping[str, tuple[int, int, int]]

    @classmethod
    def of(cls, datasets: Path) -> "Texts":
        """Count the datasets of a run; those that are missing count nothing."""

        def read(name: str, record: type[PieText]) -> dict[str, tuple[int, float]]:
            found = {}
            for path in sorted(datasets.glob(f"idiolink/*/{name}.jsonl")):
                texts = load_jsonl(path, record)
                found[path.parent.name] = len(texts), sum(tokens(text.sentence) for text in texts)
            return found

        def lines(path: Path) -> int:
            return sum(bool(line) for line in path.read_text("utf-8").split("\n"))

        def words(path: Path) -> int:
            return len(path.read_text("utf-8").split()) if path.is_file() else 0

        return cls(
            read("documents", Document),
            read("queries", Query),
            {
                # ID10M has a word per line.
                folder.name: (
                    lines(folder / "train.tsv"),
                    lines(folder / "dev.tsv"),
                    words(datasets / "jam" / f"{folder.name}.jsonl"),
                )
                for folder in sorted(datasets.glob("jam_tagging/*"))
            },
        )


def tokens(text: str) -> float:
    """About how many tokens a text has."""
    return len(text.encode("utf-8")) / BYTES_PER_TOKEN


@dataclass(frozen=True)
class Forecaster:
    """Estimates what the jobs of a plan take.

    Attributes:
        registry: the models.
        texts: what there is to read.
        estimates: what language models are asked.
        kinds: kind of task by the rule that asks.
        epochs: of a training of an embedder, and of a tagger.
        top_k: documents kept for each query.
        assumptions: what the estimates rest on.
    """

    registry: Registry
    texts: Texts
    estimates: Sequence[TaskEstimate]
    kinds: Mapping[str, str]
    epochs: tuple[int, int]
    top_k: int
    assumptions: Assumptions = field(default_factory=Assumptions)

    def forecast(
        self, plan: Sequence[PlannedJob], models: Mapping[str, ModelEntry]
    ) -> dict[str, Any]:
        """Everything together, as JSON.

        Args:
            plan: all jobs of the run.
            models: those that the run needs, by name.
        """
        asked = [
            {
                "model": found.model,
                "kind": found.kind,
                "questions": found.estimate.to_ask,
                "input_tokens": found.estimate.input_tokens,
                "output_tokens": found.estimate.likely_output_tokens,
                "likely_usd": found.estimate.likely_usd,
                "usd": found.estimate.usd,
                "all_known": not found.unknown,
            }
            for found in self.estimates
        ]
        downloads = downloads_of(models)
        weights = sum(each["size"] or 0 for each in downloads)
        return {
            "assumptions": self.assumptions.model_dump(),
            "asked": asked,
            "likely_usd": sum(found.estimate.likely_usd or 0.0 for found in self.estimates),
            "usd": sum(found.estimate.usd or 0.0 for found in self.estimates),
            "gpu": self.gpu_hours(plan),
            "downloads": downloads,
            "disk": {"weights of the hub": weights} | self.disk(plan),
            "jobs": dict(sorted(Counter(job.rule for job in plan).items())),
        }

    def gpu_hours(self, plan: Sequence[PlannedJob]) -> list[dict[str, Any]]:
        """Jobs with a GPU and their hours, by model; of a fine-tuned model those of its base."""
        served = Counter(self._asked(job) for job in plan if job.rule == "serve")
        hours: dict[str, list[float]] = defaultdict(list)
        for job in plan:
            if job.gpus:
                seconds = self.seconds(job) / (served.get(self._asked(job)) or 1)
                hours[job.model].append(job.gpus * (seconds + self._loading(job)) / 3600)
        return [
            {"model": model, "jobs": len(each), "hours": sum(each)}
            for model, each in sorted(hours.items())
        ]

    def seconds(self, job: PlannedJob) -> float:
        """How long a job computes or writes on its GPU."""
        entry, assumed = self.registry[job.model], self.assumptions
        if isinstance(entry, LLMEntry):
            found = [
                each.estimate
                for each in self.estimates
                if (each.kind, each.model) == self._asked(job)
            ]
            written = sum(each.likely_output_tokens for each in found)
            speed = assumed.memory_bandwidth * assumed.efficiency * (entry.slots or 1)
            reading = self._passing(entry, sum(each.input_tokens for each in found))
            return reading + (estimated_bytes(entry) or 0) * written / speed
        read, learnt = self._tokens(job)
        return self._passing(entry, read, learnt)

    def _asked(self, job: PlannedJob) -> tuple[str, str]:
        return self.kinds.get(job.wildcards.get("asking", ""), ""), job.model

    def _loading(self, job: PlannedJob) -> float:
        weights = estimated_bytes(self.registry[job.model]) or 0
        return self.assumptions.start_seconds + weights / self.assumptions.load_bandwidth

    def _passing(self, entry: AnyEntry, read: float, learnt: float = 0.0) -> float:
        """Seconds of passing tokens through a model, of which some are learnt from."""
        dtype = "float32" if learnt else getattr(entry, "dtype", None) or "bfloat16"
        assumed = self.assumptions
        peak = assumed.float32_flops if dtype == "float32" else assumed.bfloat16_flops
        return _parameters(entry) * (2 * read + 6 * learnt) / (peak * assumed.efficiency)

    def _tokens(self, job: PlannedJob) -> tuple[float, float]:
        """Tokens that a job only reads, and those that it learns from."""
        documents, queries = self.texts.documents, self.texts.queries
        if job.rule == "embed":
            # Queries by sentence and by span, without and with the instruction.
            count, plain = queries[job.wildcards["split"]]
            read = _QUERY_MODES * plain + 2 * count * tokens(INSTRUCTION)
            return documents[job.wildcards["split"]][1] + read, 0.0
        if job.rule == "fine_tune":
            instruction = tokens(INSTRUCTION) * job.wildcards["train_mode"].startswith("instr")
            count, plain = queries["train"]
            each = (1 + SOFT_NEGATIVES + HARD_NEGATIVES) * documents["train"][1]
            learnt = plain + count * (instruction + each / documents["train"][0])
            checked = documents["val"][1] + queries["val"][1] + queries["val"][0] * instruction
            return self.epochs[0] * checked, self.epochs[0] * learnt
        train, dev, sentences = self.texts.words[job.wildcards["language"]]
        each = self.assumptions.tokens_per_word
        if job.rule == "fine_tune_tagger":
            return self.epochs[1] * each * dev, self.epochs[1] * each * train
        return each * sentences, 0.0

    def disk(self, plan: Iterable[PlannedJob]) -> dict[str, int]:
        """Bytes of vectors, trained weights and runs that a plan's jobs write."""
        disk = dict.fromkeys(("vectors", "trained weights", "runs"), 0)
        for job in plan:
            if job.rule in {"fine_tune", "fine_tune_tagger"}:
                disk["trained weights"] += 4 * _parameters(self.registry[job.model])
            elif job.rule == "embed":
                split = job.wildcards["split"]
                count = _QUERY_MODES * self.texts.queries[split][0] + self.texts.documents[split][0]
                disk["vectors"] += 4 * count * dimension(_parameters(self.registry[job.model]))
            elif job.rule in {"rank_by_embedding", "bm25_search"}:
                queries = self.texts.queries[job.wildcards["index"].split("-")[0]][0]
                modes = _QUERY_MODES if job.rule == "rank_by_embedding" else 1
                lines = modes * queries * self.top_k
                disk["runs"] += round(lines * self.assumptions.run_line_bytes)
        return disk


def dimension(parameters: int) -> int:
    """About how long the vectors of an embedder are, rather too long than too short."""
    return next(length for bound, length in _DIMENSIONS.items() if parameters < bound)


def downloads_of(models: Mapping[str, ModelEntry]) -> list[dict[str, Any]]:
    """The checkpoints on the hub, each once; sizes from parameters and dtype, not from the hub."""
    users: dict[str, list[str]] = defaultdict(list)
    for name, entry in models.items():
        if weights := on_hub(entry):
            users[weights.repository].append(name)
    return [
        {"repository": place, "models": names, "size": estimated_bytes(models[names[0]])}
        for place, names in sorted(users.items())
    ]


def _parameters(entry: ModelEntry) -> int:
    """Number of parameters; zero where the entry does not state it."""
    return parameter_count(entry.parameters) if entry.parameters else 0
