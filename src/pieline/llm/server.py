"""A local OpenAI-compatible server for a GGUF file, which gives the same bytes every time."""

from types import TracebackType
from typing import Any, Self

from pieline.llm.weights import weights_path
from pieline.models.llm import LLMEntry

SEED = 0
"""Seed of sampling for a question that sends none."""


class LocalServer:
    """Serves a local model on a free loopback port while the block runs.

    The server is a thread of this process: it ends with it, even on SIGKILL.

    The same question gives the same bytes, whatever was asked before it, in whatever order and how
    many at once. What that needs is no prompt cache: with it, 5 to 7 of 10 answers changed with the
    order, because a prompt that is half cached is computed in other batches. One slot, a fixed
    number of threads and a fixed seed for questions that send none leave nothing else to chance
    (four slots or two threads changed no answer where it was measured).

    Attributes:
        api_base: address for litellm's `openai/...`.
    """

    def __init__(self, spec: LLMEntry) -> None:
        self._spec = spec
        self._server: Any = None
        self.api_base = ""

    def __enter__(self) -> Self:
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(weights_path(self._spec))
        parameters.hostnames = ["127.0.0.1"]
        parameters.port = 0
        parameters.n_parallel = 1
        parameters.n_ctx = self._spec.context_length
        parameters.cache_prompt = False
        parameters.cache_ram_mib = 0
        parameters.n_ctx_checkpoints = 0
        parameters.sampling.seed = SEED
        parameters.cpuparams.n_threads = self._spec.threads
        parameters.cpuparams_batch.n_threads = self._spec.threads
        parameters.n_threads_http = 2
        parameters.n_gpu_layers = 0
        parameters.ui = False
        parameters.endpoint_slots = False
        parameters.verbosity = 0
        parameters.model_alias = {self._spec.litellm_id.split("/", 1)[-1]}
        self._server = xllamacpp.Server(parameters)
        self.api_base = f"{self._server.listening_address}/v1"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server = None
