"""Case: does a check notice a file system that gives something else than was asked?"""

from __future__ import annotations

from pathlib import Path

from nightly.rehearsal.ceph.stage import MIB, Stage, expect
from nightly.rehearsal.ceph.sweep import read_records, site

COUNT = 4
LIES = {
    "ignored": f"--stripe-count {COUNT} was asked, but the file system gave 1",
    "count": f"--stripe-count {COUNT} was asked, but the file system gave {COUNT // 2}",
    "size": f"--stripe-size {2 * MIB} was asked, but the file system gave {4 * MIB}",
    "hint": "striping.checkpoint.applied.hints.cb_nodes: expected 2, got 7",
}


def lies(stage: Stage) -> str:
    """The check Replay fails for a stripe count, size or hint that is not given, in four ways."""
    library = stage.base / "lies.so"
    stage.succeed(
        "mpicc",
        "-std=c11",
        "-O2",
        "-shared",
        "-fPIC",
        "-o",
        library,
        Path(__file__).with_suffix(".c"),
        "-ldl",
    )
    environment = site(stage, "lies") | {"LD_PRELOAD": str(library)}
    output = Path(environment["UNDERSTUDY_OUTPUT"])
    stage.workload("honest", "shared", 4 * MIB)
    words = [
        "reframe",
        "-c",
        stage.root / "checks",
        "-r",
        "--system",
        "lies",
        "-n",
        "^Replay",
        "-P",
        "workload=honest",
        "-P",
        "method=mpiio",
        "-P",
        f"stripe_count={COUNT}",
        "-S",
        f"Replay.stripe_size={2 * MIB}",
        "-S",
        "Replay.hints=cb_nodes=2",
        "-S",
        "Replay.collective=1",
    ]
    for lie, message in {"": "", **LIES}.items():
        done = stage.run(*words, environment=environment | {"LIE": lie}, limit_s=300)
        told = f"{lie or 'no lie'}: status {done.status}: {(done.out + done.err)[-1500:]}"
        expect(done.status == bool(lie) and "Ran 1/1 test case" in done.out, told)
        expect(message in done.out, f"no {message!r}: {told}")
        if not lie:
            [record] = read_records(output)
            [stream] = record["measurement"]["striping"]
            given = stream["applied"]
            read = (given["stripe_count"], given["stripe_size_bytes"], given["hints"]["cb_nodes"])
            expect(read == (COUNT, 2 * MIB, "2"), f"recorded: {stream}")
    return f"stripe count, size and hint are read back as asked; noticed: {', '.join(LIES)}"
