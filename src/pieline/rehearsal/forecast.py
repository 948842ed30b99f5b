"""What the real run of a configuration will take: money, GPU-hours, bytes, jobs and wall time.

Everything here is an estimate from sizes; nothing is measured. The formulas are in `ASSUMED`, which
the page shows, with the numbers of `Assumptions` in them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pieline.core.records import Frozen, load_jsonl
from pieline.llm.costs import BYTES_PER_TOKEN
from pieline.llm.estimates import TaskEstimate
from pieline.llm.settings import LLMSettings
from pieline.models.entries import ModelEntry
from pieline.models.fetching import estimated_bytes
from pieline.models.hub import on_hub
from pieline.models.registry import Registry
from pieline.models.sizing import parameter_count
from pieline.rehearsal.plan import Job, PlannedJob, schedule
from pieline.studies.idiolink.datasets.tuples import HARD_NEGATIVES, SOFT_NEGATIVES
from pieline.studies.idiolink.predictions.query_texts import INSTRUCTION
from pieline.studies.idiolink.records import Document, PieText, Query

T = TypeVar("T", bound=PieText)
GPUS = (1, 4, 16)
"""For so many the wall time is told."""


class Assumptions(Frozen):
    """What the estimates rest on; a card of another kind changes the first four.

    Attributes:
        gpu: the card.
        float32_flops: its peak in float32, operations a second.
        bfloat16_flops: the same in bfloat16 and float16.
        memory_bandwidth: bytes a second that it reads of its memory.
        efficiency: of peak and bandwidth, the share that is reached.
        cpu_flops: operations a second that eight cores reach; for models that ask for no GPU.
        load_bandwidth: bytes a second at which weights are loaded from disk.
        start_seconds: until a job with torch begins to compute.
        cpu_job_seconds: what every other job takes.
        cpus: such jobs that run at once.
        answer_seconds: until a provider begins to answer.
        answer_tokens: that a provider writes a second, for each question under way.
        tokens_per_word: of ID10M's words, which are counted instead of their bytes.
        run_line_bytes: of a ranked document in a gzipped run, as measured on stand-ins.
    """

    gpu: str = "NVIDIA A100, 80 GB"
    float32_flops: float = 19.5e12
    bfloat16_flops: float = 312e12
    memory_bandwidth: float = 2.0e12
    efficiency: float = 0.3
    cpu_flops: float = 0.2e12
    load_bandwidth: float = 1e9
    start_seconds: float = 60
    cpu_job_seconds: float = 10
    cpus: int = 16
    answer_seconds: float = 1
    answer_tokens: float = 60
    tokens_per_word: float = 1.5
    run_line_bytes: float = 6

    def compute_seconds(
        self,
        parameters: int,
        tokens: float,
        *,
        dtype: str,
        training: bool = False,
        gpu: bool = True,
    ) -> float:
        """Of a pass through a model: 2 operations a parameter and token, 6 with the way back."""
        peak = self.float32_flops if dtype == "float32" else self.bfloat16_flops
        speed = peak * self.efficiency if gpu else self.cpu_flops
        return (6 if training else 2) * parameters * tokens / speed

    def writing_seconds(self, weights: int, tokens: float, at_once: int) -> float:
        """Of writing: each token of all answers under way takes one reading of the weights."""
        return weights * tokens / (self.memory_bandwidth * self.efficiency * at_once)

    def loading_seconds(self, weights: int) -> float:
        """Until a job has its model."""
        return self.start_seconds + weights / self.load_bandwidth


ASSUMPTIONS = Assumptions()
ASSUMED = (
    "computing = 2 (training: 6) * parameters * tokens / (peak * efficiency)",
    "writing = bytes of weights * tokens / (memory bandwidth * efficiency * answers at once)",
    "every job with a model = its start + bytes of weights / load bandwidth + the above",
    f"tokens = UTF-8 bytes / {BYTES_PER_TOKEN}; of ID10M words * tokens per word",
    f"a training = epochs * (tuples * (query + {1 + SOFT_NEGATIVES + HARD_NEGATIVES} documents),"
    " with the way back, + validation), all epochs, in float32",
    "a provider's answer = its start + likely output tokens / tokens a second; so many at once as"
    " llm.providers allows, one job of a provider at a time",
    "vectors = (documents + 4 * queries) * dimension * 4 bytes; trained weights = 4 * parameters",
)
"""The formulas, for the page."""

_SPLITS = {"train", "val", "test"}
_DIMENSIONS = {50e6: 384, 400e6: 768, 1e9: 1024, 3e9: 2048, 5e9: 2560}
"""Of the vectors of models of fewer parameters; of larger ones `_LARGEST`."""
_LARGEST = 4096


def dimension(parameters: int) -> int:
    """About how long the vectors of an embedder are, rather too long than too short."""
    fitting = (length for bound, length in _DIMENSIONS.items() if parameters < bound)
    return next(fitting, _LARGEST)


@dataclass(frozen=True)
class Texts:
    """How much there is to read, in texts and tokens.

    Attributes:
        documents: of IdioLink's splits: number and tokens.
        queries: the same, of a query without instruction.
        words: of ID10M-JAM's languages: words of the training split, its dev split, and the
            sentences to tag.
    """

    documents: Mapping[str, tuple[int, float]]
    queries: Mapping[str, tuple[int, float]]
    words: Mapping[str, tuple[int, int, int]]

    @classmethod
    def of(cls, datasets: Path) -> "Texts":
        """Count the datasets of a run; of those that are not there nothing is to be read."""
        splits = sorted(path for path in datasets.glob("idiolink/*") if path.name in _SPLITS)
        return cls(
            documents={each.name: _read(each / "documents.jsonl", Document) for each in splits},
            queries={each.name: _read(each / "queries.jsonl", Query) for each in splits},
            words={
                folder.name: (
                    _lines(folder / "train.tsv"),
                    _lines(folder / "dev.tsv"),
                    _words(datasets / "jam" / f"{folder.name}.jsonl"),
                )
                for folder in sorted(datasets.glob("jam_tagging/*"))
            },
        )


def tokens(text: str) -> float:
    """About how many tokens a text has."""
    return len(text.encode("utf-8")) / BYTES_PER_TOKEN


def _read(path: Path, record: type[T]) -> tuple[int, float]:
    """Number and tokens of IdioLink's texts."""
    found = load_jsonl(path, record)
    return len(found), sum(tokens(text.sentence) for text in found)


