"""The recorder's command line: `python -m tools.record [--only NAME] [--list] [--readme]`."""

from __future__ import annotations

import argparse
import faulthandler
import fnmatch
import gc
import itertools
import sys
import tempfile
import traceback
from pathlib import Path

from tools.record import clients, clusters, manifest, readme
from tools.record.raw_packets import convert, count
from tools.record.scenario import Scenario, Stage, all_scenarios
from tools.record.sniff import CaptureRefusedError, capture, wait_until_quiet

_LIMIT_S = 100

CAPTURES = Path(__file__).parents[2] / "captures"


def main(arguments: list[str] | None = None) -> int:
    """Record the chosen scenarios; status 1 when a scenario failed, 2 when capturing is refused."""
    parser = argparse.ArgumentParser(prog="python -m tools.record", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="a name or a pattern")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument("--readme", action="store_true", help="only write captures/README.md")
    parser.add_argument("--out", type=Path, default=CAPTURES, metavar="DIR")
    options = parser.parse_args(arguments)

    if options.readme:
        readme.write(options.out)
        return 0
    wanted = [
        each
        for each in all_scenarios()
        if not options.only or any(fnmatch.fnmatch(each.name, only) for only in options.only)
    ]
    if options.list:
        for each in wanted:
            print(f"{each.name:40} {each.shows}")
        return 0
    if not wanted:
        parser.error(f"no scenario is called {' or '.join(options.only)}")
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        return _record_all(wanted, options.out)
    except CaptureRefusedError as refused:
        print(f"tools.record: {refused}; run it as root or with CAP_NET_RAW", file=sys.stderr)
        return 2


def _record_all(wanted: list[Scenario], out: Path) -> int:
    failed = 0
    for cluster, group in itertools.groupby(wanted, key=lambda each: each.cluster):
        with clusters.start(cluster) as running:
            for each in group:
                # Only ending the process stops a client stuck inside its library.
                faulthandler.dump_traceback_later(_LIMIT_S, exit=True)
                try:
                    _record(each, running, out)
                except CaptureRefusedError:
                    raise
                except Exception as error:
                    failed += 1
                    print(f"{each.name}: {type(error).__name__}: {error}", file=sys.stderr)
                    traceback.print_exc()
                finally:
                    faulthandler.cancel_dump_traceback_later()
    readme.write(out)
    return 1 if failed else 0


def _record(scenario: Scenario, running: clusters.Running, out: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="kafkashark-record-") as folder:
        raw = Path(folder) / f"{scenario.name}.pcap"
        ports = (*running.ports, *(running.inside if scenario.inside else ()))
        stage = Stage(scenario.name, running.bootstrap, ports, Path(folder), running.kafka)
        wait_until_quiet(running.ports)
        with capture(raw, ports, nanoseconds=scenario.form == "nanosecond pcap"):
            scenario.play(stage)
            gc.collect()  # clients without a reference close their connections
            wait_until_quiet(running.ports)
        made = convert(raw, scenario.form)
        beside = sorted(path.name for path in Path(folder).iterdir() if path != made)
        for name in (made.name, *beside):
            (out / name).write_bytes((Path(folder) / name).read_bytes())
    entries = manifest.read(out)
    entries[scenario.name] = manifest.Entry(
        name=scenario.name,
        file=made.name,
        shows=scenario.shows,
        client=clients.version(scenario.client),
        broker=running.version,
        command=f"python -m tools.record --only {scenario.name}",
        beside=tuple(beside),
    )
    manifest.write(out, entries)
    size = (out / made.name).stat().st_size
    print(f"{made.name:48} {count(out / made.name):6} packets {size / 1000:8.1f} kB")


if __name__ == "__main__":
    sys.exit(main())
