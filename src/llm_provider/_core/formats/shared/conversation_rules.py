"""What each provider demands of a conversation that is sent back to it: one row for each, with its source.

A conversation may come from any route, and from models that make up names and write broken JSON. The
encoders change what its provider would refuse, and nothing else. Beside these rows a `Route` says which
parts and which fields of answers its host takes.
"""

import functools
import re
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ConversationRules:
    """What one provider demands. The default is what every server takes.

    Attributes:
        ids: The form of a call's id, as a pattern.
        ids_once: Whether an id may stand for one call only in the whole conversation. Within one answer no
            server takes an id twice.
        names: The form of a function's name, as a pattern.
        any_arguments: Whether the arguments of a call may be any text, and not only a JSON object.
        typed_calls: Whether each call must have its `type`.
        developer: Whether there is a role "developer", and not only "system".
        old_functions: Whether the form before `tool_calls` is taken: `function_call` and the role "function".
        answer_first: Whether an answer must stand between the result of a tool and a message of the user.
        system_after: The roles after which a system message may stand. Another becomes the user's.
        reasoning: What stands for the `reasoning_content` that a message with calls must have; None where it
            need not have one. Where it is not empty, an empty one is refused.
        empty_texts: Whether an answer may be empty, and a part of text.
        text_results: Whether the result of a tool must be a text, and not a list of texts.
        refused: Fields of answers that are refused, beside the row's in `Route.output_only`.
    """

    ids: str = r"(?s:.)+"
    ids_once: bool = False
    names: str = r"(?s:.)+"
    any_arguments: bool = False
    typed_calls: bool = False
    developer: bool = True
    old_functions: bool = False
    answer_first: bool = False
    system_after: str = r"\w*"
    reasoning: str | None = None
    empty_texts: bool = True
    text_results: bool = False
    refused: frozenset[str] = frozenset()

    def takes_id(self, identifier: str) -> bool:
        return re.fullmatch(self.ids, identifier) is not None

    def takes_name(self, name: str) -> bool:
        return re.fullmatch(self.names, name) is not None


_WORD = "[a-zA-Z0-9_-]"

# API reference of OpenAI for names; the error's own words for ids: microsoft/autogen#6377. Raw arguments are
# taken as they are. `type` is required in the types of the openai SDK, as is `ToolMessage.tool_call_id`.
OPENAI_CHAT = ConversationRules(
    ids=r"(?s:.){1,40}", names=f"{_WORD}{{1,64}}", any_arguments=True, typed_calls=True, old_functions=True
)

# Ids: decolua/9router#393; names: diegosouzapw/OmniRoute#4317. An id that two items have is refused as
# "Duplicate item": anomalyco/opencode#32748, and as "Duplicate 'call_id'": earendil-works/pi#9057.
RESPONSES = ConversationRules(
    ids=r"(?s:.){1,64}", ids_once=True, names=f"{_WORD}{{1,128}}", any_arguments=True
)

# "`tool_use` ids must be unique": BerriAI/litellm#23510, NVIDIA-NeMo/Switchyard#502. The pattern of ids:
# maximhq/bifrost#5097, of the names of tools: home-assistant/core#147760; empty texts: BerriAI/litellm#22979.
CLAUDE = ConversationRules(
    ids=f"{_WORD}+", ids_once=True, names=f"{_WORD}{{1,128}}", empty_texts=False
)  # fmt: skip

# The Converse API's reference for ToolUseBlock, which the other APIs of Bedrock follow; names of earlier
# calls: pydantic/pydantic-ai#4585; duplicate ids: bvcyber/Cyber-AutoAgent-ng#72.
BEDROCK = ConversationRules(
    ids=f"{_WORD}{{1,64}}", ids_once=True, names=f"{_WORD}{{1,64}}", empty_texts=False
)  # fmt: skip

# The error's own words for names: google-gemini/gemini-cli#9535. Ids are optional and free. A system message
# inside the conversation has no form.
GEMINI = ConversationRules(names=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", system_after="")

# Ids: nearai/ironclaw#1241 (code 3280); as many calls as results: mistralai/client-python#234 (3230); roles
# in order: zed-industries/zed#37021, swarmauri/swarmauri-sdk#276, and mistral-common's validator, which also
# wants content or calls in an answer; names: its `FunctionName`.
MISTRAL = ConversationRules(
    ids="[a-zA-Z0-9]{9}", ids_once=True, names=f"{_WORD}{{1,64}}", developer=False, answer_first=True,
    system_after="|system|user", empty_texts=False,
)  # fmt: skip

# Fields outside its schema are a 422, also where they are null: Gage-Technologies/mistral-go#2.
_MISTRAL_ITSELF = replace(MISTRAL, refused=frozenset({"refusal", "audio", "function_call"}))

# "unknown variant `developer`": earendil-works/pi#1048. Results are texts: Gitlawb/openclaude#774.
_DEEPSEEK = ConversationRules(developer=False, names=f"{_WORD}{{1,64}}", text_results=True)

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


@functools.lru_cache(maxsize=1024)
def find_chat_rules(provider: str, model: str) -> ConversationRules:
    """The rules of a model behind Chat Completions.

    >>> find_chat_rules("mistral", "mistral-large-latest").takes_id("call_1")
    False
    """
    name = f"{provider}/{model}".lower()
    return next((rules for pattern, rules in _CHAT_RULES if re.fullmatch(pattern, name)), _DEFAULT)
