"""
Types for hooks: functions of yours that take part in the work.

    from kafkashark.hooks import Record

    def value(record: Record) -> object | None:
        return record.value.decode() if record.topic == "lines" else None

A script is given with `--script`; a package has entry points of the groups `kafkashark.values`,
`kafkashark.keys`, `kafkashark.rules`, `kafkashark.advice`, `kafkashark.columns` and
`kafkashark.rewrites`.
"""

from dissector.hooks.hook_types import Advised, Decoded, Record, Request, Violation

__all__ = ["Advised", "Decoded", "Record", "Request", "Violation"]
