"""Messages as those of Chat Completions."""

from typing import Any

import pytest

from conformance.checks import USER
from conformance.formats import CHAT

CALL = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
CUSTOM = {"id": "c2", "type": "custom", "custom": {"name": "grep", "input": "a.*b"}}


@pytest.mark.parametrize("content", [None, "", "Let me look"])
@pytest.mark.parametrize("arguments", [{}, {"arguments": None}])
def test_only_a_call_that_lacks_arguments_is_changed(content: Any, arguments: dict[str, Any]) -> None:
    without = {**CALL, "id": "c3", "function": {"name": "now", **arguments}}
    turn = {"role": "assistant", "content": content, "tool_calls": [CALL, CUSTOM, without]}
    sent = CHAT.encode([USER, turn])["messages"][1]
    assert sent == {**turn, "tool_calls": [CALL, CUSTOM, {**CALL, "id": "c3"}]}
