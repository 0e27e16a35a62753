"""Moonshot: the usage of a stream stands in its choice."""

from typing import Any

from ..._json_values import JSONMapping, JSONObject


def usage_in(choices: list[JSONObject], event: JSONMapping) -> Any:
    return choices[0].get("usage") if choices and not event.get("usage") else None