def _lines(path: Path) -> int:
    with path.open(encoding="utf-8") as stream:
        return sum(line != "\n" for line in stream)


def _words(path: Path) -> int:
    return len(path.read_text("utf-8").split()) if path.is_file() else 0


class ModelEstimate(Frozen):
    """What one model is asked, as `estimate_cost` tells it; dollars are null where unknown."""

    model: str
    kind: str
    questions: int
    input_tokens: int
    output_tokens: int
    likely_usd: float | None
    usd: float | None
    all_known: bool


class GpuHours(Frozen):
    """Jobs of one model that hold a GPU, and the hours that they hold it."""

    model: str
    jobs: int
    hours: float


class Download(Frozen):
    """A checkpoint on the hub, and about how many bytes; null where its entry tells no size."""

    repository: str
    models: list[str]
    size: int | None


class Submissions(Frozen):
    """Jobs and what a cluster is sent for them, by place (`tools/count_submissions.py`)."""

    place: str
    jobs: int
    submissions: int


class WallTime(Frozen):
    """Hours on so many GPUs."""

    gpus: int
    hours: float


class Forecast(Frozen):
    """What the real run will take.

    Attributes:
        assumptions: numbers behind the estimates.
        asked: by model and kind of task.
        likely_usd: sum of what is known.
        usd: the same, at most.
        gpu: by model.
        downloads: from the hub.
        disk: bytes by what they are.
        submissions: on a cluster; none if nobody counted them.
        jobs: of the plan, by rule.
        busy: hours of all jobs that hold a GPU (`gpu`), a CPU (`cpu`) or a provider's turn.
        wall: by number of GPUs.
        critical_hours: of the longest chain of jobs.
        critical: its rules and models, the first one first.
    """

    assumptions: Assumptions
    asked: list[ModelEstimate]
    likely_usd: float
    usd: float
    gpu: list[GpuHours]
    downloads: list[Download]
    disk: dict[str, int]
    submissions: list[Submissions]
    jobs: dict[str, int]
    busy: dict[str, float]
    wall: list[WallTime]
    critical_hours: float
    critical: list[str]

    def gpu_hours(self) -> float:
        """Of all models together."""
        return sum(each.hours for each in self.gpu)

    def download_bytes(self) -> int:
        """Of all checkpoints whose size is known."""
        return sum(each.size or 0 for each in self.downloads)


