"""The page of an acceptance: verdict, every mark with its evidence, and what was used.

The same records and marks make the same bytes: the page holds no time of its own.
"""

from collections import Counter
from typing import Any

from understudy import __version__, units
from understudy.contracts import run as runs
from understudy.contracts.run import Run
from understudy.errors import printable
from understudy.judge.acceptance.marks import Finding, Verdict
from understudy.report import colours
from understudy.report.template import environment

NOT_RECORDED = "not recorded"


def render(verdict: Verdict) -> str:
    """The HTML."""
    used = evidence(verdict)
    templates = environment()
    templates.filters["condition"] = lambda run: runs.short_hash(runs.condition(run))
    text = templates.get_template("acceptance.html").render(
        acceptance=verdict.acceptance,
        verdict=verdict,
        night=units.quantity(verdict.acceptance.night_s, units.SECONDS),
        origins=origins(used),
        role_colours=colours.ROLE_COLOURS,
        version=__version__,
    )
    return printable(text)


def evidence(verdict: Verdict) -> list[Run]:
    """The runs that marks are of, each once, by their start."""
    runs_by_id = {row.run.identity.id: row.run for f in verdict.findings for row in f.rows}
    return sorted(runs_by_id.values(), key=lambda run: (run.identity.time, run.identity.id))


def origins(used: list[Run]) -> list[tuple[str, str, str, int]]:
    """(what, name, hash or version, number of runs) of all that the runs were made with."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for run in used:
        played, software = run.producer.workload, run.software
        if played is not None:
            counts["workload", played.name, played.sha256] += 1
        counts["program", run.producer.name, software.program_sha256 or NOT_RECORDED] += 1
        commit = f" {software.commit}" if software.commit else ""
        counts["understudy", "version and commit", f"{software.version}{commit}"] += 1
        counts["MPI", "", software.mpi or NOT_RECORDED] += 1
        for name, version in software.libraries.items():
            counts["library", name, version] += 1
        counts["environment", "lock of Spack", software.spack_lock or NOT_RECORDED] += 1
        counts["configuration", "condition", runs.short_hash(runs.condition(run))] += 1
    order = ("workload", "program", "understudy", "MPI", "library", "environment", "configuration")
    return [
        (*key, count)
        for key, count in sorted(counts.items(), key=lambda item: (order.index(item[0][0]), item))
    ]


def as_row(verdict: Verdict) -> dict[str, Any]:
    """The same for programs, see schemas/verdict.schema.json."""
    acceptance = verdict.acceptance
    return {
        "title": acceptance.title,
        "system": acceptance.system,
        "since": acceptance.since,
        "until": acceptance.until,
        "night_s": acceptance.night_s,
        "nights_differ": verdict.nights_differ,
        "marks_sha256": acceptance.sha256,
        "plan": verdict.plan.sha256 if verdict.plan else None,
        "sessions": verdict.sessions,
        "ledger": verdict.kept,
        "verdict": verdict.state,
        "sentence": verdict.sentence,
        "runs": verdict.runs,
        "failed": verdict.failed,
        "unclaimed": verdict.unclaimed,
        "unread": len(verdict.unread),
        "unread_records": list(verdict.unread),
        "marks": [_mark(finding) for finding in verdict.findings],
        "origins": [
            dict(zip(("what", "name", "value", "runs"), row, strict=True))
            for row in origins(evidence(verdict))
        ],
    }


def _mark(finding: Finding) -> dict[str, Any]:
    mark = finding.mark
    return {
        "name": mark.name,
        "source": mark.source,
        "metric": mark.metric,
        "unit": mark.of.unit,
        "at_least": mark.limit if mark.at_least else None,
        "at_most": None if mark.at_least else mark.limit,
        "of": mark.selection,
        "verdict": finding.state,
        "why": finding.why,
        "value": finding.value,
        "low": finding.low,
        "high": finding.high,
        "nights": finding.nights,
        "failed": finding.failed,
        "served": finding.served,
        "warning": finding.warning or None,
        "workload_sha256": finding.pinned,
        "left_out": list(finding.left_out),
        "missing_sessions": list(finding.missing),
        "runs": [
            {
                "id": row.run.identity.id,
                "time": row.run.identity.time,
                "session": row.session,
                "night": row.night,
                "condition": runs.short_hash(runs.condition(row.run)),
                "values": list(row.values),
                "failure": row.failure,
                "served": row.served,
            }
            for row in finding.rows
        ],
    }
