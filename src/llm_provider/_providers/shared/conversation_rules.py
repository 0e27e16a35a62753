"""What each provider demands of a conversation that is sent back to it: one row for each, with its source.

A conversation may come from any route, and from models that make up names and write broken JSON. The
encoders change what its provider would refuse, and nothing else. Beside these rows a `Route` says which
parts and which fields of answers its host takes.
"""

import re
from dataclasses import dataclass


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


NAME = "[a-zA-Z0-9_-]"

# API reference of OpenAI for names; the error's own words for ids: microsoft/autogen#6377. Raw arguments are
# taken as they are. `type` is required in the types of the openai SDK, as is `ToolMessage.tool_call_id`.
OPENAI_CHAT = ConversationRules(
    ids=r"(?s:.){1,40}", names=f"{NAME}{{1,64}}", any_arguments=True, typed_calls=True, old_functions=True
)

# Ids: decolua/9router#393; names: diegosouzapw/OmniRoute#4317. An id that two items have is refused as
# "Duplicate item": anomalyco/opencode#32748, and as "Duplicate 'call_id'": earendil-works/pi#9057.
RESPONSES = ConversationRules(
    ids=r"(?s:.){1,64}", ids_once=True, names=f"{NAME}{{1,128}}", any_arguments=True
)

# "`tool_use` ids must be unique": BerriAI/litellm#23510, NVIDIA-NeMo/Switchyard#502. The pattern of ids:
# maximhq/bifrost#5097, of the names of tools: home-assistant/core#147760; empty texts: BerriAI/litellm#22979.
CLAUDE = ConversationRules(
    ids=f"{NAME}+", ids_once=True, names=f"{NAME}{{1,128}}", empty_texts=False
)  # fmt: skip

# The Converse API's reference for ToolUseBlock, which the other APIs of Bedrock follow; names of earlier
# calls: pydantic/pydantic-ai#4585; duplicate ids: bvcyber/Cyber-AutoAgent-ng#72.
BEDROCK = ConversationRules(
    ids=f"{NAME}{{1,64}}", ids_once=True, names=f"{NAME}{{1,64}}", empty_texts=False
)  # fmt: skip

# The error's own words for names: google-gemini/gemini-cli#9535. Ids are optional and free. A system message
# inside the conversation has no form.
GEMINI = ConversationRules(names=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", system_after="")
