"""Makes the rows of the evidence of results and of cache entries, without secrets and paths of a machine."""

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from ..._core import doors
from ..._core.errors import LLMError
from ..._core.formats import registry
from ..._core.formats.protocol import Answer, EncodedRequest
from ..._core.json_values import JSONObject
from ..._core.money.price_rows import PriceRow
from ..._core.money.pricing import PriceTable, name_beside
from ..._core.requests.routing import ROUTES, Target, price_names
from ..._core.runtime import clock
from ..._core.settings import Settings
from ..._core.store.entry import ELIDED, LONGEST_TEXT, Entry, digest
from ..._core.store.response_cache import ResponseCache
from ..._core.types.response import Response
from ..._core.types.results_table import AnyResult, OtherResult
from .container import write_json
from .verification import (
    decode_pieces,
    find_cost,
    find_price,
    list_differences,
    list_texts,
    make_key,
    make_scores,
)

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)
_KEYS = rb"(?:sk-|gsk_|xai-|hf_|ghp_|AIza|AKIA)[A-Za-z0-9_-]{16,}"
"""How the keys of providers begin."""
_SHORTEST_SECRET = 8
_COMMON = frozenset({"/root", "/home", "/tmp", "/app", "/work", "/workspace", "/content", "/data", "/mnt"})  # noqa: S108 - names that many machines have
"""Folders that say nothing about a machine."""


class Redaction:
    """Replaces the keys of a program, the values of secret variables, and the paths of its machine."""

    def __init__(self, secrets: Iterable[str]) -> None:
        named = {value for name, value in os.environ.items() if _SECRET_NAME.search(name)}
        texts = {text.strip() for text in (*secrets, *named)}
        words = {text: "[secret]" for text in texts if len(text) >= _SHORTEST_SECRET}
        for path, short in ((os.getcwd(), "."), (str(Path.home()), "~")):  # noqa: PTH109 - as the system spells it
            for spelling in (path, os.path.realpath(path)):
                if len(spelling) > 1 and spelling not in _COMMON:
                    words.setdefault(spelling, short)
        # As text, within JSON, and within JSON that is a text of JSON.
        spelled: dict[bytes, bytes] = {}
        for text, short in words.items():
            for ascii_only in (True, False):
                inner = text
                for _ in range(3):
                    spelled[inner.encode("utf-8", "surrogatepass")] = short.encode()
                    inner = json.dumps(inner, ensure_ascii=ascii_only)[1:-1]
        # The longest first: the working folder is often in the home folder.
        order = sorted(spelled, key=len, reverse=True)
        self._spelled = spelled
        self._pattern = re.compile(b"|".join([*map(re.escape, order), _KEYS]))

    def apply(self, text: bytes) -> bytes:
        return self._pattern.sub(lambda match: self._spelled.get(match[0], b"[secret]"), text)


