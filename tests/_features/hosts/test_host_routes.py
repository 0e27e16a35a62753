"""Calls to hosts of one's own, from the client and from a shared file."""

import warnings
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

import pytest

import llm_provider as llm
from llm_provider import Client, Host, RequestError, UnsupportedParameterError, Usage
from llm_provider._core.requests.routing import COMPATIBLE_HOSTS
from llm_provider._features.hosts.host import Dialect
from llm_provider._features.hosts.host_routes import VARIABLE
from llm_provider.simulator import Fault, Simulator
from support import wait_until

PRICES = {"*": {"input": 1, "output": 2}, "free": {"input": 0, "output": 0}}
LIMITS = {"*": {"max_output_tokens": 50, "context_window": 999}}
NO_SAMPLING = {"n", "top_k", "logit_bias"}
PROMPTS = [f"What is {number}+1?" for number in range(400)]
LACKS = {"llama.cpp": {"n"}, "ollama": NO_SAMPLING, "tgi": NO_SAMPLING, "lm_studio": {"n", "logprobs"}}


def bill(usage: Usage) -> float:
    return (usage.input_tokens + 2 * usage.output_tokens) / 1e6


@pytest.mark.parametrize("dialect", get_args(Dialect))
@pytest.mark.sampled(3)
def test_calls_follow_the_dialect(llm_simulator: Simulator, own_cache: Path, dialect: Dialect) -> None:
    lab = Host("lab", llm_simulator.url("local"), dialect, prices=PRICES, limits=LIMITS, tokenizer="qwen")
    with Client(hosts=[lab], cache_dir=own_cache, budget=1) as client:
        two = client.call("lab/org/mine", "What is 1+1?", n=2)
        assert (two.texts, two.provider, two.cost) == (["2", "2"], "lab", pytest.approx(bill(two.usage)))
        lacks = LACKS.get(dialect, set())
        assert len(llm_simulator.requests()) == 1 + ("n" in lacks)
        for name, value in {"top_k": 3, "logit_bias": {1: 1.0}, "logprobs": True}.items():
            if name in lacks:
                with pytest.raises(UnsupportedParameterError, match=name):
                    client.call("lab/mine", "Hi", **{name: value})  # type: ignore[arg-type, call-overload]  # one of several
            else:
                assert client.call("lab/mine", "Hi", **{name: value}).text  # type: ignore[arg-type, call-overload]  # as above
        with client.stream("lab/free", "one two") as stream:
            assert "".join(delta.text for delta in stream) == "echo: one two"
        assert stream.response.cost == 0
        assert client.embed("lab/whisper", ["one", "two"]).cost == pytest.approx(2e-6)
        assert client.estimate("lab/mine", ["Hi"]).output_tokens.high == 50
        assert "lab/some-new-model" in [model.name for model in client.models("lab", live=True)]
        assert [model.name for model in client.models("lab")] == ["lab/free"]
        with pytest.raises(llm.UnknownModelError, match="names a provider but no model"):
            client.call("lab/", "Hi")


def test_the_cache_key_holds_the_name_and_no_address(llm_simulator: Simulator, own_cache: Path) -> None:
    def ask(name: str, server: str, **parameters: Any) -> bool:
        with Client(
            hosts=[Host(name, llm_simulator.url(server), prices=PRICES)], cache_dir=own_cache
        ) as client:
            return client.call(f"{name}/mine", "Hi", **parameters).cached

    assert [ask("lab", "local"), ask("lab", "groq"), ask("other", "local")] == [False, True, False]
    assert not ask("lab", "local", base_url=llm_simulator.url("local"))
    assert {path.read_bytes().count(b"127.0.0.1") for path in own_cache.rglob("*.db")} <= {0, 1}


def test_a_function_gives_the_token_of_a_host(llm_simulator: Simulator, own_cache: Path) -> None:
    lab = Host("lab", llm_simulator.url("local"), prices=PRICES)
    with Client(hosts=[lab], keys={"lab": lambda: "a-token"}, cache_dir=own_cache) as client:
        assert client.call("lab/mine", "Hi").text == "echo: Hi"
    (request,) = llm_simulator.requests()
    assert request.headers["authorization"] == "sha256:" + sha256(b"a-token").hexdigest()[:8]


def texts(results: Any) -> list[str]:
    return [getattr(result, "text", repr(result)) for result in results]


