"""Golden pairs: what is given to one function of the library, and what it makes of it.

`tests/data/golden/SUBJECT.json` maps a sentence to a pair. `function` names the function, from `formats`
on or from another folder with an underscore. `given` has its arguments; of a wire format it is a request, a
reply or a list of events in the form that the user or the provider sends. `gives` is the result without the
attributes that have their defaults, or the error. `warns` are the warnings.

`Client` and `Client.METHOD` are wrong settings and wrong calls. `llm-provider` is a command: `given` has its
arguments, the files of the folder where it runs, and variables of the environment.

`python tests/golden.py` writes the second half of every pair anew. Read the difference before you commit it.
It adds the replies of new pairs to `tests/data/decoders.json`, which has what the decoders with one number of
`DECODERS` make of replies whose answers are stored decoded.
"""

import asyncio
import base64
import builtins
import contextlib
import copy
import dataclasses
import functools
import hashlib
import importlib
import io
import json
import os
import random
import re
import socket
import ssl
import sys
import tempfile
import types
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import patch

import llm_provider
from json_lines import json_lines
from llm_provider import Client, Response, UnpinnedRouterWarning, Usage
from llm_provider._core.client import functions
from llm_provider._core.errors import LLMError
from llm_provider._core.formats import registry
from llm_provider._core.formats.decoded import DECODERS, write_decoded
from llm_provider._core.formats.openai_chat.stream import TextChunks
from llm_provider._core.formats.protocol import Answer, EncodedRequest
from llm_provider._core.formats.shared.embeddings import check_model
from llm_provider._core.formats.transport.wire import events
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.journey.reservation import worst_case
from llm_provider._core.money.ledger_file import LedgerFile, read_postings
from llm_provider._core.money.model_drift import Served
from llm_provider._core.money.price_rows import PriceFile, check
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.pace.call_limits import UNBOUNDED
from llm_provider._core.pace.failures import RetryBudget, judge
from llm_provider._core.requests.api_keys import find_accounts
from llm_provider._core.requests.inputs import batch_inputs
from llm_provider._core.requests.parameter_table import fill
from llm_provider._core.requests.request import DEFAULTS, EmbedRequest, Request
from llm_provider._core.requests.routing import Target, price_names, resolve
from llm_provider._core.runtime.json_pieces import write_exactly
from llm_provider._core.schemas import reading
from llm_provider._core.schemas.json_schema import Search
from llm_provider._core.schemas.structure import structure_of
from llm_provider._core.tokens.counting import count_charged_tokens, most_input_tokens, most_output_tokens
from llm_provider._core.tokens.model_limits import read as read_limits
from llm_provider._core.types.messages import delta_of
from llm_provider._features.cli.main import main
from llm_provider._features.clouds.price_names import name_in_region
from llm_provider._features.quirks.any_server import Assembler
from llm_provider._features.telemetry.spans import prompt_json
from llm_provider._features.views.results_page import pair_results
from pace_worlds import tell_server_story, tell_shared_story, tell_story
from scope_worlds import tell_slot_story
from support import response

FOLDER = Path(__file__).parent / "data" / "golden"


class Pair(NamedTuple):
    """One golden pair."""

    function: str
    inputs: Any
    expected: Any

    def check(self) -> None:
        """The function makes the same of it, and changes nothing that it was given but events."""
        inputs = copy.deepcopy(self.inputs)
        made = result_of(self.function, inputs)
        assert made == self.expected
        # Equality takes 1, 1.0 and True for one value.
        assert json.dumps(made, sort_keys=True) == json.dumps(self.expected, sort_keys=True)
        assert inputs == self.inputs or self.function.endswith("Assembler")


def read(subject: str) -> dict[str, Pair]:
    """Sentence → pair, of one file."""
    pairs = json.loads((FOLDER / f"{subject}.json").read_text(encoding="utf-8"))
    return {sentence: Pair(pair.pop("function"), pair.pop("given"), pair) for sentence, pair in pairs.items()}


