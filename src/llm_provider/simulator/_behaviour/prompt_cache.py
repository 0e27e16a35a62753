"""The prompt caches of OpenAI, Anthropic and Gemini: which tokens of a prompt are read there, and written.

==========================  =========  =======================  ==================  ==========  ===========
provider                    minimum    found                    a write costs       lifetime    routed by
==========================  =========  =======================  ==================  ==========  ===========
OpenAI before GPT-5.6       1,024      in steps of 128 tokens   nothing             300 s       the key
OpenAI from GPT-5.6 on      1,024      at breakpoints           1.25 times input    1,800 s     the key
Anthropic                   by model   at breakpoints           1.25 times input    300 s       the account
Gemini                      by model   in steps of 128 tokens   nothing             300 s       the account
==========================  =========  =======================  ==================  ==========  ===========

A read begins the lifetime anew. An entry can be read as soon as the answer to the request that wrote it
begins. Requests to OpenAI without a ``prompt_cache_key`` go to :data:`MACHINES` machines in turn, each with a
cache of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from ..formats.content import MEDIA_CHARACTERS, convert_to_tokens, read_text

if TYPE_CHECKING:
    from ..formats.wire_format import Completion, Prompt

__all__ = ["MACHINES", "CacheUse", "PromptCaches", "count_cached"]

STEP = 128
MACHINES = 8
LOOKBACK = 20
"""Blocks before a breakpoint of Anthropic's in which an older entry is looked for."""

_FIVE_MINUTES, _HALF_AN_HOUR = 300.0, 1800.0
_MOST_ENTRIES = 100_000
_BREAKPOINTS = re.compile(r"(ft:)?gpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)")
_CLAUDE_MINIMA = (
    (r"claude-((opus|sonnet|haiku|fable|mythos)-5-\d|opus-5|fable|mythos)", 512),
    (r"claude-(opus-4-[56]|haiku-4-5)", 4096),
    (r"claude-opus-4-7|claude-(3-5-)?(3-)?haiku", 2048),
)


class Block(NamedTuple):
    """A piece of a prompt, in the order in which a model reads it."""

    content: str
    characters: int
    marked: bool
    """Whether an entry may end behind it."""
    readable: bool = False
    """Whether an entry may be found behind it; always where it is marked."""


class CacheUse(NamedTuple):
    """What a request reads in the cache, and what it writes there. ``keep`` makes the writes readable."""

    read: int
    written: int
    keep: Callable[[float], None]


