"""The protocol that every wire format implements, and the types in its signatures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "MALFORMED", "REGION", "Completion", "Endpoint", "Frame", "LimitState", "Problem", "Prompt", "Request",
    "Sample", "Served", "Tool", "ToolCall", "Usage", "WireFormat", "refuse_malformed", "stream_nothing",
]  # fmt: skip

Headers = list[tuple[bytes, bytes]]

REGION = "simulated-region-1"
"""Where answers are computed, as replies and headers have it."""

# The formats do not check the type of every nested value of a body. These exceptions therefore mean an
# invalid request, which a real server answers with 400 too.
MALFORMED = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)


class Request(NamedTuple):
    """A request as received, with its body parsed; header names are in lower case."""

    provider: str
    body: Mapping[str, Any]
    headers: Mapping[bytes, bytes]
    path: str


class Tool(NamedTuple):
    """A function the model may call: its name and the JSON schema of its arguments."""

    name: str
    schema: Mapping[str, Any]


class ToolCall(NamedTuple):
    """A call of a function: its name and arguments."""

    name: str
    arguments: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Prompt:
    """The meaning of a request, in the same terms for every wire format.

    Attributes:
        model: the name of the model as in the request.
        text: text of the last user message, or of the result of a tool after it.
        characters: length of all text in the request (system, messages, tools).
        max_tokens: greatest number of output tokens, including reasoning.
        samples: number of answers (``n``); 0 for embeddings.
        force_tool: True if a tool must be called, or the name of the tool.
        schema: JSON schema of the answer; ``{}`` for any JSON object.
        reasoning: whether reasoning is requested; ``show_reasoning``: whether its text is.
        logprobs: number of alternatives per token; None without log probabilities.
        billed: whether its tokens cost money and count against limits.
        request: the request as received, for facts that only its own format knows.
    """

    model: str
    text: str
    characters: int
    stream: bool = False
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    samples: int = 1
    tools: tuple[Tool, ...] = ()
    force_tool: bool | str = False
    schema: Mapping[str, Any] | None = None
    reasoning: bool = False
    show_reasoning: bool = True
    logprobs: int | None = None
    seed: int = 0
    billed: bool = True
    request: Request

    @property
    def provider(self) -> str:
        """The simulated provider."""
        return self.request.provider


@dataclass(slots=True, kw_only=True)
class Usage:
    """Token counts with totals that include their parts: cache parts in input, reasoning in output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    reasoning_output_tokens: int = 0
    web_searches: int = 0
    cost: float | None = None
    """USD that the reply reports, as OpenRouter's do."""
    geo: str = "global"
    """Where it is computed, as Anthropic's `inference_geo` says. "us" costs a tenth more."""


@dataclass(slots=True, kw_only=True)
class Sample:
    """One answer. ``finish`` is stop, stop_sequence, length, tool_calls, content_filter or refusal."""

    text: str | None
    pieces: list[str]
    reasoning: str
    tool_calls: list[ToolCall]
    finish: str
    stop_sequence: str | None = None


class Endpoint(NamedTuple):
    """One endpoint of a model behind a router."""

    host: str
    """As the reply names it."""
    slug: str
    """As a request names it."""
    quantization: str

    @property
    def fingerprint(self) -> str:
        """That of its configuration, which has the quantization, as vLLM's has."""
        return f"vllm-0.21.0-tp8-{sum(f'{self.slug} {self.quantization}'.encode()):08x}"


class Served(NamedTuple):
    """Who answers a request."""

    fingerprint: str
    endpoint: Endpoint | None = None
    """None where there is no router."""
    refused: bool = False
    """Whether the request names endpoints that do not exist."""


@dataclass(slots=True, kw_only=True)
class Completion:
    """The answer of a model to a prompt: all samples and their token counts."""

    identifier: str
    created: int
    model: str
    samples: list[Sample]
    usage: Usage
    served: Served
    """Who answers."""
    counted: bool = True
    """Whether the reply reports its tokens; else it reports zeros, as some hosts do."""

    @property
    def reported(self) -> Usage:
        """The usage that the reply reports."""
        return self.usage if self.counted else Usage()


@dataclass(slots=True, kw_only=True)
class Problem:
    """An error that is answered in the provider's own form; without a ``status`` the request is invalid."""

    message: str | None = field(default=None, kw_only=False)
    status: int = 400
    code: str | None = None
    type: str | None = None
    parameter: str | None = None
    retry_after: str | None = None
    retry_after_style: str = "seconds"
    quota: bool = False
    context_length: bool = False
    headers: Headers = field(default_factory=list)


class Frame(NamedTuple):
    """A piece of a streamed body; ``tokens`` are the output tokens in it, 0 for a piece without text."""

    data: bytes
    tokens: int = 0


class LimitState(NamedTuple):
    """The state of limits: for each kind the limit per minute, the units left, and the seconds until full."""

    requests: tuple[float, float, float] | None
    tokens: tuple[float, float, float] | None


def refuse_malformed(mistake: Exception) -> Problem:
    """The answer to a body in which a nested value has the wrong type: one of :data:`MALFORMED` tells."""
    return Problem(f"the request is malformed: {mistake}")


def stream_nothing(_prompt: Prompt, _completion: Completion) -> Iterator[Frame]:
    """The stream of a format whose answers are not streamed."""
    return iter(())


class WireFormat(Protocol):
    """The functions of a wire format: pure functions between parsed JSON and bytes."""

    def read(self, request: Request) -> Prompt | Problem:
        """Read a request, or return the error that answers it."""

    def reject(self, prompt: Prompt) -> Problem | None:
        """The error with which the real provider answers parameters that this model does not accept."""

    def reply(self, prompt: Prompt, completion: Completion) -> dict[str, Any]:
        """The whole answer."""

    def stream(self, prompt: Prompt, completion: Completion) -> Iterator[Frame]:
        """The answer as a stream of server-sent events, one frame each."""

    def write_error(self, problem: Problem, request_identifier: str, /) -> tuple[int, dict[str, Any]]:
        """Status and body of an error answer."""

    def write_error_frame(self, problem: Problem, request_identifier: str, /) -> bytes:
        """An error inside a stream."""

    def refuse_length(self, tokens: int, limit: int) -> Problem:
        """The error for a prompt with more tokens than the model's context window."""

    def write_limit_headers(self, state: LimitState, /) -> Headers:
        """The provider's rate-limit headers."""

    def refuse_rate(self, seconds: float | None) -> Problem:
        """The error of a rate limit; ``seconds`` until the next request passes, None if unknown."""
