"""Preloaded module for the processes of `llm_cases.start`, with all imports that they need."""

import gc
from importlib import import_module

for module in (
    *("pytest", "pieline.llm.archive", "pieline.llm.client", "pieline.llm.asking"),
    *("uvicorn", "pieline.llm.transport"),
    # litellm imports this on the first request.
    *("openai.resources", "litellm.litellm_core_utils.default_encoding"),
    "litellm.proxy.openai_files_endpoints.common_utils",
):
    import_module(module)
# Otherwise garbage collection in each child would copy all memory pages.
gc.freeze()
