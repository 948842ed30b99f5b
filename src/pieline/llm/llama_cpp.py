"""Serve a GGUF file with llama.cpp: `llama_cpp.py PARAMETERS`, with the parameters as JSON.

On a CPU, the same question always gets a byte-identical answer, regardless of the order of the
questions and the number of concurrent questions. For this, the prompt cache is disabled: with the
cache, 5 to 7 of 10 answers changed with the order, because a partially cached prompt is computed in
different batches. The number of threads is fixed, and so is the seed for questions that send no
seed. In our measurements, four slots instead of one changed no answer.
"""

import json
import signal
import socket
import sys

SEED = 0
"""Sampling seed for questions that send no seed."""


def main() -> None:
    """Serve the GGUF file until the process is terminated."""
    import xllamacpp

    options = json.loads(sys.argv[1])
    # Fails with a clear message if the port is taken, which llama.cpp does not report.
    socket.create_server(("127.0.0.1", options["port"])).close()
    parameters = xllamacpp.CommonParams()
    parameters.model.path = options["weights"]
    parameters.model_alias = {options["name"]}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = options["port"]
    parameters.n_parallel = options["slots"]
    parameters.n_ctx = options["context_length"] * options["slots"]
    if options["chat_template"]:
        parameters.chat_template = options["chat_template"]
    # The same question must get the same answer (see the module).
    parameters.cache_prompt = False
    parameters.cache_ram_mib = 0
    parameters.n_ctx_checkpoints = 0
    parameters.sampling.seed = SEED
    parameters.cpuparams.n_threads = options["threads"]
    parameters.cpuparams_batch.n_threads = options["threads"]
    parameters.n_threads_http = options["slots"] + 1
    # Use only the CPU, and serve only the API.
    parameters.n_gpu_layers = 0
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.verbosity = 0
    server = xllamacpp.Server(parameters)
    print(f"serving at {server.listening_address}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
