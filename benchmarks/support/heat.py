"""Tables and heat maps of shares by noise and design."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float64]  # percent, [rows, columns]
ABOVE = "#d9534f"
FULL = 100


def table(rows: Sequence[str], heads: Sequence[str], of: Shares, form: str) -> Iterator[str]:
    """Lines of Markdown."""
    yield f"| noise | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    for name, values in zip(rows, of, strict=True):
        yield f"| {name} | {' | '.join(form.format(v) for v in values)} |"


def draw(
    path: Path,
    rows: Sequence[str],
    heads: Sequence[str],
    axis: str,
    panels: Sequence[tuple[str, Shares, float | None]],
) -> None:
    """An SVG with a heat map for each of (title, shares, limit): what is above the limit is red,
    and its scale ends there; without a limit it ends at 100 %."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "heat"
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    height = 1.2 + 0.32 * len(rows)
    figure, axes = pyplot.subplots(
        len(panels),
        1,
        figsize=(3.2 + 0.5 * len(heads), height * len(panels)),
        squeeze=False,
        layout="constrained",
    )
    for at, (title, shares, limit) in zip(axes[:, 0], panels, strict=True):
        colours = matplotlib.colormaps["Blues"].with_extremes(over=ABOVE)
        top = limit or FULL
        at.imshow(shares, cmap=colours, vmin=0, vmax=top, aspect="auto")
        at.set_title(title, fontsize=10)
        at.set_xticks(range(len(heads)), heads, fontsize=8)
        at.set_yticks(range(len(rows)), rows, fontsize=8)
        at.set_xlabel(axis, fontsize=8)
        for (i, j), value in np.ndenumerate(shares):
            dark = value > 0.6 * top
            at.text(
                j,
                i,
                f"{value:.1f}" if limit else f"{value:.0f}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else "black",
            )
    figure.savefig(path, metadata={"Date": None, "Creator": None})
