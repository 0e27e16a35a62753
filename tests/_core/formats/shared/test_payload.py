"""The parameters that few calls set, facts about requests in one vocabulary, and who answered."""

import ast
import csv
import json
import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import llm_provider
from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import Client, Response, Results, ServedBy
from llm_provider._core.formats import registry
from llm_provider._core.formats.anthropic import encode as anthropic
from llm_provider._core.formats.gemini import encode as gemini
from llm_provider._core.formats.openai_chat import encode as chat
from llm_provider._core.formats.openai_responses import encode as responses
from llm_provider._core.formats.shared import payload
from llm_provider._core.formats.shared.payload import find_words, largest_limit, read_fields, read_origin
from llm_provider._core.journey.chat import CHAT as CHAT_OPERATION
from llm_provider._core.pace.call_limits import UNBOUNDED
from llm_provider._core.requests.parameter_table import PARAMETERS
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._core.store.entry import decode_entry, decode_question, encode_entry
from llm_provider._core.store.store import Store
from llm_provider._features.cli.main import main
from llm_provider._features.litellm import encode as litellm
from llm_provider.simulator import Simulator
from llm_provider.simulator.formats.openai_chat import make_token_ids
from openai_support import JSON_VALUES
from raw_server import RawServer, streaming
from support import ask, ignore, parse_module

FORMATS = (chat, responses, anthropic, gemini, litellm)


def test_a_parameter_that_some_format_has_has_a_remedy_for_the_others() -> None:
    sent = {name for name, row in PARAMETERS.items() if row.remedy}
    assert set().union(chat.OF_HOSTS, *(form.ACCEPTS for form in FORMATS)) == sent


