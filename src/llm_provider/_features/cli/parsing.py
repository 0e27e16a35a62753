"""The classes of click as this program uses them, and the values of options that several commands read.

Errors take one line, epilogs are printed as they are, and a command is imported when it runs. No option takes
an API key, because other users of the machine can read command lines, and shells write them to a file.
"""

import contextlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from ..._core import doors
from ..._core.errors import RequestError
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.runtime.files import read_text
from .output import PROGRAM, name_options

if TYPE_CHECKING:
    from ..._core.money.budget import Unit

KEYS = """\
API keys are read from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, ..., or several
from OPENAI_API_KEYS) and never from the command line, which other users can see.
"""

SCORE_HELP = "your function that scores a sample; MODULE is imported from the working folder"

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_AGE = re.compile(r"([0-9]{1,9})([smhdw])")
_LATEST = 2.2e11
"""Unix seconds: about the year 8900, so that days can be added."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _refuse_key(context: click.Context, _: click.Parameter, value: object) -> None:
    if value is not None and not context.resilient_parsing:
        raise click.UsageError(_NOT_HERE["api_key"], context)


class _KeylessCommand(click.Command):
    """A command whose epilog is printed as it is, and whose hidden option explains where a key belongs."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.params.append(
            click.Option(
                ["--api-key"], hidden=True, is_eager=True, is_flag=False, flag_value="", expose_value=False,
                callback=_refuse_key,
            )
        )  # fmt: skip

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog without filling its lines."""
        if self.epilog:
            formatter.write_paragraph()
            formatter.write(self.epilog.rstrip() + "\n")


class Command(_KeylessCommand):
    """A command whose errors repeat no argument. The docstring of its function is its help.

    Its `rules` say which options have no effect alone, `{"--name": "needs --compare"}`, or beside others,
    `{"--json": "replaces --latex"}`.
    """

    def __init__(self, name: str | None, *, help: str = "", **settings: Any) -> None:  # noqa: A002  # click's
        self.rules: Mapping[str, str] = settings.pop("rules", {})
        # A sentence without its end, in the list of a group.
        super().__init__(name, help=help, short_help=f"{help[:1].lower()}{help[1:-1]}", **settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse options without effect, and a surplus argument without naming it: it may be a key."""
        options = {str(each.name): each.opts[-1] for each in self.params if each.name != "api_key"}
        name_options({name: option for name, option in options.items() if option.startswith("--")})
        takes_more, ctx.allow_extra_args = ctx.allow_extra_args, True
        rest = super().parse_args(ctx, args)
        if rest and not takes_more and not ctx.resilient_parsing:
            has_prompt = any(parameter.name == "prompt" for parameter in self.params)
            ctx.fail(f"too many arguments{'; does the prompt need quotes around it?' * has_prompt}")
        sources = [(each, ctx.get_parameter_source(each.name or "")) for each in self.params]
        words = [each.opts for each, source in sources if source is ParameterSource.COMMANDLINE]
        given = {name if name.startswith("-") else name.upper() for names in words for name in names}
        for name in given & self.rules.keys():
            kind, *others = self.rules[name].split()
            if kind == "needs" and given.isdisjoint(others):
                ctx.fail(f"{name} needs {' or '.join(others)}")
            for other in given.intersection(others) if kind == "replaces" else ():
                ctx.fail(f"{other} has no effect beside {name}")
        return rest


