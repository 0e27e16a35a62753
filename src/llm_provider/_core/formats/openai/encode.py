"""OpenAI and every compatible host, as the protocol names its parts. A call takes one of two wire formats."""

from collections.abc import Callable
from typing import Any

from ... import doors
from ...requests.request import Request
from ...requests.routing import Target
from ...types.usage import Usage
from ..openai_chat import decode as chat_replies
from ..openai_chat import encode as chat_requests
from ..openai_chat import stream as chat_stream
from ..openai_chat.usage import facts, variant
from ..openai_responses import decode as responses_replies
from ..openai_responses import encode as responses
from ..openai_responses import stream as responses_stream
from ..protocol import Answer, EncodedRequest
from ..shared.errors import from_sdk as map_error
from .models import check_parameters, endpoint_of, endpoint_of_host, family_of

__all__ = ["assembler", "decode", "encode", "facts", "map_error", "split", "usage", "variant"]


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the request for the endpoint that serves this model with these parameters."""
    if request.tools:
        request = doors.foreign_messages.adapt_tools(request, target.maker)
    family = family_of(target)
    if family is None:
        if (request.endpoint or (request.options and endpoint_of_host(request, target))) == "responses":
            return responses.encode(request, target)
        return chat_requests.encode(request, target)
    check_parameters(request, family)
    if (request.endpoint or endpoint_of(request, family)) == "responses":
        return responses.encode(request, target)
    return chat_requests.encode(request, target, accepts=chat_requests.OPENAIS)


def decode(reply: Any, decode_chat: Callable[[Any], Answer] = chat_replies.decode) -> Answer:
    return responses_replies.decode(reply) if _is_response(reply) else decode_chat(reply)


def usage(reply: Any) -> Usage | None:
    return responses_replies.usage(reply) if _is_response(reply) else chat_replies.usage(reply)


def _is_response(reply: Any) -> bool:
    # Not every server writes the type of its object.
    return isinstance(reply, dict) and (
        reply.get("object") == "response" or ("output" in reply and "choices" not in reply)
    )


def split(reply: Any) -> list[Any]:
    """Divide a completion with several choices; a response object has one sample."""
    return chat_replies.split(reply) if "choices" in reply else [reply]


def assembler(
    encoded: EncodedRequest, chat: Callable[[], chat_stream.Assembler] = chat_stream.Assembler
) -> chat_stream.Assembler | responses_stream.Assembler:
    return responses_stream.Assembler() if encoded.operation == responses.OPERATION else chat()