def result_of(function: str, inputs: Any) -> dict[str, Any]:
    """What a function makes of its input, as JSON."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Once in a process, so not of one pair.
        warnings.simplefilter("ignore", UnpinnedRouterWarning)
        try:
            result = {"gives": as_json(_call(function, inputs))}
        except LLMError as error:
            result = {"gives": _described(error)}
        except (TypeError, ValueError) as error:
            result = {"gives": {"raises": type(error).__name__, "message": str(error)}}
    if caught:
        result["warns"] = [str(warning.message) for warning in caught]
    return result


def _call(function: str, inputs: Any) -> Any:
    if function in _CALLED_HERE:
        return _CALLED_HERE[function](**inputs)
    if function == "Client.price" and "at" in inputs:
        return _price(**inputs)
    if function.startswith("Client."):
        return getattr(_client(), function.removeprefix("Client."))(**inputs)
    module_name, _, name = function.rpartition(".")
    module, called = _module(module_name), _function(function)
    if name == "Assembler":
        decode = _function(f"{re.sub('stream$', 'decode', module_name)}.decode")
        return _folded(called(), inputs, decode)
    if called is Request:
        return chat_request(inputs)[0]
    if name == "encode" and module_name.endswith("embeddings"):
        return _embedding_request(module, *_embed_request(inputs))
    if name == "encode":
        request, target = chat_request(inputs)
        return _with_facts(called(request, target), registry.load(target.route.adapter))
    if name == "_reply":
        return called(json.dumps(inputs).encode())  # the line of a file of results
    if name == "facts":
        return _facts(EncodedRequest(**inputs), module)
    return called(**{name: _revive(name, value) for name, value in inputs.items()})


def _revive(name: str, value: Any) -> Any:
    """An argument from JSON: a moment, or an error of ours or of Python by the name of its class."""
    if name == "now":
        return datetime.fromisoformat(value)
    if name == "error" and isinstance(value, dict) and "class" in value:
        fields = dict(value)
        kind = fields.pop("class")
        foreign = {**vars(builtins), **vars(ssl), **vars(socket)}.get(kind)
        if foreign is None:
            return getattr(llm_provider, kind)(**fields)
        return foreign(*(bytes(each) if isinstance(each, list) else each for each in fields["arguments"]))
    return value


@functools.cache
def _client() -> Client:
    """One client for all wrong calls. It has no keys, so of a right call the `MissingAPIKeyError` tells."""
    return Client(cache="off", max_retries=0)


def _price(model: str, usage: Mapping[str, int], at: str, service_tier: str | None = None) -> Decimal | None:
    """The price of a day, or of a moment."""
    moment = date.fromisoformat(at) if len(at) == len("2026-11-20") else datetime.fromisoformat(at)
    return _client().price(model, Usage(**usage), at=moment, service_tier=service_tier)


def _explain_cost(
    provider: str,
    model: str,
    usage: Mapping[str, int],
    at: str = "2026-11-20",
    region: str | None = None,
    variant: str = "standard",
    overrides: Any = None,
) -> Decimal | str:
    """The cost in a region of a cloud or by rows of one's own, or why it is unknown."""
    name, table = name_in_region(provider, model, region), PriceTable.load(overrides=overrides)
    day = date.fromisoformat(at)
    return table.explain_cost(provider, name, Usage(**usage), variant=variant, at=day)


def _bounds(**fields: Any) -> dict[str, Any]:
    """The most tokens of a request and of its answer, and whether the cost has a bound."""
    request, _ = chat_request(fields)
    call = _client()._engine.prepare(CHAT, request, UNBOUNDED)
    return {
        "most_input_tokens": most_input_tokens(call.facts(), call.body, call.target),
        "most_output_tokens": most_output_tokens(call.facts(), call.target),
        "cost_has_a_bound": worst_case(call, call.parts, PriceTable.load()) is not None,
    }


def _judge(error: LLMError, attempts: int = 1, max_retries: int = 6, **circumstances: Any) -> Any:
    """The verdict on a failure, with the same jitter for each pair."""
    chance, failure = random.Random(0), _revive("error", error)
    options = {"budget": RetryBudget(), "now": 0.0, "random_source": chance, **circumstances}
    return judge(failure, attempts=attempts, max_retries=max_retries, **options)


def _pair_results(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[int | None, int | None]]:
    """Which results belong together. Each is given as its prompt, None for a failure, and its metadata."""
    runs = [[_result(*given) for given in run] for run in (first, second)]
    return list(pair_results(*runs))


def _result(prompt: str | None, metadata: Any = None) -> Response | LLMError:
    if prompt is not None:
        return response(prompt=prompt, metadata=metadata)
    error = LLMError("slow")
    error.metadata = metadata
    return error


def _changes(served: Sequence[tuple[Sequence[str], str]]) -> list[str | None]:
    """For each answer, a request's provider, address and model, and who served it: who served before."""
    known = Served()
    return [known.update((alias[0], alias[1], alias[2]), name, keep=True) for alias, name in served]


