"""The contents of a live capture, and the command lines of capturing programs."""

from __future__ import annotations

import os
import pwd
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dissector.errors import UsageError

TCPDUMP_BUFFER_KIB = 1 << 16
"""Kernel buffer for tcpdump: in immediate mode each packet occupies a slot of maximum length."""

_BYTES_PER_KB = 1000
_INSTALL_ADVICE = (
    "install dumpcap (Debian: wireshark-common; Fedora: wireshark-cli) or tcpdump, or capture "
    "elsewhere: ssh HOST tcpdump -U -w - | kafkashark pairs -"
)


@dataclass(frozen=True)
class CapturePlan:
    """
    The captured packets, the end, and the files to keep.

    Attributes:
        interfaces: Names of the interfaces.
        capture_filter: A filter of libpcap (BPF), or empty.
        duration_s: Ends the capture after these seconds.
        packets: Ends it after this number of packets.
        file_kb: Ends it after these kilobytes (1000 bytes).
        file: Receives the packets; None to keep none.
        ring_files: Keeps this number of files, the last ones; None to keep one file.
        ring_kb: Size of each.
    """

    interfaces: tuple[str, ...]
    capture_filter: str = ""
    duration_s: float | None = None
    packets: int | None = None
    file_kb: int | None = None
    file: Path | None = None
    ring_files: int | None = None
    ring_kb: int = 0

    @property
    def max_bytes(self) -> int | None:
        """Size that ends the capture."""
        return None if self.file_kb is None else self.file_kb * _BYTES_PER_KB


def find_program(search_path: str | None = None) -> tuple[str, str]:
    """
    Return name and path of the capturing program: dumpcap, or else tcpdump.

    Raises:
        UsageError: Neither is installed.
    """
    for name in ("dumpcap", "tcpdump"):
        # /usr/sbin, the usual place of tcpdump, is not in every user's path.
        places = search_path or os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
        if (path := shutil.which(name, path=places)) is not None:
            return name, path
    raise UsageError(f"a live capture needs dumpcap or tcpdump: {_INSTALL_ADVICE}")


def dumpcap_words(plan: CapturePlan) -> list[str]:
    """Return the arguments of dumpcap; the duration is left to the caller."""
    words = ["-q", "-w", str(plan.file or "-")]
    for interface in plan.interfaces:
        words += ["-i", interface]
        if plan.capture_filter:
            words += ["-f", plan.capture_filter]
    if plan.packets is not None:
        words += ["-c", str(plan.packets)]
    if plan.ring_files is not None:
        words += ["-b", f"files:{plan.ring_files}", "-b", f"filesize:{plan.ring_kb}"]
    elif plan.file_kb is not None:
        words += ["-a", f"filesize:{plan.file_kb}"]
    return words


def tcpdump_words(plan: CapturePlan, file: Path | None) -> list[str]:
    """
    Return the arguments of tcpdump; duration, size and the number of files are left to the caller.

    Several interfaces are captured on the pseudo-interface of all, by their numbers.

    Source: https://www.tcpdump.org/manpages/tcpdump.1.html and pcap-filter.7 (`ifindex`)
    """
    words = ["-U", "--immediate-mode", "-B", str(TCPDUMP_BUFFER_KIB), "-w", str(file or "-")]
    capture_filter = plan.capture_filter
    if len(plan.interfaces) == 1:
        words += ["-i", plan.interfaces[0]]
    else:
        words += ["-i", "any", "-y", "LINUX_SLL2"]
        chosen = " or ".join(f"ifindex {number}" for number in _interface_numbers(plan.interfaces))
        capture_filter = f"({chosen}) and ({capture_filter})" if capture_filter else chosen
    if plan.packets is not None:
        words += ["-c", str(plan.packets)]
    if plan.ring_files is not None:
        # Its unit is a million bytes.
        words += ["-C", str(max(1, -(-plan.ring_kb * _BYTES_PER_KB // 1_000_000)))]
    if file is not None and os.geteuid() == 0:
        # As root it would switch to another user, who can't open the files.
        words += ["-Z", pwd.getpwuid(0).pw_name]
    return [*words, "--", capture_filter] if capture_filter else words


def ring_base(plan: CapturePlan) -> Path | None:
    """Return the first file of tcpdump's ring, named like dumpcap's files, or the one file."""
    if plan.file is None or plan.ring_files is None:
        return plan.file
    return plan.file.with_stem(f"{plan.file.stem}_{time.strftime('%Y%m%d%H%M%S')}")


def _interface_numbers(names: Sequence[str]) -> list[int]:
    numbers = []
    for name in names:
        try:
            numbers.append(int(Path("/sys/class/net", name, "ifindex").read_text("ascii")))
        except (OSError, ValueError):
            known = "no such interface" if Path("/sys/class/net").exists() else ""
            reason = known or "to capture on several interfaces, install dumpcap"
            raise UsageError(f"-i {name}: {reason}") from None
    return numbers