def test_equal_servers_are_one_host_and_may_die_and_come_back(own_cache: Path) -> None:
    with Simulator() as steady, Simulator() as slow, Simulator() as dying:
        slow.inject(Fault(delay=0.5), times=None)
        urls = [simulator.url("local") for simulator in (dying, steady, slow)]
        with Client(hosts=[Host("lab", urls, prices=PRICES)], cache_dir=own_cache) as client:
            answers: dict[int, Any] = {}
            for index, answer in client.iter_many("lab/mine", PROMPTS, max_concurrent=24):
                answers[index] = answer
                if len(answers) == 100:
                    dying.close()
            assert texts(answers[index] for index in range(400)) == [str(number + 1) for number in range(400)]
            assert steady.ledger().requests > slow.ledger().requests > 0
            assert [scope.base_url for scope in client.statistics()] == urls
            dying.start()
            assert wait_until(
                lambda: client.call("lab/mine", "What is 2+3?", cache="off") and dying.ledger().requests
            )
            slow.close()
            assert client.embed("lab/mine", ["one"]).vectors
            with client.stream("lab/mine", "What is 20+12?") as deltas:
                assert "".join(delta.text for delta in deltas) == "32"
            assert len(client.models("lab", live=True)) > 1
        with Client(hosts=[Host("lab", "http://localhost:1/v1")], cache_dir=own_cache) as moved:
            assert all(answer.cached for answer in moved.call_many("lab/mine", PROMPTS))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=401), Fault(status=403), Fault(status=404), Fault(status=429), Fault(status=500),
        Fault(status=503), Fault(abort_after=0), Fault(body="<html>"),
    ],
)  # fmt: skip
@pytest.mark.sampled(3)
def test_a_refusing_server_stops_no_other(llm_simulator: Simulator, own_cache: Path, fault: Fault) -> None:
    llm_simulator.inject(fault, "groq", times=None)
    lab = Host("lab", [llm_simulator.url(name) for name in ("groq", "local")], prices=PRICES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", llm.KeyWarning)
        with Client(hosts=[lab], cache_dir=own_cache) as client:
            answers = client.call_many("lab/mine", PROMPTS[:60], max_concurrent=8, deadline=20)
    assert texts(answers) == [str(number + 1) for number in range(60)]
    assert len(llm_simulator.requests("groq")) < 40


def test_servers_with_different_models_are_no_equals(llm_simulator: Simulator, own_cache: Path) -> None:
    lab = Host("lab", [llm_simulator.url(name) for name in ("groq", "local")], prices=PRICES)
    llm_simulator.inject(Fault(body='{"data": [{"id": "a"}]}'), "groq", match="models.list")
    with Client(hosts=[lab], cache_dir=own_cache) as client:
        with pytest.warns(UserWarning, match="the servers of lab list different models"):
            client.models("lab", live=True)
        reply = '{"model": "b", "choices": [{"finish_reason": "stop", "message": {"content": "4"}}]}'
        llm_simulator.inject(Fault(body=reply), "groq", times=None)
        with pytest.warns(llm.ModelDriftWarning, match="mine.*: give the servers of lab that") as told:
            client.call_many("lab/mine", PROMPTS[:20], max_concurrent=8)
        assert len(told) == 1
        with pytest.raises(RequestError, match=r"Client\(hosts=\[Host\('lab'"):
            client.call("lab/mine", "Hi", base_url=list(lab.urls))  # type: ignore[call-overload]  # on purpose


def test_a_shared_file_names_the_variable_of_the_key(
    llm_simulator: Simulator, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hosts.toml"
    server = llm_simulator.url("local")
    path.write_text(f'[lab]\nurls = ["{server}"]\nkey_variable = "LAB_KEY"\n[ours]\nurls = "http://a/v1"\n')
    monkeypatch.setenv(VARIABLE, str(path))
    with Client(cache="off") as client:
        with pytest.raises(llm.MissingAPIKeyError, match="no API key for lab: set LAB_KEY"):
            client.call("lab/mine", "Hi")
        monkeypatch.setenv("LAB_KEY", "sk-of-the-lab")
        with pytest.warns(
            llm.PriceWarning, match="lab/.*no price for input tokens; the cost is unknown"
        ) as told:
            assert [client.call("lab/mine", "Hi").cost for _ in range(2)] == [None, None]
        assert len(told) == 1
    keys = {"lab": "sk-of-the-client"}
    own = [Host("lab", server, prices=PRICES), Host("mine", server, prices=PRICES)]
    with Client(cache="off", hosts=own, keys=keys) as client:
        assert client.call("lab/mine", "Hi").cost
        assert client.call("mine/mine", "Hi").cost
    sent = [request.headers["authorization"] for request in llm_simulator.requests()]
    expected = [*["sk-of-the-lab"] * 2, "sk-of-the-client", "not-needed"]
    assert sent == ["sha256:" + sha256(key.encode()).hexdigest()[:8] for key in expected]


def test_a_binary_file_is_refused_with_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tests/data/golden/_cli/main.json` has files with other mistakes."""
    path = tmp_path / "hosts.toml"
    monkeypatch.setenv(VARIABLE, str(path))
    path.write_bytes(b"\xff")
    with pytest.raises(RequestError, match=f"^{VARIABLE}: '{path}' is not UTF-8 text"):
        Client()


def test_a_wrong_list_is_refused() -> None:
    lab = Host("lab", "http://a/v1")
    for hosts, problem in (
        ([lab, lab], "two hosts with the name 'lab'"),
        (lab, "must be a list"),
        (["lab"], "list"),
    ):
        with pytest.raises(RequestError, match=problem):
            Client(hosts=hosts)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(RequestError, match=r"keys names no provider: lab2; known: .*lab"):
        Client(hosts=[lab], keys={"lab2": "sk-x"})
    assert "lab" not in COMPATIBLE_HOSTS
