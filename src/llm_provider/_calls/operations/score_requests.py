"""The requests behind the scores of a text: its tokens, its log-probabilities, and the probe of the server.

The probe asks a server for something that is known: the token that the model itself writes next must get the
log-probability with which it was written. Servers have failed in many ways that no other check can see.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..._errors import ScoreCheckError
from ..._providers.openai.scores import ScoreForm, Tokenizer, write_request
from ..._providers.protocol import AnyAnswer, EncodedRequest
from ..._providers.shared.score_checks import TOLERANCE, Position, Prompt, PromptAnswer, fail, same_text
from ..._runtime import clock
from ..._runtime.canonical_json import canonical
from ..._types.usage import Usage
from ..call import Call, Exchange, Sample

if TYPE_CHECKING:
    from ..lifecycle.engine import Engine

T = TypeVar("T")

_MOST_REMEMBERED = 10_000
"""Encoded texts, and servers that passed the probe, that a client remembers."""
_FAILURE_SECONDS = 30.0
"""Seconds for which a failed probe is remembered, so that not every call of a batch repeats it."""

PROBES = ("The capital of France is", "Once upon a time there was a", "One, two, three, four, five,")
"""Texts that the probe begins with. The next one is for a server whose model ends the one before with a token
that cannot be sent again."""
_UNLIKELY = " xylophone"


class Memory:
    """Values that many calls need: the first call gets one, and the others wait for it.

    If the first one fails, the next one tries. A failed check is not tried again at once.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[object, Any] = OrderedDict()
        self._failures: dict[object, tuple[float, ScoreCheckError]] = {}
        self._locks: dict[object, asyncio.Lock] = {}

    async def get(self, key: object, work: Callable[[], Awaitable[T]]) -> T:
        """The value of a key, which `work` gets.

        Raises:
            LLMError: `work` failed.
        """
        if key in self._values:
            value: T = self._values[key]
            return value
        async with self._locks.setdefault(key, asyncio.Lock()):
            value = self._values[key] if key in self._values else await self._try(key, work)
            self._values[key] = value
        self._locks.pop(key, None)
        if len(self._values) > _MOST_REMEMBERED:
            self._values.popitem(last=False)
        return value

    async def _try(self, key: object, work: Callable[[], Awaitable[T]]) -> T:
        when, error = self._failures.get(key, (0.0, None))
        if error is not None and clock.monotonic() - when < _FAILURE_SECONDS:
            raise ScoreCheckError(error.message, check=error.check, maybe_billed=False)
        try:
            return await work()
        except ScoreCheckError as failure:
            self._failures[key] = clock.monotonic(), failure
            raise


@dataclass(slots=True)
class TokenAnswer(AnyAnswer):
    """A decoded reply of a tokenizer."""

    ids: tuple[int, ...]


class Tokenize(Exchange):
    """Asks a server for the tokens of a text."""

    name = "tokenize"
    nests = False
    billed = False

    def body(self, call: Call[Any], parts: Sequence[int]) -> bytes:
        """The payload."""
        return call.body

    def tokens(self, call: Call[Any], parts: Sequence[int]) -> float:
        """Tokenizers do not count against a limit of tokens."""
        return 0.0

    def decode(self, call: Call[Any], reply: Any, count: int) -> TokenAnswer:
        """The ids in a reply."""
        return TokenAnswer(Tokenizer.read(reply), usage=None)

    def usage(self, call: Call[Any], reply: Any) -> None:
        """A tokenizer uses no tokens."""


