import asyncio
import base64
import json
import pickle
import threading
import time
from typing import Any

import pytest

from llm_provider import (
    APIConnectionError,
    APITimeoutError,
    AuthenticationError,
    Client,
    LLMError,
    RequestError,
)
from llm_provider._core.requests.attachments import Attachment
from llm_provider._core.runtime import clock
from llm_provider._features.clouds import token_credential
from llm_provider._features.clouds.token_credential import TokenCredential, own_credential
from llm_provider.simulator import Fault, Simulator
from support import TooSlowError, patiently


class Source:
    """Returns JSON Web Tokens that are good for some seconds; counts them."""

    def __init__(self, life: float = 3600.0) -> None:
        self.life, self.fetched = life, 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            self.fetched += 1
            number = self.fetched
        claims = json.dumps({"exp": clock.time() + self.life, "jti": number}).encode()
        return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.signature{number}"

    def credential(self) -> TokenCredential:
        return own_credential("keys['azure']", self)


async def header(credential: TokenCredential) -> str:
    return (await credential.headers("POST", "https://x", b""))["Authorization"]


async def test_an_old_token_serves_while_one_is_fetched_until_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, may_fetch, later = Source(life=200.0), threading.Event(), 0.0
    monkeypatch.setattr(clock, "time", lambda: time.time() + later)
    credential = own_credential("keys['azure']", lambda: source() if may_fetch.wait(60) else "")
    may_fetch.set()
    first = await header(credential)
    may_fetch.clear()
    later = 110.0  # half of its life
    assert {await header(credential) for _ in range(50)} == {first}
    may_fetch.set()
    while (second := await header(credential)) == first:
        await asyncio.sleep(0.01)
    assert source.fetched == 2
    later = 3600.0
    assert await header(credential) not in (first, second)


async def test_a_refused_token_is_dropped_once_and_an_expired_one_is_tried() -> None:
    source = Source(life=-100.0)
    credential = source.credential()
    first = await credential.headers("POST", "https://x", b"")
    assert await credential.headers("POST", "https://x", b"") == first
    credential.invalidate(first)
    second = await credential.headers("POST", "https://x", b"")
    credential.invalidate(first)  # of a call that was slower
    assert await credential.headers("POST", "https://x", b"") == second != first
    assert source.fetched == 2
    text = " ".join([*first.values(), *second.values()]).replace("Bearer ", "")
    assert credential.scrub(f"{text} and more") == "*** *** and more"
    assert "signature" not in repr(credential) + repr(vars(type(credential)))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(credential)


def fail() -> str:
    raise OSError("no network")


async def wrong_type() -> Any:
    return 5


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (fail, APIConnectionError, "OSError: no network"),
        (lambda: {}["token"], RequestError, "KeyError: 'token'"),
        (wrong_type, RequestError, r"keys\['azure'\] must return the token as str, not int"),
        (lambda: "Bearer s3cret-token", RequestError, "without the word Bearer"),
    ],
)
async def test_a_source_that_fails_says_so(function: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        await header(own_credential("keys['azure']", function))
    assert caught.value.retryable == (kind is APIConnectionError)
    assert not caught.value.maybe_billed
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("ask", ["call", "stream", "embed", "call_many"])
def test_a_deadline_says_why_the_source_failed(ask: str, simulator: Simulator) -> None:
    model = "azure/text-embedding-3-small" if ask == "embed" else "azure/gpt-6.1-sol"
    content: Any = ["Hi"] if ask in ("embed", "call_many") else "Hi"
    with Client(cache="off", keys={"azure": fail}) as client:
        with pytest.raises(APIConnectionError):  # the SDK may take long to import
            client.call("azure/gpt-6.1-sol", "Hi", max_retries=0)

        def attempt(longer: float) -> None:
            for deadline in (0.9, 0.3, 0.1):  # the later ones may only wait for their turn
                with pytest.raises(LLMError) as caught:
                    answer = getattr(client, ask)(model, content, deadline=deadline * longer)
                    raise answer[0] if ask == "call_many" else next(iter(answer))
                if "the source of tokens failed: OSError: no network" not in str(caught.value):
                    raise TooSlowError("the source was not asked in time")

        patiently(attempt)
    assert not simulator.requests()


async def test_a_source_that_hangs_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_credential, "LONGEST_FETCH", 0.1)
    end = threading.Event()
    with pytest.raises(APITimeoutError, match=r"did not answer within 0\.1 s"):
        await header(own_credential("keys['azure']", lambda: str(end.wait(60))))
    end.set()


