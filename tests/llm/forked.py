"""What the processes of `llm_cases.start` are forked from: all is imported that they need."""

import gc
from importlib import import_module

for module in (
    *("pytest", "pieline.llm.archive", "pieline.llm.client", "pieline.llm.asking"),
    *("rehearsal.providers", "rehearsal.reconcile", "pieline.llm.transport"),
    # What litellm imports when it is first asked.
    *("openai.resources", "litellm.litellm_core_utils.default_encoding"),
    "litellm.proxy.openai_files_endpoints.common_utils",
):
    import_module(module)
# Or each child would look through all of it, and so copy it.
gc.freeze()
