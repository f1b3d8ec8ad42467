"""Runs Kafka's own command line tools, and small Java programs, from the jars of the cluster."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.record.scenario import Stage

_PATIENCE_S = 90


class ToolError(Exception):
    """A tool ended with an error; the message ends with what it printed."""


def tool(
    stage: Stage,
    main: str,
    *arguments: str,
    send: str = "",
    may_fail: bool = False,
    with_tools: bool = False,
) -> str:
    """
    Run a tool and give what it printed.

    Args:
        stage: The tool comes from the jars of this stage's cluster; what is of Kafka's tools,
            from those that have them.
        main: Its class, with `admin.` for `kafka.admin.` and `tools.` for
            `org.apache.kafka.tools.`; or the path of a Java source file, run as it is.
        arguments: Its arguments.
        send: Its standard input.
        may_fail: An error is what we want to see on the wire.
        with_tools: A source file needs more than the clients: Streams.

    Raises:
        ToolError: It failed.
    """
    name = main.replace("tools.", "org.apache.kafka.tools.", 1) if main[:6] == "tools." else main
    name = "kafka." + name if name[:6] == "admin." else name
    jars = stage.cluster.jars
    if with_tools or name.startswith(("org.apache.kafka.tools.", "kafka.admin.")):
        jars = jars.tools
    command = jars.java(name, *arguments, heap_mb=256)
    done = subprocess.run(
        command, input=send, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    if done.returncode and not may_fail:
        said = (done.stdout + done.stderr)[-3000:]
        raise ToolError(f"{Path(main).name} {' '.join(arguments)}: {said}")
    return done.stdout
