"""The classes of click as this program uses them, and the options that several commands have.

Errors take one line, epilogs are printed as they are, and a command is imported when it runs. No option takes
an API key, because other users of the machine can read command lines, and shells write them to a file.
"""

from __future__ import annotations

import difflib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NamedTuple

import click

from .output import PROGRAM

KEYS = """\
API keys are read from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, ..., or several
from OPENAI_API_KEYS) and never from the command line, which other users can see.
"""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _refuse_key(context: click.Context, _: click.Parameter, value: object) -> None:
    if value is not None and not context.resilient_parsing:
        raise click.UsageError(
            "an API key does not belong on a command line; put it into the environment", context
        )


def _with_key_refused(params: list[click.Parameter] | None) -> list[click.Parameter]:
    """The parameters of a command, and the hidden option that explains where a key belongs."""
    option = click.Option(
        ["--api-key"],
        hidden=True,
        is_eager=True,
        is_flag=False,
        flag_value="",
        expose_value=False,
        callback=_refuse_key,
    )
    return [*(params or ()), option]


class Command(click.Command):
    """A command whose epilog is printed as it is, and whose errors repeat no argument."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        settings["params"] = _with_key_refused(settings.get("params"))
        super().__init__(name, **settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click. A surplus argument may be a key, so the error does not name it."""
        takes_more, ctx.allow_extra_args = ctx.allow_extra_args, True
        rest = super().parse_args(ctx, args)
        if rest and not takes_more and not ctx.resilient_parsing:
            ctx.fail("too many arguments; does the prompt need quotes around it?")
        return rest

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click."""
        _write_epilog(self.epilog, formatter)


class LazyCommand(NamedTuple):
    """A command that is imported when it runs."""

    module: str
    """The module in this folder."""
    attribute: str
    text: str
    """Its line in the list of commands."""


class Group(click.Group):
    """A command with subcommands. Those of `lazy` are imported when they run, so that help starts at once.

    Args:
        name: The name of the command.
        kind: The word for a subcommand in messages.
        lazy: Subcommands by name.
        **settings: See click.
    """

    def __init__(
        self,
        name: str | None,
        *,
        kind: str = "ACTION",
        lazy: Mapping[str, LazyCommand] | None = None,
        **settings: Any,
    ) -> None:
        settings["params"] = _with_key_refused(settings.get("params"))
        super().__init__(name, subcommand_metavar=f"{kind} [ARGS]...", no_args_is_help=False, **settings)
        self.kind = kind
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See click."""
        return [*self.lazy, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See click."""
        found = self.lazy.get(cmd_name)
        if found is None:
            return super().get_command(ctx, cmd_name)
        module = import_module(f".{found.module}", __package__)
        command: click.Command = getattr(module, found.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click. An unknown name is an error that suggests a near one."""
        if not ctx.resilient_parsing and args[0] not in self.list_commands(ctx):
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f"did you mean {near[0]}?" if near else self._names(ctx)
            ctx.fail(f"there is no {self.kind} of this name; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        if not ctx._protected_args and not self.invoke_without_command:  # noqa: SLF001  # as click's own groups
            ctx.fail(f"the {self.kind} is missing; {self._names(ctx)}")
        return super().invoke(ctx)

    def _names(self, ctx: click.Context) -> str:
        return f"{self.kind} is one of {', '.join(self.list_commands(ctx))}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click. The texts of lazy commands are known without importing them."""
        if not self.lazy:
            super().format_commands(ctx, formatter)
            return
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.text) for name, command in self.lazy.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click."""
        _write_epilog(self.epilog, formatter)


def _write_epilog(epilog: str | None, formatter: click.HelpFormatter) -> None:
    if epilog:
        formatter.write_paragraph()
        formatter.write(epilog.rstrip() + "\n")


def command(text: str, epilog: str = "", **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function.

    Args:
        text: Its description: a sentence without its end.
        epilog: Printed at the end of its help as it is.
        **settings: See `click.command`.
    """
    sentence = f"{text[0].upper()}{text[1:]}."
    return click.command(cls=Command, help=sentence, short_help=text, epilog=epilog, **settings)


def message_of(error: click.UsageError) -> str:
    """The text of a mistake on the command line, with the name of the help that explains the command."""
    text = error.format_message()
    if isinstance(error, click.NoSuchOption):
        name = error.option_name.partition("=")[0]
        known = [] if error.ctx is None else _options(error.ctx.command)
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "an argument that begins with a dash goes after --"
        text = f"there is no option {name}; {hint}"
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        text = f"the {error.param.param_type_name} {error.param.make_metavar(_context(error))} is missing"
    path = PROGRAM if error.ctx is None else error.ctx.command_path
    text = text[:1].lower() + text[1:] if text[1:2].islower() else text
    return f"{text.rstrip('.')}; see {path} --help"


def _context(error: click.UsageError) -> click.Context:
    return error.ctx or click.Context(click.Command(PROGRAM))


def _options(command: click.Command) -> list[str]:
    shown = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    return ["--help", *(name for one in shown for name in (*one.opts, *one.secondary_opts))]


def json_object(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, Any] | None:
    """The JSON object of an option.

    Raises:
        click.BadParameter: it is something else.
    """
    if value is None:
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise click.BadParameter("expected a JSON object")
    return found


def age(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """The seconds of an option that is a time span, such as 30d.

    Raises:
        click.BadParameter: it is something else.
    """
    seconds = None if value is None else _seconds(value)
    if value is not None and seconds is None:
        raise click.BadParameter("expected a number and one of s, m, h, d, w, such as 30d")
    return seconds


def _seconds(text: str) -> float | None:
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit() and unit in _UNITS):
        return None
    return int(number) * _UNITS[unit]


def since(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """The Unix seconds of an option that is a day, a time or an age. A time without a zone is UTC.

    Raises:
        click.BadParameter: it is something else.
    """
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is not None:
        return time.time() - seconds
    try:
        # Python reads further forms, such as 2026W01.
        moment = datetime.fromisoformat(value) if _DAY.match(value) else None
    except ValueError:
        moment = None
    if moment is None:
        raise click.BadParameter(
            "expected a day or time like 2026-11-20 or 2026-11-20T09:30, or an age like 7d"
        )
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def complete_model(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """The names of models that begin with a text, from the table of prices."""
    from .._money.pricing import PriceTable
    from .._tokens.models import list_models

    names = (model.name for model in list_models(PriceTable.load()))
    return [name for name in names if name.startswith(incomplete)]


def options(declared: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """One decorator for several options, in the order of their help."""

    def decorate(function: Any) -> Any:
        for option in reversed(declared):
            function = option(function)
        return function

    return decorate