def test_identities_are_told_apart_by_their_names_in_every_process() -> None:
    assert own_credential("keys['azure']", fail).identity == own_credential("keys['azure']", fail).identity
    assert own_credential("keys['azure']", fail).identity != own_credential("keys['azure'][1]", fail).identity


def upload(client: Client) -> Any:
    kind, contents = "application/pdf", (b"a", b"b", b"c", b"d")
    files = [Attachment("large", kind, 23_000_000, data=content) for content in contents]
    prompts: Any = [[{"type": "file", "file": {"filename": "a.pdf", "file_data": file}}] for file in files]
    return client.call_many("gpt-6.1-sol", prompts)


def submit(client: Client) -> Any:
    return client.call_many("gpt-5.5", ["1+1?"], delivery="batch")


def cancel(client: Client) -> Any:
    assert client.submit_many("gpt-5.5", ["1+1?"]).cancel()
    return []


def list_models(client: Client) -> Any:
    return client.models("openai", live=True)


@pytest.mark.parametrize(
    ("work", "operation", "refusals"),
    [
        (upload, "files.upload", 4),
        (list_models, "models.list", 1),
        (list_models, "models.list", None),
        (submit, "files.upload", 1),
        (submit, "batches.create", 1),
        (submit, "batches.create", None),
        (submit, "batches.retrieve", 1),
        (submit, "files.download", 1),
        (cancel, "batches.cancel", 1),
    ],
)
@pytest.mark.sampled(4)
def test_every_request_is_sent_once_more_with_a_new_token(
    work: Any, operation: str, refusals: int | None, simulator: Simulator
) -> None:
    fetched: list[str] = []

    def source() -> str:
        # The simulator keeps the batches of each token for themselves.
        fetched.append("token-of-mine" if work in (submit, cancel) else f"token-of-mine-{len(fetched)}")
        return fetched[-1]

    # Four uploads at the same time meet the first token, or the second one if they begin late.
    old = "token-of-mine-0" if work is upload else None
    simulator.inject(Fault(status=401), match=operation, times=refusals, key=old)
    if work is cancel:  # the batch has not ended before
        simulator.configure(batch_seconds=80_000.0, batch_clock=1_000.0)
    with Client(max_retries=0, keys={"openai": source}) as client:
        if refusals is None:
            with pytest.raises(AuthenticationError) as caught:
                work(client)
            assert "of-mine" not in str(caught.value) + repr(vars(caught.value))
        else:
            assert not [result for result in work(client) if isinstance(result, LLMError)]
    refused = [entry.status for entry in simulator.requests()].count(401)
    assert refused == (refusals or 2) or (work is upload and 0 < refused < 4)
    assert len(fetched) == 2


def test_a_pool_has_keys_and_functions(simulator: Simulator) -> None:
    entries: Any = [["a-key-of-azure", lambda: "token-1", lambda: "token-2"], lambda: "token-3"]
    with Client(cache="off", keys={"azure": entries}, max_concurrent=1) as client:
        simulator.inject(Fault(status=401), times=6)
        assert client.call("azure/gpt-6.1-sol", "What is 2+3?").text == "5"
    sent = [request.headers for request in simulator.requests()]
    # Each was tried, and each token twice.
    assert len({(headers.get("api-key"), headers.get("authorization")) for headers in sent}) == 4
    assert sum("api-key" in headers for headers in sent) == 1
