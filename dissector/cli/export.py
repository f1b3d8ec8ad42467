"""`kafkashark export`: the packets of matching traffic, as a smaller capture with the same rows."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from dissector.capture.formats.capture_reader import is_file
from dissector.cli import capture_source, redaction_options
from dissector.cli.declared.file_options import ExportOptions
from dissector.cli.export_comments import analysis_comments
from dissector.cli.output import is_terminal, open_atomic
from dissector.errors import UsageError
from dissector.protocol.context import using
from dissector.query.packet_export import MASKS_REFUSED, choose_packets
from dissector.redaction.packet_pass import write_redacted
from dissector.redaction.redaction import Redaction
from dissector.view.text.escape import escaped


def export(given: ExportOptions) -> None:
    """Write the packets of the exchanges that pass a filter to a pcapng file."""
    captures, filter_text, output = list(given.captures), given.selected, given.output
    if output is None or is_terminal(output):
        raise UsageError("export requires an output file: -o OUT.pcapng")
    for name in captures:
        if name == "-" or (Path(name).exists() and not is_file(name)):
            raise UsageError(f"{name}: export reads a capture several times; save a pipe to a file")
    if given.masks and not given.redact:
        raise UsageError(MASKS_REFUSED)
    if given.comments and given.redact:
        raise UsageError("--comments: the comments have names, which --redact replaces")
    kept, secret = redaction_options.kept_roles(given), redaction_options.read_key(given.key)

    def source(text: str | None) -> capture_source.Source:
        made = capture_source.source(given, text)
        # Connections that the capture holds twice are packets too, with the same secrets.
        made.capture.options.keep_copies = True
        return made

    comments = analysis_comments(source(None).capture, filter_text) if given.comments else None

    def opened(text: str | None, is_check: bool) -> capture_source.Source:
        made = source(text)
        if comments is not None:
            made.capture.options.comments = comments.packets
            made.capture.options.section_comment = comments.section
        made.reports_unreadable = is_check
        return made

    found = choose_packets(opened, filter_text, connections=given.connections)
    if found is None:
        return
    if given.redact:
        whole_source = source(None)
        redaction = Redaction(secret, kept, whole_source.capture.names, decrypts=given.decrypt)
        if given.keep_schema:
            redaction.keep_schemas(whole_source.record_values().reader)
        with closing(redaction):
            _read_all(redaction, whole_source)
            stop, reading = whole_source.capture.options.stop, whole_source.capture.reading
            if stop.is_requested or reading is None:
                return
            flows = found.flows
            with open_atomic(output) as file:
                copied, total = write_redacted(captures, flows, redaction, reading, file, stop)
            _report_redaction(redaction, given.map_file)
    else:
        with open_atomic(output) as file:
            copied, total = found.write(file)
    count = f"{found.exchanges:,} exchanges on {found.connections:,} connections"
    print(f"{count}: {copied:,} of {total:,} packets")
    if found.differing:
        text = f"{found.differing:,} connections have other rows in {output} than before"
        print("kafkashark:", escaped(text), file=sys.stderr)


def _read_all(redaction: Redaction, source: capture_source.Source) -> None:
    """Read and replace all messages of the capture, regardless of the filter."""
    source.reports_unreadable = True
    for window in source.each_window():
        with using(source.capture.options.schemas):
            redaction.read(source.capture, window)


def _report_redaction(redaction: Redaction, map_file: str | None) -> None:
    if map_file is not None:
        redaction_options.write_map(map_file, redaction.pseudonyms.replaced())
    notes = []
    if count := redaction.lost_batches:
        notes.append(f"{count:,} compressed record batches are zeros: none of their size is legal")
    if count := len(redaction.encrypted):
        notes.append(f"{count:,} TLS connections are left out; --decrypt writes them as plain TCP")
    for note in notes:
        print("kafkashark:", note, file=sys.stderr)
