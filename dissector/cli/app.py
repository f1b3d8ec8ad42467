"""The application: its commands, and the reporting of errors in one line."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

from dissector.cli import interrupt
from dissector.cli.declared.builtin_commands import BUILTIN
from dissector.cli.declared.file_options import ConfigOptions, DemoOptions
from dissector.cli.interrupt import OutputClosed
from dissector.cli.parsing import command_line
from dissector.cli.parsing.command_table import CommandTable, Plugins
from dissector.cli.parsing.declarations import Command, Options, option
from dissector.cli.parsing.first_words import is_file_name
from dissector.cli.settings.given_settings import settings_of, settings_paths
from dissector.errors import (
    DissectorError,
    FilterError,
    UsageError,
    bug_location,
    innermost_error,
)
from dissector.protocol.context import using
from dissector.view.text.escape import escaped

COMPLETION_VARIABLE = "_KAFKASHARK_COMPLETE"
"""Set to the name of a shell that requests completions."""

WITHOUT_COMMAND = "findings"
"""The command that runs where captures are given without one."""

DESCRIPTION = "Wireshark for Apache Kafka: reads captures and shows their Kafka traffic."

GARBAGE_THRESHOLD = 50_000
"""New objects until the interpreter looks for garbage among them."""

EXIT_BUG = 70
"""Exit status for a bug of the program; 1 means that a check found something."""


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
    table = CommandTable(COMMANDS, plugins)
    if shell := os.environ.get(COMPLETION_VARIABLE):
        from dissector.cli.parsing.shell_completion import complete

        complete(shell, words, table)
        return 0
    if words and words[0] == "help":
        words = [*words[1:2], "--help"]
    mask = os.umask(0o077)  # --show-secrets may restrict it
    os.umask(mask)
    try:
        with interrupt.restored_handlers(), using(None):
            # What options set for captures, such as a time zone, ends with the command.
            run = copy_context().run
            return interrupt.exit_status(run(_run, words, table, is_alone=arguments is None))
    finally:
        os.umask(mask)


def _run(words: Sequence[str], table: CommandTable, *, is_alone: bool) -> int:
    try:
        _use_utf8()
        if any(word.startswith("-z") for word in words):
            from dissector.cli.tshark.statistics_words import with_our_statistics

            words = with_our_statistics(words, table.has)
        run = _prepared(words, table)
        if is_alone:  # else the garbage of commands before, such as captures, would never go
            gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        if not table.is_builtin(words):
            interrupt.use_raising_handlers()
        status = run()
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except FilterError as error:
        return _print_error(*error.shown().split("\n"))
    except DissectorError as error:
        # After a signal a pipe without a complete capture is not an error.
        return interrupt.exit_status(0) if interrupt.is_interrupted() else _print_error(str(error))
    except KeyboardInterrupt:
        return interrupt.interrupted_status()
    except (OutputClosed, BrokenPipeError):
        _discard_stdout()
        return 128 + signal.SIGPIPE
    except OSError as error:
        _discard_stdout()
        return _print_error(f"{error.filename or 'output'}: {error.strerror or error}")
    except Exception as error:
        return _report_bug(error)


def _prepared(words: Sequence[str], table: CommandTable) -> Callable[[], Any]:
    """Return the command of some words, to be run."""
    first, *others = words or ("",)
    settings = partial(settings_of, table=table)
    if _begins_without_command(first, table):
        return command_line.prepared(table.find(WITHOUT_COMMAND), words, settings, settings_paths)
    if first and not first.startswith("-"):
        return command_line.prepared(table.find(first), others, settings, settings_paths)
    if first:
        return command_line.prepared(_program(table), words)
    _print_stderr("\n".join(_program_help(table)))
    return lambda: 2


def _begins_without_command(first: str, table: CommandTable) -> bool:
    """Return whether the first word is a capture, or an option of the command for captures."""
    if first.startswith("-") and first != "-":
        if first.partition("=")[0] in _names(_program(table)):
            return False
        if not table.has(WITHOUT_COMMAND):
            return False
        is_capture = first.startswith(command_line.READ_FILE)
        return is_capture or first.partition("=")[0] in _names(table.find(WITHOUT_COMMAND))
    return bool(first) and not table.has(first) and is_file_name(first)


def _names(command: Command) -> set[str]:
    return {name for each in command.options.declared().values() for name in each.names}


def demo(given: DemoOptions) -> int:
    """Show the main commands on the included capture."""
    from dissector.cli.demo import demo

    return demo(given, main)


def config(given: ConfigOptions) -> None:
    """Print the settings that hold here, and where each is from.

    The nearest kafkashark.toml, or pyproject.toml with a table tool.kafkashark, in this folder or
    one above, gives options that are not on the command line, thresholds, and filters for -Y @NAME.
    $KAFKASHARK_CONFIG names another file; empty: none is read.
    """
    from dissector.cli.settings.config_listing import print_settings

    print_settings(given, CommandTable(COMMANDS))


COMMANDS = (*BUILTIN, demo, config)


def _program(table: CommandTable) -> Command:
    """Return the program itself as a command: the options before a command's name."""

    def run(given: Options) -> None:
        raise UsageError("no command (kafkashark --help)")

    def show_help(command: Command) -> None:
        print("\n".join(_program_help(table)))

    class ProgramOptions(Options):
        version: bool = option(
            "--version", default=False, instead=_print_version, help="Print the version."
        )
        install_completion: bool = option(
            "--install-completion",
            default=False,
            instead=_install_completion,
            help="Install completion for the current shell: bash, zsh or fish.",
        )
        show_completion: bool = option(
            "--show-completion",
            default=False,
            instead=_show_completion,
            help="Print the script of that completion, to install it elsewhere.",
        )
        help: bool = option(
            "-h", "--help", default=False, instead=show_help, help="Show this message and exit."
        )

    return Command("", DESCRIPTION, ProgramOptions, run)


def _program_help(table: CommandTable) -> Iterator[str]:
    from dissector.cli.parsing.help_text import program_help_lines

    return program_help_lines(_program(table), table.all())


def _print_version(command: Command) -> None:
    from importlib.metadata import distribution

    # `version` would load the parser of mails for this line.
    found = distribution("kafkashark")
    text = found.read_text("METADATA") or found.read_text("PKG-INFO") or ""
    print("kafkashark", *(each[9:] for each in text.splitlines() if each.startswith("Version: ")))


def _install_completion(command: Command) -> None:
    from dissector.cli.parsing.shell_completion import install_script

    install_script(command)


def _show_completion(command: Command) -> None:
    from dissector.cli.parsing.shell_completion import show_script

    show_script(command)


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


def _report_bug(error: Exception) -> int:
    """Report an unexpected exception and its location in one line."""
    _print_error(f"a bug in kafkashark: {bug_location(error)}: {innermost_error(error)}")
    return EXIT_BUG


def _print_error(*lines: str) -> int:
    """Report an error; the lines may quote untrusted text, so they are escaped."""
    return _print_stderr("kafkashark: " + "\n".join(map(escaped, lines)))


def _print_stderr(text: str) -> int:
    with suppress(OSError):  # stderr is closed
        print(text, file=sys.stderr)
    return 2
