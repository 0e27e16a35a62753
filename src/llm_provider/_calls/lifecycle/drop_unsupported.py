"""`unsupported="drop"`: the request without the parameters that its model or host does not have."""

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..._errors import UnsupportedParameterError
from ..._providers.protocol import EncodedRequest
from ..._requests.parameter_table import PARAMETERS, RARE
from ..call import Call

_MEANT_BY: Mapping[str | None, tuple[str, ...]] = {"logprobs": ("logprobs", "top_logprobs")}


def encode_supported(request: Any, encode: Callable[[Any], EncodedRequest]) -> EncodedRequest:
    """Encode a request without refused parameters, which `dropped` names, if they may be left out."""
    dropped: list[str] = []
    while True:
        try:
            encoded = encode(request)
        except UnsupportedParameterError as error:
            name = _name_of(error)
            names = [meant for meant in _MEANT_BY.get(name, (name,)) if meant and _is_set(request, meant)]
            if not names:
                raise
            for meant in names:
                request = _without(request, meant)
            dropped += names
        else:
            encoded.dropped = tuple(dropped)
            return encoded


def warn(call: Call[Any], warned: set[tuple[str, str]]) -> None:
    """Warn of each parameter that a call leaves out, if `warned` has not got it for this model yet."""
    each = ((each.request.model, name) for each in call.fallback or (call,) for name in each.encoded.dropped)
    for model_and_name in each:
        if model_and_name not in warned:
            warned.add(model_and_name)
            model, name = model_and_name
            problem = f"{model} does not accept {name}: unsupported='drop' leaves it out"
            warnings.warn(problem, UserWarning, stacklevel=4)


def _name_of(error: UnsupportedParameterError) -> str | None:
    """The parameter that an error is about; None if it may not be left out."""
    words = re.findall(r"[a-z]+(?:_[a-z]+)*", error.parameter)
    if words and words[0] in ("a", "the"):
        del words[0]
    row = PARAMETERS.get(words[0]) if words else None
    return words[0] if row is not None and row.remedy and not row.essential else None


def _is_set(request: Any, name: str) -> bool:
    return name in request.options if name in RARE else getattr(request, name) is not None


def _without(request: Any, name: str) -> Any:
    if name not in RARE:
        return replace(request, **{name: None})
    return replace(request, options={kept: request.options[kept] for kept in request.options if kept != name})
