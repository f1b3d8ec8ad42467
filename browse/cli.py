"""The command `kafkashark browse`, in a terminal or a web browser."""

from __future__ import annotations

import io
import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dissector.cli import interrupt
from dissector.cli.declared.reading_options import (
    CopyOptions,
    LiveOptions,
    PeriodOptions,
    ReadingOptions,
    SecretOptions,
)
from dissector.cli.parsing.declarations import option
from dissector.errors import UsageError
from dissector.installation import extra_needed

if TYPE_CHECKING:
    from browse.app.jump_keys import AddedKeys
    from browse.listing.capture_access import CaptureAccess
    from browse.listing.capture_opening import CaptureOpening
    from browse.listing.exchange_loading import ExchangeLoading

LOOPBACK = "127.0.0.1:8000"
_TERMINAL = "/dev/tty"


class BrowseOptions(PeriodOptions, ReadingOptions, CopyOptions, SecretOptions, LiveOptions):
    """The options of `browse`."""

    follow: bool = option(
        "--follow", default=False, help="The last file still grows: follow the capture."
    )
    web: bool = option(
        "--web", default=False, help="Show the screen in a web browser; see --address."
    )
    address: str = option(
        "--address",
        default=LOOPBACK,
        metavar="HOST:PORT",
        help="Listener address for --web. Browsers need the token in the printed address.",
    )


def browse(given: BrowseOptions) -> None:
    """Show a capture on the screen: exchanges, the fields of one, and its bytes.

    Press ? for keys, q to quit. Live captures: - reads a pipe, -i captures.
    """
    # All is loaded before a live capture begins: its first packets must not wait.
    from dissector.cli import capture_source  # noqa: F401
    from dissector.cli.live_input import accepts_live

    accepts_live(_browse)(given)


def _browse(given: BrowseOptions) -> None:
    from dissector.capture.packets.decode_as import tunnel_ports
    from dissector.cli.live_input import LiveInput, require_captures

    captures, filter_text, follow = given.captures, given.selected, given.follow
    require_captures(captures)
    tunnel_ports(given.decode_as)
    if find_spec("textual") is None:
        raise UsageError(extra_needed("browse", "browse"))
    from browse.listing.capture_opening import CaptureOpening

    if filter_text is not None:
        from dissector.filter import parse_with_values

        parse_with_values(filter_text)
    live = captures if isinstance(captures, LiveInput) else None
    if "-" in captures and len(captures) > 1:
        raise UsageError("browse cannot combine - with files")
    if follow and "-" in captures:
        raise UsageError("--follow requires a file; pipes are always followed")
    if given.web:
        if live is not None or "-" in captures:
            raise UsageError("--web requires files: each browser reads them separately")
        from browse.app.web_server import browse_words, serve

        serve(given.address, browse_words(given))
        return
    from dissector.engine.reading.prefetch import cores

    settings = given.value_settings
    if settings.is_asked:
        settings.reader()  # an error is reported before the screen begins
    opening = CaptureOpening(
        list(captures),
        {
            "ports": frozenset(given.ports),
            "max_frame_bytes": given.max_frame_bytes,
            "jobs": given.jobs or cores(),
            "keylogs": given.keylogs,
            "decode_as": given.decode_as,
            "keep_copies": given.keep_copies,
            "values": settings,
        },
        follows=follow,
        show_secrets=given.show_secrets,
    )
    if live is not None:
        opening.pipe, opening.end_writer = live.packets, live.stop.request
        opening.title = ", ".join(given.interfaces)
    if "-" in captures and live is None:
        opening.pipe = io.FileIO(os.dup(0))
    try:
        _run(opening, filter_text or "")
    finally:
        if live is None and opening.pipe is not None:
            opening.pipe.close()


def _run(opening: CaptureOpening, filter_text: str) -> None:
    """Read the first window, then show the screen until the user quits."""
    # First of all: a thread that reads would delay the imports.
    import browse.app.browse_app  # noqa: F401
    from browse.app.jump_keys import AddedKeys
    from browse.listing.exchange_loading import ExchangeLoading
    from browse.rows.freed_memory import limit_free_memory

    limit_free_memory()
    access = opening.access()
    loading = ExchangeLoading(access)
    if not access.is_live:
        loading.start()
    _take_terminal()
    explanation = _show(access, loading, filter_text)
    if isinstance(explanation, AddedKeys):
        opening.options["keylogs"] = (*opening.options["keylogs"], explanation.path)
        _run(opening, explanation.filter_text)
        return
    if loading.error is not None:
        raise loading.error
    if loading.failure:
        raise UsageError(loading.failure)
    if explanation:
        print(f"kafkashark: {explanation}", file=sys.stderr)


def _show(
    access: CaptureAccess, loading: ExchangeLoading, filter_text: str
) -> str | AddedKeys | None:
    """Show the screen; return the error that ended it, if any, or a key log to add."""
    from browse.app.browse_app import BrowseApp
    from browse.app.browse_base import run_in_thread
    from browse.app.browse_settings import settings_path
    from browse.detail import DetailPanes
    from browse.listing.screen_values import ScreenValues

    interrupt.use_raising_handlers()
    app = BrowseApp(
        access,
        loading,
        DetailPanes(show_secrets=access.show_secrets, values=ScreenValues(access, run_in_thread)),
        filter_text=filter_text,
        settings_file=settings_path(),
    )
    app.begins_with_news = _is_in_a_web_browser() and not filter_text
    explanation: str | AddedKeys | None = app.run()
    if app.failure is not None:
        raise app.failure
    return explanation


def _is_in_a_web_browser() -> bool:
    """Return whether this is the process of a web browser's screen, which has no terminal."""
    return "TEXTUAL_DRIVER" in os.environ


def _take_terminal() -> None:
    """
    Read keys from the terminal, even with redirected standard input.

    Raises:
        UsageError: No terminal is available.
    """
    if _is_in_a_web_browser():
        return
    # Textual writes to stderr.
    if not (os.isatty(1) and os.isatty(2)):
        raise UsageError("browse requires a terminal; `kafkashark pairs` prints rows")
    if os.isatty(0):
        return
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR)
    except OSError:
        raise UsageError("browse requires a terminal for its keys") from None
    os.dup2(terminal, 0)
    os.close(terminal)
