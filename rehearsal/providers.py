"""A stand-in for all providers: one server that answers, bills and fails as they do.

Tokens are counted by a rule, in place of tokenisers: one for each 4 characters begun, turn by turn.
A model that bills thoughts has thought as many tokens as the question has, or what its limit leaves
it. An answer is cut off at the limit that the request, or else the entry of models.yaml, sets.

What is asked twice is answered with the same bytes, the reply's own id among them, whatever failed
in between: recordings must not depend on faults.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from pydantic import Field

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
"""What a model of Together's writes in front of its answer if it is for reasoning."""


class FaultProfile(Settings):
    """How the providers behave; by default they answer everything at once.

    Attributes:
        seed: of latencies and faults, which are the same for one attempt at one question.
        latency_s: mean of the seconds before a reply, which are drawn from 0 to twice as many.
        rates: share of requests that meet a fault, by fault.
        retry_after_s: what the 429 among these faults says to wait.
        max_attempts: no question fails so many times one after the other.
    """

    seed: int = 0
    latency_s: float = Field(default=0.0, ge=0)
    rates: dict[Fault, float] = Field(default_factory=dict)
    retry_after_s: float = Field(default=1.0, gt=0)
    max_attempts: int = Field(default=6, ge=1)

    def drawn(self, question: str, attempt: int) -> tuple[Fault | None, float]:
        """What an attempt at a question meets, and the seconds before its reply."""
        drawn = hashlib.sha256(f"{self.seed} {question} {attempt}".encode()).digest()
        share, latency = (int.from_bytes(part) / 2**64 for part in (drawn[:8], drawn[8:16]))
        for fault, rate in self.rates.items():
            share -= rate
            if share < 0:
                return fault, 2 * self.latency_s * latency
        return None, 2 * self.latency_s * latency


class Providers(LoopbackServer):
    """Stands in for all providers, at the addresses of `formats.api_bases(server.address)`.

    Args:
        answer: what a model says; a KeyError is a question that nobody can answer.
        models: the entries that are served, among others.
        state: folder of the bill.
        faults: how the providers behave.
        port: of the loopback; 0 for a free one.
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
        # What a provider serves comes before a local model of the same name.
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
        """Answer one request, as its provider would."""
        prepared, number = self._prepared(received)
        if await reply(prepared) and number is not None:
            self._bill.delivered(number)
            self._failed_in_a_row[self._bill.charges[number].question] = 0

    def _prepared(self, request: Received) -> tuple[Reply, int | None]:
        """The reply to a request that is on the bill, and its number if it is answered."""
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
        answer = _counted(self._entries[model], asked, text, limit, question)
        fault, latency_s = self._faults.drawn(question, self._attempts[question])
        if self._failed_in_a_row[question] >= self._faults.max_attempts - 1:
            fault = None
        charge = Charge(provider.name, model, question, fault=fault)
        if fault is None or fault in BILLED:
            charge.input_tokens, charge.output_tokens = answer.input_tokens, answer.output_tokens
            charge.usd = price(self._entries[model].paid, answer.input_tokens, answer.output_tokens)
        self._count(charge)
        number = self._bill.add(charge)
        reply = _reply(provider, answer, fault, self._faults.retry_after_s)
        reply.delay = latency_s
        return reply, number if fault is None else None

    def _count(self, charge: Charge) -> None:
        self._attempts[charge.question] += 1
        self._failed_in_a_row[charge.question] += 1


def tokens_of(text: str) -> int:
    """Tokens of a text, by the rule of the stand-ins."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _counted(
    entry: LLMEntry, asked: Asked, text: str, limit: int | None, number: str
) -> CountedAnswer:
    """What a model says, within its limit of tokens."""
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
    """What leaves for an answer that meets a fault, or none."""
    if fault == "502":
        page = b"<html><head><title>502 Bad Gateway</title></head></html>"
        return Reply(502, page, {"Content-Type": "text/html"})
    if fault is not None and fault.isdigit():
        status = int(fault)
        if status == OVERLOADED and status not in provider.errors:
            status = 503
        told = "Rate limit reached." if status == RATE_LIMIT else "The server is overloaded."
        return _refusal(provider, status, told, wait_s)
    body = _json(provider.reply(answer))
    lengths = {"broken": len(body) // 2, "empty": 0}
    return Reply(body=body[: lengths.get(str(fault))], fault=fault)


def _refusal(provider: Provider, status: int, message: str, wait_s: float = 0.0) -> Reply:
    headers = provider.headers(wait_s) if status == RATE_LIMIT else {}
    return Reply(status, _json(provider.error(status, message, wait_s)), headers)


def _json(body: Body) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8")