OBJECTS = st.dictionaries(st.text(max_size=2), JSON_VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_the_users_value_wins_and_nothing_else_is_lost(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    before = repr((ours, theirs))
    merged = payload.merge(ours, theirs)
    assert repr((ours, theirs)) == before
    assert merged.keys() == ours.keys() | theirs.keys()
    for name, value in merged.items():
        if name not in theirs:
            assert value is ours[name]
        elif not isinstance(ours.get(name), dict) or not isinstance(theirs[name], dict):
            assert value is theirs[name]
        else:
            assert value.keys() == ours[name].keys() | theirs[name].keys()


PACKAGE = Path(llm_provider.__file__).parent
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["1h", "audio", "text", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["audio", "ttl"]), inner, max_size=2)
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def maker() -> Iterator[Client]:
    with Client(cache="off") as client:
        yield client


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini", "litellm"])
def test_the_facts_name_the_service_level_that_the_adapter_names(maker: Client, name: str) -> None:
    model = {"openai": "gpt-5.5", "anthropic": "claude-opus-5-5", "gemini": "gemini-3.8-flash"}.get(
        name, "litellm/anthropic/claude-opus-5-5"
    )
    field = {"openai": "service_tier", "gemini": "serviceTier"}.get(name, "speed")
    request = Request.build(model, "Hi", {"extra_body": {field: "fast" if field == "speed" else "flex"}})
    call = maker._engine.prepare(CHAT_OPERATION, request, UNBOUNDED)
    assert call.adapter is registry.load(name, call.target.quirks)
    assert call.adapter.variant(call.encoded) == call.facts().variant != "standard"


def test_the_largest_limit_counts_and_nonsense_does_not() -> None:
    assert largest_limit(None, 50, 70, "90", 1.5) == 70
    assert largest_limit(None, "90") is None


@given(st.dictionaries(st.sampled_from(["audio", "x"]), JSON_VALUES, max_size=3))
def test_a_word_is_found_wherever_json_holds_it(payload: dict[str, Any]) -> None:
    text = ast.dump(ast.parse(repr(payload)))
    assert find_words(payload, "1h", "audio") == {word for word in ("1h", "audio") if f"'{word}'" in text}


# Names that the formats have for facts, which all other code has to ask an adapter for.
# fmt: off
WIRE_FIELDS = frozenset(
    {"annotations", "cache_control", "cachedContent", "container", "contents", "fileData", "file_data",
     "functionDeclarations", "generationConfig", "generation_config", "groundingMetadata",
     "image_generation_call", "image_url", "inlineData",
     "input_audio", "input_file", "input_image", "input_schema", "maxOutputTokens",
     "max_completion_tokens", "mcp_servers", "mediaResolution", "mimeType", "modalities",
     "output_config", "plugins", "prediction", "previous_response_id", "responseJsonSchema",
     "responseModalities", "search_parameters", "server_tool_use", "serviceTier", "service_tier", "speed",
     "systemInstruction", "tool_use_id", "ttl", "video_url", "web_search_options"}
)
# fmt: on

# These hold wire formats, and OpenAI's parameters, which users pass.
# The integrations read the formats of other tools, which took names from providers. Spans hold messages as
# users write them, and who answered as `ServedBy` names it. A check asks in the users' words, and a report of
# what was billed has fields of its own. Prices and the view of a client name the parameters of calls.
MAY_NAME_FIELDS = (
    "_core/formats", "simulator", "_core/requests", "_features/telemetry/spans.py", "_features/check",
    "_features/reconcile/usage_reports.py", "integrations", "_features/background", "_features/clouds",
    "_features/decide", "_features/fresh_prices", "_features/views/client_view.py",
    "_features/foreign", "_features/hosts", "_features/litellm", "_features/models", "_features/quirks",
    "_features/prompt_caching", "_features/rich_content", "_features/score", "_features/uploads",
)  # fmt: skip

# Columns of prices.csv, and of the table of models.
COLUMNS = frozenset({"input_audio", "input_image", "modalities"})


def literals(path: Path) -> Iterator[str]:
    for node in ast.walk(parse_module(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node.value.decode(errors="replace").strip('"')


def test_wire_fields_are_named_in_the_folders_of_their_formats_only() -> None:
    named = {
        f"{path.relative_to(PACKAGE).as_posix()}: {literal}"
        for path in PACKAGE.rglob("*.py")
        if not path.relative_to(PACKAGE).as_posix().startswith(MAY_NAME_FIELDS)
        for literal in literals(path)
        if literal in WIRE_FIELDS - COLUMNS
    }
    assert named == set()


pytestmark = IGNORED_WARNINGS

REGION = "simulated-region-1"
OSS = "openai/gpt-oss-120b"
OPENAI = {"engine": "vllm", "engine_version": "0.21.0"}
METADATA = {"extra_headers": {"X-OpenRouter-Metadata": "enabled"}}
CHAT: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "gpt-4o": (OPENAI | {"service_tier": "default"}, {"endpoint": "chat"}),
    "gpt-6.1-sol": ({"service_tier": "default"}, {"endpoint": "responses"}),
    "azure/gpt-6.1-sol": (
        {"snapshot": "gpt-6.1-sol-2026-10-21", "service_tier": "default", "region": REGION},
        {"endpoint": "responses"},
    ),
    "azure/gpt-4o": (OPENAI | {"host": "gpt-4o", "region": REGION}, {"endpoint": "chat"}),
    "claude-opus-5-5": ({"service_tier": "standard", "region": "global"}, {}),
    "bedrock/us.anthropic.claude-opus-5-5-v1:0": ({"service_tier": "standard", "region": "global"}, {}),
    "gemini-3.8-flash": ({"service_tier": "standard"}, {}),
    f"openrouter/{OSS}": (OPENAI | {"host": "DeepInfra", "region": REGION}, METADATA),
    f"groq/{OSS}": (OPENAI | {"region": REGION, "service_tier": "on_demand"}, {}),
    f"together_ai/{OSS}": ({}, {}),
    "fireworks_ai/glm-5p3": (OPENAI | {"host": "accounts/simulator/deployments/1"}, {}),
    "xai/grok-5": (OPENAI, {}),
    "deepseek/deepseek-chat": (OPENAI, {}),
    "mistral/mistral-large-2512": ({"snapshot": "mistral-large-2512"}, {}),
    f"huggingface/{OSS}": (OPENAI | {"host": "deepinfra"}, {}),
    "local/x": (OPENAI, {}),
    "litellm/openai/gpt-4o": (OPENAI | {"service_tier": "default"}, {}),
    "litellm/anthropic/claude-opus-5-5": ({}, {}),
}
"""Model → what the simulator says besides the model and identifiers."""
OF_EACH = ("model", "request_id", "fingerprint")
CLAUDE = "claude-opus-5-5"
BATCHES = ("gpt-4o", CLAUDE, "gemini-3.8-flash", f"groq/{OSS}", f"together_ai/{OSS}")
WAYS = ("live", "stream", "hit", "old entry", "dict")
HEADERS_ONLY = {"region", "host", "request_id", "snapshot", "service_tier"}


@pytest.fixture
def honest(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    simulator.configure(fingerprints="vllm-0.21.0-tp8-1a2b3c4d", upstreams=1)
    return simulator


def forget_origins(cache: Path) -> None:
    """Write the entries as a version without origins wrote them."""
    with closing(Store(cache, ignore)) as store:
        rows = [(key, decode_entry(key, value), decode_question(key, value)) for key, value in store.items()]
        store.delete([key for key, _, _ in rows])
        for key, entry, question in rows:
            assert entry is not None
            value = encode_entry(key, entry._replace(origin=None), orjson.dumps(question))
            assert b'"origin"' not in value
            store.insert([(key, value, None)])


CLAUDE_REPLY = {"type": "message", "model": "claude-opus-5-5"}
IDENTIFIERS = {"request-id": "1", "apim-request-id": "2", "x-amzn-requestid": "3", "x-ms-region": "eastus2"}
TOLD: list[tuple[str, dict[str, str], dict[str, Any], dict[str, str]]] = [
    ("azure_ai/claude-opus-5-5", IDENTIFIERS, CLAUDE_REPLY, {"request_id": "2", "region": "eastus2"}),
    ("vertex_ai/claude-opus-5-5", IDENTIFIERS, CLAUDE_REPLY, {"request_id": "1", "region": "global"}),
    (
        "bedrock/anthropic.claude-opus-5-5",
        IDENTIFIERS,
        CLAUDE_REPLY,
        {"request_id": "3", "region": "us-east-1"},
    ),
    ("mistral/x", {"mistral-correlation-id": "4"}, {}, {"request_id": "4"}),
    ("litellm/huggingface/x", {"x-inference-provider": "nebius"}, {}, {"host": "nebius"}),
    ("local/x", {"x-request-id": ""}, {"system_fingerprint": 7, "service_tier": {}, "metadata": "x"}, {}),
]
"""Model, headers and reply → what they tell besides the model and the fingerprint."""


@pytest.mark.parametrize(("model", "headers", "reply", "expected"), TOLD)
def test_what_is_not_told_is_none(
    model: str, headers: dict[str, str], reply: Any, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("AWS_REGION", "us-east-1"),
        ("GOOGLE_CLOUD_PROJECT", "p"),
        ("ANTHROPIC_FOUNDRY_RESOURCE", "r"),
    ):
        monkeypatch.setenv(name, value)
    who = read_fields(model.partition("/")[0], reply, read_origin(resolve(model), headers))
    assert {name: who[name] for name in who if name not in ("model", "fingerprint")} == expected


def read_who(answer: Any) -> dict[str, str]:
    served_by = answer.served_by
    assert isinstance(served_by, ServedBy)
    return {name: value for name, value in served_by.to_dict().items() if name not in OF_EACH}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "model", [pytest.param(model, marks=needs_litellm if "litellm" in model else ()) for model in CHAT]
)
@pytest.mark.sampled(7)
def test_every_answer_says_who_gave_it(model: str, way: str, honest: Simulator, own_cache: Path) -> None:
    expected, parameters = CHAT[model]
    with Client(cache_dir=own_cache, telemetry=False) as client:
        answer = ask(client, "stream" if way == "stream" else "call", model, "Hi", **parameters)
    assert answer.served_by.request_id, "every provider names its request"
    if way in ("hit", "old entry"):
        if way == "old entry":
            forget_origins(own_cache)
        first = answer
        with Client(cache_dir=own_cache, telemetry=False) as client:
            answer = ask(client, "call", model, "Hi", **parameters)
        assert answer.cached
        if way == "hit":
            assert answer.served_by == first.served_by
        else:
            expected = {name: expected[name] for name in expected if name not in HEADERS_ONLY}
            assert expected.items() <= answer.served_by.to_dict().items() <= first.served_by.to_dict().items()
            return
    if way == "dict":
        answer = Response.from_dict(json.loads(json.dumps(answer.to_dict())))
        answer = pickle.loads(pickle.dumps(answer))
    assert read_who(answer) == expected


REPLIES = st.fixed_dictionaries({}, optional={
    "model": st.sampled_from(("m", "m-2026-10-21")), "system_fingerprint": st.sampled_from(("a", "b", 1)),
    "provider": st.sampled_from(("h", None)), "modelVersion": st.just("m"), "id": st.text(max_size=2),
    "metadata": st.sampled_from(({}, {"weight_version": "7"}, "text")), "type": st.just("message"),
    "meta_info": st.fixed_dictionaries({"weight_version": st.sampled_from(("7", "8"))}),
})  # fmt: skip
ORIGINS = st.sampled_from((None, {"host": "h"}, {"host": "g", "region": "x"}, {"snapshot": "m-2026-10-21"}))


@given(st.sampled_from(("openai", "openrouter", "gemini", "unheard")), REPLIES, REPLIES, ORIGINS, ORIGINS)
@example("openrouter", {"model": "m", "provider": "h"}, {"provider": "other"}, None, None)
def test_replies_with_equal_marks_name_the_same_model_and_machine(
    provider: str, reply: dict[str, Any], other: dict[str, Any], origin: Any, another: Any
) -> None:
    def describe(reply: dict[str, Any], origin: Any) -> tuple[object, object]:
        fields = read_fields(provider, reply, origin)
        identity = [fields.get(name) for name in ("model", "snapshot", "fingerprint", "host")]
        return payload.find_marks(None, reply, origin), identity

    marks, identity = describe(reply, origin)
    changed = [({**reply, name: value}, origin) for name, value in other.items()]
    dropped = [({own: reply[own] for own in reply if own != name}, origin) for name in reply]
    for each in (*changed, *dropped, (reply, another)):
        others, now = describe(*each)
        assert others != marks or now == identity


@needs_litellm
@pytest.mark.parametrize(
    "provider", ["openrouter", "groq", "huggingface", "deepseek", "fireworks_ai", "local"]
)
def test_streams_through_litellm_say_who_answered_although_its_parsers_drop_it(
    provider: str, honest: Simulator, client: Client
) -> None:
    model = f"litellm/{'hosted_vllm' if provider == 'local' else provider}/{OSS}"
    for way in ("call", "stream"):
        who = ask(client, way, model, way, base_url=honest.url(provider), api_key="sk-x").served_by
        assert OPENAI.items() <= who.to_dict().items(), way
        if provider in ("openrouter", "huggingface"):
            assert str(who.host).lower() == "deepinfra"


@pytest.mark.parametrize("model", BATCHES)
def test_rows_of_batches_and_embeddings_say_it_too(model: str, honest: Simulator, own_cache: Path) -> None:
    expected, parameters = CHAT[model]
    honest.configure(batch_seconds=0.1)
    with Client(cache_dir=own_cache, telemetry=False) as client:
        [answer] = client.call_many(model, ["Hi"], delivery="batch", progress=False, **parameters)
        assert isinstance(answer, Response)
        if model == CLAUDE:
            expected = expected | {"service_tier": "batch"}
        assert read_who(answer).items() <= expected.items()
        assert answer.served_by is not None
        assert answer.served_by.request_id or model == CLAUDE
        assert answer.prompt == "Hi"
        if model == "gpt-4o":
            vectors = [client.embed("text-embedding-3-small", ["a"]) for _ in range(2)]
            assert vectors[1].cached
            assert vectors[0].served_by == vectors[1].served_by
            assert vectors[0].served_by is not None
            assert vectors[0].served_by.request_id


IDS = {"return_token_ids": True}
TOKEN_IDS: dict[str, dict[str, Any]] = {
    "local/x": {"extra_body": IDS},
    "fireworks_ai/glm-5p3": {"extra_body": IDS},
    f"groq/{OSS}": {"extra_body": {"debug": True}},
    f"together_ai/{OSS}": {"logprobs": True},
}


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize("model", TOKEN_IDS)
def test_token_ids_are_fields_and_columns(model: str, way: str, honest: Simulator, own_cache: Path) -> None:
    honest.configure(answer="two words", chunks=1)
    with Client(cache_dir=own_cache, telemetry=False) as client:
        answers = [ask(client, way, model, "Hi", **TOKEN_IDS[model]) for _ in range(2)]
        plain = client.call(model, "Hi")
    for answer in answers:
        assert answer.token_ids == tuple(make_token_ids("two words"))
        # Together's are with `echo` alone.
        assert bool(answer.prompt_token_ids) is ("together" not in model)
    assert plain.token_ids is plain.prompt_token_ids is None
    table = Results([answers[0], plain]).to_pandas()
    assert list(table["token_ids"]) == [answers[0].token_ids, None]
    assert "token_ids" not in Results([plain]).to_pandas()


def test_what_the_first_and_the_last_chunk_of_groq_tell_is_put_together() -> None:
    first = {"id": "1", "debug": {"input_token_ids": [1, 2]}}
    last = {"id": "1", "debug": {"output_token_ids": [3]}}
    pieces = [{"delta": {"content": "Hi"}}, {"delta": {}, "finish_reason": "stop"}]
    events = [{"x_groq": own, "choices": [piece]} for own, piece in zip((first, last), pieces, strict=True)]
    with RawServer(streaming(events)) as server, Client(cache="off") as client:
        answer = ask(client, "stream", "groq/x", "Hi", base_url=server.root, api_key="k")
    assert (answer.prompt_token_ids, answer.token_ids) == ((1, 2), (3,))


def test_the_prompt_and_who_answered_are_in_every_export(
    honest: Simulator, own_cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = f"openrouter/{OSS}", tmp_path / "results.jsonl"
    with Client(cache_dir=own_cache, telemetry=False) as client:
        live = client.call_many(model, ["Hi", "Ho"], upstream="deepinfra/fp8", progress=False)
        stored = client.call_many(model, ["Hi", "Ho"], upstream="deepinfra/fp8", progress=False)
        system = client.call_many(model, ["Hi"], system="Be brief", n=2, progress=False)
    assert all(result.cached for result in stored)
    live.to_jsonl(file)
    for results in (live, stored, Results.from_jsonl(file)):
        table = results.to_pandas()
        assert list(table["prompt"]) == ["Hi", "Ho"]
        assert list(table["served_by.host"]) == ["DeepInfra"] * 2
        columns = list(table.columns)
        assert columns.index("prompt") < columns.index("served_by.host") < columns.index("price")
    messages = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hi"}]
    assert list(map(json.loads, system.to_pandas()["prompt"])) == [messages] * 2
    source, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    source.write_text('"Hi"\n"Ho"\n')
    options = ["map", model, str(source), str(out), "--param", 'upstream="deepinfra/fp8"']
    assert main(options) == 0
    [first, _] = csv.DictReader(out.read_text().splitlines())
    assert (first["prompt"], json.loads(first["served_by"])["host"]) == ("Hi", "DeepInfra")
    capsys.readouterr()
    assert main(["usage", str(file), str(out), "--by", "host", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["host"], row["requests"], row["hits"]) for row in rows] == [("DeepInfra", 2, 2)]
