"""The values that a figure shows, as a table, read from what is drawn: every figure has them.

Columns: panel, series, x axis, y axis, x, y. A name stands for the position of a category.
"""

import csv
import io
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from understudy.errors import printable

MAX_VALUES = 10_000  # of a figure: of more, the first are in the table, and all are one image
MAX_MARKS = 4000  # of marks, each an element of the page, more are one image
HEAD = ("panel", "series", "x axis", "y axis", "x", "y")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Point = tuple[str, Any, Any]  # series, x, y


def csv_of(figure: Figure) -> str:
    """The text of the table."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n")
    write.writerow(HEAD)
    left = MAX_VALUES
    for k, axes in enumerate(figure.axes):
        if not axes.get_visible():
            continue
        panel = axes.get_title("left") or axes.get_title() or f"panel {k + 1}"
        names = [_categories(axis) for axis in (axes.xaxis, axes.yaxis)]
        for series, x, y in _points(axes):
            cells = [_cell(v, axis_names) for v, axis_names in zip((x, y), names, strict=True)]
            if "" not in cells:
                if not left:
                    write.writerow([f"the first {MAX_VALUES} values; all are in the records"])
                    return text.getvalue()
                left -= 1
                labels = (panel, series, axes.get_xlabel(), axes.get_ylabel())
                write.writerow([*map(_text, labels), *cells])
    return text.getvalue()


def rasterize(figure: Figure) -> None:
    """Have what has more values than that be one image of an SVG, and not an element for each."""
    for axes in figure.axes:
        sizes: dict[Any, int] = {line: _elements(line) for line in axes.get_lines()}
        for collection in axes.collections:
            corners = sum(np.size(path.vertices) for path in collection.get_paths()) // 2
            marks = np.size(collection.get_offsets()) // 2
            sizes[collection] = max(corners, marks * MAX_VALUES // MAX_MARKS)
        for bars in (c for c in axes.containers if isinstance(c, BarContainer)):
            sizes |= dict.fromkeys(bars.patches, len(bars.patches))
        for artist, size in sizes.items():
            if size > MAX_VALUES:
                artist.set_rasterized(True)


def _elements(line: Any) -> int:
    """The size of a line, in which a mark counts for several points."""
    marks = line.get_marker() not in ("", " ", None, "None", "none")
    return int(np.size(line.get_xdata()) * (MAX_VALUES // MAX_MARKS if marks else 1))


def _points(axes: Axes) -> Iterator[Point]:
    for line in axes.get_lines():
        if line.get_transform() == axes.transData:
            yield from _series(_name(line), line.get_xdata(), line.get_ydata())
    for bars in (c for c in axes.containers if isinstance(c, BarContainer)):
        for bar in bars.patches:
            middle = bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2
            if bars.orientation == "horizontal":
                yield _name(bars), bar.get_width(), middle[1]
            else:
                yield _name(bars), middle[0], bar.get_height()
    for collection in axes.collections:
        if isinstance(collection, PathCollection):
            points = np.asarray(collection.get_offsets())
            yield from _series(_name(collection), points[:, 0], points[:, 1])
        elif isinstance(collection, LineCollection):
            for segment in collection.get_segments():
                yield from _series("range", segment[:, 0], segment[:, 1])
    for image in axes.get_images():
        for (row, column), value in np.ndenumerate(np.asarray(image.get_array(), float)):
            if math.isfinite(value):
                yield f"value {value:.6g}", column, row


def _series(name: str, x: Any, y: Any) -> Iterator[Point]:
    for a, b in zip(np.asarray(x).ravel(), np.asarray(y).ravel(), strict=False):
        yield name, a, b


def _name(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _categories(axis: Any) -> dict[float, str]:
    """Names at positions, where ticks stand at fixed ones."""
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return {}
    texts = [label.get_text() for label in axis.get_ticklabels()]
    return {float(t): s for t, s in zip(axis.get_majorticklocs(), texts, strict=False) if s}


def _cell(value: Any, axis_names: dict[float, str]) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return _text(str(value))
    if not math.isfinite(number):
        return ""
    name = axis_names.get(number, axis_names.get(round(number)))  # beside others of its category
    return f"{number:.6g}" if name is None else _text(name)


def _text(text: str) -> str:
    """One line, and nothing that a spreadsheet takes for a formula."""
    plain = printable(" ".join(text.split()))
    return f"'{plain}" if plain.startswith(_FORMULA) else plain
