"""Every provider without a route of its own, as the protocol names its parts.

litellm takes and returns Chat Completions. Four of its habits cannot be turned off: it follows redirects; it
sends a request a second time when a connection breaks before the answer; it adds "stop" to an answer that
came without a finish reason (`LiteLLMConnection.stream` detects this); and it reports refusals and filtered
answers alike as "content_filter".
"""

from ..._core.formats.openai_chat.decode import usage
from ..._core.formats.openai_chat.request_facts import facts, variant
from ..._core.formats.shared.replies import keep_whole as split
from .decode import decode
from .encode import encode
from .errors import map_error
from .stream import assembler

__all__ = ["assembler", "decode", "encode", "facts", "map_error", "split", "usage", "variant"]
