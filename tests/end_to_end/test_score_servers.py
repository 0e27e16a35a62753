"""Scores from servers that are written from their documented shapes alone, right ones and broken ones.

They share nothing with the simulator: another vocabulary, another model, and replies written by hand.
"""

import hashlib
import json
import math
import re
import string
from collections.abc import Callable, Iterator
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from llm_provider import Client, Host, ScoreCheckError

VOCABULARY = ["<s>", *string.printable[:95], "lo"]
DIALECTS: dict[str, Any] = {"vllm": "vllm", "sglang": "sglang", "tgi": "tgi", "llama": "llama.cpp"}
WAYS: list[tuple[str, Any]] = [
    ("vllm", "prompt_logprobs"), ("vllm", "echo"), ("sglang", "generate"), ("sglang", "echo"), ("tgi", None),
    ("llama", None), ("together_ai", None), ("fireworks_ai", None),
]  # fmt: skip
TEXTS = ["lo now", " it", "x"]

Values = tuple[list[Any], list[Any], list[int], tuple[int, float]]
"""The log-probability of each token, the likeliest one there, the ids, and the token that is written."""


def encode(text: str) -> list[int]:
    """A token for each character, but one for "lo", behind the token that begins a text."""
    return [0, *map(VOCABULARY.index, re.findall("lo|.", text))]


@lru_cache(maxsize=10_000)
def predict(ids: tuple[int, ...]) -> dict[int, float]:
    """The log-probabilities of the token behind some others."""
    seeds = [hashlib.sha256(f"{ids[-4:]} {number}".encode()).digest() for number in range(1, len(VOCABULARY))]
    logits = [seed[0] / 40 + seed[1] / 10_000 for seed in seeds]
    whole = math.log(sum(map(math.exp, logits)))
    return {number: logit - whole for number, logit in enumerate(logits, 1)}


def find_best(ids: list[int]) -> tuple[int, float]:
    return max(predict(tuple(ids)).items(), key=lambda pair: pair[1])


def read(ids: list[int]) -> Values:
    places = range(1, len(ids))
    values = [None, *(predict(tuple(ids[:place]))[ids[place]] for place in places)]
    return values, [None, *(find_best(ids[:place]) for place in places)], ids, find_best(ids)


def score(context: str, text: str) -> float:
    whole, start = encode(context + text), len(encode(context))
    return math.fsum(predict(tuple(whole[:place]))[whole[place]] for place in range(start, len(whole)))


BREAKS: dict[str, tuple[Callable[..., Values], str]] = {
    "an entry is missing": (lambda v, t, i, g: (v[:-1], t[:-1], i[:-1], g), "count echo"),
    "no entry": (lambda v, t, i, g: ([], [], [], g), "count"),
    "no null": (lambda v, t, i, g: ([-1.0, *v[1:]], [(i[0], -1.0), *t[1:]], i, g), "first token"),
    "two nulls": (lambda v, t, i, g: ([None, None, *v[2:]], t, i, g), "first token"),
    "another token": (lambda v, t, i, g: (v, t, [*i[:-1], i[-1] % 90 + 2], g), "echo"),
    "not represented": (lambda v, t, i, g: ([*v[:-1], -9999.0], t, i, g), "values"),
    "positive": (lambda v, t, i, g: ([*v[:-1], 0.5], t, i, g), "values shift"),
    "zeros": (
        lambda v, t, i, g: ([None] + [0.0] * len(v[1:]), [None] + [(j, 0.0) for j in i[1:]], i, g),
        "values",
    ),
    "late": (lambda v, t, i, g: ([None, -3.3, *v[1:-1]], t, i, g), "shift,known answer"),
    "early": (lambda v, t, i, g: ([None, *v[2:], g[1]], [None, *t[2:], g], i, g), "shift,chain"),
    "another generated": (lambda v, t, i, g: (v, t, i, (g[0], g[1] - 1.5)), "known answer"),
    "halved": (
        lambda v, t, i, g: ([None, *(x / 2 for x in v[1:])], [None, *((j, x / 2) for j, x in t[1:])], i, g),
        "known answer",
    ),
    "what follows": (
        lambda v, t, i, g: ([None, *(x - len(v) / 9 for x in v[1:])], [None] * len(v), i, g),
        "known answer,chain",
    ),
}
"""What is broken in the values → the checks that may find it."""


