"""Decisions of hosts that litellm reaches, in OpenAI's form, by the source of litellm 1.110. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from . import openai
from .conversation import flatten
from .native import Judgement
from .questions import Question

MOST_QUESTIONS = 128
LABELS: tuple[str, ...] = ()

_MOST_LEVELS = 10

_NO_ANSWER = "a refusal, or no answer"

HOSTS = frozenset({
    "azure", "azure_ai", "bespoke", "cloudflare", "databricks", "empiriolabs", "eu_jev", "fireworks_ai",
    "hosted_vllm", "laya", "lm_studio", "nace", "ollama", "ollama_chat", "openai", "openrouter",
    "parallel_ai", "perplexity", "strands_decider", "typesafe",
})  # fmt: skip
"""The hosts whose endpoint litellm knows: `get_provider_decisions_config`."""

operation = openai.operation
usage = openai.usage


def serves(target: Target) -> bool:
    return target.model.partition("/")[0] in HOSTS


def encode_input(request: Request, target: Target) -> Any:
    """The input as a text, or as one message with images. litellm takes messages of the user alone."""
    parts = flatten(request.messages)
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    alone = Request(model=request.model, messages=({"role": "user", "content": parts},))
    return openai.encode_input(alone, target)


def write(target: Target, given: Any, questions: Sequence[Question]) -> JSONObject:
    """The keyword arguments of `litellm.adecisions`; `RequestError` for more levels than it takes."""
    for question in questions:
        if question.kind == "score" and len(question.options) > _MOST_LEVELS:
            raise RequestError(
                f"question {question.name!r} has {len(question.options)} levels, and litellm takes "
                f"{_MOST_LEVELS}: use fewer levels, or a choice",
                provider=target.provider,
            )
    return openai.write(target, given, questions)


def read(reply: Any, questions: Sequence[Question]) -> list[Judgement]:
    """What is found for each question. Where a host tells no confidence, it is the largest probability."""
    answers = reply.get("answers") if isinstance(reply, dict) else None
    for answer in answers if isinstance(answers, list) else ():
        shares = [each.get("probability") for each in answer.get("probabilities") or ()]
        if answer.get("confidence") is None and shares and all(type(each) is float for each in shares):
            answer["confidence"] = max(shares)
    judgements = openai.read(reply, questions)
    # litellm makes a refusal of a missing answer too. The others are paid for, so they are not lost.
    return [replace(each, refusal=_NO_ANSWER) if each.refusal else each for each in judgements]