@dataclass(frozen=True)
class PromptScores(Exchange):
    """Asks for the log-probabilities of one prompt, or of the token that follows it."""

    form: ScoreForm
    prompt: Prompt
    following: int | None = None

    name = "score"
    nests = False
    billed = True

    def body(self, call: Call[Any], parts: Sequence[int]) -> bytes:
        """The payload."""
        return call.body

    def tokens(self, call: Call[Any], parts: Sequence[int]) -> float:
        """About one token for four bytes, where they are not known."""
        ids = self.prompt.ids
        return float(len(self.prompt.text.encode()) // 4 + 2 if ids is None else len(ids) + 1)

    def decode(self, call: Call[Any], reply: Any, count: int) -> PromptAnswer:
        """The values in a reply, which have passed the checks."""
        return self.form.decode(reply, self.prompt, self.following)

    def usage(self, call: Call[Any], reply: Any) -> Usage | None:
        """The usage as the form reads it."""
        return self.form.usage(reply)


_TOKENIZE = Tokenize()


@dataclass(slots=True)
class ScoreRequests:
    """Sends the requests for one part of a call, one after the other."""

    call: Call[Any]
    parts: Sequence[int]
    engine: Engine
    form: ScoreForm
    memory: Memory
    samples: list[Sample] = field(default_factory=list)
    """The answered requests that were billed."""

    async def read_prompt(self, text: str) -> Prompt:
        """A text as it is sent, and its tokens where the server has a tokenizer."""
        tokenizer = self.form.tokenizer
        if tokenizer is None:
            return Prompt(text, None)
        target = self.call.target

        async def ask() -> tuple[int, ...]:
            payload = tokenizer.write(target.model, text)
            headers = self.call.encoded.headers
            sample = await self._send(_TOKENIZE, EncodedRequest("/tokenize", payload, headers))
            ids: tuple[int, ...] = sample.answer.ids
            return ids

        return Prompt(text, await self.memory.get((target.base_url, target.model, text), ask))

    async def find_values(self, prompt: Prompt, start: int = 0) -> PromptAnswer:
        """The values of a prompt from a token on, and the token that the model writes next.

        Raises:
            ScoreCheckError: they cannot be right.
        """
        if not self.form.by_token:
            answer = await self._ask(prompt)
            answer.positions, answer.offset = answer.positions[start:], start
            return answer
        positions: list[Position] = []
        ids = prompt.ids or ()
        for index in range(max(1, start), len(ids)):
            answer = await self._ask(prompt._replace(ids=ids[:index]), ids[index])
            positions += answer.positions
        if start == 0:
            answer = await self._ask(prompt)
        answer.positions, answer.offset = positions, max(1, start)
        return answer

    async def _ask(self, prompt: Prompt, following: int | None = None) -> PromptAnswer:
        encoded = write_request(self.form, self.call.encoded, prompt)
        sample = await self._send(PromptScores(self.form, prompt, following), encoded)
        self.samples.append(sample)
        answer: PromptAnswer = sample.answer
        return answer

    async def _send(self, exchange: Exchange, encoded: EncodedRequest) -> Sample:
        call = replace(self.call, exchange=exchange, encoded=encoded, body=canonical(encoded.payload))
        return await self.engine.here().sender.send(call, self.parts, None)

    # --- the probe ---------------------------------------------------------------------------------------

    async def probe(self, *, check_order: bool) -> None:
        """Ask for what is known.

        Raises:
            ScoreCheckError: the server told something else.
        """
        for text in PROBES:
            prompt = await self.read_prompt(text)
            first = await self._ask(prompt)
            size = len(prompt.ids) if prompt.ids is not None else len(first.positions)
            written = first.generated
            if written is None or written.logprob is None:
                fail("probe", "the reply does not tell the log-probability of the token that the model wrote")
            known = await self._extend(prompt, written.token, written.id)
            value = None if known is None else await self._value_at(known, size)
            if known is None or value is None or (written.id is None and value.token != written.token):
                continue
            await self._compare(prompt, known, size, written, value, check_order=check_order)
            return
        fail("probe", "what the model writes cannot be sent as a prompt")

    async def _compare(
        self,
        prompt: Prompt,
        known: Prompt,
        size: int,
        written: Position,
        value: Position,
        *,
        check_order: bool,
    ) -> None:
        said = f"the model wrote {written.token!r} at {written.logprob:.4f}"
        assert value.logprob is not None, "the checks have passed"
        assert written.logprob is not None, "`probe` has checked it"
        if abs(value.logprob - written.logprob) > TOLERANCE:
            fail("known answer", f"{said}, and as a part of the prompt it has {value.logprob:.4f}")
        if value.is_greedy is False:
            fail("known answer", f"{said}, and as a part of the prompt it is not the most likely token")
        unlikely = next((id_ for id_ in reversed(prompt.ids or ()) if id_ != written.id), None)
        other = await self._extend(prompt, _UNLIKELY, unlikely)
        both = None if other is None else await self._extend(known, _UNLIKELY, unlikely)
        if other is None or both is None:
            fail("probe", "the server's tokenizer does not keep the tokens in front of a word")
        values = [(known, value.logprob)]
        for longer in (other, both):
            position = await self._value_at(longer, size)
            if position is None or position.logprob is None:
                fail("chain", "a longer prompt has fewer log-probabilities")
            values.append((longer, position.logprob))
        if values[1][1] >= value.logprob:
            fail("known answer", f"{said}, and a word at random has {values[1][1]:.4f} in its place")
        if abs(values[2][1] - value.logprob) > TOLERANCE:
            fail("chain", f"{said}, and with a token behind it it has {values[2][1]:.4f}")
        for longer, before in reversed(values) if check_order else ():
            again = await self._value_at(longer, size)
            if again is None or abs((again.logprob or 0.0) - before) > TOLERANCE:
                fail("order", f"a token had {before:.4f}, and {again and again.logprob} when asked for again")

    async def _extend(self, prompt: Prompt, token: str, token_id: int | None) -> Prompt | None:
        """A prompt with one more token, or word; None if the tokenizer joins it with those before."""
        if prompt.ids is not None and token_id is not None and self.form.takes_ids:
            return Prompt("", (*prompt.ids, token_id))
        text = prompt.text + token
        if "\ufffd" in token:
            return None
        longer = await self.read_prompt(text)
        if prompt.ids is None or longer.ids is None:
            return longer
        return longer if longer.ids[: len(prompt.ids)] == prompt.ids and longer.ids != prompt.ids else None

    async def _value_at(self, prompt: Prompt, index: int) -> Position | None:
        answer = await self.find_values(prompt, index)
        return answer.positions[0] if answer.positions else None


# --- the border between the context and the continuation ---------------------------------------------------


def move_spaces(context: str, continuation: str) -> tuple[str, str]:
    """The context without the white space at its end, which the continuation begins with.

    Tokenizers join a space with the word behind it. This is the rule of lm-evaluation-harness.

    >>> move_spaces("The sky is ", "blue")
    ('The sky is', ' blue')
    """
    end = len(context.rstrip())
    return context[:end], context[end:] + continuation


def cut_ids(whole: Sequence[int], context: Sequence[int]) -> tuple[int, bool]:
    """The index of the first token of a continuation, and whether the context has the same tokens alone.

    Raises:
        ScoreCheckError: the continuation would have no token, or none in front of its first one.
    """
    if len(whole) <= len(context):
        fail("slice", f"the context alone has {len(context)} tokens, and with the continuation {len(whole)}")
    if not context:
        fail("first token", "the context is empty, and the tokenizer puts no token in front of a text")
    return len(context), tuple(whole[: len(context)]) == tuple(context)


def check_begin(whole: Sequence[int], begin: Sequence[int]) -> None:
    """Check that a prompt begins once with the tokens that the tokenizer puts in front of a text.

    Raises:
        ScoreCheckError: it begins twice with them.
    """
    if begin and tuple(whole[: 2 * len(begin)]) == tuple(begin) * 2:
        fail("begin token", f"the prompt begins twice with the tokens {list(begin)}")


def cut_text(tokens: Sequence[str], context: str) -> int:
    """The index of the first token of a continuation, where the server tells texts of tokens alone.

    Raises:
        ScoreCheckError: no token ends where the context ends.

    >>> cut_text(["<s>", " Hello", " world"], "Hello")
    2
    """
    ends = (
        index
        for begin in (0, 1)
        for index, text in enumerate(_prefixes(tokens[begin:]), start=begin)
        if same_text(text, context) and 0 < index < len(tokens)
    )
    end = next(ends, None)
    if end is None:
        fail("slice", f"no token ends where the context ends, among {tokens[:80]!r:.200}")
    return end


def _prefixes(tokens: Sequence[str]) -> Iterator[str]:
    text = ""
    yield text
    for token in tokens:
        text += token
        yield text
