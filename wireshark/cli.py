"""The command `kafkashark wireshark`."""

from __future__ import annotations

import os
import sys

from dissector.cli.declared.reading_options import PeriodOptions, ReadingOptions
from dissector.cli.parsing.declarations import Command, option
from dissector.errors import UsageError
from dissector.file_roles import Writes


def _install_extcap(command: Command) -> None:
    """Install the interfaces, and print where the launcher is."""
    from dissector.view.text.escape import escaped
    from wireshark.extcap_interfaces import INTERFACES
    from wireshark.extcap_launcher import install_launcher

    path = install_launcher()
    titles = " and ".join(f'"{each.title}"' for each in INTERFACES.values())
    print(escaped(f"{path}: Wireshark shows the interfaces {titles}"))


class WiresharkOptions(PeriodOptions, ReadingOptions):
    """The options of `wireshark`."""

    output: str | None = option(
        *("-o", "--output"),
        default=None,
        metavar="DIR",
        help="The folder to write; by default a.wireshark of a.pcap, in the current folder.",
        role=Writes(in_folder=r"[^/]*\.pcapng|profiles"),
    )
    no_open: bool = option(
        "--no-open", default=False, help="Only write the folder, and print how to open it."
    )
    install_extcap: bool = option(
        "--install-extcap",
        default=False,
        instead=_install_extcap,
        help="Install the interfaces `Kafka request log` and `Kafka proxy` for Wireshark, and end.",
    )


def wireshark(given: WiresharkOptions) -> None:
    """Open a capture in Wireshark, with findings and events as comments, and a profile for Kafka.

    Writes a folder with the capture and the profile: columns, colours by comment, Decode As for the
    ports of brokers. Secrets of --keylog become a part of the capture. Your own settings and
    profiles of Wireshark stay as they are.
    """
    from dissector.cli import capture_source
    from dissector.view.text.escape import escaped
    from wireshark.wireshark_folder import WiresharkFolder, write_folder
    from wireshark.wireshark_program import find_wireshark, open_wireshark, shell_command

    if given.masks:
        raise UsageError("--mask: the packets are written as they are")
    if given.keylogs:
        os.umask(0o077)  # the capture holds their secrets
    folder = WiresharkFolder.of(given.captures, given.output)
    read = capture_source.source(given, None)
    read.capture.options.keep_copies = True  # they are packets too
    packets, ports = write_folder(folder, read, given.selected, given.keylogs)
    numbers = ", ".join(map(str, sorted(ports.plain | ports.tls))) or "none was found"
    counts = f"{folder.capture}: {packets:,} packets; ports of Kafka: {numbers}"
    print(escaped(counts), flush=True)
    program = None if given.no_open else find_wireshark()
    if program is not None:
        open_wireshark(program, folder)
        return
    if not given.no_open:
        print("kafkashark: wireshark is not installed; where it is:", file=sys.stderr)
    print(escaped(shell_command(folder)))
