"""
A capture by a child process, dumpcap or tcpdump, so that Python needs no rights.

The child writes into a pipe. With a file to keep it writes that file, and a thread reads the file
behind it: the child then never waits for us.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import select
import signal
import struct
import subprocess
import termios
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO

from dissector.capture.live.capture_plan import (
    CapturePlan,
    dumpcap_words,
    find_program,
    ring_base,
    tcpdump_words,
)
from dissector.capture.live.packet_pump import GrowingFiles, Pump, pipe_chunks
from dissector.errors import UsageError

END_PATIENCE_S = 5.0
"""Time limit for the child to exit."""

_REMEMBERED_LINES = 20
_FILE_LINE = "File: "
_DROPS_OF_DUMPCAP = re.compile(r"received/dropped on interface '(.+)': \d+/(\d+)")
_DROPS_OF_TCPDUMP = re.compile(r"(\d+) packets? dropped by (kernel|interface)")
_NO_RIGHTS = re.compile("permission|not permitted", re.IGNORECASE)
_GONE = re.compile(
    "no longer (attached|running)|disappeared|went down|network is down", re.IGNORECASE
)
_CHATTER = re.compile("cap_set_proc|^Capturing on|^File: |listening on|^$|data link type")

_GUARD = 'while read -r line; do :; done; kill -TERM "$0"'
"""Ends the child when this process ends, however it ends: its end closes the guard's input."""


