"""The command `llm-provider ask`: sends one prompt and prints the answer as it is written."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._errors import RequestError
from .output import INCOMPLETE_ANSWER, OK, PROGRAM, say

if TYPE_CHECKING:
    from .._requests.parameters import Parameters
    from .._types.response import Response

HELP = f"""\
The prompt is the argument, or standard input, or both with a blank line between them. Line breaks at the
end of standard input are removed. Standard input is read whenever it is not a terminal.

  {PROGRAM} ask gpt-6.1-sol "What is 2+2?"
  {PROGRAM} ask claude-sonnet-5-5 "Summarise in one sentence:" < article.txt
  {PROGRAM} ask gemini/gemini-3.8-flash --json "Hello" | jq .cost
"""

_INCOMPLETE = {
    "length": "the answer was cut at its token limit",
    "refusal": "the model refused",
    "content_filter": "a content filter stopped the answer",
}


def add_arguments(command: argparse.ArgumentParser, json_object: Callable[[str], dict[str, Any]]) -> None:
    """Declare the command's arguments.

    Args:
        command: Its parser.
        json_object: Reads an argument that is a JSON object.
    """
    add = command.add_argument
    add("model", metavar="MODEL", help="such as gpt-6.1-sol or groq/openai/gpt-oss-120b")
    add("prompt", metavar="PROMPT", nargs="?", help="the text to send (default: standard input)")
    add("--system", metavar="TEXT", help="the system prompt")
    add("--max-tokens", metavar="N", type=int, help="the longest answer, in tokens, reasoning included")
    add("--temperature", metavar="T", type=float, help="randomness of the answer; 0 is the least")
    add("--reasoning-effort", metavar="LEVEL", help="none, minimal, low, medium, high, xhigh or max")
    add("--seed", metavar="N", type=int, help="a number that makes answers more repeatable")
    add("--stop", metavar="TEXT", action="append", help="end the answer before this text; repeatable")
    add("--timeout", metavar="SECONDS", type=float, help="for one attempt (default 600)")
    add("--base-url", metavar="URL", help="the server to ask instead of the provider's own")
    add("--extra-body", metavar="JSON", type=json_object, help="an object of fields for this provider only")
    add("--no-cache", action="store_true", help="neither read nor write the cache")
    add("--no-stream", action="store_true", help="print the answer when it is complete")
    add(
        "--json",
        action="store_true",
        help="print one JSON object: text, usage, cost in USD, timing in seconds",
    )
    add("-v", "--verbose", action="store_true", help="print usage, cost and timing to standard error")
    command.set_defaults(run=_ask)


def _ask(arguments: argparse.Namespace) -> int:
    from .._client.functions import call

    prompt, parameters = _prompt(arguments.prompt), _parameters(arguments)
    if arguments.json:
        response = call(arguments.model, prompt, **parameters)
        print(json.dumps(_as_object(response)))
    elif arguments.no_stream:
        response = call(arguments.model, prompt, **parameters)
        _print_pieces([response.text])
    else:
        response = _print_stream(arguments.model, prompt, parameters)
    if arguments.verbose:
        print(_summary(response), file=sys.stderr)
    if response.finish_reason in _INCOMPLETE:
        say("warning", _INCOMPLETE[response.finish_reason])
        return INCOMPLETE_ANSWER
    return OK


def _prompt(argument: str | None) -> str:
    """The prompt: the argument, standard input, or both.

    Raises:
        RequestError: there is neither, or standard input is not text.
    """
    parts = [argument or ""]
    if sys.stdin is not None and not sys.stdin.isatty():
        try:
            # UTF-8 in every locale. The locale's own encoding may decode other bytes without an error.
            piped = sys.stdin.buffer.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise RequestError("standard input is not UTF-8 text") from None
        except OSError as error:
            raise RequestError(f"standard input cannot be read: {error.strerror}") from None
        parts.append(piped.rstrip("\r\n"))
    prompt = "\n\n".join(filter(None, parts))
    if not prompt:
        raise RequestError("there is no prompt; give one as an argument or on standard input")
    return prompt


def _parameters(arguments: argparse.Namespace) -> Parameters:
    # A call takes None for "not set", as argparse gives it.
    return {
        "system": arguments.system,
        "max_tokens": arguments.max_tokens,
        "temperature": arguments.temperature,
        "reasoning_effort": arguments.reasoning_effort,
        "seed": arguments.seed,
        "stop": arguments.stop,
        "timeout": arguments.timeout,
        "base_url": arguments.base_url,
        "extra_body": arguments.extra_body,
        "cache": "off" if arguments.no_cache else None,
    }


def _print_stream(model: str, prompt: str, parameters: Parameters) -> Response:
    from .._client.functions import stream

    with stream(model, prompt, **parameters) as deltas:
        _print_pieces(delta.text for delta in deltas)
        return deltas.response


def _print_pieces(pieces: Iterable[str]) -> None:
    """Print a text as its pieces arrive, with a line break at its end, even if the text breaks off."""
    last = "\n"
    try:
        for piece in pieces:
            if piece:
                print(piece, end="", flush=True)
                last = piece
    finally:
        if not last.endswith("\n"):
            print(flush=True)


def _as_object(response: Response) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "text": response.text,
        "finish_reason": response.finish_reason,
        "model": response.model,
        "provider": response.provider,
        "id": response.id,
        "usage": asdict(response.usage),
        "cost": response.cost,
        "cached": response.cached,
        "timing": asdict(response.timing),
        "tool_calls": [asdict(tool_call) for tool_call in response.tool_calls],
        "reasoning": response.reasoning,
    }


def _summary(response: Response) -> str:
    """Usage, cost and timing as four lines."""
    usage, timing = response.usage, response.timing
    parts = {
        "read from the prompt cache": usage.cache_read_input_tokens,
        "written to it": usage.cache_write_input_tokens,
        "reasoning": usage.reasoning_output_tokens,
    }
    details = ", ".join(f"{count} {part}" for part, count in parts.items() if count)
    first = "" if timing.first_token is None else f", first token after {timing.first_token:.2f} s"
    requests = f"{timing.attempts} request{'' if timing.attempts == 1 else 's'}"
    return "\n".join(
        (
            f"model   {response.model} ({response.provider})",
            f"usage   {usage.input_tokens} input, {usage.output_tokens} output tokens"
            + (f" ({details})" if details else ""),
            f"cost    {_dollars(response)}",
            f"timing  {timing.total:.2f} s{first}, {requests}",
        )
    )


def _dollars(response: Response) -> str:
    if response.cached:
        return "$0 (from the cache)"
    return "unknown" if response.cost is None else f"${response.cost:.6f}"
