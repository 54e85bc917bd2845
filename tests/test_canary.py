"""The page of runs with a canary, and of runs that the page cache may have served."""

import json
import re
from pathlib import Path

from tests.support import results as samples
from tests.support.results import cases_in
from understudy import units
from understudy.report import page


def test_what_memory_may_have_served_and_the_canary_are_on_the_page(tmp_path: Path) -> None:
    """Of two runs, one with a canary that slowed down, and one whose canary failed after it."""
    for n in range(2):
        row = samples.result(samples.per_process(), seed=n)
        path = samples.write_record(row, tmp_path / str(n), partition="disk", session=str(n))
        record = json.loads(path.read_text())
        sides = {
            when: {
                "when": when,
                "program": "ior, mdtest",
                "note": None,
                "failure": None,
                "rates": [
                    {
                        "operation": "write",
                        "metric": "bandwidth_bytes_per_s",
                        "unit": "bytes/s",
                        "value": speed,
                    },
                    {
                        "operation": "File stat",
                        "metric": "rate_per_s",
                        "unit": "1/s",
                        "value": 5000,
                    },
                ],
            }
            for when, speed in (("before", 4e8), ("after", 3e8))
        }
        if n:
            sides["after"] |= {"rates": [], "failure": "it ended with status 124 <its limit>"}
        record["canary"] = list(sides.values())
        record["cache"] = {"node_memory_bytes": 1 << 40, "may_serve": ["dump"] if n else []}
        path.write_text(json.dumps(record))
    text = page.render(cases_in(tmp_path))
    overview, _, rest = text.partition("<section")
    assert overview.count('class="range">may come from cache<') == 1
    assert rest.count('class="range">may come from cache<') == 1  # what was not read has no mark
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", rest))
    shown = (
        "write 400 MB/s 300 MB/s \u25cb \u221225.0 % 2 ior, mdtest File stat 5,000 /s 5,000 /s 0 %"
    )
    speeds = [units.rate(speed) for speed in (4e8, 3e8)]
    assert shown.replace("400 MB/s 300 MB/s", " ".join(speeds)) in words
    assert "1 of 4 canaries failed: it ended with status 124 &lt;its limit&gt;." in words
    assert "canary" not in page.render(cases_in(_without(tmp_path, ("canary", "cache"))))


def _without(folder: Path, keys: tuple[str, ...]) -> Path:
    """The records of a folder, less some keys."""
    for path in folder.rglob("run.json"):
        row = json.loads(path.read_text())
        path.write_text(json.dumps({k: v for k, v in row.items() if k not in keys}))
    return folder
