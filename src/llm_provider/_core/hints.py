"""Values that say what to write where a program uses them like values of another library.

`Hinting` is the base class of values that users read. A subclass has the rows of its bases.
"""

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from . import doors


def remedy_for(owners: Iterable[str], name: str, known: Iterable[str]) -> str:
    """What to write in place of a name that an object or a module does not have; empty if nothing is like it.

    `owners` are the rows of the table to search, in this order, and `known` the names that there are.

    >>> remedy_for(["Response"], "content", []), remedy_for(["Usage"], "input_token", ["input_tokens"])
    (': use .text', ": did you mean 'input_tokens'?")
    """
    if name.startswith("_") and name not in ("_hidden_params", "_request_id"):
        # Protocols of other programs look for such names again and again.
        return ""
    for owner in owners:
        if name in (remedies := doors.remedies.remedies_of(owner)):
            return f": use {remedies[name]}"
    import difflib

    public = [other for other in known if not other.startswith("_")]
    near = difflib.get_close_matches(name, public, n=1, cutoff=0.7)
    if not near and "LLMError" in public and name.endswith(("Error", "Exception")):
        return ": use LLMError, or the error of the same HTTP status"
    return f": did you mean {near[0]!r}?" if near else ""


def missing_attribute(value: object, name: str) -> AttributeError:
    """The error for an attribute that a value does not have."""
    # Python would add a guess of its own to an error that names its object.
    return AttributeError(
        f"{type(value).__name__} has no attribute {name!r}{_remedy(value, name)}", name=name, obj=None
    )


def _remedy(value: object, name: str) -> str:
    kind = type(value)
    return remedy_for([base.__name__ for base in kind.__mro__], name, dir(kind))


def as_missing_answer(error: Any) -> Any:
    """The error of a call, for a program that reads it like the answer, as an `AttributeError` too.

    So `except` finds the class of the error, and `hasattr` is false.
    """
    rebuild, (kind, state) = error.__reduce__()
    return rebuild(_missing_answer(kind, rebuild), state)


@functools.cache
def _missing_answer(kind: type, rebuild: Callable[..., Any]) -> type:
    names = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    # What is pickled or copied is the plain error.
    names["__reduce__"] = lambda error: (rebuild, (kind, error.__dict__.copy()))
    return type(kind.__name__, (kind, AttributeError), names)


def hint_at(function: Callable[..., Any], names: str) -> None:
    """Answer methods that another library has where this one has a function, such as `client.models`."""
    for name in names.split():
        setattr(function, name, functools.partial(_raise_hint, function.__qualname__, name))


def _raise_hint(owner: str, name: str, *_: object, **__: object) -> NoReturn:
    raise AttributeError(f"{owner} is a function without {name!r}{remedy_for([owner], name, ())}")


class Hinting:
    """A value that says what to write where a program uses it like a value of another library."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            attribute = getattr(type(self), name, None)
            if isinstance(attribute, property):
                # Python comes here too if a property raised an AttributeError, which is raised once more.
                return attribute.__get__(self)
            raise missing_attribute(self, name)


class NoMapping(Hinting):
    """A value with attributes: it says so where a program uses it like a dict."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getitem__(self, name: Any) -> Any:
            kind = type(self)
            if not isinstance(name, str):
                raise TypeError(f"{kind.__name__} is neither a list nor a dict: use its attributes")
            own = f": use .{name}" if hasattr(kind, name) else _remedy(self, name)
            # An attribute may have a shorter way to the text, as `choices`.
            remedy = remedy_for([f"{kind.__name__}[]"], name, ()) or own
            raise TypeError(f"{kind.__name__} is not a dict{remedy or f', and has no {name!r}'}")
