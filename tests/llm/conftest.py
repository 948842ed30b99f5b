"""Fixtures for the tests of pieline.llm."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from llm_cases import KEY, Respond


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty recordings folder, and set an API key in the environment."""
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    return tmp_path / "recordings"


@pytest.fixture
def respond(monkeypatch: pytest.MonkeyPatch) -> Respond:
    """Return a function that sets the network's response and returns the list of requests."""
    from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport

    def with_(status: int = 200, **content: Any) -> list[httpx.Request]:
        arrived: list[httpx.Request] = []

        async def network(_: Any, request: httpx.Request) -> httpx.Response:
            arrived.append(request)
            return httpx.Response(status, request=request, **content)

        monkeypatch.setattr(LiteLLMAiohttpTransport, "handle_async_request", network)
        return arrived

    return with_
