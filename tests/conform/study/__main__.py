"""Inject each fault, and report what finds it: `python -m tests.conform.study`."""

from __future__ import annotations

from collections import Counter

from tests.conform.study.faults import FAULTS


def main() -> None:
    found, all_of, others = Counter(), Counter(), 0
    for fault in FAULTS:
        all_of[fault.family] += 1
        findings = fault.found()
        found[fault.family] += bool(findings)
        others += bool(findings) and all(each.side is not fault.side for each in findings)
        rules = ", ".join(sorted({each.rule.id for each in findings})) or "-"
        print(f"{fault.family}: {fault.name}: {rules}")
    for family, count in all_of.items():
        print(f"{family:15} {found[family]:3} of {count:3}")
    print(f"{sum(found.values())} of {sum(all_of.values())} faults are found, of which {others}")
    print("are attributed only to the other side, for accepting an invalid request")


if __name__ == "__main__":
    main()
