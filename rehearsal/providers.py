"""Stand-in for all providers: one server that answers, bills and fails like them.

Each turn has one token per 4 characters, rounded up. If a model bills hidden reasoning, it uses as
many reasoning tokens as the question has tokens, up to the token limit. The token limit is that of
the request, or else that of the entry in models.yaml; longer answers are truncated.

Repeated questions get byte-identical replies, including the id, so that recordings do not depend on
faults.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from pydantic import Field

from pieline.core.files import sha256_of
from pieline.core.settings import Settings
from pieline.llm.costs import price
from pieline.models.llm import LLMEntry
from rehearsal.bill import BILL, BILLED, Bill, Charge, Fault, digest
from rehearsal.formats import (
    OVERLOADED,
    PROVIDERS,
    RATE_LIMIT,
    Asked,
    Body,
    CountedAnswer,
    Provider,
)
from rehearsal.loopback import LoopbackServer, Received, Reply

CHARACTERS_PER_TOKEN = 4

THOUGHTS = "<think>\nFirst I read the sentence once more.\n</think>\n\n"
"""Reasoning that precedes the answers of Together's reasoning models."""


class FaultProfile(Settings):
    """Latency and fault rates; by default, every request is answered immediately, without faults.

    Attributes:
        seed: Random seed; latency and fault of a request depend only on the seed, the question and
            the attempt.
        latency_s: Mean latency in seconds; latencies are uniform from 0 to twice the mean.
        rates: Fraction of requests by kind of fault.
        retry_after_s: Delay before a retry that a 429 reply states, in seconds.
        max_attempts: Maximum number of consecutive attempts until a question is answered.
    """

    seed: int = 0
    latency_s: float = Field(default=0.0, ge=0)
    rates: dict[Fault, float] = Field(default_factory=dict)
    retry_after_s: float = Field(default=1.0, gt=0)
    max_attempts: int = Field(default=6, ge=1)

    def drawn(self, question: str, attempt: int) -> tuple[Fault | None, float]:
        """Return the fault (or None) and the latency in seconds of an attempt at a question."""
        drawn = hashlib.sha256(f"{self.seed} {question} {attempt}".encode()).digest()
        share, latency = (int.from_bytes(part) / 2**64 for part in (drawn[:8], drawn[8:16]))
        for fault, rate in self.rates.items():
            share -= rate
            if share < 0:
                return fault, 2 * self.latency_s * latency
        return None, 2 * self.latency_s * latency


