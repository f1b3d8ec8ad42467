"""
Wireshark for Apache Kafka: the Python API.

    from kafkashark import Plan, codec, conform, dissect, open_capture, register, replay

    for exchange in dissect("a.pcap"):
        print(exchange.api, exchange.status, exchange.latency_ms)

    open_capture("a.pcap").exchanges()   # a polars.DataFrame with the columns of `kafkashark pairs`
    codec(0, 9, "request").parse(body)   # a construct.Container

    with Plan.of("a.pcap") as plan:
        report = replay(plan, "new-broker:9092", prefix="test-")
    assert report.passed, report

    verdict = conform("a.pcap", ignore="Q")
    assert verdict.passed, verdict

    register(spark)                      # the Spark data source `kafka-capture`

All errors are instances of `DissectorError`; `__version__` is the version. `import kafkashark`
loads no libraries; each name imports its module on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advise import AdviceReport, advise
    from conform import Finding, Severity, Verdict, conform
    from dissector.errors import (
        CaptureError,
        DecodeError,
        DefinitionError,
        DissectorError,
        EncodeError,
        FilterError,
        ForeignModule,
        PipelineError,
        Problem,
        ReadError,
        ReplayError,
        UsageError,
    )
    from dissector.protocol.api import Kind
    from dissector.public import (
        Api,
        Capture,
        Codec,
        Exchange,
        Message,
        Options,
        Schemas,
        all_apis,
        api,
        codec,
        decode_request,
        decode_response,
        dissect,
        open_capture,
    )
    from findings import FindingReport, RankedFinding, findings
    from pipeline import register
    from record import Recorder
    from replay import (
        Noise,
        Pace,
        Plan,
        Report,
        SchemaMapping,
        Security,
        merge_reports,
        replay,
        replay_async,
    )
    from serve import Cassette

__all__ = [
    "AdviceReport",
    "Api",
    "Capture",
    "CaptureError",
    "Cassette",
    "Codec",
    "DecodeError",
    "DefinitionError",
    "DissectorError",
    "EncodeError",
    "Exchange",
    "FilterError",
    "Finding",
    "FindingReport",
    "ForeignModule",
    "Kind",
    "Message",
    "Noise",
    "Options",
    "Pace",
    "PipelineError",
    "Plan",
    "Problem",
    "RankedFinding",
    "ReadError",
    "Recorder",
    "ReplayError",
    "Report",
    "SchemaMapping",
    "Schemas",
    "Security",
    "Severity",
    "UsageError",
    "Verdict",
    "advise",
    "all_apis",
    "api",
    "codec",
    "conform",
    "decode_request",
    "decode_response",
    "dissect",
    "findings",
    "merge_reports",
    "open_capture",
    "register",
    "replay",
    "replay_async",
]

_PLACES = {
    "AdviceReport": "advise",
    "Api": "dissector.public",
    "Capture": "dissector.public",
    "CaptureError": "dissector.errors",
    "Cassette": "serve",
    "Codec": "dissector.public",
    "DecodeError": "dissector.errors",
    "DefinitionError": "dissector.errors",
    "DissectorError": "dissector.errors",
    "EncodeError": "dissector.errors",
    "Exchange": "dissector.public",
    "FilterError": "dissector.errors",
    "Finding": "conform",
    "FindingReport": "findings",
    "ForeignModule": "dissector.errors",
    "Kind": "dissector.protocol.apis",
    "Message": "dissector.public",
    "Noise": "replay",
    "Options": "dissector.public",
    "Pace": "replay",
    "PipelineError": "dissector.errors",
    "Plan": "replay",
    "Problem": "dissector.errors",
    "RankedFinding": "findings",
    "ReadError": "dissector.errors",
    "Recorder": "record",
    "ReplayError": "dissector.errors",
    "Report": "replay",
    "SchemaMapping": "replay",
    "Schemas": "dissector.public",
    "Security": "replay",
    "Severity": "conform",
    "UsageError": "dissector.errors",
    "Verdict": "conform",
    "advise": "advise",
    "all_apis": "dissector.public",
    "api": "dissector.public",
    "codec": "dissector.public",
    "conform": "conform",
    "decode_request": "dissector.public",
    "decode_response": "dissector.public",
    "dissect": "dissector.public",
    "findings": "findings",
    "merge_reports": "replay",
    "open_capture": "dissector.public",
    "register": "pipeline",
    "replay": "replay",
    "replay_async": "replay",
}


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


def __getattr__(name: str) -> Any:
    """
    Load a public name from its package.

    Raises:
        ForeignModule: Another module shadows a required package.
    """
    if name == "__version__":
        from importlib.metadata import version

        return version("kafkashark")
    if name not in _PLACES:
        raise AttributeError(f"module 'kafkashark' has no attribute {name!r}")
    from importlib import import_module

    from kafkashark._packages import require

    module = _PLACES[name]
    require(module.partition(".")[0])
    return getattr(import_module(module), name)
