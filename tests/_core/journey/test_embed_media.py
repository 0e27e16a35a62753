"""Embeddings of images: what each host is sent, in every way of calling, and what it costs."""

import asyncio
import base64
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import (
    APIResponseValidationError,
    Budget,
    BudgetExceededError,
    CacheMissError,
    Client,
    Ledger,
    RequestError,
)
from llm_provider._core.requests.attachments import Attachment
from llm_provider._core.requests.media import MOST_BYTES, Contents
from llm_provider.simulator import Simulator
from vector_server import IMAGE_PRICE, IMAGE_TOKENS, VectorServer, serving_vectors, vector

pytestmark = IGNORED_WARNINGS

GEMINI = "gemini/gemini-embedding-2"
RED, BLUE = (b"\x89PNG\r\n\x1a\n" + bytes([colour]) * 30 for colour in (1, 2))
URLS = [f"data:image/png;base64,{base64.b64encode(image).decode()}" for image in (RED, BLUE)]
INLINE = [{"inlineData": {"mimeType": "image/png", "data": url.partition(",")[2]}} for url in URLS]
VOYAGE = [{"type": "image_base64", "image_base64": url.partition(",")[2]} for url in URLS]


@pytest.fixture
def server() -> Iterator[VectorServer]:
    with serving_vectors() as running:
        yield running


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(cache_dir=tmp_path / "cache", ledger=tmp_path / "ledger") as made:
        yield made


def here(server: VectorServer, model: str = GEMINI) -> dict[str, Any]:
    paths = {"cohere": "/v2/embed", "voyage": "/v1", "jina_ai": "/v1"}
    return {"base_url": server.root + paths.get(model.partition("/")[0], ""), "api_key": "sk-x"}


def write(form: Any) -> str:
    return json.dumps(form, sort_keys=True)


def embed(way: str, client: Client, *args: Any, **parameters: Any) -> Any:
    if way == "embed":
        return client.embed(*args, **parameters)
    return asyncio.run(client.aembed(*args, **parameters))


# Model, the forms of a text and of two images, and of both together where the model takes that.
HOSTS: Any = [
    (GEMINI, lambda text: [{"text": text}], [[each] for each in INLINE], [{"text": "a"}, INLINE[0]]),
    pytest.param(
        "voyage/voyage-multimodal-3.5",
        lambda text: {"content": [{"type": "text", "text": text}]},
        [{"content": [each]} for each in VOYAGE],
        {"content": [{"type": "text", "text": "a"}, VOYAGE[0]]},
        marks=needs_litellm,
    ),
    pytest.param("cohere/embed-v4.0", lambda text: text, URLS, None, marks=needs_litellm),
    pytest.param(
        "jina_ai/jina-clip-v2",
        lambda text: {"text": text},
        [{"image": url.partition(",")[2]} for url in URLS],
        None,
        marks=needs_litellm,
    ),
]


@pytest.mark.parametrize("way", ["embed", "aembed"])
@pytest.mark.parametrize(("model", "text", "images", "both"), HOSTS)
def test_mixed_inputs_keep_their_order_and_are_sent_once(
    client: Client, server: VectorServer, way: str, model: str, text: Any, images: Any, both: Any
) -> None:
    inputs = ["a", RED, "b", BLUE, RED, *([["a", RED]] if both else [])]
    forms = [text("a"), images[0], text("b"), images[1], images[0], *([both] if both else [])]
    found = embed(way, client, model, inputs, **here(server, model))
    assert list(found.vectors) == [pytest.approx(vector(form), abs=1e-7) for form in forms]
    sent = [each for request in server.asked for each in request]
    assert sorted(map(write, sent)) == sorted(set(map(write, forms))), "each once"
    again = embed(way, client, model, [*inputs[::-1], "c"], **here(server, model))
    assert again.vectors[:-1] == found.vectors[::-1]
    assert [request for request in server.asked if text("c") in request] == [[text("c")]]
    assert embed(way, client, model, inputs, cache="only", **here(server, model)).cached
    with pytest.raises(CacheMissError):
        embed(way, client, model, [RED + b"!"], cache="only", **here(server, model))


def test_the_ledger_has_the_bill(client: Client, server: VectorServer, tmp_path: Path) -> None:
    found = client.embed(GEMINI, ["a", RED, ["both", BLUE], "b"], **here(server))
    assert len(server.asked) == 2, "texts and media are apart"
    assert found.usage.image_input_tokens == 2 * IMAGE_TOKENS
    assert found.cost == pytest.approx(float(server.bill), abs=1e-15)
    assert Ledger.read(tmp_path / "ledger").spent == server.bill
    alone = client.embed(GEMINI, [RED], **here(server))
    assert (alone.cost, alone.usage.image_input_tokens > 0, alone.price is not None) == (0, True, True)


