"""Gemini's explicit cache: the common beginning of many prompts is stored at Google, and calls name it.

    a call with a slot → its beginning is stored? ─ yes ─→ sent with the name in the place of the beginning
                           └─ no ─→ the slot is given back → lease → stored, or kept for longer → again

A content is known by the SHA-256 of the beginning, with the model and the account. Its name at Google is
remembered in a small JSON file, so the processes of a machine share it. Nobody deletes it, because another
process may be using it: it expires. What Google refuses to store, and what a budget has no room for, is sent
whole, and `Response.prompt_cache_miss` says why.

Google bills the storing as input, and rent by the token and hour (ai.google.dev/gemini-api/docs/caching). A
request that names a content may not have a system prompt, tools or a `toolConfig` of its own.
"""

import asyncio
import contextlib
import hashlib
import math
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ..._core import errors
from ..._core.errors import LLMError
from ..._core.formats import sdk_clients
from ..._core.journey.call import Call
from ..._core.journey.recorder import CostRecorder
from ..._core.journey.reservation import Hold, most_tokens, worst_case
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.money.budget import Amounts, Budget, release, reserve_now
from ..._core.requests.api_keys import Credential
from ..._core.runtime import cassette, clock, files
from ..._core.runtime.exact_decimal import exact
from ..._core.runtime.imports import when_imported
from ..._core.runtime.json_pieces import canonical, loads, write_exactly
from ..._core.runtime.leases import Leases
from ..._core.types.usage import Usage
from .gemini import minimum, units
from .settings import PrefixMark

SECONDS = 300
"""For how long a content is stored at a time. An hour's rent is three times the price of the input."""

_LEAST_SECONDS = SECONDS / 2
"""A content that expires sooner is kept for longer before a request names it."""

_PAUSE = 60.0
"""Seconds without another attempt to store a content after a failure."""

_INSTRUCTIONS = ("systemInstruction", "tools", "toolConfig")
_GONE = (errors.BadRequestError, errors.NotFoundError, errors.PermissionDeniedError)


class _Content(NamedTuple):
    name: str
    """Its name at Google, such as "cachedContents/abc"."""
    expires: float
    """Unix time."""
    tokens: int


def divide(payload: JSONMapping, mark: PrefixMark, model: str) -> tuple[JSONObject, JSONObject] | str:
    """The beginning of a prompt that can be stored and the payload without it, or why none can be.

    Without a batch that compares its prompts, the beginning ends before the last part of the first message,
    so that it stays the same while a conversation grows. The rest begins with a part of the user.
    """
    prompt, contents = units(payload), payload.get("contents") or ()
    parts = [(index, at) for index, content in enumerate(contents) for at in range(len(content["parts"]))]
    first = len(prompt) - len(parts)
    length = mark.length if mark.of_batch else first + sum(not index for index, _ in parts) - 1
    if "cachedContent" in payload or length < max(first, 1):
        return "own_cached_content" if "cachedContent" in payload else "not_shared"
    length -= first
    while length and not _is_of_user(contents, *parts[length]):
        length -= 1
    if sum(unit.tokens for unit in prompt[: first + length]) < minimum(model):
        return "below_minimum"
    index, at = parts[length]
    cut = contents[index]
    head = [*contents[:index], *([{**cut, "parts": cut["parts"][:at]}] if at else [])]
    beginning = {name: payload[name] for name in _INSTRUCTIONS if name in payload}
    rest = {name: value for name, value in payload.items() if name not in _INSTRUCTIONS}
    rest["contents"] = [{**cut, "parts": cut["parts"][at:]}, *contents[index + 1 :]]
    return (beginning | {"contents": head} if head else beginning), rest


def _is_of_user(contents: Sequence[JSONMapping], index: int, at: int) -> bool:
    return contents[index].get("role") == "user" and "functionResponse" not in contents[index]["parts"][at]