class LiveCapture:
    """
    A running capture.

    Attributes:
        program: The program that captures.
        packets: A pipe with the packets, as pcap or pcapng.
    """

    program: str
    packets: io.FileIO

    def __init__(self, plan: CapturePlan) -> None:
        """
        Start to capture.

        Raises:
            UsageError: It can't be done, as without rights; the message has the remedy.
        """
        self._plan = plan
        self.program, self._path = find_program()
        self._first_file = plan.file if self.program == "dumpcap" else ring_base(plan)
        self._files = GrowingFiles(self._discover if self.program == "tcpdump" else lambda: None)
        self._discovered = 0
        self._lines: deque[str] = deque(maxlen=_REMEMBERED_LINES)
        self._drops: dict[str, int] = {}
        self._was_stopped = False
        self._timer: threading.Timer | None = None
        self._pump: Pump | None = None
        self._child = self._start_child()
        self._guard = _start_guard(self._child.pid)
        self._reader = threading.Thread(target=self._read_messages, daemon=True)
        self._reader.start()
        self.packets = self._open_packets()
        try:
            self._wait_for_start()
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """Stop the child; packets already captured are still delivered."""
        self._was_stopped = True
        with suppress(OSError):
            self._child.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End the child and its threads."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_at_end():
            self.stop()
        self.packets.close()  # a pump that waits to write is released
        if self._child.stdout is not None:
            self._child.stdout.close()
        try:
            self._child.wait(END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._guard.kill()
        self._guard.communicate()
        self._reader.join(END_PATIENCE_S)
        if self._pump is not None:
            self._pump.join(END_PATIENCE_S)
        self._files.close()
        if self._child.stderr is not None:
            self._child.stderr.close()

    def dropped(self) -> dict[str, int]:
        """Return the number of dropped packets, by place; valid after `close`."""
        return {place: count for place, count in self._drops.items() if count}

    @property
    def missed_files(self) -> int:
        """Files of a ring that were deleted before they were read."""
        return self._files.missed

    def failure(self) -> str:
        """
        Return the reason for a failure of the child; empty without one. Valid after `close`.

        An interface that goes away is one, although the child may call it a success.
        """
        if self._was_stopped:
            return ""
        gone = next(filter(_GONE.search, self._lines), "")
        if self._child.returncode == 0 and not gone:
            return ""
        return self._explanation(gone, "stopped")

    def _is_at_end(self) -> bool:
        return bool(select.select([self.packets], [], [], 0)[0]) and not _available(self.packets)

    def _start_child(self) -> subprocess.Popen[bytes]:
        if self.program == "dumpcap":
            words = dumpcap_words(self._plan)
        else:
            words = tcpdump_words(self._plan, self._first_file)
        try:
            # Ctrl-C must not end it before us, so it has its own process group.
            return subprocess.Popen(
                [self._path, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            raise UsageError(f"{self._path} can't be started: {error.strerror}") from None

    def _open_packets(self) -> io.FileIO:
        """Return the pipe to read: the child's error, or a pump's."""
        stdout = self._child.stdout
        assert stdout is not None
        has_own_limit = self._plan.file_kb is not None and (
            self.program == "tcpdump" or self._plan.ring_files is not None
        )
        if self._plan.file is None and not has_own_limit:
            return io.FileIO(stdout.fileno(), closefd=False)
        chunks = pipe_chunks(stdout) if self._plan.file is None else self._files.chunks()
        ours, theirs = os.pipe()
        limit = self._plan.max_bytes if has_own_limit else None
        self._pump = Pump(chunks, theirs, lambda total: self._end_at(total, limit))
        self._pump.start()
        return io.FileIO(ours)

    def _end_at(self, total: int, limit: int | None) -> None:
        if limit is not None and total >= limit and not self._was_stopped:
            self.stop()

    def _wait_for_start(self) -> None:
        """Wait for the first bytes, or for the end of the child."""
        select.select([self.packets], [], [])
        if not _available(self.packets):
            self._reader.join(END_PATIENCE_S)
            raise UsageError(self._explanation())
        if self._plan.duration_s is not None:
            self._timer = threading.Timer(self._plan.duration_s, self.stop)
            self._timer.daemon = True
            self._timer.start()

    def _read_messages(self) -> None:
        """Read the reports of the child: files, errors, and drops."""
        stderr = self._child.stderr
        assert stderr is not None
        for raw in stderr:
            line = raw.decode(errors="replace").strip()
            if self.program == "dumpcap" and line.startswith(_FILE_LINE) and self._plan.file:
                self._files.add(Path(line.removeprefix(_FILE_LINE)))
            if not _CHATTER.search(line):
                self._lines.append(line)
            if (found := _DROPS_OF_DUMPCAP.search(line)) is not None:
                self._drops[found[1]] = int(found[2])
            elif (found := _DROPS_OF_TCPDUMP.search(line)) is not None:
                place = ", ".join(self._plan.interfaces)
                self._drops[place] = self._drops.get(place, 0) + int(found[1])
        self._files.end()

    def _discover(self) -> None:
        """Add new files of tcpdump, and delete those beyond the ring."""
        first, kept = self._first_file, self._plan.ring_files
        if first is None or (kept is None and self._discovered):
            return
        while (path := _tcpdump_file(first, self._discovered)).exists():
            self._files.add(path)
            if kept is not None and self._discovered >= kept:
                _tcpdump_file(first, self._discovered - kept).unlink(missing_ok=True)
            self._discovered += 1
            if kept is None:
                return

    def _explanation(self, line: str = "", verb: str = "can't capture") -> str:
        """Return the reason why the child does not capture, and a remedy."""
        line = line or (self._lines[0] if self._lines else "it ended without a message")
        what = " ".join(line.split())
        what = what.removeprefix(f"{self.program}: ").rstrip(".")
        if self._lines and _NO_RIGHTS.search(" ".join(self._lines)):
            what = f"{what}; {_rights_advice(self.program, self._path)}"
        return f"-i {', '.join(self._plan.interfaces)}: {self.program} {verb}: {what}"


def _rights_advice(name: str, path: str) -> str:
    group = "join the group wireshark (Debian: sudo dpkg-reconfigure wireshark-common), "
    return (
        f"{group if name == 'dumpcap' else ''}sudo setcap cap_net_raw,cap_net_admin=eip {path}, "
        "in a container --cap-add NET_RAW --cap-add NET_ADMIN, "
        "or kubectl exec POD -- tcpdump -U -w - | kafkashark pairs -"
    )


def _tcpdump_file(first: Path, number: int) -> Path:
    """Return the name of a file that `tcpdump -C` writes."""
    return first.with_name(f"{first.name}{number}") if number else first


def _start_guard(child: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, str(child)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _available(pipe: IO[bytes]) -> int:
    """Return the number of bytes that can be read from a pipe now."""
    raw = fcntl.ioctl(pipe.fileno(), termios.FIONREAD, struct.pack("i", 0))
    count: int = struct.unpack("i", raw)[0]
    return count
