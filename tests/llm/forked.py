"""What the processes of `llm_cases.start` are forked from: all is imported that they need."""

import gc

import openai.resources  # noqa: F401 - litellm does so with its first question
import pytest  # noqa: F401

import pieline.llm.archive
import pieline.llm.client
import pieline.llm.transport
import pieline.rehearsal.providers
import pieline.rehearsal.reconcile  # noqa: F401

# Or each child would look through all of it, and so copy it.
gc.freeze()
