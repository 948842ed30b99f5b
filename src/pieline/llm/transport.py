"""The way of one question to its provider and back: agno's LiteLLM model class.

agno brings the provider-neutral interface; this module sees to it that nothing but the question is
sent, and keeps what agno drops (finish reason, returned model, fingerprint). Importing it loads
agno and litellm, which takes seconds: only `pieline.llm.asking` does so, when an answer is missing.
"""

import logging
import os
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pieline.core.files import canonical_json
from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.llm.retries import MalformedResponseError
from pieline.models.llm import LLMEntry

# Before the imports: no price list from the network, no telemetry, no `.env` file, and no debug
# output, which would show API keys.
os.environ.update(
    LITELLM_LOCAL_MODEL_COST_MAP="True",
    LITELLM_MODE="PRODUCTION",
    LITELLM_LOG="ERROR",
    AGNO_TELEMETRY="false",
    AGNO_DEBUG="false",
)

import litellm
from agno.agent import Agent
from agno.models.litellm import LiteLLM
from agno.models.message import Message as AgnoMessage
from agno.run.base import RunStatus
from litellm.exceptions import ContentPolicyViolationError
from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

litellm.suppress_debug_info = True
for _name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "agno", "agno-team", "agno-workflow"):
    logging.getLogger(_name).disabled = True
for _name in ("openai", "httpx", "httpcore", "aiohttp", "anthropic"):
    logging.getLogger(_name).setLevel(logging.WARNING)

FILTERED = "content_filter"


@dataclass
class _Exchange:
    """One request under way: what must be sent, and what came back."""

    question: Question
    response: Any = None
    error: Exception | None = None


_EXCHANGE: ContextVar[_Exchange] = ContextVar("exchange")


class _Seam:
    """Stands between agno and litellm: checks what is sent and keeps what comes back."""

    def __init__(self, timeout_s: float) -> None:
        # The caller's own timeout comes first; litellm's would not end a slow drip of bytes.
        self._timeout_s = timeout_s + 60

    async def acompletion(self, **request: Any) -> Any:
        exchange = _EXCHANGE.get()
        question = exchange.question
        sent = {key: value for key, value in request.items() if key not in _ADDRESS}
        asked = {**question.parameters, "messages": [turn._asdict() for turn in question.messages]}
        if sent != asked:
            exchange.error = RuntimeError("what is sent is not the question")
            raise exchange.error
        try:
            exchange.response = await litellm.acompletion(
                **request,
                timeout=self._timeout_s,
                num_retries=0,
                max_retries=0,
                drop_params=False,
            )
        except Exception as error:
            exchange.error = error
            raise
        return exchange.response


_ADDRESS = ("model", "api_key", "api_base")


class Transport:
    """Sends questions to one model.

    Args:
        spec: the model.
        api_key: its key.
        api_base: its address, null for the provider's own.
        timeout_s: seconds that the caller gives one request.
    """

    def __init__(
        self, spec: LLMEntry, *, api_key: str, api_base: str | None, timeout_s: float
    ) -> None:
        self._spec = spec
        self._address = {"api_key": api_key, "api_base": api_base}
        self._seam = _Seam(timeout_s)
        self._agents: dict[str, Agent] = {}

    async def send(self, question: Question) -> Answer:
        """Send a question once and return its answer.

        Raises:
            Exception: whatever litellm raises; `MalformedResponseError` for an answer that is none.
        """
        exchange = _Exchange(question)
        _EXCHANGE.set(exchange)
        # agno appends to the list it is given.
        turns = [AgnoMessage(role=turn.role, content=turn.content) for turn in question.messages]
        run = await self._agent(question).arun(turns)
        if exchange.error is not None:
            if _is_filtered(exchange.error):
                return Answer(key=question.key, finish_reason=FILTERED)
            raise exchange.error
        if not getattr(exchange.response, "choices", None):
            raise MalformedResponseError("the answer has no choices")
        if run.status is not RunStatus.completed:
            raise MalformedResponseError(f"agno ended with status {run.status}: {run.content}")
        return _answer(question.key, exchange.response, keep_id=not self._spec.is_local)

    async def close(self) -> None:
        """Close litellm's connections, which belong to the running event loop."""
        await close_litellm_async_clients()  # type: ignore[no-untyped-call]

    def _agent(self, question: Question) -> Agent:
        """The agent for these parameters; none of agno's own defaults is sent."""
        key = canonical_json(dict(question.parameters))
        if key not in self._agents:
            model = LiteLLM(
                id=self._spec.litellm_id,
                temperature=None,  # type: ignore[arg-type]
                top_p=None,  # type: ignore[arg-type]
                request_params=dict(question.parameters),
                append_trailing_user_message=False,
                client=self._seam,
                **self._address,  # type: ignore[arg-type]
            )
            self._agents[key] = Agent(model=model, telemetry=False, retries=0)
        return self._agents[key]


def _is_filtered(error: Exception) -> bool:
    return isinstance(error, ContentPolicyViolationError)


def _answer(key: str, response: Any, *, keep_id: bool) -> Answer:
    choice = response.choices[0]
    message = choice.message
    usage: Any = getattr(response, "usage", None)
    # litellm fills in zeros where the provider counted nothing.
    counted = usage is not None and bool(usage.prompt_tokens or usage.completion_tokens)
    details = getattr(usage, "completion_tokens_details", None)
    return Answer(
        key=key,
        text=message.content,
        reasoning=getattr(message, "reasoning_content", None),
        refusal=(getattr(message, "provider_specific_fields", None) or {}).get("refusal"),
        finish_reason=choice.finish_reason,
        returned_model=response.model,
        fingerprint=getattr(response, "system_fingerprint", None),
        response_id=response.id if keep_id else None,
        input_tokens=usage.prompt_tokens if counted else None,
        output_tokens=usage.completion_tokens if counted else None,
        reasoning_tokens=getattr(details, "reasoning_tokens", None),
    )
