"""A `Response` as a notebook shows it. Imported when the first is shown."""

from collections.abc import Iterator
from typing import Any

from ..._core.errors import cite
from ..._core.types.messages import ToolCall
from ..._core.types.usage import cost_text
from . import blocks as html


def as_html(response: Any) -> str:
    """The samples of a `Response`, whose module imports this one, and a line about it."""
    parts: list[str] = []
    for number, sample in enumerate(response.samples[: html.ROWS], start=1):
        if len(response.choices) > 1:
            parts.append(html.small(f"sample {number} of {len(response.choices)}"))
        if sample.reasoning:
            parts.append(html.fold("reasoning", html.text(sample.reasoning)))
        if sample.text:
            parts.append(html.text(sample.text))
        parts += [html.code(call_text(call)) for call in sample.tool_calls]
        parts += [html.narrow(image._repr_html_()) for image in sample.images]
        parts.append("" if sample.audio is None else sample.audio._repr_html_())
        sources = [source.title or source.url or source.quote or "" for source in sample.citations]
        if titles := [html.cut(title) for title in dict.fromkeys(sources) if title]:
            parts.append(html.fold(f"sources: {len(titles)}", html.text("\n".join(titles))))
    return html.block(*parts, html.small(*_summarise(response)))


def _summarise(response: Any) -> Iterator[str]:
    """What a person wants to know of the answer besides its text."""
    who = response.served_by
    yield from (response.provider, response.model)
    if who is not None and who.host:
        yield f"served by {html.cut(who.host)}"
    yield f"{'' if response.finish_reason in ('stop', 'tool_calls') else '⚠ '}{response.finish_reason}"
    yield f"{response.usage.input_tokens:,} + {response.usage.output_tokens:,} tokens"
    yield from (cost_text(response), f"{response.timing.total:.2f} s")
    if len(response.rounds) > 1:
        yield f"{len(response.rounds)} rounds with {len(response.tool_results)} tool results"
    if called := dict.fromkeys(call.name for call in response.server_tool_calls):
        yield f"used {', '.join(called)}"
    if response.failures:
        yield f"{len(response.failures)} failed before"
    for passed in response.passed_over:
        yield f"instead of {passed.model} ({passed.error})"
    if response.dropped:
        yield f"dropped {', '.join(response.dropped)}"
    if response.metadata is not None:
        yield cite(response.metadata)


def call_text(call: ToolCall) -> str:
    """A tool call as one line."""
    return f"→ {call.name}({call.arguments})"
