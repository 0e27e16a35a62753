"""The options of a background job, and what a call with one cannot have."""

from collections.abc import Mapping
from typing import NoReturn

from ..._core.errors import RequestError, cite
from ..._core.json_values import JSONMapping
from ..._core.requests.checks import CompletionWindow, one_of, text

_check_window = one_of(CompletionWindow)


def check_options(name: str, value: object) -> JSONMapping:
    """The options, with a completion window."""
    if not isinstance(value, Mapping):
        kind = type(value).__name__
        raise RequestError(f"{name} must be a dict such as {{'completion_window': '8h'}}, not {kind}")
    for unknown in value.keys() - {"completion_window", "continuation_id"}:
        raise RequestError(
            f"{name} has {cite(unknown)}; it may have 'completion_window' and 'continuation_id'"
        )
    window = _check_window(f"{name}['completion_window']", value.get("completion_window", "soonest"))
    identifier = value.get("continuation_id")
    if identifier is None:
        return {"completion_window": window}
    identifier = text(f"{name}['continuation_id']", identifier)
    return {"completion_window": window, "continuation_id": identifier}


def refuse_alone() -> NoReturn:
    """Raise the `RequestError` of options without a background job."""
    raise RequestError("background_options are for delivery='background': give it too, or leave them out")


_RIVALS = {
    "fallback": "a job is of one model",
    "in_batch": "a job under way is found anyway",
    "store": "OpenAI must keep the answer until it is fetched",
}
"""Parameters that contradict a background job, each with the reason."""


def check_rivals(checked: JSONMapping, options: JSONMapping) -> None:
    """Refuse what a background job cannot have beside it. `options` are the rare parameters of the call."""
    if "delivery" not in options:
        refuse_alone()
    for name, reason in _RIVALS.items():
        if options.get(name, checked.get(name)) not in (None, True):
            raise RequestError(f"{name} was given with delivery='background', and {reason}: leave it out")
    window = options.get("background_options", {}).get("completion_window", "soonest")
    if window != "soonest" and options.get("service_tier") not in (None, "auto", "default"):
        # response_create_params.py of openai 3.57
        raise RequestError(
            f"service_tier is {options['service_tier']!r}, and the completion window {window!r} is of the "
            "standard level: leave service_tier out, or use the window 'soonest'"
        )
