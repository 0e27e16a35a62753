"""The command `llm-provider ask`: sends one prompt and prints the answer as it is written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject, json_value
from ..._core.types.messages import INCOMPLETE
from ..._core.words import format_cost
from . import output
from .call_options import call_options, parameters_of
from .output import EXIT_CODES, PROGRAM
from .parsing import KEYS, Command, complete_model

if TYPE_CHECKING:
    from ..._core.types.messages import Message, Prompt
    from ..._core.types.response import Response

_EPILOG = f"""\
The prompt is the argument, or standard input, or both with a blank line between them. Line breaks at the
end of standard input are removed. Standard input is read whenever it is not a terminal.

  {PROGRAM} ask gpt-6.1-sol "What is 2+2?"
  {PROGRAM} ask claude-sonnet-5-5 "Summarise in one sentence:" < article.txt
  {PROGRAM} ask gemini/gemini-3.8-flash --json "Hello" | jq .cost
  {PROGRAM} ask claude-sonnet-5-5 "What is this?" -a photo.jpg
  {PROGRAM} ask -c "And in German?"

With -c the question goes on with the last conversation of `{PROGRAM} logs`, with its model and system prompt
unless others are given.

{KEYS}
{EXIT_CODES}"""

_ATTACH = "an image, PDF, audio or text file; repeatable"
_JSON = "print one JSON object: text, usage, cost in USD, timing in seconds"


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("model", metavar="MODEL", required=False, shell_complete=complete_model)
@click.argument("prompt", metavar="[PROMPT]", required=False)
@click.option("-a", "--attach", "files", metavar="FILE", multiple=True, help=_ATTACH)
@click.option("-c", "--continue", "continued", is_flag=True, help="go on with the last conversation")
@call_options
@click.option("--no-cache", is_flag=True, help="neither read nor write the cache")
@click.option("--no-log", is_flag=True, help="leave this answer out of the log")
@click.option("--no-stream", is_flag=True, help="print the answer when it is complete")
@click.option("--json", "as_json", is_flag=True, help=_JSON)
@click.option("-v", "--verbose", is_flag=True, help="print usage, cost and timing to standard error")
@click.pass_context
def run_ask(
    context: click.Context,
    /,
    model: str | None,
    prompt: str | None,
    files: tuple[str, ...],
    *,
    continued: bool,
    no_cache: bool,
    no_log: bool,
    no_stream: bool,
    as_json: bool,
    verbose: bool,
    **options: object,
) -> int:
    """Ask a model and print its answer as it is written."""
    from .logs import read_last_conversation

    if continued and prompt is None:
        # `ask -c PROMPT`: the model is that of the conversation.
        model, prompt = None, model
    if model is None and not continued:
        context.fail("the argument MODEL is missing")
    earlier = read_last_conversation() if continued else []
    if model is None:
        model = earlier[-1].model
    text = _read_prompt(prompt, required=not files)
    parameters = parameters_of(options)
    if no_cache:
        parameters["cache"] = "off"
    parameters.setdefault("system", earlier[-1].system if earlier else None)
    messages = [message for ask in earlier for message in ask.messages]
    question = _message(text, files)
    sent: Prompt = [*messages, question] if files or messages else text
    # A pipe needs no explanation, and a person at a terminal may wonder.
    notes = ("the request is cancelled; the same command asks again",) if output.at_terminal() else ()
    with output.when_interrupted(*notes), output.logs_in_one_line():
        response = _answer(model, sent, parameters, as_json=as_json, at_once=no_stream)
    if not no_log:
        from ..._core.runtime import randomness

        conversation = earlier[-1].conversation if earlier else randomness.make_token(6)
        exchange = [question, response.message]
        _log(conversation, model, parameters["system"], text, exchange, response)
    if verbose:
        print(_summary(response), file=sys.stderr)
    if response.finish_reason in INCOMPLETE:
        output.say("warning", INCOMPLETE[response.finish_reason])
        return output.INCOMPLETE_ANSWER
    return output.OK


def _read_prompt(argument: str | None, *, required: bool) -> str:
    """The prompt: the argument, standard input, or both."""
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
    if not prompt and required:
        raise RequestError("there is no prompt; give one as an argument or on standard input")
    return prompt


def _message(text: str, files: Sequence[str]) -> Message:
    """The question, with the contents of the files: they may change before the next question."""
    if not files:
        return {"role": "user", "content": text}
    from ..._core.requests.media import part_of

    parts = [part_of(Path(file).expanduser(), "--attach") for file in files]
    return {"role": "user", "content": [*([{"type": "text", "text": text}] if text else ()), *parts]}


def _log(
    conversation: str, model: str, system: str | None, text: str, messages: list[Message], response: Response
) -> None:
    """Append a question and its answer to the log. A log that cannot be written is a warning."""
    import sqlite3

    from ..._core.runtime import clock
    from ..._core.runtime.files import full_disk
    from .logs import VARIABLE, LogFile, LoggedAsk, log_path

    path = log_path()
    if path is None:
        return
    ask = LoggedAsk(
        time=clock.time(), served=response.model, provider=response.provider, answer=response.text,
        usage=asdict(response.usage), cost=response.cost, cached=response.cached,
        finish_reason=response.finish_reason, conversation=conversation, model=model, system=system,
        prompt=text, messages=messages,
        served_by={} if (who := response.served_by) is None else who.to_dict(),
    )  # fmt: skip
    try:
        LogFile(path).add(ask)
    except (OSError, sqlite3.Error, RequestError, TypeError, ValueError) as error:
        reason = full_disk(error, path, "earlier answers are safe") or error
        output.say("warning", f"the answer is not in the log {path}: {reason} ({VARIABLE}=off keeps none)")


def _answer(model: str, prompt: Prompt, parameters: JSONObject, *, as_json: bool, at_once: bool) -> Response:
    from ..._core.client.functions import call, stream

    with_schema = "response_format" in parameters
    if not (as_json or at_once or with_schema):
        with stream(model, prompt, **parameters) as deltas:
            _print_pieces(delta.text for delta in deltas)
            return deltas.response
    response = call(model, prompt, **parameters)
    whole = response.finish_reason not in INCOMPLETE
    if as_json:
        parsed = {"parsed": response.parsed if whole else None} if with_schema else {}
        print(json.dumps(_as_object(response) | parsed))
    elif with_schema and whole:
        print(output.json_text(response.parsed))
    else:
        _print_pieces([response.text])
    return response


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


def _as_object(response: Response) -> dict[str, object]:
    names = (
        "text", "finish_reason", "model", "provider", "id", "usage", "cost", "cached", "timing", "tool_calls",
        "reasoning",
    )  # fmt: skip
    return {name: json_value(getattr(response, name)) for name in names}


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
    cost = "$0.00 (from the cache)" if response.cached else format_cost(response.cost, response.cost_bounds)
    counts = f"{usage.input_tokens} input, {usage.output_tokens} output tokens"
    return (
        f"model   {response.model} ({response.provider})\n"
        f"usage   {counts}{f' ({details})' if details else ''}\n"
        f"cost    {cost}\n"
        f"timing  {timing.total:.2f} s{first}, {requests}"
    )
