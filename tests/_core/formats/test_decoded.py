"""What is stored of a decoded answer makes an equal one, by one decoder alone, and may be anything."""

import contextlib
import json
import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import DECODED, changed_answers, completion, decoded_replies
from llm_provider import CacheMissError, Client, LLMError, Response, Timing, UnsupportedParameterError, track
from llm_provider._core.formats import decoded
from llm_provider._core.formats.decoded import DECODERS, describe_body, read_decoded, write_decoded
from llm_provider._core.formats.openai_chat.decode import decode
from llm_provider._core.formats.protocol import Answer, EmbeddingAnswer
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.json_pieces import canonical, loads, write_exactly
from llm_provider._core.store.entry import Row, decode_entry, decode_question, encode_entry, tag_of
from llm_provider._core.store.store import Store
from llm_provider._core.types.messages import AssistantMessage
from llm_provider._core.types.response import Choice
from llm_provider._features.cache_care.maintenance import _digest, read_archive, write_archive
from llm_provider.simulator import Simulator
from support import WAYS, ask

TARGET = resolve("gpt-6.1-sol")

WRITERS: dict[str, Callable[[Any], bytes]] = {
    "short": write_exactly,
    "sorted": canonical,
    "ASCII": lambda reply: json.dumps(reply).encode(),
    "indented": lambda reply: json.dumps(reply, indent=2, ensure_ascii=False).encode(),
}
"""How servers write JSON."""


def restored(answer: Answer, body: bytes) -> Answer | None:
    """The answer from what is stored of it, if that is anything."""
    written = write_decoded(answer, body, TARGET)
    if written is None:
        return None
    read = read_decoded(orjson.loads(orjson.dumps(written)), body, TARGET)
    assert read is not None
    return read


def assert_alike(one: Answer, other: Answer) -> None:
    assert [getattr(one, each.name) for each in fields(Answer)] == [
        getattr(other, each.name) for each in fields(Answer)
    ]
    assert repr(one).removeprefix("Stored") == repr(other)
    for first, second in zip(one.choices, other.choices, strict=True):
        assert type(first.message) is type(second.message)


@pytest.mark.parametrize("form", WRITERS)
def test_answers_of_golden_pairs_are_equal(form: str) -> None:
    count = 0
    for each in decoded_replies():
        try:
            body = WRITERS[form](each.reply)
            each.answer.reply = loads(body)
        except ValueError:  # halves of surrogate pairs, and NaN
            continue
        answer = restored(each.answer, body)
        if answer is not None:
            count += 1
            assert_alike(answer, each.answer)
    assert count > 20


def test_a_decoder_that_makes_something_else_has_another_number() -> None:
    changed = changed_answers()
    assert not changed, (
        f"the decoders make something else of {changed}, and stored answers shall not differ from what is "
        "decoded now: raise DECODERS in formats/decoded.py, then run `python tests/golden.py`"
    )
    known = json.loads(DECODED.read_text(encoding="utf-8"))
    assert known["number"] == DECODERS, "run `python tests/golden.py`, which writes the number"
    now = {each.digests()[0] for each in decoded_replies() if each.is_stored_decoded()}
    assert not now.difference(known["answers"]), "run `python tests/golden.py`, which adds new replies"


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
USAGES = st.none() | st.dictionaries(
    st.sampled_from(("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "cost")),
    st.integers(-1, 5000),
)
REPLIES = st.builds(
    lambda content, usage, names, finish, message, choice: completion(
        choices=[
            {
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish,
                **choice,
            }
        ],
        usage=usage,
        **names,
    ),
    st.none() | TEXTS,
    USAGES,
    st.dictionaries(st.sampled_from(("id", "model", "service_tier")), st.none() | TEXTS),
    st.sampled_from(("stop", "length", "eos", None)),
    st.dictionaries(st.sampled_from(("refusal", "reasoning", "x")), st.none() | TEXTS),
    st.dictionaries(st.just("logprobs"), st.just({"content": [{"token": "a", "logprob": -1.0}]}) | st.none()),
)


@given(REPLIES, st.sampled_from(list(WRITERS)))
def test_answers_of_any_reply_are_equal(reply: Any, form: str) -> None:
    try:
        answer = decode(reply)
    except LLMError:
        return
    answer.reply, body = reply, WRITERS[form](reply)
    again = restored(answer, body)
    if again is not None:
        assert_alike(again, answer)


def test_a_plain_answer_is_stored_decoded_and_others_are_not() -> None:
    def stored(reply: Any) -> bool:
        return restored(decode(reply), write_exactly(reply)) is not None

    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    plain = completion(usage=usage)
    assert stored(plain)
    (choice,) = plain["choices"]
    assert not stored({**plain, "usage": {**usage, "cost": 0.5}})
    assert not stored({**plain, "choices": [choice, {**choice, "index": 1}]})
    assert not stored({**plain, "choices": [{**choice, "finish_reason": "length"}]})
    assert not stored(
        {**plain, "choices": [{**choice, "message": {**choice["message"], "audio": {"id": "a"}}}]}
    )
    assert not stored({**plain, "usage": {}})
    assert not stored({**plain, "id": ""})
    assert not stored({**plain, "id": "\ud800"})
    assert not stored({**plain, "choices": [{**choice, "message": {"content": "x\ud800"}}]})
    body, answer = write_exactly(plain), decode(plain)
    assert describe_body(body, answer, TARGET, {"max_output_tokens": 2})[1] is not None
    assert describe_body(body, answer, TARGET, {"max_output_tokens": 1}) == (True, None)
    assert describe_body(body, EmbeddingAnswer(vectors=[], usage=answer.usage), TARGET, {}) == (True, None)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=12,
)


@given(st.data())
def test_what_another_program_has_written_raises_nothing(data: st.DataObject) -> None:
    body = b'{"content":"Bern"}'
    right: list[Any] = [f"{DECODERS} openai ", 11, 17, "a", "b", "", [1, 2]]
    good = read_decoded(right, body, TARGET)
    assert good is not None
    assert good.choices == (Choice(text="Bern", message=AssistantMessage(role="assistant", content="Bern")),)
    assert (good.id, good.model, good.service_tier) == ("a", "b", None)
    wrong = data.draw(VALUES)
    if data.draw(st.booleans()):
        right[data.draw(st.integers(0, len(right) - 1))] = wrong
        wrong = right
    answer = read_decoded(wrong, body, TARGET)
    if answer is not None:
        assert answer.choices[0].text
        assert {type(each) for each in (answer.id, answer.model, answer.service_tier)} <= {str, type(None)}
        assert answer.usage is not None
        assert type(answer.usage.total_tokens) is int


def test_another_decoder_and_another_number_do_not_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"content":"Bern"}'
    written = [f"{DECODERS} openai ", 11, 17, "", "", "", [1]]
    assert read_decoded(written, body, TARGET) is not None
    assert read_decoded(written, body, resolve("gpt-6.1-sol", "http://127.0.0.1:1")) is None
    assert read_decoded(written, body, resolve("anthropic/claude-sonnet-5-5")) is None
    monkeypatch.setattr(decoded, "DECODERS", DECODERS + 1)
    assert read_decoded(written, body, TARGET) is None


