"""How servers with OpenAI's format tell the log-probabilities of a prompt, a `ScoreForm` for each. Pure.

Most of them tell those of a whole prompt with one request. llama.cpp's server tells none, but all of those of
the next token: each token then takes a request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from ..._errors import RequestError, UnsupportedParameterError
from ..._json_values import JSONObject
from ..._requests.routing import Target
from ..._requests.score_request import ScoreRequest
from ..._types.usage import Usage
from ..openai_chat.usage import read_usage
from ..protocol import EncodedRequest
from ..shared.errors import raise_error_in
from ..shared.payload import merge
from ..shared.replies import expect_dict, find_counts, text_of
from ..shared.score_checks import Position, Prompt, PromptAnswer, check_prompt, check_values, fail

_EVERY_TOKEN = 1_000_000
"""More than any vocabulary has: llama.cpp's server then lists all tokens."""

_Arrays = tuple[list[Position], Position | None]


class Tokenizer(NamedTuple):
    """A server's own tokenizer: what is posted to `/tokenize`."""

    text_field: str
    fields: JSONObject

    def write(self, model: str, text: str) -> JSONObject:
        """The request for the tokens of a text, with those that the server adds to it."""
        return {"model": model, self.text_field: text, **self.fields}

    @staticmethod
    def read(reply: Any) -> tuple[int, ...]:
        """The ids in a reply.

        Raises:
            ScoreCheckError: it has none.
        """
        tokens = reply
        if isinstance(reply, dict):
            raise_error_in(reply, "tokens")
            tokens = reply.get("tokens")
        ids: list[Any] = [token.get("id") if isinstance(token, dict) else token for token in tokens or ()]
        if not isinstance(tokens, list) or any(type(token) is not int for token in ids):
            fail("probe", "the server's tokenizer tells no ids")
        return tuple(ids)


class ScoreForm(NamedTuple):
    """One way to ask for the log-probabilities of a prompt, and the form of the reply."""

    path: str
    """A path that begins with "/" is below the server's root, any other below its base URL."""
    write: Callable[[str, Prompt], JSONObject]
    read: Callable[[Any, Prompt], _Arrays]
    tokenizer: Tokenizer | None
    takes_ids: bool = True
    by_token: bool = False
    """Whether a reply tells the next token's log-probabilities alone."""

    def decode(self, reply: Any, prompt: Prompt, following: int | None = None) -> PromptAnswer:
        """The values of a prompt, or with `by_token` the one of the token `following` it.

        Raises:
            ScoreCheckError: they cannot be right.
            LLMError: it is an error that came with status 200.
        """
        raise_error_in(expect_dict(reply, "answer"), "choices")
        try:
            positions, generated = self.read(reply, prompt)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            fail(
                "count",
                f"the reply does not have the form of this server's log-probabilities ({error!r:.80})",
            )
        answer = PromptAnswer(
            positions=positions, generated=generated, usage=self.usage(reply),
            model=text_of(reply.get("model")), id=text_of(reply.get("id")),
        )  # fmt: skip
        if not self.by_token:
            check_prompt(answer, prompt)
            return answer
        assert generated is not None, "`_read_llama` has one"
        whole = math.fsum(map(math.exp, generated.top.values()))
        if abs(whole - 1) > 0.01:
            fail("sum", f"the probabilities of the next token add up to {whole:.4f}")
        if following is not None:
            if following not in generated.top:
                fail("count", f"the reply has no log-probability of the token {following}")
            # The text of the token is that of its entry.
            names = {entry["id"]: entry["token"] for entry in _entries_of_llama(reply)}
            logprob = generated.top[following]
            best = {generated.id: max(generated.top.values())}
            answer.positions = [Position(logprob, names[following], following, {following: logprob} | best)]
            check_values(answer.positions)
        return answer

    @staticmethod
    def usage(reply: Any) -> Usage | None:
        """The usage that a reply reports, under the names of its server."""
        counts = find_counts(reply, "usage")
        if counts:
            return read_usage(counts)
        meta, details = (find_counts(reply, name) or {} for name in ("meta_info", "details"))
        read = meta.get("prompt_tokens", len(details.get("prefill") or ()) or None)
        if read is None and isinstance(reply, dict):
            read = reply.get("tokens_evaluated")
        written: Any = meta.get("completion_tokens", details.get("generated_tokens", 1))
        return Usage(input_tokens=read, output_tokens=written) if type(read) is int else None


