"""The formats in which servers tell the log-probabilities of a prompt, and those of their tokenizers.

`/v1/completions` is that of vLLM, sglang, Together, Fireworks and llama.cpp, whose replies differ;
`/generate` that of sglang and of TGI; `/completion` the native one of llama.cpp. The name of the provider in
the path says which server it is; an unknown name is a vLLM.

The forms are those of `CompletionResponse` of vllm/entrypoints/openai, of `io_struct` of sglang, of the
together and fireworks SDKs, of TGI's `GenerateResponse`, and those that llama.cpp's own server sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._behaviour.toy_model import VOCABULARY, Alternative, decode, encode, find_piece, predict, score
from .content import CHARACTERS_PER_TOKEN
from .openai_chat import refuse_length, refuse_rate, write_error, write_error_frame, write_limit_headers
from .wire_format import Completion, Problem, Prompt, Request
from .wire_format import stream_nothing as stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

_WITHOUT = frozenset({"openai", "deepinfra", "groq"})
"""Providers whose completions tell nothing of a prompt."""


def read(request: Request) -> Prompt | Problem:
    """Read a request of one of these formats."""
    body = request.body
    model = body.get("model") or "toy"
    if request.path.endswith("/tokenize"):
        text = body.get("prompt", body.get("content", body.get("inputs")))
        if not isinstance(text, str):
            return Problem("the text to tokenize is missing")
        return Prompt(model=model, text=text, characters=0, billed=False, samples=0, request=request)
    prompts = _read_prompts(body)
    if not prompts or not all(prompts):
        return Problem("the prompt is empty", parameter="prompt")
    characters = sum(map(len, prompts)) * CHARACTERS_PER_TOKEN
    # The model writes one token for each prompt.
    text = decode(prompts[-1])
    count = len(prompts)
    return Prompt(
        model=model, text=text, characters=characters, max_tokens=1, samples=count, request=request
    )  # fmt: skip


def _read_prompts(body: Mapping[str, Any]) -> list[list[int]]:
    """The tokens of each prompt. A prompt is a text, or the ids of its tokens."""
    value = body.get("prompt", body.get("input_ids", body.get("inputs")))
    several = isinstance(value, list) and value and isinstance(value[0], (list, str))
    return [
        encode(prompt) if isinstance(prompt, str) else list(prompt or ())
        for prompt in (value if several else [value])
    ]


def reject(prompt: Prompt) -> Problem | None:
    """OpenAI refuses to tell the log-probabilities of a prompt."""
    body = prompt.request.body
    if prompt.provider in _WITHOUT and body.get("echo") and body.get("logprobs") is not None:
        return Problem("You cannot use echo and logprobs at the same time.", parameter="echo")
    return None


def reply(prompt: Prompt, completion: Completion) -> Any:
    """The answer in the form of the server."""
    path, body = prompt.request.path, prompt.request.body
    if path.endswith("/tokenize"):
        return _tokenize(prompt, body)
    prompts = _read_prompts(body)
    # The completion counts characters; a tokenizer counts tokens.
    completion.usage.input_tokens = sum(map(len, prompts))
    completion.usage.output_tokens = len(prompts)
    if path.endswith("/completion"):
        return _write_llama(prompt, body, prompts[0])
    if path.endswith("/generate"):
        write = _write_sglang if "input_ids" in body else _write_tgi
        return write(prompt, body, prompts[0])
    choices = [_write_choice(prompt, body, tokens, index) for index, tokens in enumerate(prompts)]
    usage = {
        "prompt_tokens": completion.usage.input_tokens, "completion_tokens": len(prompts),
        "total_tokens": completion.usage.input_tokens + len(prompts),
    }  # fmt: skip
    answer = {
        "id": f"cmpl-{completion.identifier}", "object": "text_completion", "created": completion.created,
        "model": completion.model, "choices": choices, "usage": usage,
    }  # fmt: skip
    if completion.served.fingerprint:
        answer["system_fingerprint"] = completion.served.fingerprint
    if prompt.provider == "together_ai" and body.get("echo"):
        parts = [_take_prompt(choice, len(tokens)) for choice, tokens in zip(choices, prompts, strict=True)]
        answer["prompt"] = parts
    return answer


def _tokenize(prompt: Prompt, body: Mapping[str, Any]) -> Any:
    special = body.get("add_special_tokens", body.get("add_special", "content" not in body))
    tokens = encode(prompt.text, special=bool(special))
    if "inputs" in body:
        return [{"id": token, "text": find_piece(token), "start": 0, "stop": 0} for token in tokens]
    if "content" in body:
        return {"tokens": tokens}
    return {"count": len(tokens), "max_model_len": 4096, "tokens": tokens, "token_strs": None}


def _rank(model: str, tokens: Sequence[int], index: int, alternatives: int) -> list[Alternative]:
    """The likeliest tokens at an index, and the actual one where it is not among them."""
    best = predict(model, tokens[:index], max(1, alternatives))
    actual = Alternative(tokens[index], score(model, tokens, index))
    return best if actual.token in {each.token for each in best} else [*best, actual]


def _write_choice(prompt: Prompt, body: Mapping[str, Any], tokens: list[int], index: int) -> dict[str, Any]:
    """One choice of legacy completions, with `prompt_logprobs` where they are asked for."""
    model, echo = prompt.model, bool(body.get("echo")) and prompt.provider != "llama_cpp"
    generated = predict(model, tokens)[0].token
    every, start = [*tokens, generated], 0 if echo else len(tokens)
    choice: dict[str, Any] = {"index": index, "finish_reason": "length", "logprobs": None}
    with_ids = bool(body.get("return_token_ids"))
    choice["text"] = (decode(tokens) if echo and not with_ids else "") + find_piece(generated)
    if body.get("logprobs") is not None:
        choice["logprobs"] = _write_arrays(model, every, start, int(body["logprobs"]))
        if prompt.provider in ("together_ai", "fireworks_ai"):
            choice["logprobs"]["token_ids"] = every[start:]
    if prompt.provider == "llama_cpp" and choice["logprobs"] is not None:
        # Its chat form, and nothing at all for a token that is no whole character.
        piece = find_piece(generated)
        entry = {"id": generated, "token": piece, "logprob": score(model, every, len(tokens))}
        choice["logprobs"] = None if "\ufffd" in piece else {"content": [{**entry, "top_logprobs": [entry]}]}
    if body.get("prompt_logprobs") is not None:
        ranked = [_rank(model, every, at, int(body["prompt_logprobs"])) for at in range(1, len(tokens))]
        choice["prompt_logprobs"] = [None, *map(_write_ranks, ranked)]
    if with_ids:
        choice |= {"prompt_token_ids": tokens, "token_ids": [generated]}
    return choice


def _write_ranks(alternatives: list[Alternative]) -> dict[str, Any]:
    return {
        str(token): {"logprob": logprob, "rank": rank, "decoded_token": find_piece(token)}
        for rank, (token, logprob) in enumerate(alternatives, start=1)
    }


def _write_arrays(model: str, tokens: list[int], start: int, alternatives: int) -> dict[str, Any]:
    """Legacy arrays: the first token of a text has no log-probability."""
    indices = range(start, len(tokens))
    ranked = [_rank(model, tokens, index, alternatives) if index else [] for index in indices]
    return {
        "text_offset": [len(decode(tokens[:index])) for index in indices],
        "token_logprobs": [score(model, tokens, index) if index else None for index in indices],
        "tokens": [find_piece(tokens[index]) for index in indices],
        "top_logprobs": [
            {find_piece(token): logprob for token, logprob in reversed(each)} if each else None
            for each in ranked
        ],
    }


def _take_prompt(choice: dict[str, Any], size: int) -> dict[str, Any]:
    """Together's part for the prompt, which its choice then lacks."""
    arrays = choice["logprobs"]
    names = ("tokens", "token_logprobs", "token_ids")
    part = {name: arrays[name][:size] for name in names}
    choice["logprobs"] = {name: arrays[name][size:] for name in (*names, "top_logprobs")}
    text = choice["text"]
    choice["text"] = arrays["tokens"][size]
    return {"text": text.removesuffix(choice["text"]), "logprobs": part}


