"""Which inputs are too small to be a stream each?"""

from collections.abc import Sequence

import numpy as np

from understudy.inference import constants as levels
from understudy.inference.streams.file_series import DumpFacts, Series
from understudy.inference.streams.pauses import Cuts, cut, pauses_of
from understudy.inference.streams.stream_grouping import MAX_FILES, NEAR_S, Draft, file_count
from understudy.inference.table import BURST

SMALL = levels.SMALL  # share of all bytes below which single inputs are put together


def combine(drafts: Sequence[Draft], runtime_s: float) -> tuple[list[Draft], list[str]]:
    """The drafts, of which single small inputs are put into one, so that the streams that matter
    can be seen; and notes on those."""
    total = sum(d.bytes for d in drafts)
    written = {(s.template, d.method) for d in drafts if d.write for s in d.series}
    small = [
        d
        for d in drafts
        if not d.write
        and d.dumps == 1
        and d.bytes < SMALL * total
        and not any((s.template, d.method) in written for s in d.series)
    ]
    small.sort(key=lambda d: d.start_s(0))
    folded = set(map(id, small))
    kept = [d for d in drafts if id(d) not in folded]
    notes = []
    by_layout: dict[tuple[int, str], list[Draft]] = {}
    for draft in small:
        by_layout.setdefault((len(draft.spans), draft.method), []).append(draft)
    for group in by_layout.values():
        if len(group) == 1:
            kept += group
            continue
        bursts: list[list[Series]] = []
        begins = {0, *_pauses(group, runtime_s).at}
        for n, draft in enumerate(group):
            if n in begins or sum(map(file_count, bursts[-1])) >= MAX_FILES // 2:
                bursts.append(list(draft.series))
            else:
                bursts[-1].extend(draft.series)
        notes.append(f"{len(group)} small inputs, each read once, were combined into one stream.")
        kept.append(_chain(bursts))
    return kept, notes


def _pauses(drafts: Sequence[Draft], runtime_s: float) -> Cuts:
    """Which single dumps, in the order of their starts, are far from those before."""
    start_s = np.array([d.start_s(0) for d in drafts])
    end_s = np.array([d.end_s(0) for d in drafts])
    short_s = BURST * runtime_s
    return cut(
        pauses_of(start_s, end_s),
        np.array([d.bytes for d in drafts]),
        call_s=float(np.median(end_s - start_s)),
        few_s=short_s,
        least_s=min(NEAR_S, short_s),
    )


def _chain(bursts: list[list[Series]]) -> Draft:
    """One draft whose dumps are the bursts: the facts of each burst's series in one dump."""
    first = bursts[0][0]
    dumps = []
    for burst in bursts:
        facts = DumpFacts()
        for n, series in enumerate(burst):
            dump = series.dumps[0]
            for (item, variable), cell in dump.cells.items():
                facts.cells[((n, *item), variable)] = cell
            facts.start_s = min(facts.start_s, dump.start_s)
            facts.end_s = max(facts.end_s, dump.end_s)
        dumps.append(facts)
    whole = Series(
        template=b"",
        stem=b"",
        key=tuple((k,) for k in range(len(dumps))),
        fixed=(),
        write=first.write,
        method=first.method,
        collective=first.collective,
        synced=False,
        transfer_bytes=max(s.transfer_bytes for b in bursts for s in b),
        corrected=any(s.corrected for b in bursts for s in b),
        rank_spans=first.rank_spans,
        dumps=dumps,
    )
    return Draft(series=[whole], folded=frozenset(s.template for b in bursts for s in b))
