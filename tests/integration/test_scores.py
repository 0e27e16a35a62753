"""`score` against llama.cpp's own server, and the same values from the weights alone, without an engine."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Host, ScoreCheckError

pytestmark = pytest.mark.integration

HEADS = 4
"""Of the model that conftest.py writes."""
TEXTS = [" bast", " é", "x", " bin bor"]


def compute_logprobs(model: Path, ids: list[int]) -> Any:
    """The log-probabilities of all next tokens at each position: a llama's forward pass in NumPy."""
    gguf, np = pytest.importorskip("gguf"), pytest.importorskip("numpy")
    tensors = {tensor.name: tensor.data.astype(np.float64) for tensor in gguf.GGUFReader(model).tensors}
    state = tensors["token_embd.weight"][ids]
    length, width = state.shape
    size = width // HEADS
    angle = np.arange(length)[:, None] * 10_000.0 ** (-np.arange(0, size, 2) / size)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]

    def normalize(values: Any, name: str) -> Any:
        return values / np.sqrt((values * values).mean(-1, keepdims=True) + 1e-5) * tensors[f"{name}.weight"]

    def rotate(values: Any) -> Any:
        heads = values.reshape(length, HEADS, size)
        even, odd = heads[..., ::2], heads[..., 1::2]
        return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(heads.shape)

    for block in (f"blk.{number}" for number in range(2)):
        names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
        weight = {name: tensors[f"{block}.{name}.weight"].T for name in names}
        hidden = normalize(state, f"{block}.attn_norm")
        query, key = rotate(hidden @ weight["attn_q"]), rotate(hidden @ weight["attn_k"])
        value = (hidden @ weight["attn_v"]).reshape(length, HEADS, size)
        logits = np.einsum("ihd,jhd->hij", query, key) / np.sqrt(size)
        logits += np.triu(np.full((length, length), -np.inf), 1)
        chances = np.exp(logits - logits.max(-1, keepdims=True))
        chances /= chances.sum(-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", chances, value).reshape(length, width)
        state = state + mixed @ weight["attn_output"]
        hidden = normalize(state, f"{block}.ffn_norm")
        gate = hidden @ weight["ffn_gate"]
        state = state + (gate / (1 + np.exp(-gate)) * (hidden @ weight["ffn_up"])) @ weight["ffn_down"]
    logits = normalize(state, "output_norm") @ tensors["output.weight"].T
    return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def client(llama_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    host = Host("llama", f"{llama_address}/v1", "llama.cpp", prices={"*": {"input": 1, "output": 1}})
    with Client(hosts=[host], cache_dir=tmp_path_factory.mktemp("cache")) as client:
        yield client


@pytest.mark.parametrize("context", ["ba best", "", "bi "])
def test_the_scores_are_those_of_the_weights(client: Client, model_file: Path, context: str) -> None:
    scores = client.score("llama/tiny", context, TEXTS, check_order=True)
    for score in scores:
        assert score.token_ids is not None
        whole = tokenize(client, context + score.text)
        begin = len(whole) - len(score.token_ids)
        assert score.token_ids == tuple(whole[begin:])
        logprobs = compute_logprobs(model_file, whole)
        wanted = [logprobs[begin + index - 1][token] for index, token in enumerate(score.token_ids)]
        assert score.token_logprobs == pytest.approx(wanted, abs=1e-4)
        assert score.logprob == pytest.approx(sum(wanted), abs=1e-4 * len(wanted))
        assert score.is_greedy is all(
            logprobs[begin + index - 1].argmax() == token for index, token in enumerate(score.token_ids)
        )
    assert client.score("llama/tiny", context, TEXTS, cache="only").logprobs == scores.logprobs


def test_a_token_that_begins_the_text_twice(client: Client) -> None:
    with pytest.raises(ScoreCheckError, match="begin token"):
        client.score("llama/tiny", "<s>x", [" y"])


def test_the_completions_of_this_server_tell_nothing_of_a_prompt(client: Client) -> None:
    """This is why the native endpoint is used: `echo` is ignored with status 200."""
    body = {"model": "tiny", "prompt": "x y", "echo": True, "logprobs": 1, "max_tokens": 1}
    reply = post(client, "/v1/completions", body)
    assert len((reply["choices"][0]["logprobs"] or {"content": []})["content"]) <= 1


def tokenize(client: Client, text: str) -> list[int]:
    ids: list[int] = post(client, "/tokenize", {"content": text, "add_special": True})["tokens"]
    return ids


def post(client: Client, path: str, body: object) -> Any:
    url = client._engine.settings.hosts["llama"].base_url
    assert url is not None
    request = urllib.request.Request(
        url.removesuffix("/v1") + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)
