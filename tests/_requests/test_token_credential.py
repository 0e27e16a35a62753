from __future__ import annotations

import asyncio
import base64
import json
import pickle
import threading
import time
from typing import Any

import pytest

from llm_provider import APIConnectionError, Client, RequestError
from llm_provider._requests.token_credential import TokenCredential, own_credential
from llm_provider.simulator import Simulator
from support import wait_until


def web_token(number: int, expires: float) -> str:
    """A JSON Web Token that expires at a Unix time."""
    claims = json.dumps({"exp": expires, "jti": number}).encode()
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.signature{number}"


class Source:
    """Returns tokens that are good for some seconds; counts them."""

    def __init__(self, life: float = 3600.0, pause: float = 0.0) -> None:
        self.life, self.pause, self.fetched = life, pause, 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            self.fetched += 1
            number = self.fetched
        time.sleep(self.pause)
        return web_token(number, time.time() + self.life)

    def credential(self) -> TokenCredential:
        return own_credential("keys['azure']", self)


async def header(credential: TokenCredential) -> str:
    return (await credential.headers("POST", "https://x", b""))["Authorization"]


def test_all_that_wait_get_one_token_on_whatever_loop_they_run() -> None:
    source = Source(pause=0.2)
    credential, found = source.credential(), set()

    async def wait() -> None:
        found.update(await asyncio.gather(*(header(credential) for _ in range(64))))

    loops = [threading.Thread(target=lambda: asyncio.run(wait())) for _ in range(4)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()
    assert source.fetched == len(found) == 1


async def test_the_old_token_serves_while_a_new_one_is_fetched() -> None:
    source = Source(life=2.0, pause=0.3)
    credential = source.credential()
    first = await header(credential)
    await asyncio.sleep(1.1)  # half of its life
    assert {await header(credential) for _ in range(50)} == {first}
    await asyncio.sleep(0.5)
    assert await header(credential) != first
    assert source.fetched == 2


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


def test_identities_are_told_apart_by_their_names_in_every_process() -> None:
    assert own_credential("keys['azure']", fail).identity == own_credential("keys['azure']", fail).identity
    assert own_credential("keys['azure']", fail).identity != own_credential("keys['azure'][1]", fail).identity


@pytest.mark.parametrize(("calls", "tokens"), [(300, 3), pytest.param(10_000, 51, marks=pytest.mark.long)])
def test_many_calls_across_many_tokens(calls: int, tokens: int, simulator: Simulator) -> None:
    source, answered = Source(life=0.6), 0
    with Client(cache="off", keys={"azure": source}, max_concurrent=64) as client:
        while answered < calls or source.fetched < tokens:
            answers = client.call_many("azure/gpt-6.1-sol", ["What is 2+3?"] * 100)
            assert {answer.text for answer in answers} == {"5"}
            answered += 100
        (scope,) = client.statistics()
        assert scope.key == own_credential("keys['azure']", source).identity
        wait_until(lambda: not [thread for thread in threading.enumerate() if "token" in thread.name])
    sent = {request.headers["authorization"] for request in simulator.requests()}
    # Each token was sent, but perhaps the last one, and none was fetched twice.
    assert source.fetched - len(sent) in (0, 1) or answered > 10_000
    assert simulator.ledger().requests == answered
