"""Random runs: whatever ranks do to files, the descriptor is valid and keeps the bytes."""

import random
from pathlib import Path

import pytest

from tests.readers.synthetic import Run
from tests.readers.test_described import valid

FORMS = (
    "/s/a{k}.{r}",
    "/s/b.{r}.{k}",
    "/s/c{k}",
    "/s/d",
    "/s/e{n}",
    "{n}",
    "",
    "/s/{k}/f{i}",
    "/s/g.{r}",
    "/s/{k}.5/h{i}.{r}",
    "/s/i{k}_{i}_{r}",
    "/s/{w}",
)


SYNC = {"MPIIO": "SYNCS", "STDIO": "FLUSHES", "POSIX": "FSYNCS"}


def random_run(draw: random.Random) -> tuple[Run, dict[str, int]]:
    """A run, and the bytes that it wrote and read, each file once."""
    ranks = draw.choice((1, 2, 3, 8, 17))
    run, total = Run(ranks, draw.choice((None, 1.0, 100.0))), {"write": 0, "read": 0}
    seen = {""}
    for _ in range(draw.randrange(1, 6)):
        form, module = draw.choice(FORMS), draw.choice([*SYNC])
        period, shared = draw.choice((0.001, 1.0, 20.0)), draw.random() < 0.3
        write = draw.random() < 0.7
        for k in range(draw.randrange(1, 6)):
            for rank in (-1,) if shared else range(ranks):
                word = "".join(draw.choice("abcdefgh") for _ in range(6))
                numbers = {"n": draw.randrange(1 << 40), "i": draw.randrange(3), "w": word}
                name = form.format(k=k, r=rank, **numbers)
                if name in seen and name:
                    continue
                seen.add(name)
                size = draw.choice((1, 7, 100, 4096, 1 << 20, (1 << 20) + draw.randrange(99)))
                at_s = draw.choice((0.0, period * k, period * k + draw.random()))
                more = {"calls": draw.randrange(1, 4), "duration_s": draw.choice((0.0, 0.1, 60.0))}
                more |= draw.choice(({}, {SYNC[module]: 5}))
                more["F_VARIANCE_RANK_BYTES"] = draw.random()
                run.write(name, size, at_s, rank=rank, module=module, write=write, **more)
                total["write" if write else "read"] += size
    return run, total


@pytest.mark.parametrize("seed", range(60))
def test_a_random_run_is_described(seed: int, tmp_path: Path) -> None:
    run, total = random_run(random.Random(seed))
    workload = run.describe(tmp_path)
    valid(workload)
    moved = {way: sum(s.bytes for s in workload.streams if s.operation == way) for way in total}
    assert moved == total
