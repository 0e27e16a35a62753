"""How servers with OpenAI's format tell the log-probabilities of a prompt, a `ScoreForm` for each. Pure.

Most of them tell all of a prompt with one request. llama.cpp's server tells none of a prompt, but all of the
next token: each token then takes a request.

Servers also ignore `echo`, leave the prompt out, put every value one position late or write -9999, all with
status 200. A sum over such a reply looks like a score. docs/decide.md lists the checks and the failures.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from ..._core.errors import RequestError, ScoreCheckError, UnsupportedParameterError
from ..._core.formats.protocol import AnyAnswer, EncodedRequest
from ..._core.formats.shared.payload import merge
from ..._core.formats.shared.replies import find_counts, read_object, read_usage, text_of
from ..._core.json_values import JSONObject
from ..._core.requests.routing import Target
from ..._core.types.usage import Usage
from .scores import ScoreRequest

TOLERANCE = 0.1
"""How far two values of one token may differ, in nats. Prefix caches move logits by about 0.06."""
_LEAST = -9000.0
"""vLLM writes -9999 for what it cannot represent. No vocabulary has a token so unlikely."""
_WHOLE = 1.001
"""The most that the probabilities of one position may add up to."""

_REMEDIES = {
    "count": "the server does not tell the log-probabilities of the whole prompt",
    "first token": "the values may be shifted, or the server left some out",
    "echo": "the server scored another text than the one that was sent",
    "begin token": "leave the token that begins a text out of the context, because the server adds it",
    "slice": "end the context, or begin the continuation, at a word",
    "values": "the server has no log-probability for a token",
    "shift": "each value seems to belong to another token, as without a token that begins the text",
    "sum": "the server gives probabilities after sampling, or not all of them",
    "known answer": "the server's log-probabilities of a prompt are not those with which it generates",
    "chain": "the log-probability of a token changes with the tokens behind it",
    "order": "switch the server's prefix cache off (vLLM: --no-enable-prefix-caching)",
    "probe": "the server cannot be tested, so it is not used",
}
"""Check → what its failure means, or what to do."""


class Prompt(NamedTuple):
    """A prompt as it is sent: the ids of its tokens, or its text where `ids` is None.

    The text is empty where the ids were put together and not made of a text.
    """

    text: str
    ids: tuple[int, ...] | None


class Position(NamedTuple):
    """One token of a prompt, or the one that the model generated."""

    logprob: float | None
    token: str
    id: int | None = None
    top: Mapping[Any, float] = {}  # it is never changed
    """The log-probabilities of the likeliest tokens, by id, or by text where the reply has no ids."""

    @property
    def is_greedy(self) -> bool | None:
        """Whether the token is the most likely one; None if the reply does not tell."""
        return self.logprob >= max(self.top.values()) if self.top and self.logprob is not None else None


@dataclass(slots=True, kw_only=True)
class PromptAnswer(AnyAnswer):
    """A decoded reply to a request for the log-probabilities of a prompt."""

    positions: Sequence[Position]
    generated: Position


def fail(check: str, problem: str) -> NoReturn:
    raise ScoreCheckError(f"check {check!r} failed: {problem}; {_REMEDIES[check]}", check=check)


def check_prompt(answer: PromptAnswer, prompt: Prompt) -> None:
    """Raise a `ScoreCheckError` if these cannot be the values of the whole prompt."""
    positions, usage = answer.positions, answer.usage
    if not positions or len(positions) != len(prompt.ids or positions):
        sent = "some" if prompt.ids is None else len(prompt.ids)
        fail("count", f"the reply has {len(positions)} prompt tokens, and {sent} were sent")
    if usage is not None and len(positions) + 1 != usage.total_tokens:
        fail("count", f"the reply has {len(positions)} + 1 values, and its usage {usage.total_tokens} tokens")
    missing = [index for index, position in enumerate(positions) if position.logprob is None]
    if missing != [0]:
        problem = f"only the first token can be without a value, and those without are {missing[:9]}"
        fail("first token", problem)
    _check_echo(positions, prompt)
    check_values(positions[1:])


def _check_echo(positions: Sequence[Position], prompt: Prompt) -> None:
    ids, tokens = [position.id for position in positions], [position.token for position in positions]
    has_ids = prompt.ids is not None and None not in ids
    for index, (own, sent) in enumerate(zip(ids, prompt.ids or (), strict=False)):
        if has_ids and own != sent:
            fail("echo", f"token {index} has the id {own}, and {sent} was sent")
    text, begin = "".join(tokens), tokens[min(1, len(tokens) - 1)]
    if not prompt.text or "\ufffd" in text:
        return
    # The first position of some replies has no text.
    twice = tokens[0] == begin if tokens[0] else ids[:1] == ids[1:2]
    after = prompt.text.removeprefix(begin)
    if twice and after != prompt.text and same_text("".join(tokens[2:]), after):
        fail("begin token", f"the prompt begins twice with {begin!r}")
    if not has_ids and not same_text(text, prompt.text) and not same_text("".join(tokens[1:]), prompt.text):
        fail("echo", f"the echoed tokens are {text[:80]!r}, and not the text that was sent")


def same_text(tokens: str, text: str) -> bool:
    """Whether joined tokens are a text. Some tokenizers put a space in front of it.

    >>> same_text(" Hello", "Hello"), same_text("Hell", "Hello"), same_text("  ", " ")
    (True, False, True)
    """
    return tokens == text or tokens.removeprefix(" ") == text or tokens == text.removeprefix(" ")


def check_values(positions: Sequence[Position]) -> None:
    """Raise a `ScoreCheckError` unless each value is the log-probability of its own token."""
    for index, (logprob, token, id_, top) in enumerate(positions, start=1):
        where = f"token {index} ({token!r:.40})"
        if type(logprob) not in (int, float) or not _LEAST < (logprob or 0.0) <= 0.0:
            fail("values", f"{where} has the log-probability {logprob!r:.40}")
        assert logprob is not None, "checked above"
        key = token if any(isinstance(name, str) for name in top) else id_
        if top and abs(top.get(key, logprob) - logprob) > TOLERANCE:
            fail("shift", f"{where} has {logprob:g}, and {top[key]:g} among the likeliest tokens")
        if top and key not in top and logprob >= min(top.values()):
            fail("shift", f"{where} has {logprob:g}, which is the value of another token")
        if math.fsum(map(math.exp, ({key: logprob} | dict(top)).values())) > _WHOLE:
            fail("sum", f"the probabilities at {where} add up to more than 1")
    if len(positions) > 1 and not any(position.logprob for position in positions):
        fail("values", "every log-probability is 0.0")


_EVERY_TOKEN = 1_000_000
"""More than any vocabulary has: llama.cpp's server then lists all tokens."""

