"""How servers with OpenAI's format tell the log-probabilities of a prompt, a `ScoreForm` for each. Pure.

Most of them tell those of a whole prompt with one request. llama.cpp's server tells none, but all of those of
the next token: each token then takes a request.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..._core.errors import RequestError, UnsupportedParameterError
from ..._core.formats.openai_chat.decode import read_usage
from ..._core.formats.protocol import EncodedRequest
from ..._core.formats.shared.payload import merge
from ..._core.formats.shared.replies import expect_dict, find_counts, raise_error_in, text_of
from ..._core.json_values import JSONObject
from ..._core.requests.routing import Target
from ..._core.types.usage import Usage
from .arguments import ScoreRequest
from .checks import Position, Prompt, PromptAnswer, check_prompt, check_values, fail

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
        raise_error_in(expect_dict(reply, "answer"), "choices")
        try:
            positions, generated = self.read(reply, prompt)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, StopIteration) as error:
            fail("count", f"the reply has no log-probabilities in the form of its server ({error!r:.80})")
        if following is not None:
            positions = [_find_next(generated, following, reply)]
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
    """The positions in legacy arrays."""
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
    whole, best = math.fsum(map(math.exp, tops.values())), max(entries, key=lambda entry: entry["logprob"])
    if abs(whole - 1) > 0.01:
        fail("sum", f"the probabilities of the next token add up to {whole:.4f}")
    return [], Position(best["logprob"], best["token"], best["id"], tops)


def _find_next(generated: Position, following: int, reply: Any) -> Position:
    """The token that follows, among all that llama.cpp's server lists. Of the others the best is kept."""
    entries = reply["completion_probabilities"][0]["top_logprobs"]
    token = next((entry["token"] for entry in entries if entry["id"] == following), None)
    if token is None:
        fail("count", f"the reply has no log-probability of the token {following}")
    logprob = generated.top[following]
    tops = {following: logprob} | {generated.id: generated.logprob or 0.0}
    return Position(logprob, token, following, tops)


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


def form_of(encoded: EncodedRequest, target: Target) -> ScoreForm:
    return _FORMS[target.route.scores][encoded.payload["method"]]


def write_request(form: ScoreForm, encoded: EncodedRequest, prompt: Prompt) -> EncodedRequest:
    payload = form.write(encoded.payload["model"], prompt)
    return EncodedRequest(form.path, merge(payload, encoded.payload.get("extra_body") or {}), encoded.headers)


def refuse_scores(model: str, target: Target) -> RequestError:
    """The error for a provider that tells no log-probabilities of given texts."""
    what = f"{target.provider} does not tell the log-probabilities of a given text"
    if target.route.host is not None or target.provider == "local":
        what = "score() has to know the kind of the server"
    return RequestError(
        f"{what}: docs/scoring.md has those that do; a server of your own is named as in "
        "Client(hosts=[Host('lab', 'http://10.0.0.7:8000/v1', 'vllm')])",
        provider=target.provider, model=model,
    )  # fmt: skip