def _write_sglang(prompt: Prompt, body: Mapping[str, Any], tokens: list[int]) -> Any:
    generated = predict(prompt.model, tokens)[0]
    # Without a start, the output alone has log-probabilities.
    start = body.get("logprob_start_len", -1)
    indices = range(len(tokens) if start < 0 else start, len(tokens))

    def write(token: int, logprob: float | None) -> list[Any]:
        return [logprob, token, find_piece(token) if body.get("return_text_in_logprobs") else None]

    tops = [predict(prompt.model, tokens[:index]) if index else None for index in indices]
    meta = {
        "prompt_tokens": len(tokens), "completion_tokens": 1, "weight_version": "default",
        "input_token_logprobs": [
            write(tokens[index], score(prompt.model, tokens, index) if index else None) for index in indices
        ],
        "output_token_logprobs": [write(*generated)],
        "input_top_logprobs": [[write(*each) for each in top] if top else None for top in tops],
    }  # fmt: skip
    return {"text": find_piece(generated.token), "output_ids": [generated.token], "meta_info": meta}


def _write_tgi(prompt: Prompt, body: Mapping[str, Any], tokens: list[int]) -> Any:
    generated, parameters = predict(prompt.model, tokens)[0], body.get("parameters") or {}
    indices = range(len(tokens)) if parameters.get("decoder_input_details") else ()

    def write(token: int, logprob: float | None) -> dict[str, Any]:
        return {"id": token, "text": find_piece(token), "logprob": logprob}

    details = {
        "finish_reason": "length", "generated_tokens": 1, "tokens": [write(*generated) | {"special": False}],
        "prefill": [
            write(tokens[index], score(prompt.model, tokens, index) if index else None) for index in indices
        ],
    }  # fmt: skip
    return {"generated_text": find_piece(generated.token), "details": details}


def _write_llama(prompt: Prompt, body: Mapping[str, Any], tokens: list[int]) -> Any:
    entries = [
        {"id": token, "token": find_piece(token), "bytes": list(VOCABULARY[token]), "logprob": logprob}
        for token, logprob in predict(prompt.model, tokens, max(1, body.get("n_probs") or 0))
    ]
    return {
        "content": entries[0]["token"], "model": prompt.model, "tokens_predicted": 1,
        "tokens_evaluated": len(tokens), "truncated": False,
        "completion_probabilities": [{**entries[0], "top_logprobs": entries}],
    }  # fmt: skip
