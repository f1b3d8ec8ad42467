"""The application in Typer: its commands, installed ones included, and errors of usage."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import typer

from dissector.cli.parsing.builtin_commands import COMMANDS, command_function, command_name
from dissector.cli.parsing.command import Command
from dissector.cli.parsing.parameters import Argument, Parameter
from dissector.cli.parsing.path_options import run_checked
from dissector.cli.presentation import completion
from dissector.cli.presentation.examples import epilog
from dissector.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Plugins = list[tuple[str, Callable[..., Any]]]
"""Additional commands: their names and functions."""

ENTRY_POINT_GROUP = "kafkashark.commands"
"""Entry points of this group are additional commands: functions that Typer accepts."""

_INSTALL_FOLDER = Path(__file__).resolve().parents[3]
"""The folder of our packages."""

# From Typer's own copy of Click or from Click itself, depending on Typer's version.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


def prepared(words: Sequence[str], plugins: Plugins | None) -> Callable[[], Any]:
    """
    Return the command of some words, to be run; it returns the exit status, or None.

    Raises:
        UsageError: From the command: the words are not a command line.
        KeyboardInterrupt: From the command: a prompt was interrupted.
    """
    run = application(words, plugins)

    def command() -> Any:
        try:
            return run(args=words, prog_name="kafkashark", standalone_mode=False)
        except _USAGE_ERROR as error:
            return _report_usage_error(error)
        except typer.Abort:
            raise KeyboardInterrupt from None

    return command


def application(arguments: Sequence[str] = (), plugins: Plugins | None = None) -> typer.Typer:
    """Return the application, with only the command named by the arguments, if they name one."""
    chosen = command_name(arguments)
    app = typer.Typer(
        name="kafkashark",
        help="Wireshark for Apache Kafka: reads captures and shows their Kafka traffic.",
        no_args_is_help=True,
        add_completion=chosen not in COMMANDS or completion.is_completing(),
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in [chosen] if chosen in COMMANDS else COMMANDS:
        add = app.command(name, cls=Command, epilog=epilog(str(name)))
        add(_for_typer(command_function(str(name))))
    if chosen not in COMMANDS:
        for name, command in _plugin_commands(chosen) if plugins is None else plugins:
            # A stub reports why a command can't be loaded, and accepts any options.
            lenient = {"ignore_unknown_options": command.__module__ == __name__}
            add = app.command(name, cls=Command, context_settings=lenient, epilog=epilog(name))
            add(_for_typer(command))
    return app


def _for_typer(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with its parameters declared in Typer's classes."""
    signature = inspect.signature(command, eval_str=True)

    def run(**values: Any) -> Any:
        return run_checked(command, values)

    run.__name__, run.__doc__, run.__module__ = (
        command.__name__,
        command.__doc__,
        command.__module__,
    )
    parameters = [_typer_parameter(each) for each in signature.parameters.values()]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


def _typer_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    if get_origin(parameter.annotation) is not Annotated:
        return parameter
    metadata = tuple(map(_typer_declaration, parameter.annotation.__metadata__))
    return parameter.replace(annotation=Annotated[(parameter.annotation.__origin__, *metadata)])


def _typer_declaration(declared: Any) -> Any:
    if not isinstance(declared, Parameter):
        return declared
    new: Callable[..., Any] = typer.Argument if isinstance(declared, Argument) else typer.Option
    return new(*declared.names, **declared.settings)


def _plugin_commands(named: str | None) -> Plugins:
    """Return the installed command of that name, or all installed commands if none matches."""
    from importlib.metadata import entry_points

    found = entry_points(group=ENTRY_POINT_GROUP)
    return [(each.name, _load_plugin(each)) for each in found.select(name=named or "") or found]


def _load_plugin(plugin: EntryPoint) -> Callable[..., Any]:
    """Load a command; if that fails, return a command that reports the failure."""
    package = plugin.module.partition(".")[0]
    file = _location(package)
    is_ours = plugin.dist is not None and plugin.dist.name == "kafkashark"
    if is_ours and file and Path(file).resolve().parent != _INSTALL_FOLDER / package:
        # A foreign module is not executed, as `--help` loads all commands.
        return _failing_command(f"{plugin.name} can't be loaded: {file} hides the package")
    try:
        command: Callable[..., Any] = plugin.load()
    except (Exception, SystemExit) as error:  # a module of a foreign command may exit
        hint = f" ({package!r} is {file} here)" if file else ""
        message = f"{plugin.name} can't be loaded: {type(error).__name__}: {error}"
        return _failing_command(message + hint)
    return command


def _location(package: str) -> str:
    """Return the file of a package or module, or the folder of one without `__init__.py`."""
    spec = find_spec(package)
    folders = list((spec and spec.submodule_search_locations) or ())
    return (spec and spec.origin) or (folders[0] if folders else "")


def _failing_command(what: str) -> Callable[..., Any]:
    def command(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
        raise UsageError(what)

    command.__doc__ = "Can't be loaded."
    return command


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"kafkashark {version('kafkashark')}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Declare the options before a command."""


def _report_usage_error(error: Any) -> int:
    """Report invalid arguments; print the help without any."""
    context = getattr(error, "ctx", None)
    if context is not None and type(error).__name__ == "NoArgsIsHelpError":
        with suppress(OSError):  # stderr is closed
            print(context.get_help(), file=sys.stderr)
        return 2
    command = f" ({context.command_path} --help)" if context is not None else ""
    raise UsageError(f"{error.format_message()}{command}") from None
