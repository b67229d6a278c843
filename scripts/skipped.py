"""Print how many tests of a JUnit XML report were skipped, and why."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def main(report: Path) -> None:
    if not report.stat().st_size:
        return
    cases = list(ElementTree.parse(report).iter("testcase"))
    reasons = Counter(
        skipped.get("message", "no reason given")
        for case in cases
        for skipped in case.iter("skipped")
    )
    print(f"{reasons.total()} of {len(cases)} tests were skipped")
    for reason, count in reasons.most_common():
        print(f"  {count}: {reason}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