def test_a_cost_that_nothing_tells_is_unknown(client: Client, server: VectorServer) -> None:
    server.tells_details = False
    assert client.embed(GEMINI, ["a"], **here(server)).cost is not None
    found = client.embed(GEMINI, [RED], **here(server))
    assert (found.cost, found.usage.input_tokens) == (None, IMAGE_TOKENS)


def test_budgets_and_estimates_have_the_price_of_images(client: Client, server: VectorServer) -> None:
    estimate = client.estimate(GEMINI, [RED, "a", RED], **here(server))
    assert (estimate.inputs, estimate.duplicates, estimate.requests) == (3, 1, 2)
    assert estimate.cost is not None
    assert estimate.cost.likely >= float(IMAGE_PRICE) * IMAGE_TOKENS
    with pytest.raises(BudgetExceededError):
        client.embed(GEMINI, [RED], budget=Budget(float(IMAGE_PRICE) * IMAGE_TOKENS / 2), **here(server))
    assert not server.asked
    client.embed(GEMINI, [RED], budget=Budget(0.1), **here(server))
    assert client.estimate(GEMINI, [RED, "a"], **here(server)).cached == 1


@pytest.mark.parametrize(
    ("model", "given", "problem"),
    [
        ("text-embedding-3-small", RED, r"inputs\[1\] is no text, and the embeddings of openai"),
        ("mistral/mistral-embed", RED, r"inputs\[1\] is no text, and the embeddings of mistral"),
        ("gemini/gemini-embedding-001", RED, r"inputs\[1\] is no text, and gemini/gemini-embedding-001"),
        ("cohere/embed-v4.0", ["x", RED], r"inputs\[1\] cannot .* takes a text or one image as a file"),
        (
            "jina_ai/jina-clip-v2",
            {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}},
            "as a file",
        ),
        ("voyage/voyage-3", RED, "takes texts alone"),
        ("voyage/voyage-multimodal-3", b"%PDF-1.7 x", "takes texts and images"),
        (GEMINI, {"role": "user", "content": "x"}, r"inputs\[1\] must be a dict with a 'type'"),
        (GEMINI, [RED, 3.5], r"inputs\[1\]\[1\] must be a str, a Path, bytes"),
        (GEMINI, [1, 2], "token ids"),
        (GEMINI, ["a", "b"], r"inputs\[1\] must be a str"),
        (GEMINI, [], r"inputs\[1\] must be a str"),
        (GEMINI, b"", r"inputs\[1\] is empty bytes"),
        (GEMINI, Path("missing.png"), r"inputs\[1\]: there is no file"),
        (GEMINI, {"type": "text", "text": ""}, r"inputs\[1\] is empty"),
        (GEMINI, {"type": "audio", "x": 1}, r"inputs\[1\]\[0\] is of type 'audio'"),
    ],
)
def test_what_cannot_be_embedded_is_refused_before_anything_is_sent(
    client: Client, server: VectorServer, model: str, given: Any, problem: str
) -> None:
    with pytest.raises(RequestError, match=problem):
        client.embed(model, ["fine", given], **here(server, model))
    assert not server.bodies


def test_batches_take_texts_alone(client: Client, server: VectorServer) -> None:
    with pytest.raises(RequestError, match="batches of embeddings take texts alone"):
        client.embed(GEMINI, ["a", RED], delivery="batch", **here(server))


