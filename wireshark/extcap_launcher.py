"""The launcher of our extcap program in the folder where Wireshark looks for those of a user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shlex import quote
from shutil import which

from dissector.errors import UsageError
from dissector.file_roles import written_when_complete

_MARK = "# Written by `kafkashark wireshark --install-extcap`; it may be deleted."

_TSHARK_ON_MACOS = "/Applications/Wireshark.app/Contents/MacOS/tshark"

_PERSONAL = "Personal Extcap path:"
"""Of `tshark -G folders`, as in 4.6; versions without it, as 4.0, look below the settings."""

_SETTINGS = "Personal configuration:"
_TIMEOUT_S = 60


def install_launcher() -> Path:
    """
    Write the launcher, in place of an older one of ours.

    Returns:
        Its path.

    Raises:
        UsageError: A file of another origin has its name, or it can't be written.
    """
    path = extcap_folder() / "kafkashark"
    text = f'#!/bin/sh\n{_MARK}\nexec {quote(sys.executable)} -P -m wireshark.extcap_program "$@"\n'
    try:
        if (path.exists() or path.is_symlink()) and _MARK.encode() not in path.read_bytes():
            raise UsageError(f"{path} is not of kafkashark: move it away first")
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_when_complete(path) as file:
            file.write(text.encode())
        path.chmod(0o755)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: {error.strerror}") from None
    return path


def extcap_folder() -> Path:
    """Return the folder that the installed Wireshark names; that of new versions without one."""
    folders = _folders()
    if _PERSONAL in folders:
        return Path(folders[_PERSONAL])
    if _SETTINGS in folders:
        return Path(folders[_SETTINGS]) / "extcap"
    return Path.home() / ".local/lib/wireshark/extcap"


def _folders() -> dict[str, str]:
    tshark = which("tshark") or which(_TSHARK_ON_MACOS)
    if tshark is None:
        return {}
    try:
        said = subprocess.run(
            [tshark, "-G", "folders"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (line.partition("\t") for line in said.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}
