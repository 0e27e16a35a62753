"""Writes the parameters of a request into its payload, by the table `ACCEPTS` of a wire format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from ...errors import UnsupportedParameterError
from ...json_values import JSONMapping, JSONObject
from ...requests.parameter_table import PARAMETERS
from ...requests.request import EmbedRequest, Request
from ...requests.routing import Target

Family = TypeVar("Family")


@dataclass(slots=True)
class Draft(Generic[Family]):
    """A request while its parameters are written into `payload`, and those outside the key into `labels`."""

    request: Request
    target: Target
    family: Family
    payload: JSONObject
    labels: JSONObject = field(default_factory=dict)

    def refuse(self, parameter: str, remedy: str = "") -> UnsupportedParameterError:
        """The error for a parameter or a value that the model does not accept."""
        remedy = remedy or PARAMETERS[parameter].remedy
        return refuse(parameter, self.request, remedy, provider=self.target.provider)


Accepts: TypeAlias = Mapping[str, str | Callable[[Draft[Any], Any], None]]
"""Parameter → the wire field that holds it, or the function that writes it.

A dot leads into an object: "reasoning.effort". A parameter that is missing is refused.
"""


def keep_names(*names: str) -> dict[str, str]:
    """Entries of parameters that have the same name in the wire format."""
    return dict(zip(names, names, strict=True))


def fill_payload(draft: Draft[Any], accepts: Accepts) -> JSONObject:
    """The draft's payload with the parameters that are set, if they are accepted, and with `extra_body`."""
    for name, value in draft.request.parameters_to_send.items():
        row = PARAMETERS[name]
        write = accepts.get(name)
        if write is None:
            if row.remedy and value != row.no_effect:
                # The types of the SDKs, and of hosts the rows of routing.py.
                raise draft.refuse(name)
        elif isinstance(write, str):
            container = draft.labels if row.is_label else draft.payload
            *outer, field_name = write.split(".")
            for step in outer:
                container = container.setdefault(step, {})
            container[field_name] = list(value) if isinstance(value, tuple) else value
        else:
            write(draft, value)
    extra = draft.request.extra_body
    return merge(draft.payload, extra) if extra else draft.payload


def refuse(
    parameter: str, request: Request | EmbedRequest, remedy: str, *, provider: str
) -> UnsupportedParameterError:
    """The error for a parameter that a model does not accept."""
    return UnsupportedParameterError(
        f"{request.model} does not accept {parameter}: {remedy}",
        parameter=parameter,
        model=request.model,
        provider=provider,
    )


def merge(payload: JSONObject, extra: JSONMapping) -> JSONObject:
    """`payload` with `extra_body` merged in, level by level. The user's value wins, and tools are added."""
    merged = dict(payload)
    for name, value in extra.items():
        present = merged.get(name)
        if name == "tools" and isinstance(present, list) and isinstance(value, (list, tuple)):
            merged[name] = [*present, *(tool for tool in value if tool not in present)]
            continue
        both = isinstance(present, dict) and isinstance(value, Mapping)
        merged[name] = merge(present, value) if both else value  # type: ignore[arg-type]  # `both` narrows
    return merged