class CachedContents:
    """The stored beginnings of a client, shared by processes with the directories. On the loop."""

    def __init__(self, directory: Path | None, leases: Path | None, recorder: CostRecorder) -> None:
        self._directory, self._leases, self._recorder = directory, Leases(leases), recorder
        self._known: dict[str, _Content] = {}
        self._refused: dict[str, tuple[str, float]] = {}
        """Why a content is not stored, and the Unix time until which this counts."""
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._clients: dict[tuple[str | None, str], Any] = {}

    def fill_in(
        self, call: Call[Any], key: Credential, body: bytes, *, just: bool
    ) -> tuple[bytes, str] | None:
        """The body of a request with the name of its stored beginning; or whole, and why; or None.

        For None, `store` comes next. `just` says that it has ended.
        """
        name, divided = self._divide(call, key, body)
        if isinstance(divided, str):
            return body, divided
        content, now = self._find(name), clock.time()
        if content is not None and (just or content.expires - now >= _LEAST_SECONDS):
            return write_exactly(divided[1] | {"cachedContent": content.name}), ""
        reason, until = self._refused.get(name, ("not_stored", 0.0))
        return (body, reason) if just or now < until else None

    async def store(
        self, call: Call[Any], parts: Sequence[int], key: Credential, body: bytes, budgets: Sequence[Budget]
    ) -> None:
        """Store the beginning of a request, or keep it for longer. No failure of the provider is raised."""
        name, divided = self._divide(call, key, body)
        if (task := self._under_way.get(name)) is None:
            work = self._store(name, call, parts, key, divided[0], budgets)
            task = self._under_way[name] = asyncio.create_task(work)
            task.add_done_callback(lambda _: self._under_way.pop(name, None))
        # It is paid for: other calls use it after the cancellation of this one.
        await asyncio.shield(task)

    def forget(self, call: Call[Any], key: Credential, body: bytes, error: LLMError, *, again: bool) -> bool:
        """Forget the beginning of a request, if an error says that Google does not have it.

        If it says so `again`, of the new one too, the beginning is not stored for a while.
        """
        if not isinstance(error, _GONE) or "cachedcontent" not in error.message.lower().replace(" ", ""):
            return False
        name, _ = self._divide(call, key, body)
        if again:
            self._refused[name] = f"not_stored: {key.scrub(error.message)}", clock.time() + _PAUSE
        self._known.pop(name, None)
        if self._directory is not None:
            with contextlib.suppress(OSError):
                files.remove_file(self._directory / f"{name}.json")
        return True

    async def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        for client in self._clients.values():
            await sdk_clients.close_gemini_client(*client)
        self._leases.close()

    def _divide(self, call: Call[Any], key: Credential, body: bytes) -> tuple[str, Any]:
        """The name of a content in this library, and what `divide` returns."""
        target, mark = call.target, call.encoded.prefix
        assert mark is not None, "only marked requests are divided"
        divided = divide(loads(body), mark, target.known_model)
        named = canonical([target.base_url, key.identity, target.model, divided[0]])
        return hashlib.sha256(named).hexdigest(), divided

    async def _store(
        self, name: str, call: Call[Any], parts: Sequence[int], key: Credential, beginning: JSONObject,
        budgets: Sequence[Budget],
    ) -> None:  # fmt: skip
        """Take the lease and the money, and send the request once: a second one might be billed again."""
        lease = self._leases.take(name) or await self._leases.wait(name)
        try:
            self._known.pop(name, None)
            content = self._find(name)
            if content is not None and content.expires - clock.time() >= _LEAST_SECONDS:
                return  # another process has stored it, or kept it
            cassette.refuse_sending("a stored beginning")
            most, held = self._find_most(call, parts), None
            if content is not None:
                most = most._replace(tokens=Decimal(0))
            if all(budget.allow_unknown or most.by(budget.unit) is not None for budget in budgets):
                with contextlib.suppress(errors.BudgetExceededError):
                    # There must be room for the request too, which would else be refused in the end.
                    if (room := reserve_now(most.plus(most).divide(budgets))) is not None:
                        release(room)
                        held = reserve_now(most.divide(budgets))
            if held is None:
                self._refused[name] = "budget", clock.time() + _PAUSE
                return
            hold = Hold(held, most)
            try:
                stored = await self._send(call, key, beginning, content)
            except asyncio.CancelledError as cancellation:
                self._recorder.record_failure(call, cancellation, lambda _: most.usd, key.identity)
                hold.count_worst_case()
                raise
            except Exception as failure:
                error = failure if isinstance(failure, LLMError) else call.adapter.map_error(failure)
                if error.maybe_billed:
                    self._recorder.record_failure(call, error, lambda _: most.usd, key.identity)
                hold.count_failure(error, None, None)
                until = math.inf if isinstance(error, _GONE[:2]) else clock.time() + _PAUSE
                self._refused[name] = f"not_stored: {key.scrub(error.message)}", until
                return
            self._remember(name, stored)
            is_new = content is None or stored.name != content.name
            since = clock.time() if content is None or is_new else content.expires
            tokens = stored.tokens if is_new else 0
            usage = Usage(input_tokens=tokens, cache_write_input_tokens=tokens)
            cost = self._price(call, stored.tokens, stored.expires - since, is_new=is_new)
            usd = self._recorder.record_side_request(call, cost, usage, key.identity, stored.name)
            hold.count_answer(usd, usage)
        finally:
            if lease is not None:
                lease.release()

    async def _send(
        self, call: Call[Any], key: Credential, beginning: JSONObject, content: _Content | None
    ) -> _Content:
        from google.genai.types import CreateCachedContentConfig, HttpOptions, UpdateCachedContentConfig

        target, ttl = call.target, f"{SECONDS}s"
        account = (target.base_url, key.identity)
        if (client := self._clients.get(account)) is None:
            make = partial(sdk_clients.gemini_client, target, key)
            client = self._clients[account] = when_imported(make)
        caches, made = client[0].aio.caches, None
        if content is not None:
            try:
                made = await caches.update(name=content.name, config=UpdateCachedContentConfig(ttl=ttl))
            except Exception as failure:
                if not isinstance(call.adapter.map_error(failure), _GONE):
                    raise
        if made is None:
            # As the body is: the SDK's types leave fields out that they do not know.
            options = HttpOptions(extra_body=beginning, timeout=int(1000 * sdk_clients.SECONDS_OF_A_FILE))
            config = CreateCachedContentConfig(ttl=ttl, http_options=options)
            made = await caches.create(model=target.model, config=config)
        counts, known = made.usage_metadata, 0 if content is None else content.tokens
        tokens = known if counts is None or counts.total_token_count is None else counts.total_token_count
        expires = clock.time() + SECONDS if made.expire_time is None else made.expire_time.timestamp()
        return _Content(made.name, expires, tokens)

    def _price(self, call: Call[Any], tokens: int, seconds: float, *, is_new: bool) -> Decimal | str:
        """USD for storing some tokens and for the rent of some seconds, or why they are not known."""
        prices, names = self._recorder.prices(), call.find_price_names()
        cost = prices.explain_cost(*names, Usage(input_tokens=tokens if is_new else 0), prompt=tokens)
        row = prices.find(*names, input_tokens=tokens)
        if isinstance(cost, str) or row is None:
            return cost
        if row.cache_storage is None:
            return f"{'/'.join(names)} (standard): no price for cache_storage"
        rent = exact().multiply(exact().multiply(row.cache_storage, tokens), max(0, math.ceil(seconds)))
        return exact().add(cost, exact().scaleb(exact().divide(rent, 3600), -6))

    def _find_most(self, call: Call[Any], parts: Sequence[int]) -> Amounts:
        """The most that storing can come to: as much as the request itself, and the rent."""
        usd, tokens = worst_case(call, parts, self._recorder.prices()), most_tokens(call, parts)
        rent = "" if tokens is None else self._price(call, int(tokens), SECONDS, is_new=False)
        return Amounts(None if usd is None or isinstance(rent, str) else exact().add(usd, rent), tokens)

    def _find(self, name: str) -> _Content | None:
        """A content that this process or another one has stored."""
        known = self._known.get(name)
        if known is None and self._directory is not None:
            # A file that another version wrote, or that was damaged, is written again.
            with contextlib.suppress(OSError, ValueError, TypeError):
                content, expires, tokens = orjson.loads((self._directory / f"{name}.json").read_bytes())
                known = self._known[name] = _Content(str(content), float(expires), int(tokens))
        return known if known is not None and known.expires > clock.time() else None

    def _remember(self, name: str, content: _Content) -> None:
        self._known[name] = content
        if self._directory is not None:
            # A full or read-only disk costs another content in the next process, and no call.
            with contextlib.suppress(OSError):
                files.make_folder(self._directory)
                with files.replace_file(self._directory / f"{name}.json") as file:
                    file.write(orjson.dumps(list(content)))