def rewrite(folder: Path, decoded: Any = None, body: bytes | None = None) -> int:
    """Replace what was decoded in all entries of a cache; without it they are as older versions wrote them.

    Returns how many had it.
    """
    store, rows = Store(folder, warn=print), list[Row]()
    for key, value in store.items():
        entry, question = decode_entry(key, value), decode_question(key, value)
        assert entry is not None
        assert question is not None
        if entry.decoded is not None or question["operation"] == "embeddings":
            other = entry._replace(decoded=decoded, body=body or entry.body)
            rows.append((key, encode_entry(key, other, orjson.dumps(question)), tag_of(question)))
    store.insert(rows)
    store.close()
    return len(rows)


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "of a system prompt": {"system": "Be short."},
    "only stored": {"cache": "only"},
    "young": {"max_age": 3600},
    "samples": {"n": 2},
    "tools": {"tools": [WEATHER]},
    "a format": {"response_format": CITY},
    "log probabilities": {"logprobs": True},
    "cut": {"max_tokens": 3},
    "a tier": {"service_tier": "priority"},
}
PLAIN = ("gpt-6.1-sol", "groq/openai/gpt-oss-120b")
MODELS = (*PLAIN, "gpt-6.1-sol", "anthropic/claude-sonnet-5-5", "gemini/gemini-3.8-flash")