# --- vLLM, sglang and Fireworks: legacy arrays ------------------------------------------------------------


def _echo(**fields: Any) -> Callable[[str, Prompt], JSONObject]:
    def write(model: str, prompt: Prompt) -> JSONObject:
        sent = prompt.text if prompt.ids is None else list(prompt.ids)
        return {"model": model, "prompt": sent, "max_tokens": 1, "temperature": 0, "logprobs": 1, **fields}

    return write


def _read_arrays(reply: Any, _: Prompt) -> _Arrays:
    choice = reply["choices"][0]
    ids = choice.get("prompt_token_ids"), choice.get("token_ids")
    entries = list(_zip_arrays(choice["logprobs"], [*ids[0], *ids[1]] if all(ids) else None))
    # One token is generated, as few as every server can.
    return entries[:-1], entries[-1]


def _zip_arrays(arrays: Any, ids: Sequence[int] | None) -> Iterator[Position]:
    """The positions in legacy arrays."""
    tokens, logprobs = arrays["tokens"], arrays["token_logprobs"]
    ids, tops = ids or arrays.get("token_ids"), arrays.get("top_logprobs")
    nothing = [None] * len(tokens)
    columns = (logprobs, tokens, ids or nothing, tops if isinstance(tops, list) else nothing)
    for logprob, token, id_, top in zip(*columns, strict=True):
        yield Position(logprob, token, None if id_ is None else int(id_), top or {})


# --- vLLM: prompt_logprobs --------------------------------------------------------------------------------


def _read_prompt_logprobs(reply: Any, prompt: Prompt) -> _Arrays:
    choice, positions = reply["choices"][0], []
    listed = choice.get("prompt_logprobs") or reply["prompt_logprobs"]
    for index, (entry, id_) in enumerate(zip(listed, prompt.ids or (), strict=False)):
        own = None if entry is None else entry.get(str(id_))
        if entry is not None and own is None:
            fail("echo", f"token {index} is {id_}, and the reply has only {', '.join(entry)!s:.60} there")
        tops = {int(name): each["logprob"] for name, each in (entry or {}).items()}
        token = own["decoded_token"] or "" if own else ""
        positions.append(Position(own["logprob"] if own else None, token, id_, tops))
    if len(listed) != len(positions):
        fail("count", f"the reply has {len(listed)} prompt tokens, and {len(positions)} were sent")
    generated = next(_zip_arrays(choice["logprobs"], choice.get("token_ids")))
    echoed = choice.get("prompt_token_ids")
    if echoed is not None and tuple(echoed) != prompt.ids:
        fail("echo", "the ids in the reply are not those that were sent")
    return positions, generated


# --- sglang's own format ----------------------------------------------------------------------------------


def _write_generate(_: str, prompt: Prompt) -> JSONObject:
    return {
        "input_ids": list(prompt.ids or ()), "sampling_params": {"temperature": 0, "max_new_tokens": 1},
        "return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": 1,
        "return_text_in_logprobs": True,
    }  # fmt: skip


def _read_generate(reply: Any, _: Prompt) -> _Arrays:
    meta = reply["meta_info"]
    listed, tops = meta["input_token_logprobs"], meta.get("input_top_logprobs") or repeat(None)
    positions = [
        Position(logprob, text or "", id_, {other: each for each, other, _ in top or ()})
        for (logprob, id_, text), top in zip(listed, tops, strict=False)
    ]
    logprob, id_, text = meta["output_token_logprobs"][0]
    return positions, Position(logprob, text or "", id_)


# --- Together ---------------------------------------------------------------------------------------------


def _read_together(reply: Any, _: Prompt) -> _Arrays:
    positions = list(_zip_arrays(reply["prompt"][0]["logprobs"], None))
    return positions, next(_zip_arrays(reply["choices"][0]["logprobs"], None))


# --- TGI --------------------------------------------------------------------------------------------------


def _write_tgi(_: str, prompt: Prompt) -> JSONObject:
    parameters = {"details": True, "decoder_input_details": True, "max_new_tokens": 1, "do_sample": False}
    return {"inputs": prompt.text, "parameters": parameters}


def _read_tgi(reply: Any, _: Prompt) -> _Arrays:
    details = reply["details"]
    if not details["prefill"]:
        fail("count", "prefill is empty: start TGI with --enable-prefill-logprobs")
    prefill = [Position(entry["logprob"], entry["text"], entry["id"]) for entry in details["prefill"]]
    generated = details["tokens"][0]
    return prefill, Position(generated["logprob"], generated["text"], generated["id"])