def _run_command(
    arguments: Sequence[str], files: Mapping[str, str], variables: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Run a command in a folder with these files: its exit code, what it prints, the files that it leaves."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in files.items():
            Path(name).write_text(text, encoding="utf-8")
        out, error = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, variables),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(error),
        ):
            usual, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO())
            try:
                code = main(arguments)
            except SystemExit as ending:
                code = ending.code
            finally:
                sys.stdin = usual
                # A command has a process of its own, whose client reads the environment anew.
                while functions._default:
                    functions._default.popitem()[1].close()
        left = sorted(path.name for path in Path().iterdir())
    return {"code": code, "out": out.getvalue(), "err": error.getvalue(), "files": left}


def _read_lines(read: Callable[[Path], Any], name: str, lines: Sequence[str]) -> Any:
    """What a function reads in a file with these lines."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(name).write_bytes("\n".join(lines).encode())
        return read(Path(name))


def _price_sources() -> Any:
    """What makes sources of JSON; it needs `tools`, which is in the folder above."""
    return importlib.import_module("price_sources")


def _fill(parameters: Mapping[str, Any], defaults: Mapping[str, Any], of: str = "call") -> dict[str, Any]:
    """The parameters of a call, or of one that embeds, with the defaults of a client."""
    filled = dict(parameters)
    fill(filled, defaults, DEFAULTS if of == "embed" else None)
    return filled


def _find_route(model: str) -> dict[str, Any]:
    target = resolve(model)
    assert not target.custom_base_url
    named = {"provider": target.provider, "model": target.model, "base_url": target.base_url}
    return {**named, "prices of": "/".join(price_names(target))}


def _read_pieces(body: str) -> list[Any]:
    """The events of a body that arrives whole; in pieces of one byte it has the same."""

    async def read(pieces: Sequence[bytes]) -> list[Any]:
        async def arriving() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        return [event async for batch in events(arriving()) for event in batch]

    data = body.encode("latin-1")
    whole = asyncio.run(read([data]))
    assert asyncio.run(read([bytes([byte]) for byte in data])) == whole
    return whole


def _read_job(job: Mapping[str, Any], operation: Any = None) -> Any:
    """A batch of Gemini's of the attributes of the SDK's object."""
    attributes = json.loads(json.dumps(job), object_hook=lambda fields: types.SimpleNamespace(**fields))
    return _function("gemini.batches._remote")(attributes, operation)


def _find_accounts(listed: str) -> list[list[str]] | None:
    with patch.dict(os.environ, {"TEST_ONE_API_KEYS": listed}):
        accounts = find_accounts("openai", ("TEST_ONE_API_KEY", "TEST_TWO_API_KEY"), {})
    return accounts and [[key.reveal() for key in account] for account in accounts]


def _read_file(name: str, content: str) -> Any:
    """The part of a message that a file is; its bytes alone are the same part."""
    data = content.encode("latin-1")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(name).write_bytes(data)
        (message,) = Request.build("gpt-6.1-sol", ["What?", Path(name), data], {}).messages
    _, of_path, of_bytes = message["content"]
    assert of_path == of_bytes
    return of_path


def _encode_chat(**fields: Any) -> EncodedRequest:
    request, target = chat_request(fields)
    return CHAT.encode(request, target, registry.load(target.route.adapter))


_CALLED_HERE: Mapping[str, Callable[..., Any]] = {
    "Client": lambda **settings: Client(**settings).close(),
    "llm-provider": _run_command,
    "CHAT.encode": _encode_chat,
    "PriceTable.explain_cost": _explain_cost,
    "_core.requests.api_keys.find_accounts": _find_accounts,
    "_core.requests.inputs.batch_inputs": lambda inputs, rows: list(batch_inputs(inputs, rows).prompts),  # type: ignore[arg-type]  # no await
    "_core.requests.media": _read_file,
    "gemini.batches._remote": _read_job,
    "openai_chat.stream.TextChunks": lambda chunks: list(
        map(TextChunks(Assembler.READ_IN_FULL).read, chunks)
    ),
    "transport.wire.events": _read_pieces,
    "_core.journey.key_pool": tell_slot_story,
    "_core.pace.controller": tell_story,
    "_core.pace.failures.judge": _judge,
    "_core.pace.server_window": tell_server_story,
    "_features.shared_pace.shared_controller": tell_shared_story,
    "_features.views.results_page.pair_results": _pair_results,
    "_core.requests.parameter_table.fill": _fill,
    "_core.requests.routing.resolve": _find_route,
    "shared.embeddings.check_model": lambda **fields: check_model(*_embed_request(fields)),
    "_core.tokens.counting": _bounds,
    "_core.tokens.counting.count_charged_tokens": lambda provider, usage: count_charged_tokens(
        provider, Usage(**usage)
    ),
    "_core.money.model_drift.Served": _changes,
    "tools.prices.litellm_prices.read": lambda entries: _price_sources().list_map(entries),
    "tools.prices.refresh.refresh": lambda **given: _price_sources().refresh_rows(**given),
    "_core.money.price_rows.PriceFile": lambda lines: _read_lines(
        lambda path: check(PriceFile(path).lines()), "prices.csv", lines
    ),
    "_core.tokens.model_limits.read": lambda lines: _read_lines(
        lambda path: list(read_limits(path).values()), "limits.csv", lines
    ),
    "_core.money.ledger_file.read_postings": lambda lines: _read_lines(
        lambda path: [*read_postings(path), *LedgerFile(path).read_answered()], "calls.jsonl", lines
    ),
    "_core.schemas.reading.read": lambda text, response_format: reading.read(
        text, structure_of(response_format)
    ),
    "_core.schemas.reading._drop_nulls": lambda value, schema: reading._drop_nulls(
        value, schema, Search(schema, 10_000), {}
    ),
    "_features.telemetry.spans.prompt_json": lambda **request: json.loads(
        prompt_json(types.SimpleNamespace(**request)) or "null"
    ),
}
"""Functions whose arguments JSON does not have."""


def _module(name: str) -> types.ModuleType:
    return importlib.import_module(f"llm_provider.{name if name[0] == '_' else f'_core.formats.{name}'}")


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    return getattr(_module(module), name)  # type: ignore[no-any-return]  # by name


def chat_request(inputs: Mapping[str, Any]) -> tuple[Request, Target]:
    """The request, and where it goes. Beside the parameters of a call, the pair has its `base_url`."""
    parameters = dict(inputs)
    model, messages = parameters.pop("model"), parameters.pop("messages")
    base_url = parameters.pop("base_url", None)
    request = Request.build(model, messages, parameters)  # type: ignore[arg-type]  # JSON of any shape
    return request, resolve(model, base_url)


def _embed_request(fields: Mapping[str, Any]) -> tuple[EmbedRequest, Target]:
    parameters = dict(fields)
    model, inputs = parameters.pop("model"), parameters.pop("inputs")
    base_url = parameters.pop("base_url", None)
    request = EmbedRequest.build(model, inputs, parameters)  # type: ignore[arg-type]  # JSON of any shape
    return request, resolve(model, base_url)


def _with_facts(encoded: EncodedRequest, adapter: Any) -> dict[str, Any]:
    facts = _facts(encoded, adapter)
    # What stands in the payload is not repeated.
    sizes = {name: len(facts[name]) for name in ("texts", "media", "tools", "schemas") if facts.get(name)}
    return {**as_json(encoded), "facts": {**facts, **sizes}}


def _facts(encoded: EncodedRequest, module: Any) -> dict[str, Any]:
    facts = module.facts(encoded)
    assert module.variant(encoded) == facts.variant
    special: dict[str, Any] = as_json(facts.special_prices())
    return {**as_json(facts), **special}


def _embedding_request(module: Any, request: EmbedRequest, target: Target) -> dict[str, Any]:
    encoded = module.encode(request, target)
    whole = {"payload": module.payload_of(encoded, request.inputs), "limits": as_json(module.limits(target))}
    return {**as_json(encoded), **whole}


def _folded(assembler: Any, events: list[Any], decode: Callable[[Any], Any]) -> dict[str, Any]:
    """What a stream shows event by event, the reply that its events add up to, and its answer."""
    steps, whole = [], []
    is_whole = getattr(assembler, "is_whole", assembler.is_complete)
    for event in events:
        steps.append(as_json(delta_of(assembler.feed(event))))
        whole.append(is_whole())
    reply = assembler.reply()
    try:
        answer = as_json(decode(reply))
    except LLMError as error:
        answer = _described(error)
    return {"shown": steps, "whole_after": whole.count(False), "reply": reply, "answer": answer}


def _described(error: LLMError) -> dict[str, Any]:
    default = vars(LLMError("")) | {
        name: getattr(type(error), name) for name in ("retryable", "maybe_billed")
    }
    fields = {name: as_json(value) for name, value in vars(error).items() if value != default.get(name)}
    return {"raises": type(error).__name__, **fields}


def as_json(value: Any) -> Any:
    """A result as JSON, without the attributes that have their defaults."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, LLMError):
        return _described(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        defaults = {
            field.name: _default(field) for field in dataclasses.fields(value) if field.init or field.repr
        }
        return _without_defaults({name: getattr(value, name) for name in defaults}, defaults)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _without_defaults(value._asdict(), value._field_defaults)
    if isinstance(value, Mapping):
        return {name: as_json(entry) for name, entry in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple, Iterator)):
        return [as_json(entry) for entry in value]
    raise TypeError(f"no JSON for {type(value).__name__}")


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _without_defaults(fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Functions and modules are left out too: they are parts of the library."""
    return {
        name: as_json(value)
        for name, value in fields.items()
        if not callable(value) and not isinstance(value, types.ModuleType)
        if name not in defaults or (value is not defaults[name] and value != defaults[name])
    }


def write(subject: str, pairs: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the pairs of a file, with the results of today."""
    made = {
        sentence: {
            "function": pair["function"],
            "given": pair["given"],
            **result_of(pair["function"], copy.deepcopy(pair["given"])),
        }
        for sentence, pair in pairs.items()
    }
    path = FOLDER / f"{subject}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_lines(made), encoding="utf-8")


def subjects() -> list[str]:
    """The names of all files."""
    return sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.json"))


DECODED = FOLDER.parent / "decoders.json"


class DecodedReply(NamedTuple):
    """A reply, and the answer in it."""

    sentence: str
    reply: Any
    answer: Answer

    def digests(self) -> tuple[str, str]:
        """What stands for the reply and for the answer."""
        both = (json.dumps(as_json(each), sort_keys=True) for each in (self.reply, self.answer))
        first, second = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in both)
        return first, second

    def is_stored_decoded(self) -> bool:
        """Whether the cache keeps what a hit needs of the answer."""
        try:
            body = write_exactly(self.reply)
        except ValueError:
            return False
        return write_decoded(self.answer, body, resolve("gpt-6.1-sol")) is not None


