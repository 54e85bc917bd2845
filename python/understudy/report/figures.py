"""The plugin directory reports/figures: found by listing, drawn into SVG for an HTML page.

A figure is one file with a docstring (first line: the question it answers; the rest: how to read
it), an integer ORDER (smaller is higher on the page) and `draw(case)`, which returns a matplotlib
Figure, or None where the case has nothing to show. With `OF = "transfer"`, it is drawn once for a
page, of all cases of the check transfer: `draw(study)`. With `OF = "page"`, it is drawn once for a
page, of all that is on it: `draw(book)`.
"""

import hashlib
import importlib.util
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from understudy.errors import UnderstudyError, printable, refuse_exit
from understudy.judge.fidelity.transfer import Study
from understudy.judge.statistics.conditions import Case
from understudy.paths import files, where
from understudy.report import values
from understudy.report.book import Book

WORKLOAD, TRANSFER, PAGE = "workload", "transfer", "page"  # what a figure is drawn of
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_DIGITS = re.compile(r"(\.\d\d)\d+")
_INHERITED = re.compile(r"(?:(?:fill|stroke)[a-z-]*: [^;]*(?:; )?)*")


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
    with matplotlib.rc_context(fname=str(where("style"))), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ")  # the page gives the font
        matplotlib.rcParams["svg.hashsalt"] = key
        buffer = io.BytesIO()
        figure = draw()
        if figure is None:
            return None
        values.rasterize(figure)
        # As savefig, which draws everything twice where there is a layout.
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})
        data = values.csv_of(figure) if table else ""
    drawn = buffer.getvalue().decode()
    root = ElementTree.fromstring(printable(drawn))  # labels may hold what XML cannot
    for group in root.iter(f"{_SVG}g"):
        marks = list(group.iter(f"{_SVG}use")) or [group]
        for mark, title in zip(marks, titles.get(group.get("id", ""), ()), strict=False):
            ElementTree.SubElement(mark, "title").text = printable(title)
    return Drawn(svg=_inline(root, prefix=f"{key}-", label=label), csv=data)


def _inline(root: ElementTree.Element, *, prefix: str, label: str) -> str:
    """Names of the page's own: ids carry a prefix, namespaces and metadata go."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}style" or child.tag.endswith("}metadata"):
                parent.remove(child)
    # matplotlib names what clips by a digest of positions, whose last bits vary
    clips = {str(e.get("id")): f"clip-{k}" for k, e in enumerate(root.iter(f"{_SVG}clipPath"))}
    marks = {use.get(f"{_XLINK}href", "")[1:] for use in root.iter(f"{_SVG}use")}
    names = {f"#{mark}": f"#{_short(prefix + mark)}" for mark in marks}
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        if element.tag == "image":  # equal ones have one id, and nothing refers to it
            element.attrib.pop("id", None)
        target = names.get(f"#{element.get('id')}")
        if element.tag == "use":  # of which there are thousands
            link = names[element.attrib.pop(f"{_XLINK}href")]
            place = {name: _DIGITS.sub(r"\1", element.get(name, "0")) for name in ("x", "y")}
            element.attrib = {"href": link} | element.attrib | place
        else:
            element.attrib = dict(_attributes(element, prefix, clips))
        if target is not None:
            element.set("id", target[1:])
    for group in root.iter("g"):
        _share_style(group)
    root.attrib |= {"role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode", method="html")


def _short(name: str) -> str:
    """An id for a mark that thousands of elements refer to."""
    return f"m{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def _share_style(group: ElementTree.Element) -> None:
    """Give the style that all marks of a group have to the group, which hands down all of it."""
    uses = [child for child in group if child.tag == "use"]
    styles = {use.get("style", "") for use in uses}
    inherited = all(map(_INHERITED.fullmatch, styles))
    alone = all(child.tag in ("use", "defs") for child in group)
    if uses and len(styles) == 1 and inherited and alone and not group.get("style"):
        for use in uses:
            use.attrib.pop("style", None)
        if style := styles.pop():
            group.set("style", style)
    for use in uses[:-1]:
        use.tail = "\n"


def _attributes(
    element: ElementTree.Element, prefix: str, clips: dict[str, str]
) -> Iterator[tuple[str, str]]:
    for name, value in element.attrib.items():
        if name == "id":
            yield name, prefix + clips.get(value, value)
        elif name == "clip-path":
            clip = value.removeprefix("url(#").removesuffix(")")
            yield name, f"url(#{prefix}{clips.get(clip, clip)})"
        elif name == f"{_XLINK}href":
            yield "href", value.replace("#", f"#{prefix}", 1)
        elif name in ("d", "x", "y"):
            yield name, _DIGITS.sub(r"\1", " ".join(value.split()))
        else:
            yield name, re.sub(r"url\(#", f"url(#{prefix}", value)
