"""Runs Kafka's command line tools and small Java programs with the jars of the cluster."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.record.scenario import Stage

_PATIENCE_S = 300


class ToolError(Exception):
    """A tool failed; the message ends with the tail of its output."""


def tool(
    stage: Stage,
    main: str,
    *arguments: str,
    send: str = "",
    may_fail: bool = False,
    with_tools: bool = False,
    jvm_options: tuple[str, ...] = (),
) -> str:
    """
    Run a tool and return its standard output.

    Args:
        stage: Provides the cluster and its jars; for tool classes, including the jars of tools.
        main: The tool's class, with `admin.` for `kafka.admin.` and `tools.` for
            `org.apache.kafka.tools.`; or the path of a Java source file, run directly.
        arguments: The tool's arguments.
        send: The tool's standard input.
        may_fail: Accept failures, for scenarios with errors.
        with_tools: Run a source file with the tools' jars, for Streams.
        jvm_options: Options of Java itself.

    Raises:
        ToolError: The tool failed and `may_fail` is not set.
    """
    name = main.replace("tools.", "org.apache.kafka.tools.", 1) if main[:6] == "tools." else main
    name = "kafka." + name if name[:6] == "admin." else name
    jars = stage.cluster.jars
    if with_tools or name.startswith(("org.apache.kafka.tools.", "kafka.admin.")):
        jars = jars.tools
    java, *rest = jars.java(name, *arguments, heap_mb=256)
    command = [java, *jvm_options, *rest]
    done = subprocess.run(
        command, input=send, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    if done.returncode and not may_fail:
        output = (done.stdout + done.stderr)[-3000:]
        raise ToolError(f"{Path(main).name} {' '.join(arguments)}: {output}")
    return done.stdout
