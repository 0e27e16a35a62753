"""Exceptions of litellm as ours."""

import asyncio
import re
from typing import Any

import pytest

from litellm_support import COMPATIBLE, IGNORED_WARNINGS, OPENAI, needs_litellm, outgoing, sent
from llm_provider._errors import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    AuthenticationError,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    MissingDependencyError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
    UnknownModelError,
)
from llm_provider._providers.litellm import adapter
from llm_provider.simulator import Fault, Simulator
from support import RunScript

pytestmark = IGNORED_WARNINGS


def test_an_answer_whose_headers_litellm_cannot_read() -> None:
    error = RuntimeError("'ascii' codec can't encode character")
    error.__context__ = UnicodeEncodeError("ascii", "\u0665", 0, 1, "ordinal not in range(128)")
    assert isinstance(adapter.map_error(error), APIResponseValidationError)


WITHOUT_A_KEY = """
import asyncio, os, socket, sys, tempfile, warnings

warnings.simplefilter("ignore")
for name in [name for name in os.environ if name not in ("PATH", "LANG", "PYTHONPATH")]:
    del os.environ[name]
os.environ["HOME"] = tempfile.mkdtemp()

def refuse(*arguments, **more):
    raise OSError("no network")

from llm_provider import Client, LLMError
from llm_provider._providers.litellm.connection import load

wanted, way, *lacking = {arguments!r}
litellm = load()
socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = socket.gethostbyname = socket.create_connection = refuse

def results(client, model):
    try:
        if way == "call":
            return [client.call(model, "Hi")]
        if way == "stream":
            return list(client.stream(model, "Hi"))
        if way == "acall":
            return [asyncio.run(client.acall(model, "Hi"))]
        if way == "embed":
            return [client.embed(model, ["Hi"])]
        return client.call_many(model, ["Hi", "Ho"])
    except LLMError as error:
        return [error]

def report(provider, model):
    with Client(cache="off", max_retries=0) as client:
        for error in results(client, f"litellm/{{provider}}/{{model}}"):
            print(
                provider, type(error).__name__, error.cost, error.maybe_billed, error.retryable,
                error.attempts <= 1, error.message,
            )

every = sorted(str(getattr(provider, "value", provider)) for provider in litellm.provider_list)
for provider in wanted or every:
    report(provider, "some-model")
for provider, model, package in lacking:
    sys.modules[package] = None
    report(provider, model)
"""


LOCAL = {"MissingAPIKeyError", "AuthenticationError", "UnknownModelError", "MissingDependencyError"}


# Together, because each program imports litellm, which takes 5 s.
@needs_litellm
@pytest.mark.parametrize(
    ("way", "lacking", "remedy"),
    [
        ("call_many", ("bedrock", "anthropic.claude-3", "botocore"), "boto3"),
        pytest.param("call", ("vertex_ai", "gemini-3-pro", "google.auth"), "google", marks=pytest.mark.long),
        *(pytest.param(way, None, "", marks=pytest.mark.long) for way in ("stream", "acall", "embed")),
    ],
)
def test_what_litellm_raises_before_it_sends_is_raised_at_once_and_a_missing_package_is_named(
    run_script: RunScript, way: str, lacking: tuple[str, str, str] | None, remedy: str
) -> None:
    providers = ["azure", "gradient_ai", "huggingface", "openai", "text-completion-openai", "vertex_ai"]
    if way == "embed":
        providers = ["azure", "openai", "vertex_ai"]
    arguments = [providers, way, *filter(None, [lacking])]
    lines = run_script(WITHOUT_A_KEY.format(arguments=arguments)).stdout.splitlines()
    inputs = 2 if way == "call_many" else 1
    assert len(lines) == inputs * len([*providers, *filter(None, [lacking])])
    for line in lines:
        _, kind, *fields, message = line.split(" ", 6)
        assert kind in LOCAL, line
        assert fields == ["0.0", "False", "False", "True"], line
        if lacking is not None and line in lines[inputs * len(providers) :]:
            assert kind == "MissingDependencyError"
            assert re.search(f"pip install .*{remedy}", message)


FAULTS: dict[Fault, type[LLMError]] = {
    Fault(status=401): AuthenticationError,
    Fault(status=403): PermissionDeniedError,
    Fault(status=404): NotFoundError,
    Fault(status=429, retry_after="7"): RateLimitError,
    Fault(quota=True): QuotaExceededError,
    Fault(context_length=True): ContextWindowExceededError,
    Fault(status=500): InternalServerError,
    Fault(status=529): OverloadedError,
    Fault(body="<html>proxy</html>", content_type="text/html"): APIResponseValidationError,
    Fault(body="null"): APIResponseValidationError,
    Fault(abort_after=1): APIConnectionError,
}
IN_STREAMS: dict[Fault, type[LLMError]] = {
    Fault(cut_after=1): APIResponseValidationError,
    Fault(error_after=1, status=529): OverloadedError,
}


@needs_litellm
class TestFailuresThroughLiteLLM:
    """Behind OpenAI's part of litellm; tests/end_to_end/faults.py has every failure behind Anthropic's."""

    @pytest.mark.parametrize("model", [OPENAI, COMPATIBLE])
    @pytest.mark.parametrize("stream", [False, True])
    def test_failures(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any, model: str, stream: bool
    ) -> None:
        for fault, kind in {**FAULTS, **(IN_STREAMS if stream else {})}.items():
            simulator.clear()
            simulator.inject(fault)
            order = outgoing(simulator.url("openai"), "Say a few words", model)
            with pytest.raises(kind) as caught:
                runner.run(sent(connection, order, stream=stream))
            assert caught.value.retry_after == (7.0 if fault.retry_after else None), fault
            assert "Traceback" not in str(caught.value)
            assert caught.value.maybe_billed or fault not in IN_STREAMS, fault
            assert len(simulator.requests()) == 1, "no retries but ours"

    def test_a_provider_that_litellm_does_not_know(self, runner: asyncio.Runner, connection: Any) -> None:
        with pytest.raises(UnknownModelError):
            runner.run(sent(connection, outgoing(None, "Hi", "nobody/model")))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RateLimitError("slow"), RateLimitError),
        (ImportError("No module named 'boto3'"), MissingDependencyError),
        (ConnectionRefusedError("refused"), APIConnectionError),
        (TimeoutError(), APITimeoutError),
        (RuntimeError("surprise"), APIConnectionError),
    ],
)
def test_errors_that_are_not_litellms(error: Exception, kind: type[LLMError]) -> None:
    assert type(adapter.map_error(error)) is kind
