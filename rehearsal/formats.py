"""Wire formats of OpenAI, Together, Anthropic and Gemini from the provider's side.

The classes parse the requests that `pieline.llm.wire` sends, and build replies in the providers'
formats.
"""

from typing import Any, NamedTuple

Body = dict[str, Any]


class Asked(NamedTuple):
    """Question parsed from a request.

    Attributes:
        model: Name of the model in the request: litellm's id without the provider's prefix.
        turns: Text of each message in order; a system message is first.
        seed: Sampling seed; None if the request has none.
    """

    model: str
    turns: tuple[str, ...]
    seed: int | None


class CountedAnswer(NamedTuple):
    """Answer with token counts; `number` is the id of the reply."""

    model: str
    number: str
    text: str
    input_tokens: int
    output_tokens: int


class Provider:
    """Interface of a provider; this class is that of OpenAI's chat completions and local servers.

    Attributes:
        name: Name in models.yaml, which is also litellm's prefix.
        base: Path of the address in `llm.api_bases`.
    """

    name, base = "openai", "/openai/v1"

    def asked(self, path: str, body: Body) -> Asked:
        """Parse the question of a request."""
        return Asked(
            body["model"], tuple(turn["content"] for turn in body["messages"]), body.get("seed")
        )

    def reply(self, answer: CountedAnswer) -> Body:
        """Return the body of the reply that contains an answer."""
        return {
            "id": answer.number,
            "object": "chat.completion",
            "created": 0,
            "model": answer.model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": answer.text},
                    "finish_reason": "stop",
                }
            ],
            "usage": {
                "prompt_tokens": answer.input_tokens,
                "completion_tokens": answer.output_tokens,
                "total_tokens": answer.input_tokens + answer.output_tokens,
            },
        }


class Together(Provider):
    """Interface of Together: OpenAI's chat completions at another address."""

    name, base = "together_ai", "/together_ai/v1"


class Anthropic(Provider):
    """Interface of Anthropic: the Messages API."""

    name, base = "anthropic", "/anthropic"

    def asked(self, path: str, body: Body) -> Asked:
        """See `Provider`."""
        system = [block["text"] for block in body.get("system", ())]
        turns = [_joined(turn["content"]) for turn in body["messages"]]
        return Asked(body["model"], (*system, *turns), None)

    def reply(self, answer: CountedAnswer) -> Body:
        """See `Provider`."""
        return {
            "id": answer.number,
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": [{"type": "text", "text": answer.text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": answer.input_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": answer.output_tokens,
            },
        }


class Gemini(Provider):
    """Interface of Gemini: the method generateContent."""

    name, base = "gemini", "/gemini/v1beta"

    def asked(self, path: str, body: Body) -> Asked:
        """See `Provider`."""
        model = path.rpartition("/models/")[2].partition(":")[0]
        system = body.get("system_instruction", {"parts": []})["parts"]
        turns = [_joined(turn["parts"]) for turn in body["contents"]]
        seed = body.get("generationConfig", {}).get("seed")
        return Asked(model, (*(part["text"] for part in system), *turns), seed)

    def reply(self, answer: CountedAnswer) -> Body:
        """See `Provider`."""
        return {
            "candidates": [
                {
                    "content": {"parts": [{"text": answer.text}], "role": "model"},
                    "finishReason": "STOP",
                    "index": 0,
                }
            ],
            "usageMetadata": {
                "promptTokenCount": answer.input_tokens,
                "candidatesTokenCount": answer.output_tokens,
                "totalTokenCount": answer.input_tokens + answer.output_tokens,
            },
            "modelVersion": answer.model,
            "responseId": answer.number,
        }


PROVIDERS = {
    provider.base: provider for provider in (Provider(), Anthropic(), Gemini(), Together())
}


def api_bases(address: str) -> dict[str, str]:
    """Return `llm.api_bases` for one server that replaces all providers."""
    return {provider.name: f"{address}{base}" for base, provider in PROVIDERS.items()}


def _joined(parts: list[Body]) -> str:
    return "".join(part["text"] for part in parts)