def decoded_replies() -> Iterator[DecodedReply]:
    """The replies of the pairs of decoders and streams, and a plain reply with each usage of a pair."""
    usages = {}
    for subject in subjects():
        for sentence, pair in read(subject).items():
            usages |= {json.dumps(usage, sort_keys=True): usage for usage in _usages_in([*pair])}
            name, reply = pair.function, pair.inputs
            if name.endswith((".decode.decode", "any_server.decode")):
                reply = pair.inputs["reply"]
            elif name.endswith("Assembler") and "reply" in pair.expected["gives"]:
                name = f"{re.sub('stream$', 'decode', name.rpartition('.')[0])}.decode"
                reply = pair.expected["gives"]["reply"]
            else:
                continue
            yield from _decoded(name, reply, f"{subject}: {sentence}")
    for name, usage in usages.items():
        yield from _decoded("_features.quirks.any_server.decode", completion(usage=usage), name)
    for tier in ("auto", "default", "flex", "priority", "fast", "scale"):
        reply = completion(usage={"prompt_tokens": 5, "completion_tokens": 1}, service_tier=tier)
        yield from _decoded("openai_chat.decode.decode", reply, tier)


def completion(**fields: Any) -> dict[str, Any]:
    """A plain reply of Chat Completions."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "Bern"}, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "model": "gpt-6.1-sol", "choices": [choice], **fields}


def _usages_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(usage := value.get("usage"), dict):
            yield usage
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _usages_in(each)


def _decoded(function: str, reply: Any, sentence: str) -> Iterator[DecodedReply]:
    with contextlib.suppress(LLMError), warnings.catch_warnings(action="ignore"):
        yield DecodedReply(sentence, reply, _function(function)(copy.deepcopy(reply)))


def changed_answers() -> list[str]:
    """The replies of which the decoders make something else than before, though they have the same number."""
    known = json.loads(DECODED.read_text(encoding="utf-8"))
    pairs = ((each.sentence, *each.digests()) for each in decoded_replies())
    changed = [sentence for sentence, reply, answer in pairs if known["answers"].get(reply, answer) != answer]
    return changed if known["number"] == DECODERS else []


def write_decoders() -> None:
    """Write `DECODED` anew, unless the number has to be raised first."""
    if not changed_answers():
        answers = dict(sorted(each.digests() for each in decoded_replies() if each.is_stored_decoded()))
        DECODED.write_text(json_lines({"number": DECODERS, "answers": answers}), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    for name in subjects():
        write(name, json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
    write_decoders()
    from simulator import exchanges

    exchanges.write_all()