# --- llama.cpp's own format -------------------------------------------------------------------------------


def _write_llama(_: str, prompt: Prompt) -> JSONObject:
    ids = list(prompt.ids or ())
    return {"prompt": ids, "n_predict": 1, "n_probs": _EVERY_TOKEN, "temperature": 0, "return_tokens": True}


def _entries_of_llama(reply: Any) -> list[JSONObject]:
    entries: list[JSONObject] = reply["completion_probabilities"][0]["top_logprobs"]
    return entries


def _read_llama(reply: Any, prompt: Prompt) -> _Arrays:
    entries, read = _entries_of_llama(reply), reply["tokens_evaluated"]
    if read != len(prompt.ids or ()) or reply.get("truncated"):
        fail("count", f"the server read {read} tokens, and {len(prompt.ids or ())} were sent")
    best = max(entries, key=lambda entry: entry["logprob"])
    tops = {entry["id"]: entry["logprob"] for entry in entries}
    return [], Position(best["logprob"], best["token"], best["id"], tops)


_VLLM = Tokenizer("prompt", {"add_special_tokens": True})
_TGI = Tokenizer("inputs", {"add_special_tokens": True})
_LLAMA = Tokenizer("content", {"add_special": True})
_IDS = {"return_token_ids": True}

_FORMS: Mapping[str, Mapping[str, ScoreForm]] = {
    # The first is the default.
    "vllm": {
        "prompt_logprobs": ScoreForm(
            "completions", _echo(prompt_logprobs=1, **_IDS), _read_prompt_logprobs, _VLLM
        ),
        "echo": ScoreForm("completions", _echo(echo=True, **_IDS), _read_arrays, _VLLM),
    },
    "sglang": {
        "generate": ScoreForm("/generate", _write_generate, _read_generate, _VLLM),
        "echo": ScoreForm("completions", _echo(echo=True), _read_arrays, _VLLM),
    },
    "tgi": {"generate": ScoreForm("/generate", _write_tgi, _read_tgi, _TGI, takes_ids=False)},
    "llama.cpp": {"native": ScoreForm("/completion", _write_llama, _read_llama, _LLAMA, by_token=True)},
    "together_ai": {
        "echo": ScoreForm("completions", _echo(echo=True), _read_together, None, takes_ids=False)
    },
    "fireworks_ai": {
        "echo": ScoreForm(
            "completions", _echo(echo=True, context_length_exceeded_behavior="error"), _read_arrays, None,
            takes_ids=False,
        )
    },
}  # fmt: skip
"""Dialect of a host of the user's own, or provider → its forms by the name of the method."""


def form_of(target: Target, method: str) -> ScoreForm:
    """The form that `encode` has chosen."""
    return _forms(target)[method]


def _forms(target: Target) -> Mapping[str, ScoreForm]:
    host = target.route.host
    return _FORMS.get(target.provider if host is None else host.dialect, {})


def encode(request: ScoreRequest, target: Target) -> EncodedRequest:
    """The payload without the texts. Its method is one that the server has.

    Raises:
        RequestError: the provider does not tell the log-probabilities of a given text.
        UnsupportedParameterError: the server does not have the method.
    """
    forms = _forms(target)
    if not forms:
        raise refuse_scores(request.model, target)
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


def write_request(form: ScoreForm, encoded: EncodedRequest, prompt: Prompt) -> EncodedRequest:
    """The request for the log-probabilities of a prompt."""
    payload = form.write(encoded.payload["model"], prompt)
    return EncodedRequest(form.path, merge(payload, encoded.payload.get("extra_body") or {}), encoded.headers)


def refuse_scores(model: str, target: Target) -> RequestError:
    """The error for a provider that tells no log-probabilities of given texts."""
    what = f"{target.provider} does not tell the log-probabilities of a given text"
    if target.route.host is not None or target.provider == "local":
        what = "score() has to know the kind of the server"
    return RequestError(
        f"{what}: use together_ai/ or fireworks_ai/, or a server of your own, as in "
        "Client(hosts=[Host('lab', 'http://10.0.0.7:8000/v1', 'vllm')]) with vllm, sglang, tgi or llama.cpp",
        provider=target.provider, model=model,
    )  # fmt: skip
