"""A figure as an <svg> element of a page: without references to anything outside it, and many
marks of one kind as one element."""

import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.transforms import IdentityTransform
from numpy.typing import NDArray

from understudy.errors import printable

Points = NDArray[np.float64]  # a row for each mark: x and y

POINT = 72  # of an inch
FEW = 2  # marks that are elements of their own
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_DIGITS = re.compile(r"(\.\d\d)\d+")
_INHERITED = re.compile(r"(?:(?:fill|stroke)[a-z-]*: [^;]*(?:; )?)*")
_FONT = re.compile(r"font-family: [^;]*(?:; |$)")  # the page gives the font
_UNTURNED = re.compile(r"rotate\(-?0 .*")
_COUNTED = re.compile(r"[A-Za-z.]+(?:2d)?_[0-9]+")  # ids that matplotlib gives every element
_PLACE = re.compile(r'<marks of="([^"]*)"></marks>')


class _Renderer(RendererSVG):
    """Draws the first of many marks, in a group; `marks` has the places of all, by its id."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self.marks: dict[str, Points] = {}
        super().__init__(*args, **more)  # type: ignore[no-untyped-call]

    def draw_markers(
        self,
        gc: Any,
        marker_path: Any,
        marker_trans: Any,
        path: Any,
        trans: Any,
        rgbFace: Any = None,
    ) -> None:
        draw: Any = super().draw_markers
        points = trans.transform(path.vertices)
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) <= FEW or path.codes is not None or gc.get_url() is not None:
            draw(gc, marker_path, marker_trans, path, trans, rgbFace)
            return
        name = f"marks-{len(self.marks)}"
        self.marks[name] = np.column_stack([points[:, 0], self.height - points[:, 1]])
        self.open_group("marks", name)  # type: ignore[no-untyped-call]
        draw(gc, marker_path, marker_trans, Path(points[:1]), IdentityTransform(), rgbFace)
        self.close_group("marks")  # type: ignore[no-untyped-call]


def element(
    figure: Figure, *, prefix: str, label: str, titles: Mapping[str, Sequence[str]]
) -> str:
    """The text of the element. `prefix` begins all ids, `label` names the figure for screen
    readers; `titles` are texts that show under the pointer, by the gid of an artist, one for each
    of its marks."""
    text, marks = _drawn(figure)
    root = ElementTree.fromstring(printable(text))  # labels may hold what XML cannot
    titles_of_marks: dict[str, Sequence[str]] = {}
    for group in root.iter(f"{_SVG}g"):
        if texts := titles.get(group.get("id", "")):
            many = [g.get("id", "") for g in group.iter(f"{_SVG}g") if g.get("id") in marks]
            titles_of_marks |= dict.fromkeys(many, texts)
            few = list(group.iter(f"{_SVG}use")) or [group]
            for mark, title in zip(() if many else few, texts, strict=False):
                ElementTree.SubElement(mark, "title").text = printable(title)
    _rename(root, prefix)
    root.attrib |= {"role": "img", "aria-label": label}
    texts_of_marks = {}
    for group in list(root.iter("g")):
        name = group.get("id", "").removeprefix(prefix)
        if name in marks:
            of = titles_of_marks.get(name, ())
            texts_of_marks[name] = _all_marks(group, name, prefix, marks[name], of)
        else:
            _share(group)
    page_text = ElementTree.tostring(root, encoding="unicode", method="html")
    return _PLACE.sub(lambda match: texts_of_marks[match[1]], page_text)


def _drawn(figure: Figure) -> tuple[str, dict[str, Points]]:
    """The SVG of matplotlib, with the first of the marks. As savefig, which draws everything twice
    where there is a layout."""
    FigureCanvasSVG(figure)
    buffer = io.StringIO()
    dpi = figure.dpi
    figure.dpi = POINT
    width, height = figure.get_size_inches()
    svg = _Renderer(width * POINT, height * POINT, buffer, image_dpi=dpi, metadata={"Date": None})
    renderer: Any = MixedModeRenderer(figure, width, height, dpi, svg)  # type: ignore[no-untyped-call]
    figure.draw(renderer)
    renderer.finalize()
    figure.dpi = dpi
    return buffer.getvalue(), svg.marks


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Give the elements names of the page's own: ids carry a prefix, namespaces, metadata and what
    the page does not need go."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}style" or child.tag.endswith("}metadata"):
                parent.remove(child)
    # matplotlib names what clips by a digest of positions, whose last bits vary
    clips = {str(e.get("id")): f"clip-{k}" for k, e in enumerate(root.iter(f"{_SVG}clipPath"))}
    links = {use.get(f"{_XLINK}href", "")[1:] for use in root.iter(f"{_SVG}use")}
    names = {link: _short(prefix + link) for link in links}
    for each in root.iter():
        each.tag = each.tag.removeprefix(_SVG)
        each.text, each.tail = (each.text or "").strip(), "\n" if each.tag == "g" else ""
        name = each.get("id", "")
        if each.tag == "image" or _COUNTED.fullmatch(name):
            del each.attrib["id"]  # nothing refers to it
        each.attrib = dict(_attributes(each, prefix, clips, names))


def _short(name: str) -> str:
    """An id for a mark that many elements refer to."""
    return f"m{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def _attributes(
    each: ElementTree.Element, prefix: str, clips: Mapping[str, str], names: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for name, value in each.attrib.items():
        if name == "id":
            yield name, names.get(value) or prefix + clips.get(value, value)
        elif name == "clip-path":
            clip = value.removeprefix("url(#").removesuffix(")")
            yield name, f"url(#{prefix}{clips.get(clip, clip)})"
        elif name == f"{_XLINK}href":
            link = value.removeprefix("#")
            yield "href", f"#{names[link]}" if link in names else value
        elif name in ("d", "x", "y") or value.startswith("rotate("):
            if not _UNTURNED.fullmatch(value):
                yield name, _DIGITS.sub(r"\1", " ".join(value.split()))
        elif name == "style" and each.tag == "text":
            yield name, _FONT.sub("", value)
        else:
            yield name, re.sub(r"url\(#", f"url(#{prefix}", value)


def _share(group: ElementTree.Element) -> None:
    """Give what all marks or lines of a group have in common to the group: the style, where it
    hands down all of it, and what clips them."""
    drawn = [child for child in group if child.tag != "defs"]
    if len(drawn) < FEW or any(child.tag not in ("use", "path") for child in drawn):
        return
    for name in ("style", "clip-path"):
        values = {child.get(name, "") for child in drawn}
        if len(values) > 1 or group.get(name) or not all(values):
            continue
        value = values.pop()
        if name == "clip-path" or _INHERITED.fullmatch(value):
            group.set(name, value)
            for child in drawn:
                del child.attrib[name]


def _all_marks(
    group: ElementTree.Element, name: str, prefix: str, points: Points, titles: Sequence[str]
) -> str:
    """The text of all marks, for the place of the first one in the group. Marks without titles are
    the corners of a line that is not drawn."""
    [(parent, use)] = [(p, c) for p in group.iter() for c in p if c.tag == "use"]
    parent.remove(use)
    ElementTree.SubElement(parent, "marks", of=name)
    del group.attrib["id"]
    link, style = use.get("href", ""), use.get("style", "")
    if not titles:
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points.tolist())
        return (
            f'<marker id="{prefix}{name}" markerUnits="userSpaceOnUse" overflow="visible">'
            f'<use href="{link}" style="{style}"></use></marker>'
            f'<polyline points="{corners}" style="fill: none; marker: url(#{prefix}{name})">'
            "</polyline>"
        )
    if _INHERITED.fullmatch(style):
        parent.set("style", style)
        style = ""
    styled = f' style="{style}"' * bool(style)
    return "\n".join(
        f'<use href="{link}"{styled} x="{x:.1f}" y="{y:.1f}">'
        f"{'' if title is None else f'<title>{escape(printable(title), quote=False)}</title>'}"
        "</use>"
        for (x, y), title in zip_longest(points.tolist(), titles[: len(points)])
    )