class Providers(LoopbackServer):
    """Server that replaces all providers, at the addresses `formats.api_bases(server.address)`.

    Args:
        answer: Function that returns the answer to a question; it raises KeyError for an unknown
            question.
        models: Entries of models.yaml; only language models are served.
        state: Folder of the bill.
        faults: Latency and fault rates; None for neither latency nor faults.
        port: Port on the loopback interface; 0 for any free port.
    """

    def __init__(
        self,
        answer: Callable[[Asked], str],
        models: Mapping[str, object],
        state: Path,
        faults: FaultProfile | None = None,
        port: int = 0,
    ) -> None:
        super().__init__(port)
        self._answer, self._faults = answer, faults or FaultProfile()
        entries = [entry for entry in models.values() if isinstance(entry, LLMEntry)]
        # A later entry replaces an earlier one, so an API model replaces a local one with its id.
        entries.sort(key=lambda entry: entry.source == "api")
        self._entries = {entry.litellm_id: entry for entry in entries}
        self._bill = Bill(state / BILL)
        self._attempts: Counter[str] = Counter()
        self._failed_in_a_row: Counter[str] = Counter()
        for charge in self._bill.charges:
            self._count(charge)
            if charge.delivered:
                self._failed_in_a_row[charge.question] = 0

    def __exit__(self, *_: object) -> None:
        super().__exit__(*_)
        self._bill.close()

    async def exchange(self, received: Received, reply: Callable[[Reply], Awaitable[bool]]) -> None:
        """Answer a request as its provider would."""
        prepared, number = self._prepared(received)
        if await reply(prepared) and number is not None:
            self._bill.delivered(number)
            self._failed_in_a_row[self._bill.charges[number].question] = 0

    def _prepared(self, request: Received) -> tuple[Reply, int | None]:
        """Bill a request; return its reply and bill number (None after a fault or an error)."""
        provider = next((each for each in PROVIDERS if each.serves(request.path)), None)
        if provider is None:
            return Reply(404, b'{"error": "no such path"}'), None
        try:
            body = request.body
            asked = provider.asked(request.path, body)
            limit = provider.limit(body)
            model = f"{provider.name}/{asked.model}"
            if model not in self._entries:
                return _refusal(provider, 404, f"The model {asked.model} does not exist."), None
            text = self._answer(asked)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _refusal(provider, 400, f"{type(error).__name__}: {error}"), None
        question = digest(model, body)
        # Each reply has its own id, also to a repeated question.
        number = sha256_of(f"{question} {self._attempts[question]}".encode())
        answer = _counted(self._entries[model], asked, text, limit, number)
        fault, latency_s = self._faults.drawn(question, self._attempts[question])
        if self._failed_in_a_row[question] >= self._faults.max_attempts - 1:
            fault = None
        charge = Charge(provider.name, model, question, fault=fault)
        if fault is None or fault in BILLED:
            charge.input_tokens, charge.output_tokens = answer.input_tokens, answer.output_tokens
            charge.usd = price(self._entries[model].paid, answer.input_tokens, answer.output_tokens)
        self._count(charge)
        entry = self._bill.add(charge)
        reply = _reply(provider, answer, fault, self._faults.retry_after_s)
        reply.delay = latency_s
        return reply, entry if fault is None else None

    def _count(self, charge: Charge) -> None:
        self._attempts[charge.question] += 1
        self._failed_in_a_row[charge.question] += 1


def tokens_of(text: str) -> int:
    """Return the number of tokens of a text: characters / `CHARACTERS_PER_TOKEN`, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _counted(
    entry: LLMEntry, asked: Asked, text: str, limit: int | None, number: str
) -> CountedAnswer:
    """Truncate an answer and its visible reasoning to the token limit, and count the tokens."""
    shows_thoughts = entry.reasoning and entry.provider == "together_ai"
    text = THOUGHTS + text if shows_thoughts else text
    asked_tokens = sum(tokens_of(turn) for _, turn in asked.turns)
    most = limit or entry.max_output_tokens or sys.maxsize
    is_cut = tokens_of(text) > most
    text = text[: most * CHARACTERS_PER_TOKEN]
    tokens = tokens_of(text)
    thinks = entry.bills_thoughts and not shows_thoughts
    thoughts = min(asked_tokens, most - tokens) if thinks else 0
    return CountedAnswer(
        asked.model, number, text, is_cut, asked_tokens, tokens + thoughts, thoughts
    )


def _reply(provider: Provider, answer: CountedAnswer, fault: Fault | None, wait_s: float) -> Reply:
    """Return the reply that contains an answer, or the reply with a fault."""
    if fault == "502":
        page = b"<html><head><title>502 Bad Gateway</title></head></html>"
        return Reply(502, page, {"Content-Type": "text/html"})
    if fault is not None and fault.isdigit():
        status = int(fault)
        if status == OVERLOADED and status not in provider.errors:
            status = 503
        message = "Rate limit reached." if status == RATE_LIMIT else "The server is overloaded."
        return _refusal(provider, status, message, wait_s)
    body = _json(provider.reply(answer))
    lengths = {"broken": len(body) // 2, "empty": 0}
    return Reply(body=body[: lengths.get(str(fault))], fault=fault)


def _refusal(provider: Provider, status: int, message: str, wait_s: float = 0.0) -> Reply:
    headers = provider.headers(wait_s) if status == RATE_LIMIT else {}
    return Reply(status, _json(provider.error(status, message, wait_s)), headers)


def _json(body: Body) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8")
