"""Any server that speaks OpenAI's formats: what is different, and what each host demands of a conversation.

The demands are rows with their sources. `shared.conversations` has what the formats demand.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..._core import doors
from ..._core.formats.openai import encode as openai
from ..._core.formats.protocol import EncodedRequest
from ..._core.formats.shared.conversations import (
    BEDROCK,
    CLAUDE,
    GEMINI,
    NAME,
    OPENAI_CHAT,
    ConversationRules,
)
from ..._core.json_values import JSONMapping
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from .decode import decode
from .stream import Assembler

__all__ = ["FUNCTIONS", "Assembler", "decode", "encode", "find_chat_rules", "warn_if_unpinned"]


def encode(request: Request, target: Target) -> EncodedRequest:
    encoded = openai.encode(request, target)
    warn_if_unpinned(target, encoded.payload)
    return encoded


def warn_if_unpinned(target: Target, payload: JSONMapping) -> None:
    """Warn of a gateway's model behind OpenRouter."""
    if target.model.startswith("openrouter/"):
        doors.routers.warn_if_unpinned(target, payload)


FUNCTIONS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "openai": {
        "encode": encode,
        "decode": partial(openai.decode, decode_chat=decode),
        "assembler": partial(openai.assembler, chat=Assembler),
    }
}
"""Adapter → the functions in the place of its own."""

# Ids: nearai/ironclaw#1241 (code 3280); as many calls as results: mistralai/client-python#234 (3230); roles
# in order: zed-industries/zed#37021, swarmauri/swarmauri-sdk#276, and mistral-common's validator, which also
# wants content or calls in an answer; names: its `FunctionName`.
MISTRAL = ConversationRules(
    ids="[a-zA-Z0-9]{9}", ids_once=True, names=f"{NAME}{{1,64}}", developer=False, answer_first=True,
    system_after="|system|user", empty_texts=False,
)  # fmt: skip

# Fields outside its schema are a 422, also where they are null: Gage-Technologies/mistral-go#2.
_MISTRAL_ITSELF = replace(MISTRAL, refused=frozenset({"refusal", "audio", "function_call"}))

# "unknown variant `developer`": earendil-works/pi#1048. Results are texts: Gitlawb/openclaude#774.
_DEEPSEEK = ConversationRules(developer=False, names=f"{NAME}{{1,64}}", text_results=True)

# With thinking, which is the default, calls need the field, and may have it empty: api-docs.deepseek.com,
# guides/thinking_mode; NousResearch/hermes-agent#15407.
_DEEPSEEK_V4 = replace(_DEEPSEEK, reasoning="")

# "with role 'assistant' must not be empty": lobehub/lobehub#8419; "text content is empty":
# dirge-code/dirge#757.
_MOONSHOT = ConversationRules(empty_texts=False)

# With calls, a missing or empty field is refused, and a blank is taken: theopenco/llmgateway#2093.
_KIMI = replace(_MOONSHOT, reasoning=" ")

# Missing with calls is refused: docs of platform.xiaomimimo.com, passing-back-reasoning_content.
_MIMO = ConversationRules(reasoning=" ")

# "property 'reasoning_content' is unsupported": Kilo-Org/kilocode#10375. It takes its own `reasoning`.
_CEREBRAS = ConversationRules(
    refused=frozenset({"reasoning_content", "reasoning_details", "thinking_blocks"})
)

# The names of providers and models, as `provider/model`, in the order in which they are tried. Behind litellm
# and OpenRouter stand the same models.
_CHAT_RULES = (
    (r"(openai|azure|litellm/(openai|azure))/.*", OPENAI_CHAT),
    (r"(litellm/)?mistral/.*", _MISTRAL_ITSELF),
    (r"(openrouter|litellm/\w+|nvidia_nim)/.*((mi(ni|x)?|magi|devi?)stral|codestral|pixtral).*", MISTRAL),
    (r"litellm/bedrock\w*/.*", BEDROCK),
    (r"(openrouter|litellm)/.*claude.*", CLAUDE),
    (r"(openrouter|litellm)/.*gemini.*", ConversationRules(names=GEMINI.names)),
    (r"(litellm/|openrouter/)*deepseek/deepseek-(v[4-9]|reasoner).*", _DEEPSEEK_V4),
    (r"(litellm/)?deepseek/.*", _DEEPSEEK),
    (r"(litellm/)?(moonshot|siliconflow)/.*kimi-(k2\.[5-9]|k[3-9]|k2-thinking).*", _KIMI),
    (r"(litellm/)?moonshot/.*", _MOONSHOT),
    (r"(litellm/)?xiaomi_mimo/.*", _MIMO),
    (r"(litellm/)?cerebras/.*", _CEREBRAS),
    # The error 1214 of Z.ai: vastsa/PI-Desktop#30; DeepInfra: earendil-works/pi#1578.
    (r"(litellm/)?(zai|deepinfra)/.*", ConversationRules(developer=False)),
)

_DEFAULT = ConversationRules()


def find_chat_rules(provider: str, model: str) -> ConversationRules:
    """The rules of a model behind Chat Completions.

    >>> find_chat_rules("mistral", "mistral-large-latest").takes_id("call_1")
    False
    """
    name = f"{provider}/{model}".lower()
    return next((rules for pattern, rules in _CHAT_RULES if re.fullmatch(pattern, name)), _DEFAULT)