class _Server(BaseHTTPRequestHandler):
    break_values: Callable[..., Values] = read
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Write nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        _, kind, *path = self.path.split("/")
        reply = json.dumps(getattr(self, f"answer_{path[-1]}")(kind, body)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def read(self, ids: list[int]) -> Values:
        return type(self).break_values(*read(ids))

    def answer_tokenize(self, kind: str, body: Any) -> Any:
        ids = encode(body.get("prompt", body.get("inputs", body.get("content"))))
        return (
            [{"id": number, "text": VOCABULARY[number]} for number in ids]
            if kind == "tgi"
            else {"tokens": ids}
        )

    def answer_completions(self, kind: str, body: Any) -> Any:
        sent = body["prompt"] if isinstance(body["prompt"], list) else encode(body["prompt"])
        values, tops, ids, (written, logprob) = self.read(sent)
        usage = {"prompt_tokens": len(sent), "completion_tokens": 1, "total_tokens": len(sent) + 1}
        reply: Any = {"model": "toy", "usage": usage, "metadata": {"weight_version": "7"}}
        names, new = [VOCABULARY[number] for number in ids], VOCABULARY[written]
        if kind == "together_ai":
            prompt = {"tokens": names, "token_logprobs": values, "token_ids": ids}
            after = {"tokens": [new], "token_logprobs": [logprob], "token_ids": [written]}
            return {**reply, "prompt": [{"logprobs": prompt}], "choices": [{"text": new, "logprobs": after}]}
        if not body.get("echo"):
            names, values = [], []
        likeliest = [top and {VOCABULARY[top[0]]: top[1]} for top in tops if names]
        arrays = {"tokens": [*names, new], "token_logprobs": [*values, logprob]}
        choice = {"text": new, "logprobs": {**arrays, "top_logprobs": [*likeliest, {new: logprob}]}}
        if kind == "fireworks_ai":
            choice["logprobs"]["token_ids"] = [*ids, written]
        if body.get("return_token_ids"):
            choice |= {"prompt_token_ids": ids, "token_ids": [written]}
        if "prompt_logprobs" in body:
            choice["prompt_logprobs"] = self._list_by_id(sent)
        return {**reply, "choices": [choice]}

    def _list_by_id(self, sent: list[int]) -> list[Any]:
        """vLLM's form: the likeliest tokens, and the own one where it is none of them."""
        listed: list[Any] = []
        values, tops, ids, _ = self.read(sent)
        for number, value, top in zip(ids, values, tops, strict=True):
            entries = {} if top is None else {top[0]: (top[1], 1)}
            entries.setdefault(number, (value, 7))
            if top is not None and top[0] == number:
                entries[number] = (value, 1)
            listed.append(None if value is None else {
                str(each): {"logprob": own, "rank": rank, "decoded_token": VOCABULARY[each]}
                for each, (own, rank) in entries.items()
            })  # fmt: skip
        return listed

    def answer_generate(self, kind: str, body: Any) -> Any:
        sent = body["input_ids"] if kind == "sglang" else encode(body["inputs"])
        values, tops, ids, (written, logprob) = self.read(sent)
        names, new = [VOCABULARY[number] for number in ids], VOCABULARY[written]
        if kind == "tgi":
            prefill = [
                {"id": number, "text": name, "logprob": value}
                for number, name, value in zip(ids, names, values, strict=True)
            ]
            tokens = [{"id": written, "text": new, "logprob": logprob, "special": False}]
            details = {"generated_tokens": 1, "prefill": prefill, "tokens": tokens}
            return {"generated_text": new, "details": details}
        return {"text": new, "meta_info": {
            "id": "a", "prompt_tokens": len(sent), "completion_tokens": 1, "weight_version": "7",
            "input_token_logprobs": list(zip(values, ids, names, strict=True)),
            "output_token_logprobs": [[logprob, written, new]],
            "input_top_logprobs": [top and [[top[1], top[0], VOCABULARY[top[0]]]] for top in tops],
        }}  # fmt: skip

    def answer_completion(self, kind: str, body: Any) -> Any:
        _, _, ids, (written, logprob) = read(body["prompt"])
        listed = [
            {"id": number, "token": VOCABULARY[number], "logprob": value}
            for number, value in predict(tuple(ids)).items()
        ]
        own = {"id": written, "token": VOCABULARY[written], "logprob": logprob, "top_logprobs": listed}
        return {"model": "toy", "tokens_evaluated": len(ids), "completion_probabilities": [own]}


@pytest.fixture
def server() -> Iterator[type[_Server]]:
    class Server(_Server):
        @staticmethod
        def break_values(*values: Any) -> Values:
            return values  # type: ignore[return-value]  # as they are

        url = ""

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as http:
        Server.url = f"http://127.0.0.1:{http.server_address[1]}"
        Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield Server
        http.shutdown()


@pytest.fixture
def client(server: Any, own_cache: Path) -> Iterator[Client]:
    prices = {"*": {"input": 1.0, "output": 1.0}}
    hosts = [
        Host(name, f"{server.url}/{name}/v1", dialect, prices=prices) for name, dialect in DIALECTS.items()
    ]
    with Client(hosts=hosts, cache_dir=own_cache, max_retries=0) as client:
        yield client


def ask(client: Client, server: Any, name: str, method: Any, context: str = "Say hel", **more: Any) -> Any:
    where = {} if name in DIALECTS else {"base_url": f"{server.url}/{name}/v1", "api_key": "k"}
    return client.score(f"{name}/toy", context, more.pop("texts", TEXTS), method=method, **where, **more)


@pytest.mark.parametrize(("name", "method"), WAYS)
@pytest.mark.sampled(3)
def test_right_values_their_ids_and_who_answered(client: Client, server: Any, name: str, method: Any) -> None:
    scores = ask(client, server, name, method, check_order=True)
    assert scores.logprobs == pytest.approx([score("Say hel", text) for text in TEXTS])
    assert [value.token_ids for value in scores] == [tuple(encode(text)[1:]) for text in TEXTS]
    if name == "sglang":
        assert scores.served_by.snapshot == "7"
    assert ask(client, server, name, method, cache="only").served_by == scores.served_by
    # "lo" begins within the context: no token is the continuation's, or the border is another one.
    with pytest.raises(ScoreCheckError, match="check 'slice'"):
        ask(client, server, name, method, "Say hell", texts=["o"])
    if name in DIALECTS:
        [value] = ask(client, server, name, method, "Say hell", texts=["oX"])
        assert (value.same_boundary, value.tokens) == (False, ("X",))


@pytest.mark.parametrize(
    ("name", "method", "broken"),
    [
        pytest.param(*way, broken, marks=[pytest.mark.long] * (place % 5 > 0))
        for place, (way, broken) in enumerate(
            (way, broken) for way in WAYS if way[0] != "llama" for broken in BREAKS
        )
    ],
)
def test_no_broken_server_scores(client: Client, server: Any, name: str, method: Any, broken: str) -> None:
    server.break_values, checks = staticmethod(BREAKS[broken][0]), BREAKS[broken][1]
    with pytest.raises(ScoreCheckError) as caught:
        ask(client, server, name, method)
    assert caught.value.check in checks
    assert client.cache.stats().entries == 0
