"""The `tools=` of a call: functions, models and the providers' own tools → OpenAI-style tools.

The schema of a function comes from its annotations, by pydantic, and from its docstring. It is made once for
each function. pydantic and docstring_parser are imported only when a function or a model is given. Equal
schemas make equal cache keys, whichever function they come from.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import textwrap
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias, get_type_hints

from .. import doors
from ..errors import RequestError, ToolArgumentsError, cite
from ..json_values import JSONMapping, JSONObject
from ..schemas.structure import slow_pattern
from ..types.messages import ToolCall
from ..types.response import Choice

Function: TypeAlias = Callable[..., Any]
SentTool: TypeAlias = JSONMapping | str
"""An OpenAI-style tool, a tool in the form of its provider, or the name of a tool that providers run."""

Tool: TypeAlias = Function | SentTool
"""A Python function, a pydantic model, dataclass or TypedDict, an OpenAI-style tool, a tool in the form of
its provider, or the name of a tool that providers run, such as "web_search"."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)
"""The names that every provider accepts: OpenAI's are the shortest, and Gemini's begin with a letter."""

SERVER_TOOLS = (
    "web_search", "code_execution", "url_context", "web_fetch", "code_interpreter", "image_generation",
    "google_search", "google_maps",
)  # fmt: skip
"""The names of the tools that providers run. `_features/foreign/messages` has the form of each."""

_WITH_SETTINGS = {
    "file_search": "{'type': 'file_search', 'vector_store_ids': [...]} for OpenAI, "
    "{'file_search': {'file_search_store_names': [...]}} for Gemini",
    "mcp": "{'type': 'mcp', 'server_label': ..., 'server_url': ..., 'require_approval': 'never'}, "
    "or mcp('uvx some-server')",
}
"""Tools that work only with settings, which a name does not have, and what to write."""

_FORMS = (
    "a Python function, a pydantic model, {'type': 'function', 'function': {'name': ..., "
    "'parameters': ...}}, a tool in the form of its provider, or the name of one, such as 'web_search'"
)

_IN_FUNCTION = frozenset({"name", "description", "parameters", "strict"})


class ToolServer(JSONObject):
    """Stands for the tools of a server. A `CallRunner` lists them before it prepares a call."""


