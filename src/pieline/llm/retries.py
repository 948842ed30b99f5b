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
"""Fraction of the token limit per minute that may be sent at once."""
_RETRY_INFO = re.compile(r"retryDelay\W+(\d+(?:\.\d+)?)s")
"""Field of Gemini's errors with the requested wait in seconds."""


class MalformedResponseError(Exception):
    """Error raised for a response that has neither a text nor token counts."""


class FailedAnswerError(Exception):
    """Error raised for a recorded response that reports that the generation failed."""


class NotSentError(UserError):
    """Error raised instead of sending a request that would differ from its question."""


class NotConnectedError(Exception):
    """Error raised if the host or a proxy refused the connection, or the host is unknown."""

    def __init__(
        self,
        reason: str,
        hint: str = "start its server, or correct its address in models.yaml or llm.api_bases",
    ) -> None:
        super().__init__(reason)
        self.hint = hint


class TooLongWaitError(Exception):
    """Error raised if the provider requests a longer wait than the settings allow."""


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of a failure; None if the failure has no status."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def headers_of(error: BaseException) -> Mapping[str, str]:
    """Return the response headers of a failure; empty if the provider did not respond."""
    headers: Mapping[str, str] | None = getattr(error, "litellm_response_headers", None)
    response = getattr(error, "response", None)
    return headers or getattr(response, "headers", None) or {}


def is_fatal(error: BaseException) -> bool:
    """Return whether all other questions to the same model would fail with the same error.

    The cause is the API key, the account or the model, and not the question.
    """
    if status_of(error) in FATAL_STATUS:
        return True
    message = str(error)
    if "insufficient_quota" in message:
        return True
    # OpenAI reports exhausted credit with this message. Gemini also reports a limit per minute with
    # this message, but then requests a wait.
    requests_wait = _RETRY_INFO.search(message)
    return "exceeded your current quota" in message and not requests_wait


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(
        error, TimeoutError | MalformedResponseError | FailedAnswerError | NotConnectedError
    ):
        return True
    status = status_of(error)
    if status is None or is_fatal(error):
        return False
    return status in TRANSIENT_STATUS or status >= 500


def was_rejected(error: BaseException) -> bool:
    """Return whether a request was permanently rejected or never sent, and so is not billed."""
    if isinstance(error, NotSentError):
        return True
    is_client_error = 400 <= (status_of(error) or 0) < 500
    # litellm also assigns a status to broken answers and connections, which have no headers.
    has_response = bool(headers_of(error))
    return is_client_error and has_response and not is_transient(error)


def retry_after(error: BaseException) -> float:
    """Return the wait that the provider requests, in seconds; 0 if it requests no wait.

    The wait is read from the header `retry-after-ms` or `retry-after` (seconds or a date). Without
    these headers, the wait is read from the error message, which is where Gemini states the wait.
    """
    headers = {name.lower(): value for name, value in headers_of(error).items()}
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers["retry-after"]))
    except KeyError:  # there is no such header
        match = _RETRY_INFO.search(str(error))
        return float(match[1]) if match else 0.0
    except ValueError:  # the header is not a number
        return _seconds_until(headers.get("retry-after", ""))


def _seconds_until(date: str) -> float:
    """Return the seconds until a date in HTTP's format; 0 if the date is past or invalid."""
    try:
        timestamp = email.utils.parsedate_to_datetime(date).timestamp()
    except ValueError:
        return 0.0
    return max(0.0, timestamp - time.time())


def backoff(scale_s: float, longest_s: float) -> Callable[[RetryCallState], float]:
    """Return a function for tenacity's waits: the requested wait plus random exponential jitter.

    The jitter prevents requests that were rejected together from being retried together.

    Args:
        scale_s: Scale of the jitter in seconds.
        longest_s: Maximum seconds of the jitter, and of the requested wait. If the provider
            requests a longer wait, the wait function raises `TooLongWaitError`.
    """
    jitter_s = wait_random_exponential(multiplier=scale_s, max=longest_s)

    def wait(retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        requested_s = retry_after(error) if error else 0.0
        if requested_s > longest_s:
            raise TooLongWaitError(
                f"the provider asks to wait {requested_s:.0f} s, more than {longest_s:.0f} s"
            ) from error
        return requested_s + jitter_s(retry_state)

    return wait


class Rates:
    """Limits on the requests and tokens per minute that one process sends to a provider.

    Requests are spaced evenly, so no minute exceeds the limit. Tokens may be sent in bursts of up
    to a tenth of the limit per minute, and the steady rate of tokens is a tenth below the limit.
    """

    def __init__(self, limits: ProviderLimits) -> None:
        self._request_limiter = self._token_limiter = None
        self._turn = asyncio.Lock()
        if limits.requests_per_minute:
            self._request_limiter = AsyncLimiter(1, 60 / limits.requests_per_minute)
        if limits.tokens_per_minute:
            burst_tokens = max(1.0, limits.tokens_per_minute * _TOKEN_BURST)
            tokens_per_second = limits.tokens_per_minute * (1 - _TOKEN_BURST) / 60
            self._token_limiter = AsyncLimiter(burst_tokens, burst_tokens / tokens_per_second)

    async def wait(self, tokens: int) -> None:
        """Wait until a request with this number of tokens may be sent."""
        # Requests that acquired tokens concurrently would all be ready at the same moment.
        async with self._turn:
            if self._token_limiter:
                tokens_left = float(tokens)
                while tokens_left > 0:  # a limiter accepts at most its burst size at once
                    portion = min(tokens_left, self._token_limiter.max_rate)
                    await self._token_limiter.acquire(portion)
                    tokens_left -= portion
            if self._request_limiter:
                await self._request_limiter.acquire()