@dataclass(frozen=True)
class Estimator:
    """How long the jobs of a plan take.

    Attributes:
        registry: the models.
        texts: what there is to read.
        estimates: what language models are asked.
        kinds: kind of task by the rule that asks.
        settings: how language models may be asked.
        epochs: of a training of an embedder, and of a tagger.
        assumptions: what the estimates rest on.
    """

    registry: Registry
    texts: Texts
    estimates: Sequence[TaskEstimate]
    kinds: Mapping[str, str]
    settings: LLMSettings
    epochs: tuple[int, int]
    assumptions: Assumptions = ASSUMPTIONS

    def jobs(self, plan: Sequence[PlannedJob]) -> list[Job]:
        """The jobs with how long they take and what they hold meanwhile."""
        alike = Counter(self._asking(job) for job in plan)
        return [self._job(job, alike[self._asking(job)]) for job in plan]

    def _asking(self, job: PlannedJob) -> tuple[str, str]:
        """Kind of task and model of a job that asks a provider or a server of its own."""
        rule = job.wildcards.get("asking", "") if job.rule == "serve" else job.rule
        return self.kinds.get(rule, ""), job.wildcards.get("model", "")

    def _job(self, job: PlannedJob, alike: int) -> Job:
        model = job.wildcards.get("model", "")
        if compute := _COMPUTES.get(job.rule):
            seconds = compute(self, job, self.registry[model.split("+")[0]])
            return Job(job.name, seconds, "gpu" if job.gpus else "cpu", max(job.gpus, 1), job.needs)
        kind, _ = self._asking(job)
        found = [each for each in self.estimates if (each.kind, each.model) == (kind, model)]
        if not found:
            return Job(job.name, self.assumptions.cpu_job_seconds, needs=job.needs)
        seconds = sum(map(self._asking_seconds, found)) / alike
        entry = found[0].entry
        if entry.is_local:
            seconds += self.assumptions.loading_seconds(estimated_bytes(entry) or 0)
            return Job(job.name, seconds, "gpu" if job.gpus else "cpu", max(job.gpus, 1), job.needs)
        return Job(job.name, seconds, entry.provider, needs=job.needs)

    def _asking_seconds(self, found: TaskEstimate) -> float:
        """Of all answers of one model to one kind of task."""
        assumed, entry, cost = self.assumptions, found.entry, found.estimate
        written = cost.likely_output_tokens
        if not entry.is_local:
            at_once = self.settings.limits(entry.provider).concurrency
            return (
                cost.to_ask * assumed.answer_seconds + written / assumed.answer_tokens
            ) / at_once
        reading = assumed.compute_seconds(
            _parameters(entry), cost.input_tokens, dtype=entry.dtype or "bfloat16"
        )
        weights = estimated_bytes(entry) or 0
        return reading + assumed.writing_seconds(weights, written, entry.slots or 1)

    def passing(
        self, job: PlannedJob, entry: ModelEntry, tokens: float, *, learnt: float = 0.0
    ) -> float:
        """Of loading a model and passing tokens through it, of which some are learnt from."""
        assumed, count = self.assumptions, _parameters(entry)
        dtype = "float32" if learnt else getattr(entry, "dtype", "float32")
        gpu = bool(job.gpus)
        return (
            assumed.loading_seconds(estimated_bytes(entry) or 0)
            + assumed.compute_seconds(count, tokens, dtype=dtype, gpu=gpu)
            + assumed.compute_seconds(count, learnt, dtype=dtype, training=True, gpu=gpu)
        )