class FunctionTool(JSONObject):
    """An OpenAI-style tool of a Python function or a class. Its copy and its pickle are plain dicts."""

    __slots__ = ("_schema", "function")

    def __init__(self, name: str, schema: ToolSchema, function: Function | None) -> None:
        described = {"description": schema.description} if schema.description else {}
        super().__init__(
            type="function", function={"name": name, **described, "parameters": schema.parameters}
        )
        self._schema = schema
        self.function = function
        """The function; None if the tool is a class, whose calls are its instances."""

    def parse(self, call: ToolCall) -> Any:
        """The arguments: a dict for a function, an instance for a class; else `ToolArgumentsError`."""
        try:
            # Some servers write nothing for a call without arguments.
            return self._schema.parse(call.arguments or "{}")
        except ValueError as error:
            problems = _problems(error)
        raise ToolArgumentsError(
            f"the arguments of tool call {call.name!r} are not valid: {problems}",
            tool_call_id=call.id,
            tool_name=call.name,
            arguments=call.arguments,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (dict(self),)


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """What a function or a class tells a model, and the parser of the model's arguments."""

    description: str
    parameters: JSONObject
    parse: Callable[[str], Any]


_schemas: MutableMapping[object, dict[bool, ToolSchema]] = weakref.WeakKeyDictionary()
"""The schemas of each function and class that was a tool, by whether it was the method of an object."""


def read_tools(name: str, value: object) -> tuple[SentTool, ...]:
    """The tools of a call: functions and classes as `FunctionTool`, all others unchanged."""
    if not isinstance(value, (list, tuple)):
        written = getattr(value, "__name__", None) or cite(value)
        raise RequestError(f"{name} must be a list of tools, not {cite(value)}: write {name}=[{written}]")
    if any(hasattr(tool, "function_declarations") for tool in value):
        value = [each for tool in value for each in doors.sdk_messages.plain_tools(tool)]
    # `beta_tool` of anthropic keeps the function.
    value = [tool.func if hasattr(tool, "input_schema") and hasattr(tool, "func") else tool for tool in value]
    tools = tuple(_tool(f"{name}[{index}]", tool) for index, tool in enumerate(value))
    indices: dict[str, int] = {}
    for index, tool in enumerate(tools):
        # A tool in the form of its provider may be declared beside a function that it calls.
        called = name_of(tool) if isinstance(tool, str) or "function" in tool else None
        if called is not None and indices.setdefault(called, index) != index:
            raise RequestError(
                f"{name}[{indices[called]}] and {name}[{index}] are both named {called!r}: "
                "models tell tools apart by their names, so give one of them another name"
            )
    return tools


def name_of(tool: SentTool) -> str | None:
    """The name by which a model calls a tool; None for a tool without one."""
    if isinstance(tool, str):
        return tool
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return name if isinstance(name, str) else None


def bound(choices: tuple[Choice, ...], tools: Sequence[SentTool]) -> tuple[Choice, ...]:
    """Samples whose tool calls know the Python tool that they call, so that their arguments are checked."""
    if not any(choice.tool_calls for choice in choices):
        return choices
    known = {name_of(tool): tool for tool in tools if isinstance(tool, FunctionTool)}

    def bind(call: ToolCall) -> ToolCall:
        tool = known.get(call.name) if call.type == "function" else None
        return call if tool is None else replace(call, tool=tool)

    return tuple(
        replace(choice, tool_calls=tuple(map(bind, choice.tool_calls))) if choice.tool_calls else choice
        for choice in choices
    )


def choose_tool(choice: object, tools: Sequence[SentTool]) -> JSONObject:
    """The `tool_choice` for a function or a class; a `RequestError` if it is no tool of the call."""
    (wanted,) = read_tools("tool_choice", [choice])
    name = name_of(wanted)
    if wanted not in tools:
        known = [tool_name for tool in tools if (tool_name := name_of(tool)) is not None]
        problem = f"is not among tools: {', '.join(known) or 'no function'}"
        if name in known:
            problem = "has the name of another one in tools: give the same in both"
        raise RequestError(f"tool_choice is {name!r}, which {problem}")
    return {"type": "function", "function": {"name": name}}


def check_rounds(checked: JSONObject) -> None:
    """Check `max_tool_rounds` against the other parameters of a call. 0 runs no tools, as None."""
    if not checked["max_tool_rounds"]:
        del checked["max_tool_rounds"]
        return
    # Functions of the user's, and tools that a provider runs, may need several rounds.
    if not any(
        isinstance(tool, (FunctionTool, str))
        or (isinstance(tool, Mapping) and tool.get("type", "custom") not in ("function", "custom"))
        for tool in checked.get("tools", ())
    ):
        raise RequestError(
            "max_tool_rounds runs Python functions, and tools has none: give tools=[your_function], or leave "
            "max_tool_rounds out"
        )
    if checked.get("n", 1) != 1:
        raise RequestError(
            "max_tool_rounds continues one conversation, and n asks for several samples: leave n out, and "
            "call with draw=0, draw=1, ..."
        )
    if checked.get("in_batch") is not None:
        raise RequestError(
            "in_batch looks for one request, and max_tool_rounds sends several: leave one of them out"
        )


def _tool(where: str, tool: object) -> SentTool:
    if isinstance(tool, Mapping):
        return _check_mapping(where, tool)
    if callable(tool):
        return _tool_of_python(where, tool)
    if not isinstance(tool, str):
        raise RequestError(f"{where} is {cite(tool)}: expected {_FORMS}")
    if tool in SERVER_TOOLS:
        return tool
    if tool in _WITH_SETTINGS:
        raise RequestError(f"{where}={tool!r} needs settings: write {_WITH_SETTINGS[tool]}")
    near = difflib.get_close_matches(tool, SERVER_TOOLS, n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    raise RequestError(
        f"{where}={cite(tool)} is no tool that a provider runs: {guess}the names are "
        f"{', '.join(SERVER_TOOLS)}; a function is given without quotes"
    )


def _check_mapping(where: str, tool: JSONMapping) -> JSONMapping:
    if tool.get("type") == "mcp":
        return doors.remote_servers.seal(where, tool)
    if tool.get("type") == "function" and "name" in tool and "function" not in tool:
        # The form of OpenAI's Responses API.
        inner = {name: value for name, value in tool.items() if name in _IN_FUNCTION and value is not None}
        others = {name: value for name, value in tool.items() if name not in _IN_FUNCTION}
        tool = {**others, "function": inner}
    function = tool.get("function")
    is_flat = "name" in tool and not {"type", "input_schema"} & tool.keys()
    if function is None and tool and tool.get("type") != "function" and not is_flat:
        # A tool that its provider defines. The adapters know their own.
        return tool
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise RequestError(
            f"{where} must look like {{'type': 'function', 'function': {{'name': ..., 'parameters': ...}}}}, "
            f"not {cite(tool)}"
        )
    if callable(function.get("parameters")):
        raise RequestError(
            f"{where} has {cite(function['parameters'])} for its parameters: give it as a tool"
        )
    return tool


def _tool_of_python(where: str, given: Function) -> FunctionTool:
    """The tool of a function or a class, whose schema is made once."""
    kind = given if isinstance(given, type) else None
    if kind is not None and not any(
        hasattr(kind, name) for name in ("model_json_schema", "__dataclass_fields__", "__total__")
    ):
        raise RequestError(
            f"{where} is the class {kind.__name__!r}: a class must be a pydantic model, a dataclass or a "
            "TypedDict; give a function, or a method of an object"
        )
    plain = plain_function(given) if kind is None else kind
    name = getattr(plain, "__name__", type(plain).__name__)
    if name == "<lambda>":
        raise RequestError(f"{where} is a lambda, which has no name and no types: write it with def")
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"{where} is named {name!r}, which not every provider accepts: use up to 64 ASCII letters, "
            "digits, underscores and hyphens, and begin with a letter"
        )
    # Each access makes a new object of a method. A method and its function differ in `self`.
    is_method = inspect.ismethod(given)
    try:
        kept = _schemas.setdefault(getattr(given, "__func__", given) if is_method else given, {})
    except TypeError:  # an object without a hash or without weak references
        kept = {}
    if is_method not in kept:
        if kind is None:
            kept[is_method] = _schema_of_function(f"{where}, the function {name!r},", given, plain)
        else:
            kept[is_method] = _schema_of_class(f"{where}, the class {name!r},", kind)
    return FunctionTool(name, kept[is_method], given if kind is None else None)


def plain_function(function: Function) -> Function:
    """The function with the name, the annotations and the docstring of a partial, a method or a wrapper."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.ismethod(function):
        function = function.__func__
    plain: Function = inspect.unwrap(function)
    return plain


def _schema_of_function(where: str, function: Function, plain: Function) -> ToolSchema:
    from pydantic import ConfigDict, Field, create_model

    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise RequestError(f"{where} yields its results, and a model reads one: return a list")
    description, meanings = read_docstring(plain)
    fields: JSONObject = {}
    names: dict[str, str] = {}
    for parameter, annotation in _parameters(where, function, plain):
        options: JSONObject = {"alias": parameter.name}
        described = (getattr(entry, "description", None) for entry in getattr(annotation, "__metadata__", ()))
        if parameter.name in meanings and not any(described):
            options["description"] = meanings[parameter.name]
        if parameter.default is not parameter.empty and not _is_field(parameter.default):
            options["default"] = parameter.default
        # Names of fields may not begin with an underscore or equal a method of pydantic's.
        field = f"field_{len(names)}"
        names[field], fields[field] = parameter.name, (annotation, Field(**options))

    def model_of(fields: JSONObject) -> Any:
        return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)

    try:
        model, parameters = _with_schema(lambda: model_of(fields))
    except _NoSchemaError as error:
        # pydantic does not name the parameter.
        for field, name in names.items():
            try:
                _with_schema(functools.partial(model_of, {field: fields[field]}))
            except _NoSchemaError as problem:
                raise RequestError(f"{where} has a parameter {name!r} with {problem}") from None
        raise RequestError(f"{where} has {error}") from None
    parameters.pop("title", None)

    def parse(text: str) -> JSONObject:
        arguments = model.model_validate_json(text)
        # The function has its other defaults itself.
        present = arguments.model_fields_set | own
        return {name: getattr(arguments, field) for field, name in names.items() if field in present}

    # A default `Field(...)` is not the value that the function needs.
    signature = inspect.signature(function)
    own = {field for field, name in names.items() if _is_field(signature.parameters[name].default)}
    return ToolSchema(description, {"properties": {}, **parameters}, parse)


def _parameters(
    where: str, function: Function, plain: Function
) -> Iterator[tuple[inspect.Parameter, object]]:
    """The parameters that a model fills in, with their annotations; `RequestError` for any other."""
    try:
        signature = inspect.signature(function)
        annotated = plain if inspect.isroutine(plain) else type(plain).__call__
        hints = get_type_hints(annotated, include_extras=True)
    except NameError as error:
        raise RequestError(
            f"{where} has an annotation that cannot be read: {error}; define its types at the top of a module"
        ) from None
    except (TypeError, ValueError) as error:
        raise RequestError(f"{where} has no signature that can be read: {error}") from None
    filled = function.keywords if isinstance(function, functools.partial) else {}
    for parameter in signature.parameters.values():
        if parameter.name in filled:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RequestError(
                f"{where} takes {str(parameter).partition(':')[0]}, and a model needs the name and the type "
                "of each argument: write a function with named parameters"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise RequestError(
                f"{where} has a positional-only parameter {parameter.name!r}, and models give arguments by "
                "name: remove the '/'"
            )
        if parameter.name not in hints:
            method = "; give a method of an object, not of a class" if parameter.name == "self" else ""
            raise RequestError(
                f"{where} has no annotation for its parameter {parameter.name!r}: write a type, such as "
                f"'{parameter.name}: str'{method}"
            )
        annotation: Any = hints[parameter.name]
        if parameter.default is None and isinstance(annotation, type):
            # `city: str = None`, as people write it.
            annotation = annotation | None
        if _is_field(parameter.default):
            annotation = Annotated[annotation, parameter.default]
        yield parameter, annotation


def _is_field(value: object) -> bool:
    """Whether a default is pydantic's `Field(...)`."""
    return type(value).__name__ == "FieldInfo" and type(value).__module__.startswith("pydantic")


def _schema_of_class(where: str, kind: type) -> ToolSchema:
    from pydantic import TypeAdapter

    try:
        adapter, parameters = _with_schema(lambda: TypeAdapter(kind))
    except _NoSchemaError as error:
        raise RequestError(f"{where} has {error}") from None
    parameters.pop("title", None)
    return ToolSchema(parameters.pop("description", ""), parameters, adapter.validate_json)


class _NoSchemaError(Exception):
    """A type or a default has no form in JSON."""


def _with_schema(make: Callable[[], Any]) -> tuple[Any, JSONObject]:
    """A model or a `TypeAdapter` and its schema without pydantic's titles, or `_NoSchemaError`."""
    from pydantic.errors import PydanticUserError

    try:
        source = make()
        write = getattr(source, "model_json_schema", None) or source.json_schema
        core = getattr(source, "__pydantic_core_schema__", None) or source.core_schema
        pattern = slow_pattern(core)
        if pattern is not None:
            raise _NoSchemaError(
                f"the pattern {pattern!r} for Python's `re`, which may take any time: give it as text, "
                "without regex_engine='python-re'"
            )
        return source, write(schema_generator=_generator())
    except (PydanticUserError, NameError) as error:
        raise _NoSchemaError(f"a type without a JSON schema: {_first_line(error)}") from None


@functools.cache
def _generator() -> type[Any]:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: object) -> bool:
            """No titles: they cost tokens, and repeat the names."""
            return False

        def emit_warning(self, kind: object, detail: str) -> None:
            """Refuse defaults that pydantic would leave out of the schema."""
            if kind == "non-serializable-default":
                raise _NoSchemaError(
                    "a default that JSON cannot express: use None, or a text, number, list or dict"
                )

    return Generator


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].partition(". ")[0]


