"""Makes captures of the logs among the files of a capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dissector.capture.formats import conversions


class LogConverter:
    """Recognises logs, and converts those of a capture in the order of their times."""

    def is_known(self, begin: bytes) -> bool:
        """Return whether a file is a log, by its first bytes."""
        return b"Completed request:" in begin or _has_protocol_mark(begin)

    def key(self) -> object:
        """Return whether records are made up."""
        from dissector.request_log.synthetic_records import are_synthetic

        return are_synthetic()

    def convert(
        self, files: Sequence[Callable[[], Iterator[bytes]]], timezone: str
    ) -> Sequence[conversions.Converted]:
        """Return the captures of logs, in the same order."""
        from dissector.request_log.converted_log import ConvertedLog, first_time
        from dissector.request_log.log_packets import LogConnections

        shared = LogConnections()
        begins = [first_time(each(), timezone) if len(files) > 1 else 0 for each in files]
        found: dict[int, ConvertedLog] = {}
        for number in sorted(range(len(files)), key=lambda number: begins[number]):
            found[number] = ConvertedLog(files[number](), shared, timezone)
        return [found[number] for number in range(len(files))]

    def follow(self, blocks: Iterator[bytes], timezone: str) -> conversions.Growing:
        """Return the capture of a log that still grows; see `Converter`."""
        from dissector.request_log.growing_log import GrowingLog

        return GrowingLog(blocks, timezone)


def _has_protocol_mark(begin: bytes) -> bool:
    if b"header" not in begin:
        return False
    from dissector.request_log.log_lines import PROTOCOL_MARK

    return PROTOCOL_MARK.search(begin) is not None


conversions.register(LogConverter())