class Group(_KeylessCommand, click.Group):
    """A command with subcommands, which messages call `kind`.

    `lazy` has the module of each subcommand, and its line in the help. Its function `run_NAME` is imported
    when it runs, so that help starts at once. `settings` go to `click.Group`.
    """

    command_class = Command

    def __init__(
        self,
        name: str | None,
        *,
        kind: str = "ACTION",
        lazy: Mapping[str, tuple[str, str]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(name, subcommand_metavar=f"{kind} [ARGS]...", no_args_is_help=False, **settings)
        self.kind = kind
        self.lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module = import_module(f".{self.lazy[cmd_name][0]}", __package__)
        command: click.Command = getattr(module, f"run_{cmd_name}")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse an unknown name, and suggest a near one."""
        if not ctx.resilient_parsing and args[0] not in self.list_commands(ctx):
            names = self.list_commands(ctx)
            hint = suggest_habit(ctx, args[0]) or _suggest(args[0], names)
            hint = hint or f"{_ASK * bool(self.lazy)}{self.kind} is one of {', '.join(names)}"
            ctx.fail(f"there is no {self.kind} of this name; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        if not ctx._protected_args and not self.invoke_without_command:  # noqa: SLF001  # as click's own groups
            names = ", ".join(self.list_commands(ctx))
            ctx.fail(f"the {self.kind} is missing; {self.kind} is one of {names}")
        return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List lazy commands without importing them."""
        if self.lazy:
            with formatter.section("Commands"):
                formatter.write_dl([(name, text) for name, (_, text) in self.lazy.items()])
        else:
            super().format_commands(ctx, formatter)


_ASK = f"`{PROGRAM} ask MODEL PROMPT` asks a question; "


def suggest_habit(context: click.Context, word: str) -> str:
    """What to write for a word that other programs have behind the name of such a command."""
    return doors.remedies.remedies_of("-".join(context.command_path.split())).get(word.lower(), "")


def explain(error: click.UsageError) -> str:
    """The text of a mistake on the command line, with the name of the help that explains the command."""
    text = error.format_message()
    if isinstance(error, click.NoSuchOption):
        name = error.option_name.partition("=")[0]
        hint = None if error.ctx is None else _suggest_option(name, error.ctx.command)
        asks = error.ctx is not None and error.ctx.parent is None
        # A long option has no blank, and most prompts have one.
        is_word = error.ctx is None or not re.fullmatch(r"--[A-Za-z][\w-]*", name)
        takes_text = error.ctx is None or any(each.name == "prompt" for each in error.ctx.command.params)
        dash = "an argument that begins with a dash goes after --" if is_word and takes_text else ""
        hint = hint or (_ASK[:-2] if asks else dash)
        text = f"there is no option {name}{hint and '; '}{hint}"
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        context = error.ctx or click.Context(click.Command(PROGRAM))
        option = isinstance(error.param, click.Option)
        name = error.param.opts[0] if option else error.param.make_metavar(context)
        text = f"the {error.param.param_type_name} {name} is missing"
    path = PROGRAM if error.ctx is None else error.ctx.command_path
    text = text[:1].lower() + text[1:] if text[1:2].islower() else text
    return f"{text.rstrip('.')}; see {path} --help"


def _suggest(name: str, known: Iterable[str]) -> str | None:
    import difflib

    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else None


_ELSEWHERE = {
    "input": "in", "output": "out", "i": "in", "o": "out param", "m": "model", "p": "prompt", "s": "system",
    "response_format": "schema", "out": "output", "limit": "number", "workers": "max_concurrent",
    "u": "verbose", "usage": "verbose", "f": "attach", "fragment": "attach", "option": "param",
}  # fmt: skip
"""Names of other tools and of parameters → names of arguments and options here."""


def _suggest_option(name: str, command: click.Command) -> str | None:
    """What to write in the place of an option that a command does not have; None if nothing is like it."""
    from ..._core.requests.parameters import Parameters

    plain = name.lstrip("-").replace("-", "_").lower()
    arguments, options = dict[str, str](), dict[str, str]()
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            arguments |= {word.lower(): word for word in re.findall("[A-Z]+", parameter.metavar or "")[:1]}
        elif not getattr(parameter, "hidden", False):
            written = [*parameter.opts, *parameter.secondary_opts]
            options |= {each[2:].replace("-", "_"): each for each in written if each.startswith("--")}
    advice = doors.remedies.remedies_of("call").get(plain, "")
    advice += " api_key=" * plain.endswith("_key")
    for meant in (plain, *_ELSEWHERE.get(plain, "").split(), *re.findall(r"\b([a-z_]+)=", advice)):
        if meant in arguments:
            return f"{arguments[meant]} is an argument: write it without {name}"
        if (meant := meant if meant in options else _ELSEWHERE.get(meant, meant)) in options:
            return f"did you mean {options[meant]}?"
        if meant in _NOT_HERE:
            return _NOT_HERE[meant]
        if "param" in options and meant in Parameters.__annotations__:
            return f"write --param {meant}=JSON"
    hint = _suggest(plain, options) or next(
        (f"did you mean {each}?" for each in options if plain in each and plain[1:]), ""
    )
    return hint and f"did you mean {options[hint[13:-1]]}?"


def _use_prices(context: click.Context, _: click.Parameter, path: str | None) -> None:
    """Let the clients of a command read a file of prices, as its environment does."""
    if path is not None and not context.resilient_parsing:
        before = os.environ.get("LLM_PROVIDER_PRICES", "")
        os.environ["LLM_PROVIDER_PRICES"] = path
        # A command whose other arguments are wrong is never closed itself.
        context.find_root().call_on_close(lambda: os.environ.update(LLM_PROVIDER_PRICES=before))


prices_option = click.option(
    "--prices", metavar="FILE|fresh", expose_value=False, callback=_use_prices,
    help="prices that the table lacks, in a file with its columns, or those of `prices update`",
)  # fmt: skip


def parse_json_object(text: str) -> JSONObject:
    """The JSON object of an option.

    >>> parse_json_object('{"a": 1}')
    {'a': 1}
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise click.BadParameter("expected a JSON object")
    return value


def parse_number(text: str) -> float:
    """A whole number, or a decimal one.

    >>> parse_number("20"), parse_number("0.05")
    (20, 0.05)
    """
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    raise click.BadParameter("expected a number such as 20, or a share such as 0.05")


def parse_age(text: str) -> float:
    """The seconds of a time span.

    >>> parse_age("2w") / 86_400
    14.0
    """
    age = _AGE.fullmatch(text)
    if age is None:
        raise click.BadParameter("expected a number and one of s, m, h, d, w, such as 30d")
    return int(age[1]) * _UNITS[age[2]]


def parse_since(text: str) -> float:
    """The Unix seconds of a day, a time or an age. A time without a zone is UTC.

    >>> parse_since("1970-01-02")
    86400.0
    """
    from ..._core.runtime import clock

    with contextlib.suppress(click.BadParameter, ValueError):
        if _DAY.match(text):
            # Python reads further forms, such as 2026W01.
            moment = datetime.fromisoformat(text)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = clock.time() - parse_age(text)
        if 0 <= seconds < _LATEST:
            return seconds
    raise click.BadParameter("expected a day or time like 2026-11-20 or 2026-11-20T09:30, or an age like 7d")


def complete_model(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """The names of models that begin with a text, from the table of prices."""
    from ..._core.money.pricing import PriceTable
    from ..models.known_models import list_models

    names = (model.name for model in list_models(PriceTable.load()))
    return [name for name in names if name.startswith(incomplete)]


_NOT_HERE = {
    "api_key": "an API key does not belong on a command line; put it into the environment",
    "extra_headers": "headers may hold keys, and do not belong on a command line; call it from Python",
    "progress": "a terminal shows the progress, and a pipe does not",
    "rows": "the rows are those of the file",
}
"""Parameters that `--param` does not take, and what to do."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def _parse_parameter(value: str) -> tuple[str, object]:
    """The name and the value of a parameter that is given as NAME=JSON."""
    name, equals, text = value.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise click.BadParameter("expected NAME=JSON, such as top_p=0.9")
    if name in _NOT_HERE:
        raise click.BadParameter(f"{name}: {_NOT_HERE[name]}")
    from ..._core.requests.parameters import Parameters

    if name not in Parameters.__annotations__:
        from ..foreign.remedies import describe_unexpected

        raise click.BadParameter(describe_unexpected("call", name, Parameters.__annotations__))
    try:
        return name, json.loads(text)
    except (ValueError, RecursionError):
        quoted = json.dumps(text, ensure_ascii=False)
        raise click.BadParameter(
            f"the value of {name} is not JSON; for a text write --param '{name}={quoted}'"
        ) from None


_OPTIONS: dict[str, JSONObject] = {
    "--system": {"metavar": "TEXT", "help": "the system prompt"},
    "--max-tokens": {
        "metavar": "N", "type": int, "help": "the longest answer, in tokens, reasoning included",
    },
    "--temperature": {"metavar": "T", "type": float, "help": "randomness of the answer; 0 is the least"},
    "--reasoning-effort": {"metavar": "LEVEL", "help": "none, minimal, low, medium, high, xhigh or max"},
    "--schema": {
        "metavar": "FILE|JSON", "help": "a JSON schema, or its file: the answer is JSON that matches it",
    },
    "--seed": {"metavar": "N", "type": int, "help": "a number that makes answers more repeatable"},
    "--stop": {"metavar": "TEXT", "multiple": True, "help": "end the answer before this text; repeatable"},
    "--fallback": {
        "metavar": "MODEL", "multiple": True,
        "help": "ask this model if the one before does not answer; repeatable",
    },
    "--max-age": {
        "metavar": "AGE", "type": parse_age, "help": "use no stored answer that is older, such as 12h or 30d",
    },
    "--timeout": {"metavar": "SECONDS", "type": float, "help": "for one attempt (default 600)"},
    "--base-url": {"metavar": "URL", "help": "the server to ask instead of the provider's own"},
    "--extra-body": {
        "metavar": "JSON", "type": parse_json_object, "help": "an object of fields for this provider only",
    },
    "--allow-unknown": {"is_flag": True, "help": "let a budget pass requests that have no known price"},
    "--param": {
        "metavar": "NAME=JSON", "type": _parse_parameter, "multiple": True,
        "help": "any other parameter of `call`, such as top_p=0.9; repeatable",
    },
}  # fmt: skip


def call_options(function: FunctionT, without: Collection[str] = ()) -> FunctionT:
    for name, settings in reversed(_OPTIONS.items()):
        if name not in without:
            function = click.option(name, **settings)(function)
    return prices_option(function)


PROMPT_RULES = {"--template": "replaces --column"}


def prompt_options(function: FunctionT) -> FunctionT:
    """Give a command what says where the prompt of a row is."""
    function = click.option("--column", metavar="NAME", help="the field that holds the prompt")(function)
    return click.option("--template", metavar="TEXT", help="the prompt, with {fields} of a row")(function)


def parameters_of(options: JSONMapping) -> JSONObject:
    """The parameters of a call by the options of a command line, without those that were not given."""
    parameters: JSONObject = {}
    for name, value in options.items():
        if name not in ("param", "schema", "allow_unknown") and value is not None and value != ():
            parameters[name] = list(value) if isinstance(value, tuple) else value
    for name, value in options.get("param") or ():
        if name in parameters:
            raise RequestError(f"{name} is given twice: leave out one of its options")
        parameters[name] = value
    for name, unit in (("budget", "USD"), ("token_budget", "tokens")):
        if isinstance(amount := parameters.get(name), (int, float)):
            from ..._core.money.budget import Budget

            allow_unknown = bool(options.get("allow_unknown"))
            parameters[name] = Budget(amount, unit=cast("Unit", unit), allow_unknown=allow_unknown)
    if options.get("schema") is not None:
        parameters["response_format"] = read_schema(options["schema"])
    if parameters.get("temperature") == 0:
        # As programs write it: the text of the number is a part of the cache key.
        parameters["temperature"] = 0
    return parameters


def read_schema(text: str) -> JSONObject:
    """The JSON schema that an option gives as JSON or by the name of its file."""
    where = "--schema"
    if not text.lstrip().startswith("{"):
        where = f"--schema {text}"
        try:
            text = read_text(Path(text).expanduser())
        except (OSError, ValueError) as error:
            reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
            reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else reason
            raise RequestError(f"{where}: the file {reason}") from None
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{where} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise RequestError(f"{where} must be a JSON object, not {type(schema).__name__}")
    if schema.get("type") in ("json_object", "json_schema"):
        # Forms of `response_format`, which the call checks.
        return schema
    from ..._core.schemas.json_schema import find_problem, is_schema

    problem = find_problem(schema)
    if problem is None and not is_schema(schema):
        problem = 'write one such as {"type": "object", "properties": {"city": {"type": "string"}}}'
    if problem is not None:
        raise RequestError(f"{where} is not a valid JSON schema: {problem}")
    return schema