def _problems(error: ValueError) -> str:
    """The problems that pydantic found, in one line, without its links and the values."""
    listed = getattr(error, "errors", None)
    if listed is None:
        return _first_line(error)
    problems = listed(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" if problem["loc"] else problem["msg"]
        for problem in problems
    )


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The descriptions of a function and of its parameters, from its docstring."""
    written = inspect.getdoc(function if inspect.isroutine(function) else type(function).__call__)
    if not written:
        return "", {}
    import docstring_parser

    head, _, rest = written.partition("\n")
    if head.rstrip() in ("Args:", "Arguments:", "Parameters:", "Params:"):
        # There is no description. Python and the parser take away the indentation that all lines but the
        # first have in common.
        rest = rest.lstrip("\n")
        written = f"\n{head}\n{rest if rest.startswith(' ') else textwrap.indent(rest, '    ')}"
    try:
        parsed = docstring_parser.parse(written)
    except docstring_parser.ParseError:
        return written, {}
    paragraphs = [text.strip() for text in (parsed.short_description, parsed.long_description) if text]
    meanings = {
        name.strip().lstrip("*"): " ".join(entry.description.split())
        for entry in parsed.params
        if entry.description
        for name in entry.arg_name.split(",")
    }
    return "\n\n".join(paragraphs), meanings
