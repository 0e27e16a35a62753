"""Python values as JSON-ready ones: dicts with text as keys, lists, text, numbers, booleans and None."""

import base64
import functools
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object, such as a payload or a reply."""

JSONMapping: TypeAlias = Mapping[str, Any]
"""A JSON object that is only read."""

_READY = (str, int, float, bool, type(None))
MISSING = ("NAType", "NaTType")
"""The classes of pandas' missing values."""


def json_value(value: object) -> Any:
    """A value that JSON can hold. Whatever has no form of its own in JSON becomes text.

    Amounts of money keep every digit as text. Bytes are text if they are UTF-8, else base64. Values of NumPy
    and pydantic become plain ones.

    >>> from decimal import Decimal
    >>> json_value({"cost": Decimal("0.10"), 1: (b"ok", {"x"})})
    {'cost': '0.10', '1': ['ok', ['x']]}
    """
    if type(value) in _READY:
        return value
    if isinstance(value, Mapping):
        return {str(name): json_value(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_value(part) for part in value]
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, str):
        # `str(value)` would be the name of an enumeration's member.
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)
    if type(value).__name__ in MISSING:
        return None
    for method, arguments in (("to_dict", {}), ("model_dump", {"mode": "json"}), ("tolist", {})):
        # An attribute that an object lacks may cost it a search for the remedy.
        if callable(getattr(type(value), method, None)):
            return json_value(getattr(value, method)(**arguments))
    if is_dataclass(value) and not isinstance(value, type):
        # What was written before a late field was there stays equal to what is written today.
        pairs = ((each, getattr(value, each.name)) for each in fields(value))
        kept = (pair for pair in pairs if not pair[0].metadata.get("late") or pair[1] != pair[0].default)
        return {each.name: json_value(part) for each, part in kept}
    return _to_text(value)


def _to_text(value: object) -> str:
    from decimal import Decimal

    if isinstance(value, Decimal) and value.is_finite():
        # `str` would write 0.00000006 as 6E-8.
        return format(value, "f")
    try:
        return str(value)
    except Exception:  # the class may be the user's, such as an exception of a tool
        return cite(value)


def plain_number(value: object) -> int | float | None:
    """A number as an int or a float of Python; None for every other value, such as a bool or a text.

    A short float of NumPy becomes the number that it shows, so 0.1 is 0.1 in every precision.

    >>> from fractions import Fraction
    >>> plain_number(3), plain_number(Fraction(1, 2)), plain_number("3"), plain_number(True)
    (3, 0.5, None, None)
    """
    if isinstance(value, (int, float)):
        if isinstance(value, bool):
            return None
        # JSON encoders refuse subclasses such as NumPy's float64.
        return int(value) if isinstance(value, int) else float(value)
    # Imported here because most numbers are Python's own.
    from numbers import Integral, Real

    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(str(value)) if hasattr(value, "dtype") else float(value)
    return None


def cite(value: object) -> str:
    """The `repr` of a user's value for a message, cut to 80 characters, also where `repr` raises."""
    try:
        text = repr(value)
    except Exception:
        # The class of the value is the user's, and its `repr` may raise any exception.
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and abs(value) < _MOST


def _is_number(value: object) -> bool:
    # NaN is not less.
    return _is_count(value) or (type(value) is float and abs(value) < _MOST)


def _is_list(value: object, *, of: Callable[[object], bool] = lambda _: True) -> bool:
    return isinstance(value, (list, tuple)) and all(map(of, value))


def _is_score(value: object) -> bool:
    values = value.values() if isinstance(value, Mapping) else [value]
    return all(each is None or _is_number(each) for each in values)


def _has_texts(value: object) -> bool:
    return value is None or (isinstance(value, Mapping) and all(map(_is_text, value.values())))


_MOST = 10**15
_KINDS: tuple[tuple[str, str, Callable[[object], bool]], ...] = (
    ("cost price retry_after queue first_token total overhead waited seconds", "a number", _is_number),
    ("text reasoning finish_reason provider code request_id model id name arguments", "text", _is_text),
    ("status attempts!", "a whole number", _is_count),
    ("cached! retryable! maybe_billed!", "true or false", lambda value: isinstance(value, bool)),
    ("response_format row_label", "an object", lambda value: isinstance(value, Mapping)),
    ("dropped", "a list of texts", functools.partial(_is_list, of=_is_text)),
    (
        "cache_keys",
        "a list of texts",
        functools.partial(_is_list, of=lambda value: value is None or _is_text(value)),
    ),
    ("origins", "a list of objects of texts", functools.partial(_is_list, of=_has_texts)),
    ("score_values", "a list of numbers", functools.partial(_is_list, of=_is_score)),
    ("choices tool_calls failures!", "a list", _is_list),
)
"""The fields of a result, what each is unless it is null, and how to tell. One with "!" is never null."""
_FIELDS = {
    name.rstrip("!"): (kind, fits, "!" in name) for names, kind, fits in _KINDS for name in names.split()
}
_ANYTHING: tuple[str, Callable[[object], bool], bool] = "anything", lambda _: True, False


def check_fields(fields: JSONMapping, *, counts: bool = False) -> JSONMapping:
    """The fields of a result that was written; `ValueError` for a wrong type. `counts`: all are counts."""
    for name, value in fields.items():
        kind, fits, is_needed = ("a count", _is_count, True) if counts else _FIELDS.get(name, _ANYTHING)
        if (value is not None or is_needed) and not fits(value):
            raise ValueError(f"{name} is {value!r:.60}, not {kind}")
    return fields