_Read = tuple[list[Position], Position]
"""The positions of a prompt, and the one token that was generated, as few as every server can."""


class ScoreForm(NamedTuple):
    """One way to ask for the log-probabilities of a prompt, and the form of the reply."""

    path: str
    """A path that begins with "/" is below the server's root, any other below its base URL."""
    write: Callable[[str, Prompt], JSONObject]
    read: Callable[[Any, Prompt], _Read]
    text_field: str = ""
    """The field of a text for the server's own `/tokenize`; empty where it has none."""
    takes_ids: bool = True
    by_token: bool = False
    """Whether a reply tells the next token's log-probabilities alone."""

    def write_text(self, model: str, text: str) -> JSONObject:
        """The request for the tokens of a text, with those that the server puts in front of it."""
        special = "add_special" if self.by_token else "add_special_tokens"
        return {"model": model, self.text_field: text, special: True}

    def decode(self, reply: Any, prompt: Prompt, following: int | None = None) -> PromptAnswer:
        """The values of a prompt, or with `by_token` the one of the token `following` it."""
        read_object(reply, "choices")
        try:
            positions, generated = self.read(reply, prompt)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, StopIteration) as error:
            fail("count", f"the reply has no log-probabilities in the form of its server ({error!r:.80})")
        if following is not None:
            # Of the others, among all that llama.cpp's server lists, the best is kept.
            entries = reply["completion_probabilities"][0]["top_logprobs"]
            token = next((entry["token"] for entry in entries if entry["id"] == following), None)
            if token is None:
                fail("count", f"the reply has no log-probability of the token {following}")
            logprob = generated.top[following]
            tops = {following: logprob, generated.id: generated.logprob or 0.0}
            positions = [Position(logprob, token, following, tops)]
            check_values(positions)
        answer = PromptAnswer(
            positions=positions, generated=generated, usage=read_counts(reply),
            model=text_of(reply.get("model")), id=text_of(reply.get("id")),
        )  # fmt: skip
        if not self.by_token:
            check_prompt(answer, prompt)
        return answer


def read_ids(reply: Any) -> tuple[int, ...]:
    """The ids in the reply of a tokenizer; a `ScoreCheckError` if it has none."""
    tokens = reply.get("tokens") if isinstance(reply, dict) else reply
    ids: list[Any] = [token.get("id") if isinstance(token, dict) else token for token in tokens or ()]
    if not isinstance(tokens, list) or any(type(token) is not int for token in ids):
        fail("probe", "the server's tokenizer tells no ids")
    return tuple(ids)


