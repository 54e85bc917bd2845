"""The page as a browser draws it: on a screen and a phone, light, dark and printed."""

import html
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support import results
from tests.support.needs import needs
from tests.test_trend import every_kind
from understudy.judge.comparison import trend as trends
from understudy.judge.statistics import pooling
from understudy.records import index as indexes
from understudy.records import select
from understudy.report import page, pdf, trend

CHECKS = Path(__file__).parent / "support" / "browser.js"
SCREEN, LARGE, TABLET, PHONE, PAPER = (
    1280,
    1920,
    768,
    390,
    703,
)  # pixels; paper is A4 without its margins
DARK, PRINT = "(prefers-color-scheme: dark)", "@media print"

pytestmark = needs("Chromium")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with every kind of section: replicas, restarts, a skeleton, sessions that changed."""
    folder = tmp_path_factory.mktemp("page")
    for k, method in enumerate(("posix", "mpiio", "hdf5")):
        for partition in ("disk", "memory"):
            for night in range(12):
                row = results.result(
                    results.growing(),
                    method=method,
                    seed=1000 * (partition == "disk") + 100 * k + night,
                    restart=method == "posix",
                    speed=0.2 if night > 5 and k == 0 else 1.0,
                    repetitions=2,
                    started=f"2026-01-{night + 1:02d}T01:00:00Z",
                )
                results.write_record(
                    row,
                    folder / f"{method}-{partition}-{night}",
                    partition=partition,
                    session=f"night-{night}",
                    case=method,
                )
    results.write_study(folder / "study", rounds=4, ranks=(4, 16), places=1)
    return page.render(pooling.apart(results.cases_in(folder)))


def look(folder: Path, text: str, width: int, picture: Path | None = None) -> dict[str, Any]:
    """What `support/browser.js` finds in a page of that width."""
    script = CHECKS.read_text().replace("WIDE", json.dumps(width not in (PHONE, TABLET)))
    script = script.replace("SMALLEST", "7" if width == PAPER else "8")
    inner = text.replace("</body>", f"<script>{script}</script></body>")
    outer = folder / "outer.html"
    outer.write_text(
        "<!doctype html><meta charset=utf-8><body style='margin:0'><pre id=said></pre><script>"
        "addEventListener('message', e => { said.textContent = e.data; said.hidden = true; })"
        f"</script><iframe style='width:{width}px;height:9000px;border:0' "
        f"srcdoc='{html.escape(inner, quote=True)}'></iframe>"
    )
    with tempfile.TemporaryDirectory(prefix="understudy-browser-") as home:
        command = [
            str(pdf.browser()),
            *pdf.arguments(home),
            f"--window-size={max(width, 800)},9000",
            "--enable-logging=stderr",
            "--hide-scrollbars",
            "--virtual-time-budget=20000",
        ]
        done = subprocess.run(
            [*command, "--dump-dom", outer.as_uri()],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        if picture is not None:
            subprocess.run(
                [*command, f"--screenshot={picture}", outer.as_uri()],
                check=False,
                capture_output=True,
                timeout=240,
            )
    said = re.search(r'<pre id="said"[^>]*>(.+?)</pre>', done.stdout, re.DOTALL)
    assert said, done.stderr[-2000:]
    findings: dict[str, Any] = json.loads(html.unescape(said[1]))
    findings["found"] += re.findall(r"CONSOLE.*", done.stderr)
    return findings


SIGHTS = pytest.mark.parametrize(
    ("width", "media"),
    [
        (SCREEN, ""),
        (SCREEN, DARK),
        (PHONE, ""),
        (PHONE, DARK),
        (TABLET, ""),
        (LARGE, ""),
        (PAPER, PRINT),
    ],
)


def seen(folder: Path, text: str, width: int, media: str) -> dict[str, Any]:
    """What is found in a page of that width and medium."""
    if media:
        assert media in text
        text = text.replace(media, "all" if media == DARK else "@media all")
    text = text.replace("content-visibility: auto", "")  # what is far below is looked at, too
    return look(folder, text, width)


@SIGHTS
def test_nothing_overlaps_or_is_cut(drawn: str, width: int, media: str, tmp_path: Path) -> None:
    findings = seen(tmp_path, drawn, width, media)
    assert findings["texts"] > 300 and findings["figures"] > 8
    assert findings["found"] == []


@SIGHTS
def test_nothing_of_a_trend_overlaps_or_is_cut(width: int, media: str, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    every_kind(folder)
    kept_trend = trends.of(indexes.of_folder(folder), select.ALL)
    findings = seen(tmp_path, trend.render("star", kept_trend), width, media)
    assert findings["texts"] > 30 and findings["figures"] == 3
    assert findings["found"] == []


def test_twelve_workloads_are_printed_on_eight_pages(tmp_path: Path) -> None:
    stream = results.stream("dump", "output", [1 << 20] * 4, [0.0, 1, 2, 3], method="posix")
    for k in range(12):
        for method in ("posix", "mpiio", "hdf5"):
            row = results.result(results.workload(f"made-{k}", [stream]), method=method)
            results.write(row, tmp_path / "in" / f"{k}{method}" / "result.json")
    html_ = tmp_path / "page.html"
    html_.write_text(page.render(results.cases_in(tmp_path / "in")))
    pdf.write(html_, tmp_path / "page.pdf", "2026-01-01T00:00:00Z")
    pages = re.findall(rb"/Type\s*/Page\b(?!s)", (tmp_path / "page.pdf").read_bytes())
    assert 1 < len(pages) <= 8


def test_the_checks_find_what_is_wrong(tmp_path: Path) -> None:
    bad = (
        "<!doctype html><body style='width:2000px'>"
        "<p style='position:absolute;top:0'>one text</p>"
        "<p style='position:absolute;top:2px'>another</p>"
        "<p style='margin-top:80px;color:#bbb'>pale</p>"
        "<div style='width:30px;overflow:hidden;white-space:nowrap'>much too long for it</div>"
        "</body>"
    )
    problems = " ".join(look(tmp_path, bad, PHONE)["found"])
    for word in ("wider than the screen", "overlap: one text / another", "cut: much", "contrast"):
        assert word in problems
