"""Wireshark's program: where it is, and the command that opens a folder of ours."""

from __future__ import annotations

import os
import subprocess
from shlex import join, quote
from shutil import which

from dissector.errors import UsageError
from wireshark.profile_files import PROFILE
from wireshark.wireshark_folder import WiresharkFolder

_CONFIG_VARIABLE = "WIRESHARK_CONFIG_DIR"
"""Names the folder of settings in place of the user's: nothing of theirs changes."""

_ON_MACOS = "/Applications/Wireshark.app/Contents/MacOS/Wireshark"


def find_wireshark() -> str | None:
    """Return the program; None if it is not installed."""
    return which("wireshark") or which(_ON_MACOS)


def shell_command(folder: WiresharkFolder) -> str:
    """Return a line for a shell that opens the folder."""
    return f"{_CONFIG_VARIABLE}={quote(str(folder.path))} {join(['wireshark', *_words(folder)])}"


def open_wireshark(program: str, folder: WiresharkFolder) -> None:
    """
    Open a folder, and wait until the window is closed.

    Raises:
        UsageError: The program can't be started, or fails: without a display, for instance.
    """
    environment = {**os.environ, _CONFIG_VARIABLE: str(folder.path)}
    try:
        done = subprocess.run([program, *_words(folder)], env=environment, check=False)
    except OSError as error:
        raise UsageError(f"{program}: {error.strerror}") from None
    if done.returncode:
        raise UsageError(f"{program} ended with status {done.returncode}")


def _words(folder: WiresharkFolder) -> list[str]:
    return ["-C", PROFILE, "-r", str(folder.capture)]