_Find = Callable[[Sequence[Answer], JSONObject, PriceTable], Decimal | None]
_AT_ONCE = 200
_NOT_STORED = "nothing was stored for it: an answer that the cache does not keep, or cache='off'"
_REDACTED = "a secret or a path of the machine was taken out of it"
_NOT_HERE = "its question is not in the cache of this client: export(path, client=client) takes another one"
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
        self, results: Iterable[AnyResult], score: str | None
    ) -> Iterator[tuple[bytes, JSONObject]]:
        """A line of JSON for each result, and its row, with the score of this column."""

        def fetch_ahead() -> Iterator[AnyResult]:
            remaining = iter(results)
            while some := list(islice(remaining, _AT_ONCE)):
                # Entries that only a second level has come into the local store.
                self._cache.fetch(list(doors.cache_maintenance.list_keys(some)))
                yield from some

        for index, result in enumerate(fetch_ahead()):
            row = self._make_row(index, result)
            # As `verify` will read it: tuples are lists, and secrets are replaced.
            row = json.loads(self._redaction.apply(write_json(row)))
            row |= make_scores(row["result"], score)
            differences = dict(list_differences(row, self._prices, score))
            if not row["requests"] and "result" in row and "error" not in row["result"]:
                differences.setdefault("keys", _NOT_STORED)
            reasons = {name: self._explain(name, row, reason) for name, reason in differences.items()}
            row["not_computed"] = reasons
            yield write_json(row), row

    def redact(self, value: JSONObject) -> JSONObject:
        clean: JSONObject = orjson.loads(self._redaction.apply(write_json(value)))
        return clean

    def _make_row(self, index: int, result: AnyResult) -> JSONObject:
        fields = result.to_dict()
        # What has cache keys: the rounds of a response, its scores, or the samples of an error.
        pieces: Sequence[Any] = getattr(result, "samples", ()) if isinstance(result, LLMError) else [result]
        pieces = result.rounds if isinstance(result, Response) else pieces
        texts = {digest(text): text for text in list_texts(fields) if len(text) > LONGEST_TEXT}
        described = [self._describe_request(key, texts) for piece in pieces for key in piece.cache_keys]
        stored = [(entry, request) for entry, request in described if entry is not None]
        row: JSONObject = {"index": index, "result": fields, "priced": None, "others": None, "format": None}
        row["requests"] = [request for _, request in described]
        if isinstance(result, OtherResult):
            row["replies"] = [entry.body.decode() for entry, _ in stored]
        elif pieces:
            _strip_tools(fields)
            first = stored[0] if stored else None
            target = None if first is None else self._find_target(first[1]["model"], first[1]["base_url"])
            route = {**ROUTES, **self._settings.hosts}.get(pieces[0].provider)
            route = route if target is None else target.route
            row["format"] = None if route is None else route.adapter
            if isinstance(result, Response):
                self._add_bases(row, result, first, target)
        return row

    def _describe_request(self, key: str | None, texts: dict[str, str]) -> tuple[Entry | None, JSONObject]:
        """What was asked under a key, and why the key cannot be computed of it."""
        if key is None:
            return None, {"key": None, "why": _NOT_STORED}
        stored = self._cache.peek_whole(key)
        entry, question = stored or (None, None)
        if entry is None or question is None:
            return None, {"key": key, "why": _NOT_HERE}
        request: JSONObject = {"key": key, "created": entry.created, "headers": sorted(question["headers"])}
        request["payload"] = _restore(question["payload"], texts)
        for name in ("provider", "base_url", "operation", "draw", "model"):
            request[name] = question[name]
        if request["headers"]:
            request["why"] = _HEADERS
        elif make_key(request) != key:
            request["why"] = _ELIDED
        return entry, request

    @functools.lru_cache(maxsize=256)  # noqa: B019 - it lives as long as an export
    def _find_target(self, model: str, base_url: str | None) -> Target | None:
        for address in (None, base_url):
            with contextlib.suppress(LLMError):
                target = self._settings.find_target(model, address)
                if target.url_in_key == base_url:
                    return target
        return None

    def _add_bases(
        self, row: JSONObject, result: Response, first: tuple[Entry, JSONObject] | None, target: Target | None
    ) -> None:
        """Note the names, service level and time of the prices of a row in the price table."""
        try:
            answers = [answer for reply in decode_pieces(row) for answer in reply.answers]
        except Exception:  # a decoder of a provider's reply; the row then says so
            return

        def search(bases: list[JSONObject], usd: float | None, find: _Find, *fields: str) -> bool:
            """Set fields to the first basis by which the price table gives an amount, else to None."""
            for basis in bases:
                row.update(dict.fromkeys(fields, basis))
                amount = find(answers, row, self._prices)
                if (None if amount is None else float(amount)) == usd:
                    others = {model for answer in answers for model, _ in answer.iterations}
                    for name in {basis["model"], *(name_beside(basis["model"], each) for each in others)}:
                        rows = self._prices.list_rows(basis["provider"], name)
                        self.price_rows.update(dict.fromkeys(rows))
                    return True
            row.update(dict.fromkeys(fields))
            return False

        at = float(int(clock.time() if first is None else first[0].created))
        requested = "standard"
        with contextlib.suppress(Exception):  # the payload may lack a part that is stored as a digest
            if first is not None and row["format"] is not None:
                request = EncodedRequest(first[1]["operation"], first[1]["payload"])
                requested = registry.load(row["format"]).variant(request)
        bases = [
            {"provider": provider, "model": model, "variant": variant, "at": at}
            for provider, model in _list_names(result, target)
            for variant in (requested, "batch")
        ]
        if not search(bases, result.price, find_price, "priced"):
            # The answers that did not match have a price too.
            search(bases, result.price, find_cost, "priced", "others")
        elif result.cost not in (None, 0.0, result.price):
            others = bases.copy()
            for model in (each.model for each in result.passed_over):
                with contextlib.suppress(LLMError):
                    provider, name = price_names(self._settings.find_target(model, None))
                    others.append({"provider": provider, "model": name, "variant": "standard", "at": at})
            search(others, result.cost, find_cost, "others")

    def _explain(self, name: str, row: JSONObject, reason: str) -> str:
        """Why a value of a new row is not the one that is computed."""
        result = row["result"]
        if result.get("body") == "null" and name != "cost":
            return "its reply is not stored"
        if name in ("scores", "decisions") and _NOT_HERE in (each.get("why") for each in row["requests"]):
            return _NOT_HERE
        if name in ("price", "cost") and result.get(name) is None:
            return result.get("cost_unknown") or f"the {name} of the answer is not known"
        if name == "price" and result.get("cost_source") == "litellm":
            return "litellm's price map is not in the file"
        others = result.get("failures") or result.get("attempts", 0) > 1 or result.get("passed_over")
        if name in ("price", "usage", "cost") and others:
            return "it includes requests that failed"
        if name == "price" and result["price"] == 0 and not any(result["usage"].values()):
            return "it is in that of the first sample of its request"
        return {
            "prompt": "its request has it in another form",
            "price": "this client has another price list: export(path, client=client) takes another client",
            "cost": "a part of the answer was stored or shared",
            # All other reasons for another key are with its request.
            "keys": _REDACTED if row["requests"] else _NOT_STORED,
        }.get(name, "another one is computed from its parts" if reason.startswith("it is ") else reason)


def _list_names(result: Response, target: Target | None) -> Iterator[tuple[str, str]]:
    """The provider and model of an answer, as price tables may have them."""
    if target is not None:
        provider, model = price_names(target, result.model)
        yield provider, model
        who = result.served_by
        if who is not None and who.host:
            yield provider, f"{model}:{who.host.lower()}"
        if who is not None and provider == "anthropic" and who.region == "us":
            yield provider, f"us/{model}"
    yield result.provider, result.model


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


def _restore(value: Any, texts: dict[str, str]) -> Any:
    """A stored payload with the long texts that are known."""
    if isinstance(value, dict):
        if ELIDED in value and isinstance(value[ELIDED], dict):
            return texts.get(value[ELIDED].get("sha256", ""), value)
        return {name: _restore(each, texts) for name, each in value.items()}
    return [_restore(each, texts) for each in value] if isinstance(value, list) else value