def test_a_text_file_is_its_text(client: Client, server: VectorServer, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    found = client.embed(GEMINI, ["a", tmp_path / "a.md", {"type": "text", "text": "a"}], **here(server))
    assert [len(request) for request in server.asked] == [1]
    assert found.vectors[0] == found.vectors[1] == found.vectors[2]


def test_requests_are_as_large_as_google_takes(client: Client, server: VectorServer) -> None:
    large = [RED + bytes([number]) * 6_000_000 for number in range(2)]
    found = client.embed(GEMINI, [*large, BLUE], **here(server))
    assert sorted(map(len, server.asked)) == [1, 2]
    assert found.vectors[-1] == vector([INLINE[1]])
    assert all(len(json.dumps(body)) < 20_000_000 for body in server.bodies)


def test_a_failure_loses_no_image_that_was_answered(client: Client, server: VectorServer) -> None:
    server.fault = lambda number: (
        (429, {"retry-after": "0"}, {"error": {"code": 429}}) if number < 2 else None
    )
    found = client.embed(GEMINI, ["a", RED], **here(server))
    assert (len(found.vectors), len(server.asked), found.attempts) == (2, 2, 4)


def test_a_large_file_is_uploaded_once(simulator: Simulator, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    with path.open("wb") as file:
        file.write(RED)
        file.truncate(MOST_BYTES + 1)
    parameters: dict[str, Any] = {"base_url": simulator.url("gemini"), "api_key": "x"}
    first = client.embed(GEMINI, [path, "a", ["caption", path]], **parameters)
    again = client.embed(GEMINI, [["other", path], path], **parameters)
    assert again.vectors[1] == first.vectors[0]
    bodies = [each.body for each in simulator.requests() if each.path.endswith(":batchEmbedContents")]
    parts = [part for body in bodies for entry in body["requests"] for part in entry["content"]["parts"]]
    uris = [part["fileData"]["fileUri"] for part in parts if "fileData" in part]
    assert len(uris) == 3
    assert len(set(uris)) == 1
    with pytest.raises(RequestError, match=r"inputs\[0\]\[0\] is a file .* no files API"):
        client.embed(
            "vertex_ai/gemini-embedding-2", [path], base_url="https://x.org/v1/projects/a/locations/b"
        )


def test_contents_are_known_by_what_they_hold() -> None:
    part = {"type": "image_url", "image_url": {"url": URLS[0]}}
    one, same, other = Contents([part]), Contents([dict(part)]), Contents([part, part])
    assert (one == same, one == other, hash(one) == hash(same)) == (True, False, True)
    copied = pickle.loads(pickle.dumps(one))
    assert (copied, copied.parts, copied.size) == (one, one.parts, one.size)


@pytest.mark.parametrize("model", ["cohere/embed-v4.0", "jina_ai/jina-clip-v2"])
def test_a_text_is_never_taken_for_an_image(client: Client, server: VectorServer, model: str) -> None:
    with pytest.raises(RequestError, match=r"inputs\[1\] begins with 'data:', which litellm takes"):
        client.embed(model, ["fine", "data:text/plain;base64,aGVsbG8="], **here(server, model))
    assert not server.bodies


@needs_litellm
@pytest.mark.parametrize("tokens", [None, 100])
def test_an_image_of_cohere_costs_its_tokens_and_not_one(
    client: Client, server: VectorServer, tokens: int | None
) -> None:
    complete = server.answer

    def bill(path: str, headers: Any, body: Any) -> Any:
        status, fields, reply = complete(path, headers, body)
        reply["meta"]["billed_units"] |= {"image_tokens": tokens} if tokens and "images" in body else {}
        return status, fields, reply

    server.reply = bill
    found = client.embed("cohere/embed-v4.0", [RED], **here(server, "cohere/x"))
    if tokens is None:
        assert found.cost is None, "only the number of images is told"
    else:
        assert (found.cost, found.usage.image_input_tokens) == (pytest.approx(100 * 0.47e-6), 100)


@pytest.mark.parametrize("told", ["nothing", "VIDEO"])
def test_what_has_no_known_price_costs_none(client: Client, server: VectorServer, told: str) -> None:
    complete = server.answer

    def change(path: str, headers: Any, body: Any) -> Any:
        status, fields, reply = complete(path, headers, body)
        if told == "nothing":
            del reply["usageMetadata"]
        else:
            reply["usageMetadata"]["promptTokenDetails"] = [{"modality": "VIDEO", "tokenCount": 258}]
        return status, fields, reply

    server.reply = change
    assert client.embed(GEMINI, [b"\0\0\0\x18ftypmp42" + bytes(20)], **here(server)).cost is None


def test_a_wrong_vector_shifts_no_other(client: Client, server: VectorServer) -> None:
    complete = server.answer

    def lose_one(path: str, headers: Any, body: Any) -> Any:
        status, fields, reply = complete(path, headers, body)
        reply["embeddings"][0] = {"values": []}
        return status, fields, reply

    server.reply = lose_one
    with pytest.raises(APIResponseValidationError):
        client.embed(GEMINI, [RED, BLUE], max_retries=0, **here(server))
    server.reply = complete
    found = client.embed(GEMINI, [BLUE, RED], **here(server))
    assert found.vectors == (vector([INLINE[1]]), vector([INLINE[0]]))


def test_the_estimate_of_an_image_has_its_tokens_and_price(client: Client) -> None:
    estimate = client.estimate(GEMINI, [RED])
    assert estimate.cost is not None
    assert 258 <= estimate.input_tokens.likely < 300
    assert estimate.cost.likely == pytest.approx(estimate.input_tokens.likely * float(IMAGE_PRICE))
    assert client.estimate("voyage/voyage-multimodal-3.5", [RED]).output_tokens.high == 0


def test_large_files_of_one_size_are_told_apart(tmp_path: Path) -> None:
    files = []
    for number in range(2):
        path = tmp_path / f"{number}.png"
        path.write_bytes(bytes([number]) * 9)
        file = Attachment("image/png of 9 bytes", "image/png", 9, str(path))
        files.append(Contents([{"type": "image_url", "image_url": {"url": file}}]))
    assert files[0] != files[1]