def _embed(of: Estimator, job: PlannedJob, entry: ModelEntry) -> float:
    # Queries by sentence and by span, without and with the instruction.
    split = job.wildcards["split"]
    count, plain = of.texts.queries[split]
    queries = 4 * plain + 2 * count * tokens(INSTRUCTION)
    return of.passing(job, entry, of.texts.documents[split][1] + queries)


def _fine_tune(of: Estimator, job: PlannedJob, entry: ModelEntry) -> float:
    count, plain = of.texts.queries["train"]
    documents, of_documents = of.texts.documents["train"]
    each = (1 + SOFT_NEGATIVES + HARD_NEGATIVES) * of_documents / documents
    validated, validating = of.texts.queries["val"]
    if job.wildcards["train_mode"].startswith("instruction"):
        plain += count * tokens(INSTRUCTION)
        validating += validated * tokens(INSTRUCTION)
    epochs = of.epochs[0]
    checked = validating + of.texts.documents["val"][1]
    return of.passing(job, entry, epochs * checked, learnt=epochs * (plain + count * each))


def _fine_tune_tagger(of: Estimator, job: PlannedJob, entry: ModelEntry) -> float:
    train, dev, _ = of.texts.words[job.wildcards["language"]]
    times = of.epochs[1] * of.assumptions.tokens_per_word
    return of.passing(job, entry, times * dev, learnt=times * train)


def _read_sentences(of: Estimator, job: PlannedJob, entry: ModelEntry) -> float:
    words = of.texts.words[job.wildcards["language"]][2]
    return of.passing(job, entry, of.assumptions.tokens_per_word * words)


_COMPUTES: Mapping[str, Callable[[Estimator, PlannedJob, ModelEntry], float]] = {
    "embed": _embed,
    "fine_tune": _fine_tune,
    "fine_tune_tagger": _fine_tune_tagger,
    "tag_idioms": _read_sentences,
    "tag_neutral": _read_sentences,
    "jam_attention": _read_sentences,
}
"""How long a job takes that loads a model, by its rule."""


def forecast(
    plan: Sequence[PlannedJob],
    of: Estimator,
    *,
    models: Mapping[str, ModelEntry],
    top_k: int,
    submissions: Iterable[Submissions] = (),
) -> Forecast:
    """Put everything together.

    Args:
        plan: all jobs of the run.
        of: how long they take.
        models: those that the run needs, by name.
        top_k: documents kept for each query.
        submissions: as counted from the plan for a cluster.
    """
    jobs = of.jobs(plan)
    pools = {"cpu": of.assumptions.cpus}
    schedules = {gpus: schedule(jobs, pools | {"gpu": gpus}) for gpus in GPUS}
    planned = {job.name: job for job in plan}
    first = schedules[GPUS[0]]
    busy: dict[str, float] = defaultdict(float)
    for job in jobs:
        busy[job.pool] += job.units * job.seconds / 3600
    downloads = downloads_of(models)
    return Forecast(
        assumptions=of.assumptions,
        asked=[_asked(found) for found in of.estimates],
        likely_usd=sum(found.estimate.likely_usd or 0.0 for found in of.estimates),
        usd=sum(found.estimate.usd or 0.0 for found in of.estimates),
        gpu=_gpu_hours(jobs, planned),
        downloads=downloads,
        disk={"weights of the hub": sum(each.size or 0 for each in downloads)}
        | disk_of(plan, of, top_k=top_k),
        submissions=list(submissions),
        jobs=dict(sorted(Counter(job.rule for job in plan).items())),
        busy=dict(sorted(busy.items())),
        wall=[WallTime(gpus=gpus, hours=it.seconds / 3600) for gpus, it in schedules.items()],
        critical_hours=first.critical / 3600,
        critical=[_shown(planned[name]) for name in first.chain],
    )


