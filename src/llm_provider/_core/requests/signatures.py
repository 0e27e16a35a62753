"""Shows the parameters of functions that are declared with `**parameters: Unpack[...]`.

The functions hand their parameters on as one dict: a function with fifty parameters is slower to call.
Type checkers know the parameters from the annotation. `with_parameters` shows them where a program asks the
function: `help`, `inspect`, IPython, and Jedi in notebooks. Names and types come from the classes of
`parameters`, and the documentation from the source of that module. Nothing of this is read before.
"""

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Protocol, TypeVar, cast

from ..json_values import JSONObject

F = TypeVar("F", bound=Callable[..., Any])
T_co = TypeVar("T_co", covariant=True)


def with_parameters(function: F) -> F:
    """Give a function that has `**parameters: Unpack[...]` a docstring and a signature that name them.

    >>> from llm_provider import call
    >>> list(inspect.signature(call).parameters)[:4]
    ['model', 'messages', 'system', 'max_tokens']
    """
    annotations = function.__annotations__
    rest, annotation = list(annotations.items())[-2]
    group = annotation.removeprefix("Unpack[").removesuffix("]")
    if function.__doc__:
        function.__doc__ = document(function.__doc__, group, rest)
    # Let the function look at its parameters before it misses what stands behind the model: who wrote
    # `call(model, prompt="Hi")` reads what to write for `prompt`, and not only what is missing.
    code, defaults = function.__code__, function.__defaults__ or ()
    required = code.co_varnames[: code.co_argcount - len(defaults)]
    inputs = required[required.index("model") + 1 :] if "model" in required else ()
    function.__defaults__ = (*(_Missing(function.__name__, name) for name in inputs), *defaults)
    function.__signature__ = _Signature(function, annotations, group)  # type: ignore[attr-defined]  # may be set
    function.__annotations__ = _Annotations(annotations)
    function.__annotations__.module = function.__module__
    return function


class _Missing:
    """Stands for an argument that was not given, until its check asks what it is."""

    def __init__(self, function: str, name: str) -> None:
        self._problem = f"{function}() missing 1 required positional argument: {name!r}"

    @property  # type: ignore[misc]  # `isinstance` asks for it
    def __class__(self) -> Any:
        raise TypeError(self._problem)


class Method(Protocol[T_co]):
    """A method that is called with the arguments of a function."""

    def __get__(self, instance: object, owner: type | None = None, /) -> T_co: ...


def take_types_of(_: Callable[[], F], /) -> Callable[[Callable[..., Any]], Method[F]]:
    """Give a method the overloads of the function that does the same on the default client."""
    return lambda method: cast("Method[F]", method)


def document(docstring: str, group: str, rest: str) -> str:
    """A docstring with an entry for each parameter of a class in `parameters`, in the place of `rest`."""
    made = _Docstring(docstring)
    made.group, made.rest = group, rest
    return made


class _Docstring(str):
    """A docstring that is completed when it is printed, or when `inspect.getdoc` expands its tabs."""

    __slots__ = ("group", "rest")

    group: str
    rest: str

    def __str__(self) -> str:
        text = super().__str__()
        lines = "\n".join(
            textwrap.fill(f"{name}: {meaning}", 96, subsequent_indent="    ", break_on_hyphens=False)
            for name, meaning in _documentation(self.group).items()
        ).splitlines()
        if not lines:
            return text
        before, mark, after = text.partition(f"**{self.rest}: See `{self.group}`.")
        if mark:
            # It is indented already.
            return before + ("\n" + before[before.rindex("\n") + 1 :]).join(lines) + after
        indent = "    " if "\n" not in text else text[text.rindex("\n") + 1 :]
        return f"{text.rstrip()}\n\n{indent}" + f"\n{indent}    ".join(["Args:", *lines]) + f"\n{indent}"

    def expandtabs(self, tabsize: Any = 8) -> str:
        return str(self).expandtabs(tabsize)


def _documentation(group: str) -> dict[str, str]:
    """Name → documentation of the parameters of a class and of its bases; empty if there is no source."""
    from . import parameters

    meanings: dict[str, str] = {}
    for node in _statements(parameters.__name__):
        if isinstance(node, ast.ClassDef) and node.name == group:
            for base in node.bases:
                meanings |= _documentation(ast.unparse(base))
            for field, text in zip(node.body, node.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    meanings[ast.unparse(field.target)] = " ".join(ast.literal_eval(text.value).split())
    return meanings


@functools.cache
def _statements(module: str) -> list[ast.stmt]:
    """The statements of a module; empty if there is no source."""
    try:
        return ast.parse(inspect.getsource(sys.modules[module])).body
    except OSError:
        return []


class _Annotations(JSONObject):
    """The annotations of a function. Reading them imports what the module imports for type checkers only."""

    module: str

    def keys(self) -> Any:
        names = vars(sys.modules[self.module])
        for node in _statements(self.module):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                body = compile(ast.Module(node.body, []), names["__file__"], "exec")
                exec(body, names)  # noqa: S102  # imports, which stand in the source of this package
        return super().keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


class _Signature(inspect.Signature):
    """A signature that is made when it is first read: making all of them would take as long as a call."""

    __slots__ = ("_annotations", "_function", "_group", "_whole")

    def __init__(self, function: Callable[..., Any], annotations: JSONObject, group: str) -> None:
        self._function, self._annotations, self._group = function, annotations, group
        self._whole: inspect.Signature | None = None

    def _read(self) -> inspect.Signature:
        if self._whole is None:
            from . import parameters

            function = self._function
            # The same function without a `__signature__`.
            defaults = tuple(each for each in function.__defaults__ or () if type(each) is not _Missing)
            bare = FunctionType(function.__code__, {}, argdefs=defaults, closure=function.__closure__)
            bare.__kwdefaults__, bare.__annotations__ = function.__kwdefaults__, self._annotations
            own = inspect.signature(bare)
            *positional, _ = own.parameters.values()
            types = getattr(parameters, self._group).__annotations__
            named = [
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind.__forward_arg__
                )
                for name, kind in types.items()
            ]
            self._whole = own.replace(parameters=[*positional, *named])
        return self._whole

    @property
    def parameters(self) -> Any:
        return self._read().parameters

    @property
    def return_annotation(self) -> Any:
        return self._read().return_annotation

    def replace(self, **changes: Any) -> Any:
        return self._read().replace(**changes)

    __replace__ = replace

    def __reduce__(self) -> Any:
        return self._read().__reduce__()
