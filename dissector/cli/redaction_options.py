"""The options of `export --redact`: kept roles, key, and the list of pseudonyms."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from dissector.cli.declared.file_options import ExportOptions
from dissector.errors import UsageError
from dissector.protocol.field_roles import KEPT, ValueKind
from dissector.small_files import read_small_file

_MIN_KEY_BYTES = 16
_OWNER_ONLY = 0o600


def kept_roles(given: ExportOptions) -> frozenset[ValueKind]:
    """
    Return the kinds of names that stay.

    Raises:
        UsageError: The kind does not exist, or an option of `--redact` is given without it.
    """
    if not given.redact:
        values = {
            "--keep": given.keep,
            "--keep-schema": given.keep_schema,
            "--key": given.key,
            "--map": given.map_file,
            "--decrypt": given.decrypt,
        }
        for name, value in values.items():
            if value:
                raise UsageError(f"{name} needs --redact")
    words = [word.strip() for word in (given.keep or "").split(",") if word.strip()]
    for word in words:
        if word not in KEPT:
            raise UsageError(f"--keep takes {', '.join(KEPT)}, not {word!r}")
    return frozenset(map(ValueKind, words))


def read_key(name: str | None) -> bytes:
    """
    Return the key of a file; without a file a random one.

    Raises:
        UsageError: The file can't be a key.
    """
    if name is None:
        return secrets.token_bytes(32)
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"{name}: no such key; make one: head -c 32 /dev/urandom > {name}")
    key = read_small_file(path, "the key ")
    if len(key) < _MIN_KEY_BYTES:
        raise UsageError(f"{name}: a key has {_MIN_KEY_BYTES} bytes or more, this one {len(key)}")
    return key


def write_map(name: str, replaced: Iterable[tuple[str, str]]) -> None:
    """Write pseudonyms and their originals, tab-separated, readable by the user only."""
    path = Path(name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with open(os.open(path, flags, _OWNER_ONLY), "w", encoding="utf-8") as file:  # noqa: PTH123
        path.chmod(_OWNER_ONLY)  # also of a file that was there before
        for text, pseudonym in replaced:
            file.write(f"{_one_line(pseudonym)}\t{_one_line(text)}\n")


def _one_line(text: str) -> str:
    return text.encode("unicode_escape", "surrogatepass").decode("ascii")
