"""The application: its commands, and how everything that goes wrong ends in one line."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissector.cli import interrupt
from dissector.cli.output import OutputClosed
from dissector.cli.presentation import completion
from dissector.cli.presentation.command import Command
from dissector.cli.presentation.examples import epilog
from dissector.errors import DissectorError, FilterError, UsageError, bug_location
from dissector.protocol.context import using
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Plugins = list[tuple[str, Callable[..., Any]]]
"""Additional commands: their names and functions."""

ENTRY_POINT_GROUP = "kafkashark.commands"
"""Entry points of this group are additional commands: functions that Typer accepts."""

COMMANDS = (
    *("dissect", "pairs", "streams", "records", "stats", "groups", "upgrade"),
    *("export", "schema", "demo"),
)
"""Built-in commands; each is a function in the module of the same name."""

_ROOMS = {"groups": "answers.", "upgrade": "answers."}
"""The rooms of commands in subrooms."""

GARBAGE_THRESHOLD = 50_000
"""New objects until the interpreter looks for garbage among them."""

EXIT_BUG = 70
"""Exit status for a bug of the program itself; 1 means that a check found something."""

_INSTALL_FOLDER = Path(__file__).resolve().parents[2]
"""The folder of our packages."""

# From Typer's own copy of Click or from Click itself, depending on Typer's version.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


def application(arguments: Sequence[str] = (), plugins: Plugins | None = None) -> typer.Typer:
    """Return the application, with only the command named by the arguments, if they name one."""
    chosen = _command_name(arguments)
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
        app.command(name, cls=Command, epilog=epilog(str(name)))(command_function(str(name)))
    if chosen not in COMMANDS:
        for name, command in _plugin_commands(chosen) if plugins is None else plugins:
            # A stub that reports why a command can't be loaded takes any options.
            lenient = {"ignore_unknown_options": command.__module__ == __name__}
            add = app.command(name, cls=Command, context_settings=lenient, epilog=epilog(name))
            add(command)
    return app


def command_function(name: str) -> Callable[..., Any]:
    """Return the function of a built-in command."""
    # Imported one by one, so that no command waits for the imports of the others.
    module = import_module(f"dissector.cli.{_ROOMS.get(name, '')}{name}")
    command: Callable[..., Any] = getattr(module, name)
    return command


def _command_name(arguments: Sequence[str]) -> str | None:
    """Return the name of the command in the arguments."""
    return next((word for word in arguments if not word.startswith("-")), None)


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

        typer.echo(f"kafkashark {version('kafkashark')}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Declare the options before a command."""


def main(arguments: list[str] | None = None, plugins: Plugins | None = None) -> int:
    """
    Run a command.

    Args:
        arguments: Used instead of the process's arguments.
        plugins: Additional commands, instead of the installed ones.

    Returns:
        0 for success; 1 if a check found something; 2 for bad usage or unreadable input, reported
        in one line; 70 for a bug of this program; above 128 if it was ended by a signal or because
        its output was closed.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] == "help":
        words = [*words[1:2], "--help"]
    if completion.is_completing():
        words = completion.typed_words(os.environ)
    mask = os.umask(0o077)  # --show-secrets may restrict it
    os.umask(mask)
    try:
        with interrupt.restored_handler(), using(None):
            return interrupt.exit_status(_run(words, plugins))
    finally:
        os.umask(mask)


def _run(words: Sequence[str], plugins: Plugins | None) -> int:
    try:
        _use_utf8()
        run = application(words, plugins)
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        if _command_name(words) not in COMMANDS:
            interrupt.use_default_handler()
        status = run(args=words, prog_name="kafkashark", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except FilterError as error:
        return _print_error(*error.shown().split("\n"))
    except DissectorError as error:
        # After Ctrl-C a pipe without a complete capture is not an error.
        return interrupt.exit_status(0) if interrupt.is_interrupted() else _print_error(str(error))
    except _USAGE_ERROR as error:
        return _report_usage_error(error)
    except (KeyboardInterrupt, typer.Abort):
        return interrupt.STATUS
    except (OutputClosed, BrokenPipeError):
        _discard_stdout()
        return 128 + signal.SIGPIPE
    except OSError as error:
        _discard_stdout()
        return _print_error(f"{error.filename or 'output'}: {error.strerror or error}")
    except Exception as error:
        return _report_bug(error)


def _use_utf8() -> None:
    """Write UTF-8 in every locale: JSON requires it, and no text may make the output fail."""
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # With PYTHONUNBUFFERED a write may be partial, and the rest would be lost.
        whole = io.BufferedWriter(io.FileIO(sys.stdout.fileno(), "wb", closefd=False))
        sys.stdout = io.TextIOWrapper(whole)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as with `>&-`
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  (open until exit)
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _discard_stdout() -> None:
    """Discard buffered output, so that the flush at interpreter exit does not raise again."""
    with suppress(OSError, ValueError):  # stdout is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_usage_error(error: Any) -> int:
    """Report invalid arguments; print the help without any."""
    context = getattr(error, "ctx", None)
    if context is not None and type(error).__name__ == "NoArgsIsHelpError":
        return _print_stderr(context.get_help())
    command = f" ({context.command_path} --help)" if context is not None else ""
    return _print_error(f"{error.format_message()}{command}")


def _report_bug(error: Exception) -> int:
    """Report an unexpected exception and its location in one line."""
    location = bug_location(error)
    _print_error(f"a bug in kafkashark: {type(error).__name__} in {location}: {error}")
    return EXIT_BUG


def _print_error(*lines: str) -> int:
    """Report an error; the lines may quote untrusted text, so they are escaped."""
    return _print_stderr("kafkashark: " + "\n".join(map(escaped, lines)))


def _print_stderr(text: str) -> int:
    with suppress(OSError):  # stderr is closed
        print(text, file=sys.stderr)
    return 2
