"""Makes the rows of the evidence of results, and of cache entries."""

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

import orjson

from .._cache.response_cache import ResponseCache
from .._cache.selection import list_keys
from .._cache.storage.entry import ELIDED, Entry
from .._errors import LLMError
from .._json_values import JSONObject
from .._money.price_rows import PriceRow
from .._money.pricing import PriceTable
from .._providers import registry
from .._providers.protocol import EncodedRequest
from .._requests.routing import ROUTES, Target, price_names
from .._runtime import clock
from .._settings import Settings
from .._types.response import Response, Result
from .._types.scores import Scores
from .checks import Replies, find_cost, find_price, flatten, list_differences, make_key
from .json_lines import write_json
from .redaction import Redaction

_Find = Callable[[JSONObject, PriceTable], Decimal | None]
_AT_ONCE = 200
_NOT_STORED = "nothing was stored for it: an answer that the cache does not keep, or cache='off'"
_NOT_HERE = "its question is not in this cache"
_ELIDED = "a long text or a file of it is stored as a digest"
_HEADERS = "the values of its headers are left out"


class RowMaker:
    """Makes the rows of results, with what the cache and the price table of a client hold.

    `price_rows` collects the rows of the table that the answers have to do with.
    """

    def __init__(self, cache: ResponseCache, settings: Settings, prices: PriceTable) -> None:
        self._cache, self._settings, self._prices = cache, settings, prices
        keys = [key for accounts in settings.keys.values() for account in accounts for key in account]
        self._redaction = Redaction(key.reveal() for key in keys if key.is_static)
        self.price_rows: dict[PriceRow, None] = {}

    def make_lines(
        self, results: Iterable[Result | Scores], scores: Mapping[int, float]
    ) -> Iterator[tuple[bytes, JSONObject]]:
        """A line of JSON for each result, and its row; `scores` are those of the user, by index."""
        for index, result in enumerate(self._fetch_ahead(results)):
            row = self._make_row(index, result)
            if index in scores:
                row["score"] = scores[index]
            # As `verify` will read it: tuples are lists, and secrets are replaced.
            row = json.loads(self._redaction.apply(write_json(row)))
            differences = dict(list_differences(row, self._prices))
            if not row["requests"] and "result" in row and "error" not in row["result"]:
                differences.setdefault("keys", _NOT_STORED)
            row["not_computed"] = {
                name: self._explain(name, row, reason) for name, reason in differences.items()
            }
            yield write_json(row), row

    def redact(self, value: JSONObject) -> JSONObject:
        """JSON without secrets and paths."""
        clean: JSONObject = orjson.loads(self._redaction.apply(write_json(value)))
        return clean

    def _fetch_ahead(self, results: Iterable[Result | Scores]) -> Iterator[Result | Scores]:
        """The results, once the entries that only a second level has are in the local store."""
        remaining = iter(results)
        while some := list(islice(remaining, _AT_ONCE)):
            self._cache.fetch(list(list_keys(some)))
            yield from some

    def _make_row(self, index: int, result: Result | Scores) -> JSONObject:
        fields = result.to_dict()
        row: JSONObject = {"index": index, "result": fields, "priced": None, "others": None, "format": None}
        pieces = _list_answers(result)
        texts = _collect_texts(fields)
        stored: list[tuple[Entry, JSONObject] | None] = []
        requests: list[JSONObject] = []
        for key in [key for piece in pieces for key in piece.cache_keys]:
            entry, request = self._describe_request(key, texts)
            requests.append(request)
            stored.append(None if entry is None else (entry, request))
        row["requests"] = requests
        if isinstance(result, Scores):
            row["replies"] = [pair[0].body.decode() for pair in stored if pair is not None]
            return row
        if pieces:
            _strip_tools(fields)
            first = next((pair for pair in stored if pair is not None), None)
            self._add_format(row, pieces[0], None if first is None else first[1])
            if isinstance(result, Response):
                self._add_bases(row, result, first)
        return row

    def _describe_request(self, key: str | None, texts: dict[str, str]) -> tuple[Entry | None, JSONObject]:
        """What was asked under a key, and why the key cannot be computed of it."""
        if key is None:
            return None, {"key": None, "why": _NOT_STORED}
        stored = self._cache.peek_whole(key)
        entry, question = stored or (None, None)
        if entry is None or question is None:
            return None, {"key": key, "why": _NOT_HERE}
        request: JSONObject = {
            "key": key,
            **{name: question[name] for name in ("provider", "base_url", "operation", "draw", "model")},
            "payload": _restore(question["payload"], texts),
            "headers": sorted(question["headers"]),
            "created": entry.created,
        }
        if request["headers"]:
            request["why"] = _HEADERS
        elif make_key(request) != key:
            request["why"] = _ELIDED
        return entry, request

    def _add_format(self, row: JSONObject, answer: Response, request: JSONObject | None) -> None:
        target = None if request is None else self._find_target(request["model"], request["base_url"])
        routes = {**ROUTES, **self._settings.hosts}
        route = routes.get(answer.provider) if target is None else target.route
        row["format"] = None if route is None else route.adapter

    @functools.lru_cache(maxsize=256)  # noqa: B019 - it lives as long as an export
    def _find_target(self, model: str, base_url: str | None) -> Target | None:
        for address in (None, base_url):
            with contextlib.suppress(LLMError):
                target = self._settings.find_target(model, address)
                if target.url_in_key == base_url:
                    return target
        return None

    def _add_bases(self, row: JSONObject, result: Response, first: tuple[Entry, JSONObject] | None) -> None:
        """Note the names, service level and time of the prices of a row in the price table."""
        try:
            answers = flatten([Replies(row, piece) for piece in _list_dicts(row["result"])])
        except Exception:  # a decoder of a provider's reply; the row then says so
            return
        at = float(int(clock.time() if first is None else first[0].created))
        requested = "standard" if first is None else _find_variant(row["format"], first[1])
        bases = [
            {"provider": provider, "model": model, "variant": variant, "at": at}
            for provider, model in self._list_names(result, first)
            for variant in (requested, "batch")
        ]
        is_price = self._try(row, "priced", bases, result.price, functools.partial(find_price, answers))
        for basis in () if is_price else bases:
            # Its requests that failed have a price too.
            row["priced"] = basis
            if self._try(row, "others", [basis], result.price, functools.partial(find_cost, answers)):
                return
            row["priced"] = None
        if is_price and result.passed_over and result.cost != result.price:
            others = []
            for model in (each.model for each in result.passed_over):
                with contextlib.suppress(LLMError):
                    provider, name = price_names(self._settings.find_target(model, None))
                    others.append({"provider": provider, "model": name, "variant": "standard", "at": at})
            self._try(row, "others", others, result.cost, functools.partial(find_cost, answers))

    def _try(
        self, row: JSONObject, field: str, bases: list[JSONObject], usd: float | None, find: _Find
    ) -> bool:
        """Set a field to the first of some bases by which the price table gives an amount, else to None."""
        for basis in bases:
            row[field] = basis
            amount = find(row, self._prices)
            if (None if amount is None else float(amount)) == usd:
                rows = self._prices.list_rows(basis["provider"], basis["model"])
                self.price_rows.update(dict.fromkeys(rows))
                return True
        row[field] = None
        return False

    def _list_names(
        self, result: Response, first: tuple[Entry, JSONObject] | None
    ) -> Iterator[tuple[str, str]]:
        if first is not None:
            target = self._find_target(first[1]["model"], first[1]["base_url"])
            if target is not None:
                provider, model = price_names(target, result.model)
                yield provider, model
                who = result.served_by
                if who is not None and who.host:
                    yield provider, f"{model}:{who.host.lower()}"
                if who is not None and provider == "anthropic" and who.region == "us":
                    yield provider, f"us/{model}"
        yield result.provider, result.model

    def _explain(self, name: str, row: JSONObject, reason: str) -> str:
        """Why a value of a new row is not the one that is computed."""
        result = row["result"]
        if result.get("body") == "null" and name != "cost":
            return "its reply is not stored"
        if name in ("price", "cost") and result.get(name) is None:
            return result.get("cost_unknown") or f"the {name} of the answer is not known"
        if name == "price" and result.get("cost_source") == "litellm":
            return "litellm's price map is not in the file"
        others = result.get("failures") or result.get("attempts", 0) > 1 or result.get("passed_over")
        if name in ("price", "usage", "cost") and others:
            return "it includes requests that failed"
        return {
            "price": "the prices of this export give another one",
            "cost": "a part of the answer was stored or shared",
            "keys": _NOT_STORED,
        }.get(name, reason)