class PromptCaches:
    """The prompt caches of all simulated providers."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, bytes], float] = {}
        self._turn = 0

    def clear(self) -> None:
        """Forget every entry."""
        self._entries.clear()
        self._turn = 0

    def use(self, prompt: Prompt, account: str, now: float) -> CacheUse | None:
        """The use of the cache by a request that arrives now; None for other providers.

        Args:
            prompt: the prompt.
            account: the API key, whose cache others cannot read.
            now: monotonic time in seconds.
        """
        body, cache = prompt.request.body, f"{prompt.provider}\0{prompt.model}\0{account}"
        if prompt.provider == "anthropic":
            return self._use_breakpoints(
                list(_read_anthropic(body)), cache, _find_minimum(prompt.model), _FIVE_MINUTES, now, LOOKBACK
            )
        if prompt.provider == "gemini":
            least = 2048 if prompt.model.startswith("gemini-2") else 4096
            return self._use_steps(_read_gemini(body), cache, least, now)
        if prompt.provider != "openai":
            return None
        key = body.get("prompt_cache_key")
        if key is None:
            self._turn += 1
            cache += f"\0{self._turn % MACHINES}"
        else:
            cache += f"\0key {key}"
        blocks = list(_read_openai(body))
        if _BREAKPOINTS.match(prompt.model):
            return self._use_breakpoints(blocks, cache, 1024, _HALF_AN_HOUR, now, 1)
        return self._use_steps(blocks, cache, 1024, now)

    def _use_breakpoints(
        self, blocks: list[Block], cache: str, least: int, lifetime: float, now: float, lookback: int
    ) -> CacheUse:
        """Entries end at breakpoints, and are found at breakpoints or up to ``lookback`` blocks before."""
        chain, characters, ends = blake2b(digest_size=16), 0, list[tuple[bytes, int]]()
        for block in blocks:
            chain.update(b"%d\0" % len(block.content) + block.content.encode("utf-8", "surrogatepass"))
            characters += block.characters
            ends.append((chain.digest(), convert_to_tokens(characters)))
        marks = [index for index, block in enumerate(blocks) if block.marked]
        read = 0
        for index in (*marks, *(index for index, block in enumerate(blocks) if block.readable)):
            for end, tokens in ends[max(0, index - lookback + 1) : index + 1]:
                if tokens > read and self._is_alive((cache, end), now):
                    read = tokens
        kept = [(end, tokens) for end, tokens in map(ends.__getitem__, marks) if tokens >= least]
        written = max(0, kept[-1][1] - read) if kept else 0

        def keep(begun: float) -> None:
            for end, tokens in ends:
                if tokens <= read and self._is_alive((cache, end), begun):
                    self._keep((cache, end), begun + lifetime)
            for end, _ in kept:
                self._keep((cache, end), begun + lifetime)

        return CacheUse(read, written, keep)

    def _use_steps(self, blocks: Iterable[Block], cache: str, least: int, now: float) -> CacheUse:
        """Entries end after every 128 tokens, and a write is not reported."""
        text = "\0".join(block.content for block in blocks).encode("utf-8", "surrogatepass")
        size, chain, ends = STEP * 4, blake2b(digest_size=16), list[bytes]()
        for start in range(0, len(text) - size + 1, size):
            chain.update(text[start : start + size])
            ends.append(chain.digest())
        read = 0
        for number, end in enumerate(ends, 1):
            if not self._is_alive((cache, end), now):
                break
            read = number * STEP

        def keep(begun: float) -> None:
            for end in ends:
                self._keep((cache, end), begun + _FIVE_MINUTES)

        return CacheUse(read if read >= least else 0, 0, keep)

    def _is_alive(self, key: tuple[str, bytes], now: float) -> bool:
        return self._entries.get(key, -1.0) > now

    def _keep(self, key: tuple[str, bytes], until: float) -> None:
        if len(self._entries) >= _MOST_ENTRIES:
            self._entries.clear()
        self._entries[key] = until


def count_cached(completion: Completion, use: CacheUse | None) -> None:
    """Add the use of the cache to the usage of an answer."""
    if use is not None:
        usage = completion.usage
        usage.cache_read_input_tokens = min(use.read, usage.input_tokens)
        usage.cache_write_input_tokens = min(use.written, usage.input_tokens - usage.cache_read_input_tokens)


def _find_minimum(model: str) -> int:
    return next((tokens for pattern, tokens in _CLAUDE_MINIMA if re.match(pattern, model)), 1024)


def _read_anthropic(body: Mapping[str, Any]) -> Iterator[Block]:
    yield from _make_blocks("tool", body.get("tools") or [])
    yield from _make_blocks("system", body.get("system") or [])
    for message in body.get("messages") or ():
        yield from _make_blocks(message["role"], message.get("content") or [])


def _make_blocks(role: str, content: Any) -> Iterator[Block]:
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        bare = {name: value for name, value in block.items() if name != "cache_control"}
        yield _make_block(role, bare, marked="cache_control" in block)


def _read_openai(body: Mapping[str, Any]) -> Iterator[Block]:
    """The blocks of both endpoints. OpenAI sets a breakpoint behind each message of the user's by itself."""
    implicit = (body.get("prompt_cache_options") or {}).get("mode") != "explicit"
    for tool in body.get("tools") or ():
        yield _make_block("tool", tool)
    if body.get("instructions"):
        yield _make_block("system", {"text": body["instructions"]})
    items = body.get("messages") or body.get("input")
    messages = [{"role": "user", "content": items}] if isinstance(items, str) else items or []
    newest = max(
        (number for number, message in enumerate(messages) if message.get("role") == "user"), default=-1
    )
    for number, message in enumerate(messages):
        content, role = message.get("content"), str(message.get("role"))
        if content is None:
            yield _make_block(role, message)
            continue
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for index, part in enumerate(parts):
            bare = {name: value for name, value in part.items() if name != "prompt_cache_breakpoint"}
            ends = implicit and role == "user" and index == len(parts) - 1
            yield _make_block(
                role,
                bare,
                marked="prompt_cache_breakpoint" in part or (ends and number == newest),
                readable=ends,
            )


def _read_gemini(body: Mapping[str, Any]) -> Iterator[Block]:
    system = body.get("systemInstruction") or body.get("system_instruction") or {}
    for part in system.get("parts") or ():
        yield _make_block("system", part)
    for tool in body.get("tools") or ():
        yield _make_block("tool", tool)
    for content in body.get("contents") or ():
        for part in content.get("parts") or ():
            yield _make_block(str(content.get("role", "user")), part)


def _make_block(role: str, part: Mapping[str, Any], *, marked: bool = False, readable: bool = False) -> Block:
    text = part.get("text")
    if isinstance(text, str):
        return Block(f"{role}\0{text}", len(text), marked, readable)
    content = orjson.dumps(part).decode()
    size = len(content) if role == "tool" else min(read_text([part])[1], max(MEDIA_CHARACTERS, len(content)))
    return Block(f"{role}\0{content}", size, marked, readable)