def read_counts(reply: Any) -> Usage | None:
    """The usage that a reply reports, under the names of its server."""
    if counts := find_counts(reply, "usage"):
        return read_usage({"completion_tokens": 0, **counts})
    meta, details = (find_counts(reply, name) or {} for name in ("meta_info", "details"))
    own = reply.get("tokens_evaluated") if isinstance(reply, dict) else None
    read: Any = meta.get("prompt_tokens", len(details.get("prefill") or ()) or own)
    written: Any = meta.get("completion_tokens", details.get("generated_tokens", 1))
    return Usage(input_tokens=read, output_tokens=written) if type(read) is int else None


# --- completions: legacy arrays, vLLM's `prompt_logprobs`, Together's part for the prompt -------------------


def _complete(**fields: Any) -> Callable[[str, Prompt], JSONObject]:
    def write(model: str, prompt: Prompt) -> JSONObject:
        sent = prompt.text if prompt.ids is None else list(prompt.ids)
        return {"model": model, "prompt": sent, "max_tokens": 1, "temperature": 0, "logprobs": 1, **fields}

    return write


def _zip_arrays(arrays: Any, ids: Any = None) -> Iterator[Position]:
    tokens, tops = arrays["tokens"], arrays.get("top_logprobs")
    nothing = [None] * len(tokens)
    columns = (ids or arrays.get("token_ids") or nothing, tops if isinstance(tops, list) else nothing)
    for logprob, token, id_, top in zip(arrays["token_logprobs"], tokens, *columns, strict=True):
        yield Position(logprob, token, None if id_ is None else int(id_), top or {})


def _read_arrays(reply: Any, _: Prompt) -> _Read:
    choice = reply["choices"][0]
    ids = choice.get("prompt_token_ids"), choice.get("token_ids")
    *prompt, generated = _zip_arrays(choice["logprobs"], [*ids[0], *ids[1]] if all(ids) else None)
    return prompt, generated


def _read_prompt_logprobs(reply: Any, prompt: Prompt) -> _Read:
    choice, positions = reply["choices"][0], []
    listed = choice.get("prompt_logprobs") or reply["prompt_logprobs"]
    if tuple(choice.get("prompt_token_ids") or prompt.ids or ()) != prompt.ids:
        fail("echo", "the ids in the reply are not those that were sent")
    for index, (entry, id_) in enumerate(zip(listed, prompt.ids or (), strict=False)):
        # There are k entries, or k + 1, and the token may be any of them.
        own = (entry or {}).get(str(id_))
        if entry is not None and own is None:
            fail("echo", f"token {index} is {id_}, and the reply has only {', '.join(entry)!s:.60} there")
        tops = {int(name): each["logprob"] for name, each in (entry or {}).items()}
        known = [each for each in (entry or {}).values() if each["logprob"] is not None]
        ranked = [each["logprob"] for each in sorted(known, key=lambda each: each.get("rank") or 0)]
        if ranked != sorted(ranked, reverse=True):
            fail("shift", f"a token of position {index} has a better value than one of a better rank")
        own = own or {"logprob": None, "decoded_token": ""}
        positions.append(Position(own["logprob"], own["decoded_token"] or "", id_, tops))
    if len(listed) != len(positions):
        fail("count", f"the reply has {len(listed)} prompt tokens, and {len(positions)} were sent")
    return positions, next(_zip_arrays(choice["logprobs"], choice.get("token_ids")))


def _read_prompt_part(reply: Any, _: Prompt) -> _Read:
    positions = list(_zip_arrays(reply["prompt"][0]["logprobs"]))
    return positions, next(_zip_arrays(reply["choices"][0]["logprobs"]))


# --- the servers' own formats: sglang, TGI, llama.cpp -------------------------------------------------------


def _write_sglang(_: str, prompt: Prompt) -> JSONObject:
    return {
        "input_ids": prompt.ids, "sampling_params": {"temperature": 0, "max_new_tokens": 1},
        "return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": 1,
        "return_text_in_logprobs": True,
    }  # fmt: skip


def _read_sglang(reply: Any, _: Prompt) -> _Read:
    meta = reply["meta_info"]
    listed, tops = meta["input_token_logprobs"], meta["input_top_logprobs"]
    positions = [
        Position(logprob, text or "", id_, {other: value for value, other, _ in top or ()})
        for (logprob, id_, text), top in zip(listed, tops, strict=False)
    ]
    logprob, id_, text = meta["output_token_logprobs"][0]
    return positions, Position(logprob, text or "", id_)


