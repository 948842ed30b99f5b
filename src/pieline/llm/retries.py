"""Classify failures, compute waits between attempts, and enforce rate limits."""

import asyncio
import email.utils
import re
import time
from collections.abc import Callable, Mapping

from aiolimiter import AsyncLimiter
from tenacity import RetryCallState, wait_random_exponential

from pieline.core.errors import UserError
from pieline.llm.settings import ProviderLimits

TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
"""HTTP statuses below 500 after which the same request may succeed."""

FATAL_STATUS = frozenset({401, 402, 403, 404})
"""HTTP statuses that all other questions to the same model would also receive."""

_TOKEN_BURST = 0.1
_RETRY_INFO = re.compile(r"retryDelay\W+(\d+(?:\.\d+)?)s")


class MalformedResponseError(Exception):
    """The response of the provider has neither a text nor token counts."""


class FailedAnswerError(Exception):
    """The recorded response of the provider reports that the generation failed."""


class NotSentError(UserError):
    """The request would have differed from the question, so it was not sent."""


class NotConnectedError(Exception):
    """The connection was refused by the host or a proxy, or the host is unknown."""

    def __init__(
        self,
        reason: str,
        hint: str = "start its server, or correct its address in models.yaml or llm.api_bases",
    ) -> None:
        super().__init__(reason)
        self.hint = hint


class TooLongWaitError(Exception):
    """The provider requests a longer wait than the settings allow."""


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of a failure; None if it has none."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def headers_of(error: BaseException) -> Mapping[str, str]:
    """Return the response headers of a failure; empty if the provider did not respond."""
    response = getattr(error, "response", None)
    own: Mapping[str, str] | None = getattr(error, "litellm_response_headers", None)
    return own or getattr(response, "headers", None) or {}


def is_fatal(error: BaseException) -> bool:
    """Return whether an error of key, account or model would recur for every other question."""
    message = str(error)
    # Gemini reports a limit per minute with the message that OpenAI uses for exhausted credit.
    exhausted = "insufficient_quota" in message or (
        "exceeded your current quota" in message and not _RETRY_INFO.search(message)
    )
    return status_of(error) in FATAL_STATUS or exhausted


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    transient = TimeoutError, MalformedResponseError, FailedAnswerError, NotConnectedError
    if isinstance(error, transient):
        return True
    status = status_of(error)
    return (
        status is not None and not is_fatal(error) and (status in TRANSIENT_STATUS or status >= 500)
    )


def was_rejected(error: BaseException) -> bool:
    """Return whether the request was permanently rejected or never sent, and so is not billed.

    litellm also assigns a status to broken answers and connections, but only a response has
    headers.
    """
    refused = 400 <= (status_of(error) or 0) < 500 and not is_transient(error)
    return isinstance(error, NotSentError) or (refused and bool(headers_of(error)))


def retry_after(error: BaseException) -> float:
    """Return the wait that the provider requests, in seconds; 0 if it requests none.

    The wait is read from the header `retry-after-ms` or `retry-after` (seconds or a date) or,
    because Gemini sends neither, from the body.
    """
    headers = {name.lower(): value for name, value in headers_of(error).items()}
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers["retry-after"]))
    except KeyError:
        match = _RETRY_INFO.search(str(error))
        return float(match[1]) if match else 0.0
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp()
        except (KeyError, ValueError):
            return 0.0
        return max(0.0, date - time.time())


def backoff(scale_s: float, longest_s: float) -> Callable[[RetryCallState], float]:
    """Return a wait function for tenacity: the requested wait plus random exponential jitter.

    The jitter prevents requests that were rejected together from being retried together. The wait
    function raises `TooLongWaitError` if the provider requests a wait of more than `longest_s`.
    """
    random = wait_random_exponential(multiplier=scale_s, max=longest_s)

    def wait(retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = retry_after(error) if error else 0.0
        if asked > longest_s:
            raise TooLongWaitError(
                f"the provider asks to wait {asked:.0f} s, more than {longest_s:.0f} s"
            ) from error
        return asked + random(retry_state)

    return wait


class Rates:
    """Limits on the requests and tokens per minute that one process sends to a provider.

    Requests are spaced evenly, so no minute exceeds the limit. Tokens may be sent in bursts of up
    to a tenth of the limit per minute; the steady rate is reduced by the same amount.
    """

    def __init__(self, limits: ProviderLimits) -> None:
        self._requests = self._tokens = None
        self._turn = asyncio.Lock()
        if limits.requests_per_minute:
            self._requests = AsyncLimiter(1, 60 / limits.requests_per_minute)
        if limits.tokens_per_minute:
            burst = max(1.0, limits.tokens_per_minute * _TOKEN_BURST)
            steady = limits.tokens_per_minute * (1 - _TOKEN_BURST) / 60
            self._tokens = AsyncLimiter(burst, burst / steady)

    async def wait(self, tokens: int) -> None:
        """Wait until a request with the given number of tokens may be sent."""
        # Requests that acquired tokens concurrently would all be ready at the same moment.
        async with self._turn:
            left = float(tokens) if self._tokens else 0.0
            while self._tokens and left > 0:  # a limiter accepts at most its burst size at once
                piece = min(left, self._tokens.max_rate)
                await self._tokens.acquire(piece)
                left -= piece
            if self._requests:
                await self._requests.acquire()
