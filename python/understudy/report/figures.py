"""The plugin directory reports/figures: found by listing, drawn into SVG for an HTML page.

A figure is one file with a docstring (first line: the question it answers; the rest: how to read
it), an integer ORDER (smaller is higher on the page) and `draw(case)`, which returns a matplotlib
Figure, or None where the case has nothing to show. With `OF = "transfer"`, it is drawn once for a
page, of all cases of the check transfer: `draw(study)`. With `OF = "page"`, it is drawn once for a
page, of all that is on it: `draw(book)`.
"""

import importlib.util
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from traceback import extract_tb
from types import MappingProxyType
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from understudy.errors import UnderstudyError, refuse_exit
from understudy.judge.fidelity.transfer import Study
from understudy.judge.statistics.conditions import Case
from understudy.paths import files, where
from understudy.report import inline_svg, values
from understudy.report.book import Book

WORKLOAD, TRANSFER, PAGE = "workload", "transfer", "page"  # what a figure is drawn of


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawer:
    path: Path
    name: str
    order: int
    title: str
    caption: str
    draw: Callable[[Any], Figure | None]  # of a Case, a Study or a Book
    of: str = WORKLOAD


def drawers(paths: Iterable[Path] | None = None) -> list[Drawer]:
    """Every figure, by default of all plugin directories, in the order of the page."""
    all_drawers = [
        _drawer(p) for p in (files("figures", ".py").values() if paths is None else paths)
    ]
    return sorted(all_drawers, key=lambda d: (d.order, d.name))


def _drawer(path: Path) -> Drawer:
    spec = importlib.util.spec_from_file_location(f"understudy_figure_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UnderstudyError(f"{path}: cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    try:
        with refuse_exit(path):
            spec.loader.exec_module(module)
    except SyntaxError as error:
        raise UnderstudyError(f"{path}: line {error.lineno}: {error.msg}") from None
    except UnderstudyError:
        raise
    except Exception as error:
        raise _fault(path, error) from None
    for wanted in ("__doc__", "ORDER", "draw"):
        if not getattr(module, wanted, None):
            raise UnderstudyError(
                f"{path}: a figure needs a docstring, an integer ORDER above 0 and draw(case); "
                f"{'the docstring' if wanted == '__doc__' else wanted} is missing"
            )
    title, _, caption = str(module.__doc__).strip().partition("\n")
    return Drawer(
        path=path,
        name=path.stem,
        order=module.ORDER,
        title=title.strip(),
        caption=" ".join(caption.split()),
        draw=module.draw,
        of=getattr(module, "OF", WORKLOAD),
    )


def _fault(path: Path, error: Exception) -> UnderstudyError:
    """Error in a figure, in one line."""
    lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == str(path)]
    at = f"line {lines[-1]}: " if lines else ""
    return UnderstudyError(f"{path}: {at}{type(error).__name__}: {' '.join(str(error).split())}")


def svg(drawer: Drawer, case: Case | Study | Book) -> str | None:
    """The figure as an <svg> element without references to anything outside it.

    Raises UnderstudyError, which names the file, where it cannot be drawn.
    """
    drawn = draw(drawer, case)
    return drawn.svg if drawn else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A figure as an <svg> element, and the values that it shows as CSV."""

    svg: str
    csv: str


def draw(drawer: Drawer, case: Case | Study | Book) -> Drawn | None:
    """The same with its data; None where there is nothing to show."""
    try:
        with refuse_exit(drawer.path):
            key = f"{case.key}-{drawer.name}"
            return render(lambda: drawer.draw(case), key, drawer.title)
    except UnderstudyError:
        raise
    except Exception as error:
        raise _fault(drawer.path, error) from None


@cache
def _style() -> dict[str, Any]:
    """The parameters of the page's figures: each figure has them, and the file is read once."""
    with matplotlib.rc_context(fname=str(where("style"))):
        params: dict[str, Any] = dict(matplotlib.rcParams.copy())
    del params["backend"]
    return params


def render(
    draw: Callable[[], Figure | None],
    key: str,
    label: str,
    titles: Mapping[str, Sequence[str]] = MappingProxyType({}),
    table: bool = True,
) -> Drawn | None:
    """Draw a figure by a function, in the style of the page. `key` begins the ids of the elements,
    `label` names the figure for screen readers. `titles`: texts that show under the pointer, by
    the gid of an artist, one for each of its marks. Without `table` the CSV is empty."""
    with matplotlib.rc_context(_style()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ")  # the page gives the font
        matplotlib.rcParams["svg.hashsalt"] = key
        figure = draw()
        if figure is None:
            return None
        values.rasterize(figure)
        text = inline_svg.element(figure, prefix=f"{key}-", label=label, titles=titles)
        data = values.csv_of(figure) if table else ""
    return Drawn(svg=text, csv=data)
