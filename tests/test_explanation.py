"""Logs that are described wrongly say so themselves; `readers/cases/explained.py` has others."""

import pytest

from tests.readers.logs import TRACES
from understudy.commands import describe
from understudy.inference.score import explanation
from understudy.inference.score.explanation import EXPLAINED, PLACES, STATES, UNKNOWN, Explanation
from understudy.readers import darshan

CASES = TRACES / "cases"
# What the description gets wrong or does not know of each: all else is explained.
LOGS = {
    "collective_rounds": PLACES,
    "collective_views": PLACES,
    "one_h5dwrite": ("MPIIO_INDEP_WRITES", 49_051_962, 73_600_007),
    "readshift": ("ranks of files", 4, 8),
    "zerolen": ("MPIIO_COLL_WRITES", 16, 32),
    "ior_4_passes": None,
    "iwriteat": None,
    "rename": "",
    "uneven": "",
}


@pytest.mark.parametrize("name", [path.stem for path in sorted(CASES.glob("*.darshan"))])
def test_what_is_described_wrongly_is_named(name: str) -> None:
    explanations: list[Explanation] = []
    darshan.read(CASES / f"{name}.darshan", told=explanations.append)
    [log], expected = explanations, LOGS[name]
    assert sum(log.share(log.of(state)) for state in STATES) == pytest.approx(1)
    differences = [(d.what, d.predicted, d.counted) for p in log.parts for d in p.differences]
    if isinstance(expected, tuple):
        assert expected in differences
    elif expected:
        assert log.share([p for p in log.of(UNKNOWN) if expected in p.unknown]) > 0.9
    elif expected == "":
        assert log.share(log.of(EXPLAINED)) == 1


def test_everything_that_is_not_known_has_a_source_that_tells_it() -> None:
    constants = {name: value for name, value in vars(explanation).items() if name.isupper()}
    lacks = {value for name, value in constants.items() if isinstance(value, str)}
    lacks -= {*STATES, *constants["WAYS"], constants["EITHER"]}
    assert set(describe.SOURCES) == lacks
