"""The application: its commands, and how everything that goes wrong ends in one line."""

from __future__ import annotations

import os
import signal
import sys
from importlib.metadata import entry_points
from typing import Any

import typer

from dissector.cli.dissect import dissect
from dissector.cli.pairs import pairs
from dissector.cli.records import records
from dissector.cli.schema import schema
from dissector.cli.stats import stats
from dissector.cli.streams import streams
from dissector.errors import DissectorError, FilterError

PLUGINS = "kafkashark.commands"
"""Entry points of this group are further commands: functions as Typer takes them."""

# Typer's own copy of Click, or Click itself, according to its version.
_USAGE: type[Exception] = typer.BadParameter.__mro__[2]

COMMANDS = (dissect, pairs, streams, records, stats, schema)


def application() -> typer.Typer:
    """Return the application with all its commands."""
    app = typer.Typer(
        name="kafkashark",
        help="Wireshark for Apache Kafka: reads captures and shows their Kafka conversations.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_version)
    for command in COMMANDS:
        app.command()(command)
    for plugin in entry_points(group=PLUGINS):
        app.command(plugin.name)(plugin.load())
    return app


def _version(
    version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True),
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"kafkashark {installed('kafkashark')}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> int:
    """
    Run a command.

    Args:
        arguments: Instead of those of the process.

    Returns:
        0 fine; 1 a check found something; 2 bad usage or unreadable input, told in one line.
    """
    try:
        status = application()(args=arguments, standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except FilterError as error:
        return _say(error.shown())
    except DissectorError as error:
        return _say(str(error))
    except _USAGE as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # Whoever reads has gone (`| head`). What is left must not be flushed into a closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        return _say(f"{error.filename or 'output'}: {error.strerror or error}")


def _usage(error: Any) -> int:
    """Say what is wrong with the words of the command; without any, print the help."""
    context = getattr(error, "ctx", None)
    if context is not None and type(error).__name__ == "NoArgsIsHelpError":
        print(context.get_help())
        return 2
    command = f" ({context.command_path} --help)" if context is not None else ""
    return _say(f"{error.format_message()}{command}")


def _say(what: str) -> int:
    print(f"kafkashark: {what}", file=sys.stderr)
    return 2