def _write_tgi(_: str, prompt: Prompt) -> JSONObject:
    parameters = {"details": True, "decoder_input_details": True, "max_new_tokens": 1, "do_sample": False}
    return {"inputs": prompt.text, "parameters": parameters}


def _read_tgi(reply: Any, _: Prompt) -> _Read:
    details = reply["details"]
    if not details["prefill"]:
        fail("count", "prefill is empty: start TGI with --enable-prefill-logprobs")
    names = ("logprob", "text", "id")
    *prompt, generated = (
        Position(*map(entry.__getitem__, names)) for entry in (*details["prefill"], details["tokens"][0])
    )
    return prompt, generated


def _write_llama(_: str, prompt: Prompt) -> JSONObject:
    return {"prompt": prompt.ids, "n_predict": 1, "n_probs": _EVERY_TOKEN, "temperature": 0}


def _read_llama(reply: Any, prompt: Prompt) -> _Read:
    entries, read = reply["completion_probabilities"][0]["top_logprobs"], reply["tokens_evaluated"]
    if read != len(prompt.ids or ()) or reply.get("truncated"):
        fail("count", f"the server read {read} tokens, and {len(prompt.ids or ())} were sent")
    tops = {entry["id"]: entry["logprob"] for entry in entries}
    total, best = math.fsum(map(math.exp, tops.values())), max(entries, key=lambda entry: entry["logprob"])
    if abs(total - 1) > 0.01:
        fail("sum", f"the probabilities of the next token add up to {total:.4f}")
    return [], Position(best["logprob"], best["token"], best["id"], tops)


_IDS = {"return_token_ids": True}
_FORMS: Mapping[str, Mapping[str, ScoreForm]] = {
    "vllm": {
        "prompt_logprobs": ScoreForm(
            "completions", _complete(prompt_logprobs=1, **_IDS), _read_prompt_logprobs, "prompt"
        ),
        "echo": ScoreForm("completions", _complete(echo=True, **_IDS), _read_arrays, "prompt"),
    },
    "sglang": {
        "generate": ScoreForm("/generate", _write_sglang, _read_sglang, "prompt"),
        "echo": ScoreForm("completions", _complete(echo=True), _read_arrays, "prompt"),
    },
    "tgi": {"generate": ScoreForm("/generate", _write_tgi, _read_tgi, "inputs", takes_ids=False)},
    "llama.cpp": {"native": ScoreForm("/completion", _write_llama, _read_llama, "content", by_token=True)},
    "prompt part": {
        "echo": ScoreForm("completions", _complete(echo=True), _read_prompt_part, takes_ids=False)
    },
    "text": {
        "echo": ScoreForm(
            "completions", _complete(echo=True, context_length_exceeded_behavior="error"), _read_arrays,
            takes_ids=False,
        )
    },
}  # fmt: skip
"""`Route.scores` → its forms by the name of the method. The first is the default."""


def encode(request: ScoreRequest, target: Target) -> EncodedRequest:
    """The payload without the texts. Its method is one that the server has, else it is refused."""
    forms = _FORMS.get(target.route.scores)
    if forms is None:
        what = f"{target.provider} does not tell the log-probabilities of a given text"
        if target.route.host is not None or target.provider == "local":
            what = "score() has to know the kind of the server"
        raise RequestError(
            f"{what}: docs/decide.md has those that do; a server of your own is named as in "
            "Client(hosts=[Host('lab', 'http://10.0.0.7:8000/v1', 'vllm')])",
            provider=target.provider, model=request.model,
        )  # fmt: skip
    method: str = request.method or next(iter(forms.keys()))
    if method not in forms:
        raise UnsupportedParameterError(
            f"method={method!r} is not one of this server's: leave it out, or use {', '.join(forms)}",
            parameter="method", provider=target.provider, model=request.model,
        )  # fmt: skip
    payload: JSONObject = {"model": target.model, "method": method}
    if request.extra_body:
        payload["extra_body"] = dict(request.extra_body)
    return EncodedRequest("score", payload, request.extra_headers or {})


def form_of(encoded: EncodedRequest, target: Target) -> ScoreForm:
    return _FORMS[target.route.scores][encoded.payload["method"]]


def write_request(form: ScoreForm, encoded: EncodedRequest, prompt: Prompt) -> EncodedRequest:
    payload = form.write(encoded.payload["model"], prompt)
    return EncodedRequest(form.path, merge(payload, encoded.payload.get("extra_body") or {}), encoded.headers)
