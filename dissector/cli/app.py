"""The application: its commands, and the reporting of errors in one line."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissector.cli import interrupt
from dissector.cli.output import OutputClosed
from dissector.cli.parsing import plain_parser
from dissector.cli.parsing.builtin_commands import COMMANDS, command_function, command_name
from dissector.cli.parsing.path_options import run_checked
from dissector.cli.presentation import completion
from dissector.errors import DissectorError, FilterError, bug_location, innermost_error
from dissector.protocol.context import using
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from dissector.cli.parsing.typer_commands import Plugins

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
    if words and words[0] == "help":
        words = [*words[1:2], "--help"]
    if completion.is_completing():
        words = completion.typed_words(os.environ)
    mask = os.umask(0o077)  # --show-secrets may restrict it
    os.umask(mask)
    try:
        with interrupt.restored_handlers(), using(None):
            return interrupt.exit_status(_run(words, plugins))
    finally:
        os.umask(mask)


def _run(words: Sequence[str], plugins: Plugins | None) -> int:
    try:
        _use_utf8()
        run = _prepared(words, plugins)
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        if command_name(words) not in COMMANDS:
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


def _prepared(words: Sequence[str], plugins: Plugins | None) -> Callable[[], Any]:
    """Return the command of some words, to be run."""
    if words and words[0] in COMMANDS and not completion.is_completing():
        command = command_function(words[0])
        values = plain_parser.parse(command, words[1:])
        if values is not None:
            return lambda: run_checked(command, values)
    from dissector.cli.parsing.typer_commands import prepared

    return prepared(words, plugins)


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
