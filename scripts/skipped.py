"""Print how many tests of a JUnit XML report were skipped, and why: one line per reason.

With `--none`, a skipped test is a failure.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def main(report: Path, allowed: bool) -> int:
    if not report.stat().st_size:
        return 0
    found = ElementTree.parse(report)  # nosec B314 # our own test run wrote it
    cases = list(found.iter("testcase"))
    reasons = Counter(
        skipped.get("message", "no reason given")
        for case in cases
        for skipped in case.iter("skipped")
    )
    print(f"{reasons.total()} of {len(cases)} tests were skipped")
    for reason, count in reasons.most_common():
        print(f"  {count}: {reason}")
    return 0 if allowed else min(reasons.total(), 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "--none" not in sys.argv))