def _asked(found: TaskEstimate) -> ModelEstimate:
    cost = found.estimate
    return ModelEstimate(
        model=found.model,
        kind=found.kind,
        questions=cost.to_ask,
        input_tokens=cost.input_tokens,
        output_tokens=cost.likely_output_tokens,
        likely_usd=cost.likely_usd,
        usd=cost.usd,
        all_known=not found.unknown,
    )


def _gpu_hours(jobs: Iterable[Job], planned: Mapping[str, PlannedJob]) -> list[GpuHours]:
    """By model, the fine-tuned ones with the one that they are made from."""
    found: dict[str, list[float]] = defaultdict(list)
    for job in jobs:
        if job.pool == "gpu":
            model = planned[job.name].wildcards.get("model", "").split("+")[0]
            found[model].append(job.units * job.seconds / 3600)
    return [
        GpuHours(model=model, jobs=len(hours), hours=sum(hours))
        for model, hours in sorted(found.items())
    ]


def downloads_of(models: Mapping[str, ModelEntry]) -> list[Download]:
    """The checkpoints on the hub, each once; sizes from parameters and dtype, not from the hub."""
    users: dict[str, list[str]] = defaultdict(list)
    for name, entry in models.items():
        if weights := on_hub(entry):
            users[weights.repository].append(name)
    return [
        Download(repository=place, models=names, size=estimated_bytes(models[names[0]]))
        for place, names in sorted(users.items())
    ]


def disk_of(plan: Iterable[PlannedJob], of: Estimator, *, top_k: int) -> dict[str, int]:
    """Bytes of vectors, trained weights and runs that a plan's jobs write."""
    disk = dict.fromkeys(("vectors", "trained weights", "runs"), 0)
    for job in plan:
        model = job.wildcards.get("model", "").split("+")[0]
        if job.rule in {"fine_tune", "fine_tune_tagger"}:
            disk["trained weights"] += 4 * _parameters(of.registry[model])
        elif job.rule == "embed":
            split = job.wildcards["split"]
            count = 4 * of.texts.queries[split][0] + of.texts.documents[split][0]
            disk["vectors"] += count * 4 * dimension(_parameters(of.registry[model]))
        elif job.rule in {"rank_by_embedding", "bm25_search"}:
            queries = of.texts.queries[job.wildcards["index"].split("-")[0]][0]
            modes = 4 if job.rule == "rank_by_embedding" else 1
            disk["runs"] += round(modes * queries * top_k * of.assumptions.run_line_bytes)
    return disk


def read_submissions(text: str) -> list[Submissions]:
    """What `tools/count_submissions.py` printed; its last line is the sum."""
    rows = [line.rsplit(maxsplit=2) for line in text.splitlines()]
    return [
        Submissions(
            place=place.strip(),
            jobs=int(jobs.replace(",", "")),
            submissions=int(sent.replace(",", "")),
        )
        for place, jobs, sent in (row for row in rows if len(row) == 3)
        if sent.replace(",", "").isdigit()
    ]


def _parameters(entry: ModelEntry) -> int:
    """Number of parameters; zero where the entry does not know it."""
    return parameter_count(entry.parameters) if entry.parameters else 0


def _shown(job: PlannedJob) -> str:
    """A job of the longest chain for people."""
    return " ".join([job.rule, *job.wildcards.values()])
