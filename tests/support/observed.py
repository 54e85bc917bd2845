"""What Darshan counts of a run of the player."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support import player
from understudy.darshanlog import Log, open_log
from understudy.program.counters import COUNTERS
from understudy.reframe.bases import observer


def counters(workload: Path, ranks: int, folder: Path, streams: Iterable[str]) -> "Counted":
    """The counters of a run in the folder, by stream and module; times are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    settings = observer.settings(str(data), traced=False)
    (folder / observer.SETTINGS).write_text("\n".join(settings) + "\n", encoding="utf-8")
    before = shlex.split(" ".join(observer.prefix_of(observer.runtime(), str(folder))))
    player.play(workload, ranks, data, "--time-scale", "0", before=before)
    with open_log(folder / observer.LOG) as log:
        return _by_stream(log, f"{data}/", tuple(streams))


Counted = Mapping[str, Mapping[str, Counter[str]]]


def _by_stream(log: Log, root: str, streams: tuple[str, ...]) -> Counted:
    """Files are named after the stream that makes them; those of Open MPI are no stream's."""
    counters: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    names = {
        int(i): name.decode()
        for ids, texts in log.names()
        for i, name in zip(ids, texts, strict=True)
    }
    for module in COUNTERS.keys() & log.modules.keys():
        for block in log.records(module):
            for record in block:
                name = names.get(int(record["id"]), "").removeprefix(root)
                of = [s for s in streams if name == s or name.startswith(f"{s}.")]
                if of and ".locktest" not in name:
                    _add(
                        counters[max(of, key=len)][module],
                        {n: int(record[n]) for n in COUNTERS[module]},
                    )
    return counters


def _add(counted: Counter[str], row: Mapping[str, int]) -> None:
    for name, number in row.items():
        counted[name] = max(counted[name], number) if "_MAX_" in name else counted[name] + number
