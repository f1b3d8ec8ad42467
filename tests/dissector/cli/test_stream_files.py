from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dissector.cli import stream_files
from dissector.cli.stream_files import StreamFiles
from dissector.protocol.messages import Message, decode_request
from tests.dissector.cli.cli_traffic import request_frame

LOGIN = request_frame(36, 2, 1, auth_bytes=b"open sesame")


def exchange(message: Message, offset: int, side: int = 0, token: bool = False) -> Any:
    return SimpleNamespace(
        connection=0,
        messages=[message],
        request=message,
        is_token=token,
        place_of=lambda message: (offset, side),
    )


def written(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_each_side_has_a_file(tmp_path: Path) -> None:
    with StreamFiles(tmp_path, show_secrets=False) as files:
        for connection, side, data in [(0, 0, b"ab"), (0, 1, b"x"), (3, 1, b"y"), (0, 0, b"cd")]:
            files.write(connection, side, data, len(data))
        files.write(3, 0, b"", 0)
        files.close(keep={0, 3})
    assert written(tmp_path) == {"0-a.bin": b"abcd", "0-b.bin": b"x", "3-b.bin": b"y"}


def test_gaps_are_omitted(tmp_path: Path) -> None:
    with StreamFiles(tmp_path, show_secrets=False) as files:
        files.write(0, 0, b"ab", 2)
        files.write(0, 0, None, 1000)
        files.write(0, 0, b"cd", 2)
        files.write(0, 1, None, 5)
        files.close(keep={0})
    assert written(tmp_path) == {"0-a.bin": b"abcd"}


def test_old_files_are_overwritten(tmp_path: Path) -> None:
    (tmp_path / "0-a.bin").write_bytes(b"from another capture")
    with StreamFiles(tmp_path, show_secrets=False) as files:
        files.write(0, 0, b"new", 3)
        files.close(keep={0})
    assert written(tmp_path) == {"0-a.bin": b"new"}


def test_number_of_open_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_files, "MAX_OPEN_FILES", 3)
    before = len(list(Path("/dev/fd").iterdir()))
    with StreamFiles(tmp_path, show_secrets=False) as files:
        for turn in range(3):
            for connection in range(10):
                files.write(connection, 0, b"%d" % turn, 1)
            assert len(list(Path("/dev/fd").iterdir())) == before + 3
        files.close(keep=set(range(10)))
    assert written(tmp_path) == {f"{connection}-a.bin": b"012" for connection in range(10)}


def test_secrets_are_blanked(tmp_path: Path) -> None:
    with StreamFiles(tmp_path, show_secrets=False) as files:
        files.write(0, 0, b"before" + LOGIN + b"after", len(LOGIN) + 11)
        files.add_secrets(exchange(decode_request(LOGIN[4:]), 6))
        files.close(keep={0})
    (data,) = written(tmp_path).values()
    at = LOGIN.index(b"\x0copen")
    assert data == b"*" * 6 + LOGIN[:at] + b"*" * 12 + LOGIN[at + 12 :] + b"*" * 5


def test_bytes_of_another_protocol_are_kept(tmp_path: Path) -> None:
    with StreamFiles(tmp_path, show_secrets=False) as files:
        files.write(0, 0, b"GET / HTTP/1.1", 14)
        files.close(keep={0})
    assert written(tmp_path) == {"0-a.bin": b"GET / HTTP/1.1"}


def test_secrets_behind_and_across_gaps_are_blanked(tmp_path: Path) -> None:
    at = LOGIN.index(b"sesame")
    with StreamFiles(tmp_path, show_secrets=False) as files:
        files.write(0, 0, None, 100)
        files.write(0, 0, LOGIN[: at + 2], at + 2)
        files.write(0, 0, None, 2)
        files.write(0, 0, LOGIN[at + 4 :] + b"after", len(LOGIN) - at - 4 + 5)
        files.add_secrets(exchange(decode_request(LOGIN[4:]), 100))
        files.close(keep={0})
    (data,) = written(tmp_path).values()
    assert data == LOGIN[: at - 6] + b"*" * 10 + LOGIN[at + 6 :] + b"*" * 5


def test_a_raw_token_is_blanked_completely(tmp_path: Path) -> None:
    token = Message("request", b"\0alice\0secret", 13)
    with StreamFiles(tmp_path, show_secrets=False) as files:
        files.write(0, 1, b"\0\0\0\x0d\0alice\0secretnext", 21)
        files.add_secrets(exchange(token, 0, side=1, token=True))
        files.close(keep={0})
    assert written(tmp_path) == {"0-b.bin": b"\0\0\0\x0d" + b"*" * 17}


def test_secrets_are_kept_on_request(tmp_path: Path) -> None:
    with StreamFiles(tmp_path, show_secrets=True) as files:
        files.write(0, 0, LOGIN, len(LOGIN))
        files.add_secrets(exchange(decode_request(LOGIN[4:]), 0))
        files.close(keep={0})
    assert written(tmp_path) == {"0-a.bin": LOGIN}


def test_unselected_connections_leave_no_file(tmp_path: Path) -> None:
    with StreamFiles(tmp_path, show_secrets=False) as files:
        for connection in (0, 1):
            files.write(connection, 0, LOGIN, len(LOGIN))
        files.add_secrets(exchange(decode_request(LOGIN[4:]), 0))
        files.close(keep={1})
    assert list(written(tmp_path)) == ["1-a.bin"]


def test_aborted_work_leaves_no_files(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), StreamFiles(tmp_path, show_secrets=False) as files:
        files.write(0, 0, LOGIN, len(LOGIN))
        assert (tmp_path / "0-a.bin").exists()
        raise KeyboardInterrupt
    assert written(tmp_path) == {}
