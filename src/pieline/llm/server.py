"""The OpenAI-compatible server of a local model: in this process, or a process of its own."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pieline.core.errors import UserError
from pieline.llm.processes import Served, serve
from pieline.models.llm import LLMEntry, name_on_the_wire
from pieline.models.weights import weights_path

LOOPBACK = "127.0.0.1"
SEED = 0
"""Seed of sampling for a question that sends none."""


class Server:
    """The server of a local model: starts when it is first needed, ends with the block.

    So several tasks can share one start, and none is started where every answer is recorded.

    Args:
        spec: the model.
        log: file for what a server process prints (default: one for temporary files, which is
            kept if the server does not start).
    """

    def __init__(self, spec: LLMEntry, log: Path | None = None) -> None:
        self._spec, self._log = spec, log
        self._stack = ExitStack()
        self._address = ""
        self._served: Served | None = None

    def __enter__(self) -> Self:
        return self

    def end(self) -> UserError | None:
        """How a server process ended by itself, which explains why it gives no answers."""
        return self._served.end() if self._served else None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        self._address = ""

    def address(self, patience_s: float, say: Callable[[str], None]) -> str:
        """Its address for litellm's `openai/...`.

        Args:
            patience_s: seconds that it may take to start.
            say: told while it starts.

        Raises:
            UserError: it does not start, or the weights are not those of the entry.
        """
        _without_proxy()
        if not self._address:
            self._address = self._start(patience_s, say)
        return self._address

    def _start(self, patience_s: float, say: Callable[[str], None]) -> str:
        if self._spec.serves_with == "llama.cpp":
            return self._stack.enter_context(llama_cpp(self._spec))
        log, is_kept = self._log, True
        if log is None:
            with tempfile.NamedTemporaryFile(prefix="pieline-", suffix=".log", delete=False) as new:
                log, is_kept = Path(new.name), False
        self._served = self._stack.enter_context(serve(self._spec, log, patience_s, say))
        if not is_kept:
            self._stack.callback(log.unlink)
        return self._served.address


@contextmanager
def llama_cpp(spec: LLMEntry) -> Iterator[str]:
    """Serve a GGUF file by llama.cpp while the block runs; gives the address, on a free port.

    The server is a thread of this process: it ends with it, even on SIGKILL.

    On a CPU the same question gives the same bytes, whatever was asked before it, in whatever order
    and how many at once. What that needs is no prompt cache: with it, 5 to 7 of 10 answers changed
    with the order, because a prompt that is half cached is computed in other batches. A fixed
    number of threads and a fixed seed for questions that send none leave nothing else to chance;
    four slots changed no answer where it was measured.

    Raises:
        UserError: the weights are not those of the entry, or there is no GPU for `gpu_layers`.
    """
    import xllamacpp

    slots = spec.slots or 1
    if spec.gpu_layers and not _has_gpu(xllamacpp.get_device_info()):
        raise UserError(
            "gpu_layers are wanted, but llama.cpp finds no GPU here, and would compute without",
            where=spec.label,
            mend="install xllamacpp for your GPU, or set gpu_layers: 0",
        )
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights_path(spec))
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = slots
    parameters.n_ctx = spec.context_length * slots
    if spec.chat_template:
        parameters.chat_template = spec.chat_template
    parameters.cache_prompt = False
    parameters.cache_ram_mib = 0
    parameters.n_ctx_checkpoints = 0
    parameters.sampling.seed = SEED
    parameters.cpuparams.n_threads = spec.threads
    parameters.cpuparams_batch.n_threads = spec.threads
    parameters.n_threads_http = slots + 1
    parameters.n_gpu_layers = spec.gpu_layers or 0
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.verbosity = 0
    parameters.model_alias = {name_on_the_wire(spec.checkpoint)}
    server = xllamacpp.Server(parameters)  # until the block ends
    yield f"{server.listening_address}/v1"


def _without_proxy() -> None:
    """Have requests to this machine go to no proxy that the environment names."""
    for name in ("no_proxy", "NO_PROXY"):
        named = os.environ.get(name, "")
        if LOOPBACK not in named.split(","):
            os.environ[name] = f"{named},{LOOPBACK}".strip(",")


def _has_gpu(devices: Iterable[Mapping[str, Any]]) -> bool:
    """Whether llama.cpp sees anything that layers can be put on."""
    return any("GPU" in str(device["type"]) for device in devices)
