"""`python -m tests.broker --version 4.x --nodes 3`: a cluster until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.broker.artifacts import MissingError
from tests.broker.kafka_cluster import BrokerError, running
from tests.broker.server_properties import PASSWORD, USER, Shape


def main() -> int:
    """Run a cluster until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.broker", description=__doc__)
    parser.add_argument("--version", default="4.x", help="4.x, 3.9.x, or a release such as 4.1.1")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--sasl", action="store_true", help="PLAIN and SCRAM on another port")
    parser.add_argument("--tls", action="store_true", help="TLS on another port")
    options = parser.parse_args()
    shape = Shape(options.version, options.nodes, options.sasl, options.tls)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with running(shape) as cluster:
            print(f"Kafka {cluster.version}, {shape.nodes} nodes, logs in {cluster.folder}")
            for listener in shape.listeners:
                print(f"{listener:16} {cluster.bootstrap(listener)}")
            if shape.sasl:
                print(f"{'user':16} {USER} / {PASSWORD}")
            if shape.tls:
                print(f"{'certificate':16} {cluster.certificate}")
            print("Ctrl-C stops it.", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except (MissingError, BrokerError) as error:
        print(f"tests.broker: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