def everything(response: Any) -> list[Any]:
    """All that a response tells, but the time that it took."""
    assert response.cached
    timeless = replace(response, timing=Timing())
    again = pickle.loads(pickle.dumps(response))
    assert again == response
    assert again.message == response.message
    assert Response.from_dict(json.loads(json.dumps(response.to_dict()))) == response
    parts = [timeless.to_dict(), repr(timeless), pickle.dumps(timeless), list(map(type, response.choices))]
    parts += [[type(each.message) for each in response.choices], response.text, response.texts, response.raw]
    return [*parts, response.served_by, response.prompt, response.cache_keys, response.origins, str(response)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", CASES)
def test_hits_are_equal_with_and_without_it(
    simulator: Simulator, own_cache: Path, tmp_path: Path, model: str, case: str
) -> None:
    parameters, found = CASES[case], list[Any]()
    if case == "a tier" and model.startswith("g"):
        return
    simulator.configure(cached_tokens=2, fingerprints="fp_1")
    with Client(cache_dir=own_cache) as client:
        buy = {name: value for name, value in parameters.items() if name not in ("cache", "max_age")}
        with contextlib.suppress(UnsupportedParameterError):
            client.call_many(model, ["Where?", "Who?"], progress=False, **buy)
    for attempt in ("with", "without"):
        if attempt == "without" and not rewrite(own_cache):
            assert model not in PLAIN or case not in ("plain", "of a system prompt", "young", "samples")
            return
        ledger = tmp_path / f"{attempt}.jsonl"
        with Client(cache_dir=own_cache, ledger=ledger) as client, track("all") as tracked:
            results: list[Any] = []
            for way in WAYS:
                with contextlib.suppress(UnsupportedParameterError, CacheMissError):
                    results.append(everything(ask(client, way, model, "Where?", **parameters)))
            lines = [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []
            rows = [repr(client.usage.rows("model")), repr(tracked.rows("model"))]
            found.append([results, rows, [{**line, "time": 0, "id": 0} for line in lines]])
    assert found[0] == found[1]


WRONG: tuple[Any, ...] = (
    [], {}, "1 openai", 7, True, [f"{DECODERS} openai None"], [f"{DECODERS} openai None", *"abcdef"],
    [f"{DECODERS} openai None", 0, 10**18, "", "", "", [1]],
    [f"{DECODERS} openai None", "0", None, "", "", "", [1]],
    [f"{DECODERS} openai None", 1, 5, [], [], [], [1]],
    [f"{DECODERS} openai None", 1, 5, "", "", "", [1, 1.5]],
    [f"{DECODERS} openai None", 1, 5, "", "", "", {"input_tokens": 1}],
    [f"{DECODERS} openai None", 1, 5, "", "", "", []],
    [f"{DECODERS + 1} openai None", 1, 5, "", "", "", [1]],
)  # fmt: skip


def test_what_is_wrong_is_not_used(simulator: Simulator, own_cache: Path, tmp_path: Path) -> None:
    with Client(cache_dir=own_cache) as client:
        bought = client.call("gpt-6.1-sol", "1+1?")
    for number, wrong in enumerate(WRONG):
        assert rewrite(own_cache, wrong) == 1
        with Client(cache_dir=own_cache, ledger=tmp_path / f"{number}.jsonl") as client:
            for answer in (client.call("gpt-6.1-sol", "1+1?"), *client.call_many("gpt-6.1-sol", ["1+1?"])):
                assert answer.cached
                assert (answer.text, answer.usage) == (bought.text, bought.usage)


def test_a_body_that_is_no_json_raises_nothing(simulator: Simulator, own_cache: Path, tmp_path: Path) -> None:
    with Client(cache_dir=own_cache) as client:
        client.call("gpt-6.1-sol", "1+1?")
    decoded = [f"{DECODERS} openai None", 4, 10, "", "", "", [1]]
    assert rewrite(own_cache, decoded, b'no: "Bern"') == 1
    ledger = tmp_path / "ledger.jsonl"
    with Client(cache_dir=own_cache, ledger=ledger) as client:
        answer = client.call("gpt-6.1-sol", "1+1?", cache="only")
    assert (answer.text, answer.served_by is None) == ("Bern", answer.origins == ())
    assert len(ledger.read_text().splitlines()) == 1


def test_reasons_that_are_not_kept_and_other_operations_do_not_use_it(
    simulator: Simulator, own_cache: Path
) -> None:
    with Client(cache_dir=own_cache) as client:
        client.call("gpt-6.1-sol", "1+1?")
        vectors = client.embed("text-embedding-3-small", ["one"]).vectors
    with (
        Client(cache_dir=own_cache, cache_finish_reasons=("length",)) as client,
        pytest.raises(CacheMissError),
    ):
        client.call("gpt-6.1-sol", "1+1?", cache="only")
    assert rewrite(own_cache, [f"{DECODERS} openai None", 1, 9, "", "", "", [1]]) == 2
    with Client(cache_dir=own_cache) as client:
        again = client.embed("text-embedding-3-small", ["one"])
    assert again.cached
    assert again.vectors == vectors


def test_an_export_leaves_it_out_and_an_import_does_not_take_it(
    simulator: Simulator, own_cache: Path, tmp_path: Path
) -> None:
    with Client(cache_dir=own_cache) as client:
        text = client.call("gpt-6.1-sol", "1+1?").text
    here, there, archive = Store(own_cache, warn=print), Store(tmp_path / "there", warn=print), tmp_path / "a"
    assert write_archive(here, archive) == 1
    head, line = archive.read_bytes().splitlines()
    fields = orjson.loads(line)
    assert "decoded" not in fields
    del fields["digest"]
    fields["decoded"] = [f"{DECODERS} openai None", 1, 9, "", "", "", [1]]
    archive.write_bytes(b"\n".join((head, orjson.dumps({**fields, "digest": _digest(fields)}), b"")))
    assert read_archive(there, archive).added == 1
    ((key, value),) = there.items()
    entry = decode_entry(key, value)
    assert entry is not None
    assert entry.decoded is None
    here.close()
    there.close()
    with Client(cache_dir=tmp_path / "there", cache="only") as client:
        assert client.call("gpt-6.1-sol", "1+1?").text == text
