"""Random runs: whatever ranks do to files, the descriptor is valid and keeps the bytes."""

import random
from pathlib import Path

import pytest

from tests.readers.synthetic import Run
from tests.support.keys import to_keys
from understudy.contracts.workload import numbers, parse, provenance_of
from understudy.readers import darshan

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


def random_run(draw: random.Random) -> tuple[Run, int, int]:
    """A run, and the bytes that it wrote and read, each file once."""
    ranks = draw.choice((1, 2, 3, 8, 17))
    run = Run(nprocs=ranks, run_time_s=draw.choice((None, 1.0, 100.0)))
    total = [0, 0]
    seen: set[str] = set()
    for _ in range(draw.randrange(1, 6)):
        form, module = draw.choice(FORMS), draw.choice(("POSIX", "STDIO", "MPIIO"))
        period, one = draw.choice((0.001, 1.0, 20.0)), draw.random() < 0.3
        write = draw.random() < 0.7
        for k in range(draw.randrange(1, 6)):
            for rank in (-1,) if one else range(ranks):
                n = draw.randrange(1 << 40)
                word = "".join(draw.choice("abcdefgh") for _ in range(6))
                name = form.format(k=k, r=rank, n=n, i=draw.randrange(3), w=word)
                if name in seen and name:
                    continue
                seen.add(name)
                size = draw.choice((1, 7, 100, 4096, 1 << 20, (1 << 20) + draw.randrange(99)))
                run.write(
                    name,
                    size,
                    draw.choice((0.0, period * k, period * k + draw.random())),
                    rank=rank,
                    module=module,
                    write=write,
                    calls=draw.randrange(1, 4),
                    duration_s=draw.choice((0.0, 0.1, 60.0)),
                    F_VARIANCE_RANK_BYTES=draw.random(),
                    **draw.choice(
                        (
                            {},
                            {
                                "SYNCS"
                                if module == "MPIIO"
                                else "FLUSHES"
                                if module == "STDIO"
                                else "FSYNCS": 5
                            },
                        )
                    ),
                )
                total[not write] += size
    return run, total[0], total[1]


@pytest.mark.parametrize("seed", range(60))
def test_a_random_run_is_described(seed: int, tmp_path: Path) -> None:
    run, written, read = random_run(random.Random(seed))
    made = darshan.read(run.log(tmp_path / "run.darshan"))
    again = parse(to_keys(made), "random")
    assert again.streams == made.streams
    sums = {
        way: sum(s.bytes for s in made.streams if s.operation == way) for way in ("write", "read")
    }
    assert sums == {"write": written, "read": read}
    assert all(provenance_of(made, pointer) for pointer in numbers(made))