def _list_answers(result: Result | Scores) -> Sequence[Any]:
    """What has cache keys: the rounds of a response, its scores, or the samples of an error."""
    if isinstance(result, Response):
        return result.rounds
    return [result] if isinstance(result, Scores) else getattr(result, "samples", ())


def _list_dicts(result: JSONObject) -> list[JSONObject]:
    rounds = result["tool_rounds"]
    answers: list[JSONObject] = [result] if rounds is None else rounds["responses"]
    return answers


def _find_variant(form: str | None, request: JSONObject) -> str:
    with contextlib.suppress(Exception):  # the payload may lack a part that is stored as a digest
        if form is not None:
            return registry.load(form).variant(EncodedRequest(request["operation"], request["payload"]))
    return "standard"


def _strip_tools(fields: Any) -> None:
    """Leave out the functions of the program that calls of tools name."""
    if isinstance(fields, dict):
        for name, value in fields.items():
            if name == "tool" and "arguments" in fields:
                fields[name] = None
            elif name not in ("metadata", "parsed", "message", "body"):
                _strip_tools(value)
    elif isinstance(fields, list):
        for each in fields:
            _strip_tools(each)


def _collect_texts(value: Any, texts: dict[str, str] | None = None) -> dict[str, str]:
    """The long texts in a value, by the digests that the cache stores in their place."""
    texts = {} if texts is None else texts
    if isinstance(value, str):
        if len(value) > 2048:
            texts[hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]] = value
    elif isinstance(value, dict):
        for each in value.values():
            _collect_texts(each, texts)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _collect_texts(each, texts)
    return texts


def _restore(value: Any, texts: dict[str, str]) -> Any:
    """A stored payload with the long texts that are known."""
    if isinstance(value, dict):
        if ELIDED in value and isinstance(value[ELIDED], dict):
            return texts.get(value[ELIDED].get("sha256", ""), value)
        return {name: _restore(each, texts) for name, each in value.items()}
    return [_restore(each, texts) for each in value] if isinstance(value, list) else value
