"""The requests behind the score of a text: its tokens, its log-probabilities, and the probe of the server.

The probe asks a server for something that is known: the token that the model itself writes next must get the
log-probability with which it was written. Servers have failed in many ways that no other check can see.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from ..._core.errors import ScoreCheckError
from ..._core.formats.protocol import AnyAnswer, EncodedRequest
from ..._core.journey.call import Call, Exchange, Sample
from ..._core.journey.engine import Engine
from ..._core.runtime import clock
from ..._core.runtime.canonical_json import canonical
from ..._core.types.usage import Usage
from .checks import TOLERANCE, Position, Prompt, PromptAnswer, fail, same_text
from .openai import ScoreForm, read_counts, read_ids, write_request

_MOST_REMEMBERED = 10_000
"""Encoded texts, and servers that passed the probe, that a client remembers."""
_FAILURE_SECONDS = 30.0
"""Seconds for which a failed probe is remembered, so that not every call of a batch repeats it."""

PROBES = ("The capital of France is", "Once upon a time there was a", "One, two, three, four, five,")
"""Texts that the probe begins with. The next one is taken where the model's token cannot be sent again."""
_UNLIKELY = " xylophone"


class Memory:
    """Values that many calls need: the first call gets one, and the others wait for it.

    If the first one fails, the next one tries. A failed check is not tried again at once.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[object, Any] = OrderedDict()
        self._failures: dict[object, tuple[float, ScoreCheckError]] = {}
        self._locks: dict[object, asyncio.Lock] = {}

    async def get(self, key: object, work: Callable[[], Awaitable[Any]]) -> Any:
        """The value of a key, which `work` gets. It raises what `work` raises."""
        if key not in self._values:
            async with self._locks.setdefault(key, asyncio.Lock()):
                value = self._values[key] if key in self._values else await self._try(key, work)
                self._values[key] = value
            self._locks.pop(key, None)
            if len(self._values) > _MOST_REMEMBERED:
                self._values.popitem(last=False)
            return value
        return self._values[key]

    async def _try(self, key: object, work: Callable[[], Awaitable[Any]]) -> Any:
        when, error = self._failures.get(key, (0.0, None))
        if error is not None and clock.monotonic() - when < _FAILURE_SECONDS:
            raise ScoreCheckError(error.message, check=error.check, maybe_billed=False)
        try:
            return await work()
        except ScoreCheckError as failure:
            self._failures[key] = clock.monotonic(), failure
            raise


@dataclass(frozen=True)
class PromptScores(Exchange):
    """Asks for the log-probabilities of a prompt, or for that of the token `following` it."""

    form: ScoreForm
    prompt: Prompt
    following: int | None = None

    name = "score"
    billed = True

    def body(self, call: Call[Any], parts: Sequence[int]) -> bytes:
        return call.body

    def tokens(self, call: Call[Any], parts: Sequence[int]) -> float:
        """About one token for four bytes, where they are not known."""
        return float(len(self.prompt.ids or self.prompt.text.encode()[::4]) + 1)

    def decode(self, call: Call[Any], reply: Any, count: int) -> AnyAnswer:
        """The values in a reply, which have passed the checks."""
        answer: AnyAnswer = self.form.decode(reply, self.prompt, self.following)
        answer.reply = reply
        return answer

    def usage(self, call: Call[Any], reply: Any) -> Usage | None:
        return read_counts(reply)


@dataclass(slots=True)
class TokenAnswer(AnyAnswer):
    """A decoded reply of a tokenizer."""

    ids: tuple[int, ...]


class Tokenize(PromptScores):
    """Asks a server for the tokens of a text, for nothing."""

    name = "tokenize"
    billed = False

    def decode(self, call: Call[Any], reply: Any, count: int) -> AnyAnswer:
        return TokenAnswer(read_ids(reply), usage=None)


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
        target, prompt = self.call.target, Prompt(text, None)
        if not self.form.text_field:
            return prompt

        async def ask() -> tuple[int, ...]:
            payload = self.form.write_text(target.model, text)
            encoded = EncodedRequest("/tokenize", payload, self.call.encoded.headers)
            ids: tuple[int, ...] = (await self._send(Tokenize(self.form, prompt), encoded)).answer.ids
            return ids

        return Prompt(text, await self.memory.get((target.base_url, target.model, text), ask))

    async def find_values(self, prompt: Prompt, start: int) -> Sequence[Position]:
        """The values of a prompt from a token on; `ScoreCheckError` if they cannot be right."""
        if not self.form.by_token:
            return (await self.ask(prompt)).positions[start:]
        positions: list[Position] = []
        ids = prompt.ids or ()
        for index in range(start, len(ids)):
            positions += (await self.ask(prompt._replace(ids=ids[:index]), ids[index])).positions
        return positions

    async def ask(self, prompt: Prompt, following: int | None = None) -> PromptAnswer:
        encoded = write_request(self.form, self.call.encoded, prompt)
        sample = await self._send(PromptScores(self.form, prompt, following), encoded)
        self.samples.append(sample)
        answer: PromptAnswer = sample.answer
        return answer

    async def _send(self, exchange: Exchange, encoded: EncodedRequest) -> Sample:
        call = replace(self.call, exchange=exchange, encoded=encoded, body=canonical(encoded.payload))
        return await self.engine.here().sender.send(call, self.parts, None)


# --- the probe ---------------------------------------------------------------------------------------------


async def probe(requests: ScoreRequests, *, check_order: bool) -> None:
    """Ask for what is known; `ScoreCheckError` if the server tells something else."""
    for text in PROBES:
        prompt = await requests.read_prompt(text)
        first = await requests.ask(prompt)
        size, written = len(prompt.ids or first.positions), first.generated
        known = await _extend(requests, prompt, written.token, written.id)
        values = () if known is None else await requests.find_values(known, size)
        has_token = written.id is not None or (values and values[0].token == written.token)
        if known is not None and values and has_token and written.logprob != 0:
            break
    else:
        if written.logprob == 0:
            fail("sum", "the model is certain of each token that it writes")
        fail("probe", "what the model writes cannot be sent as a prompt")
    value, said = values[0].logprob or 0.0, f"the model wrote {written.token!r} at {written.logprob:.4f}"
    if abs(value - (written.logprob or 0.0)) > TOLERANCE or values[0].is_greedy is False:
        greedy = "" if values[0].is_greedy is not False else " and is not the most likely one"
        fail("known answer", f"{said}, and as a part of the prompt the token has {value:.4f}{greedy}")
    # A token of the prompt is as good as any other one.
    unlikely = next((id_ for id_ in reversed(prompt.ids or ()) if id_ != written.id), None)
    other = await _extend(requests, prompt, _UNLIKELY, unlikely)
    both = await _extend(requests, known, _UNLIKELY, unlikely)
    if other is None or both is None:
        fail("probe", "the server's tokenizer does not keep the tokens in front of a word")
    longer = {each: (await requests.find_values(each, size))[0].logprob or 0.0 for each in (other, both)}
    if longer[other] >= value:
        fail("known answer", f"{said}, and a word at random has {longer[other]:.4f} in its place")
    if abs(longer[both] - value) > TOLERANCE:
        fail("chain", f"{said}, and with a token behind it, it has {longer[both]:.4f}")
    for each, before in reversed([(known, value), *longer.items()]) if check_order else ():
        again = (await requests.find_values(each, size))[0].logprob or 0.0
        if abs(again - before) > TOLERANCE:
            fail("order", f"a token had {before:.4f}, and {again:.4f} when it was asked for again")


async def _extend(requests: ScoreRequests, prompt: Prompt, token: str, token_id: int | None) -> Prompt | None:
    """A prompt with one more token, or word; None if the tokenizer joins it with those before."""
    if prompt.ids is not None and token_id is not None and requests.form.takes_ids:
        return Prompt("", (*prompt.ids, token_id))
    if "\ufffd" in token:
        return None
    longer, ids = await requests.read_prompt(prompt.text + token), prompt.ids or ()
    return longer if longer.ids is None or longer.ids[: len(ids)] == ids != longer.ids else None


# --- the border between the context and the continuation ---------------------------------------------------


def move_spaces(context: str, continuation: str) -> tuple[str, str]:
    """The context without the white space at its end, which the continuation begins with.

    Tokenizers join a space with the word behind it. This is the rule of lm-evaluation-harness.

    >>> move_spaces("The sky is ", "blue")
    ('The sky is', ' blue')
    """
    end = len(context.rstrip())
    return context[:end], context[end:] + continuation


def cut_ids(whole: Sequence[int], context: Sequence[int], begin: Sequence[int] | None) -> tuple[int, bool]:
    """The index of the first token of a continuation, and whether the context has the same tokens alone.

    `begin` are the tokens that the tokenizer puts in front of a text, where the replies do not show them.
    """
    if len(whole) <= len(context):
        fail("slice", f"the context alone has {len(context)} tokens, and with the continuation {len(whole)}")
    if not context:
        fail("first token", "the context is empty, and the tokenizer puts no token in front of a text")
    if begin and tuple(whole[: 2 * len(begin)]) == (*begin, *begin):
        fail("begin token", f"the prompt begins twice with the tokens {list(begin)}")
    return len(context), tuple(whole[: len(context)]) == tuple(context)


def cut_text(tokens: Sequence[str], context: str) -> int:
    """The index of the first token of a continuation, by texts; `ScoreCheckError` if none ends before it.

    >>> cut_text(["<s>", " Hello", " world"], "Hello")
    2
    """
    for begin in (0, 1):
        # Without its first token, and with it: servers put a token in front of a text.
        for index, text in enumerate(accumulate(tokens[begin:-1], initial=""), start=begin):
            if index and same_text(text, context):
                return index
    return fail("slice", f"no token ends where the context ends, among {tokens[:80]!r:.200}")
