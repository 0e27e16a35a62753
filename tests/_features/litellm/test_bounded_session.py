"""Answers to litellm that are larger than a client reads."""

import asyncio
import contextlib
import gzip
from typing import Any

import orjson
import pytest

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import APIResponseValidationError, Client
from llm_provider._features.litellm.connection import load
from llm_provider.simulator import Simulator
from openai_support import completion
from raw_server import RawServer, answering
from support import RunScript, ask

pytestmark = [needs_litellm, *IGNORED_WARNINGS]

# By the SDK of OpenAI, by handlers that take a session, and by those that take a handler.
PROVIDERS = ["openai", "zai", "perplexity", "mistral", "anthropic", "groq", "ollama_chat"]
MEGABYTE = 2**20
PLAIN = orjson.dumps({**completion(), "more": "x" * 9000})
PACKED = gzip.compress(PLAIN)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROVIDERS:
        monkeypatch.setenv(f"{name.upper()}_API_KEY", "sk-test")


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_limit_is_a_setting(provider: str, how: str) -> None:
    for body, headers in ((PLAIN, {}), (PACKED, {"content-encoding": "gzip"})):
        with (
            RawServer(answering(body, headers=headers)) as server,
            Client(cache="off", max_response_bytes=4000) as client,
        ):
            with pytest.raises(APIResponseValidationError, match="more than 4,000 bytes") as caught:
                ask(client, how, f"litellm/{provider}/m", base_url=server.root + "/v1")
            error = caught.value
            assert (error.attempts, error.retryable, error.maybe_billed) == (1, False, True)
            assert server.requests == 1


def test_each_client_has_its_own_limit_and_the_program_has_none() -> None:
    with (
        RawServer(answering(PACKED, headers={"content-encoding": "gzip"})) as server,
        Client(cache="off", max_response_bytes=4000) as strict,
        Client(cache="off", max_response_bytes=50_000) as lenient,
    ):
        url = server.root + "/v1"

        async def ask_all() -> list[Any]:
            model = "litellm/mistral/m"
            with pytest.raises(APIResponseValidationError, match="more than 4,000 bytes"):
                await strict.acall(model, "Hi", base_url=url)
            # litellm gives the program the session that it knows.
            prompt = [{"role": "user", "content": "Hi"}]
            own = await load().acompletion("mistral/m", prompt, api_base=url, api_key="sk-test")
            return [(await lenient.acall(model, "Hi", base_url=url)).text, own.choices[0].message.content]

        first, second = asyncio.run(ask_all())
        assert first == second


ASK = """
    import resource, sys

    from llm_provider import APIResponseValidationError, Client

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    with Client(cache="off", max_retries=1) as client:
        client.call("litellm/openai/m", "Hi", base_url={usual!r})
        before = peak()
        for model in {models!r}:
            for base_url in {huge!r}:
                try:
                    client.call(model, "Hi", base_url=base_url)
                except APIResponseValidationError as error:
                    assert error.attempts == 1, error
                    assert "200 levels" in str(error) or "10,000,000 values" in str(error), error
                else:
                    raise AssertionError("answered")
        print(peak() - before)
"""


def test_no_shape_of_a_reply_takes_more_memory_than_its_bytes(
    simulator: Simulator, run_script: RunScript
) -> None:
    with contextlib.ExitStack() as stack:
        huge = []
        for body in (b"[" * 30_000_000, b"[" + b"[]," * 10_999_999 + b"0]"):
            packed = answering(gzip.compress(body, 1), headers={"content-encoding": "gzip"})
            huge.append(stack.enter_context(RawServer(packed)).root + "/v1")
        models = [f"litellm/{name}/m" for name in ("openai", "mistral", "anthropic")]
        code = ASK.format(models=models, usual=simulator.url("openai"), huge=huge)
        grown = int(run_script(code).stdout.splitlines()[-1])
    # A list for each pair of brackets would take 700 MB.
    assert grown < 450 * MEGABYTE
