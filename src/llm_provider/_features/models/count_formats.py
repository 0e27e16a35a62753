"""The wire formats in which providers count the tokens of a request, for nothing. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..._core.errors import APIResponseValidationError
from ..._core.formats.protocol import EncodedRequest
from ..._core.formats.shared.replies import expect_dict
from ..._core.requests.routing import Target

# `MessageCountTokensParams` of anthropic 2: a request without the fields that concern its answer only.
_COUNTED = frozenset(
    {"cache_control", "messages", "model", "output_config", "system", "thinking", "tool_choice", "tools"}
)


class TokenCountFormat(NamedTuple):
    """How a provider counts: the last part of the operation, and the field of the reply."""

    method: str
    reply_field: str

    def encode(self, encoded: EncodedRequest, target: Target) -> EncodedRequest:
        """The request that counts the input of a request for an answer."""
        if target.route.adapter == "gemini":
            from ..._core.formats.gemini.encode import operation, resource

            # Gemini's API reference: so the whole request is counted, with its system instruction and its
            # tools. The SDK's own method sends the contents alone.
            payload = encoded.payload
            if target.route.cloud is None:
                payload = {"generateContentRequest": {"model": resource(target.model), **payload}}
            return EncodedRequest(operation(target, self.method), payload, encoded.headers)
        counted = EncodedRequest(f"{encoded.operation}/{self.method}", {}, encoded.headers)
        if target.route.cloud is not None and target.route.cloud.version:
            from ..clouds.anthropic import counting

            counted = counting(encoded, target)
        counted.payload |= {name: value for name, value in encoded.payload.items() if name in _COUNTED}
        return counted

    def decode(self, reply: Any) -> int:
        """The number of input tokens; an `APIResponseValidationError` if the reply has none."""
        count = expect_dict(reply, "reply").get(self.reply_field)
        if type(count) is not int or count < 0:
            raise APIResponseValidationError(f"the provider's reply has no {self.reply_field}")
        return count


FORMATS: Mapping[str, TokenCountFormat] = {
    "anthropic": TokenCountFormat("count_tokens", "input_tokens"),
    "gemini": TokenCountFormat("countTokens", "totalTokens"),
}
"""Adapter → how its provider counts. The others do not count."""


def counts(target: Target) -> bool:
    """Whether the provider of a target counts tokens. Classic Bedrock does not, through Anthropic's SDK."""
    cloud = target.route.cloud
    return target.route.adapter in FORMATS and (cloud is None or cloud.audience != "bedrock")
