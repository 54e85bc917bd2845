"""Colours of the page and its figures."""

from collections.abc import Sequence

from matplotlib import colormaps
from matplotlib.colors import ListedColormap

# Apart in lightness as well as in hue, and dark enough for thin lines on white.
ROLE_COLOURS = {
    "checkpoint": "#0b62a4",
    "visualization": "#00886a",
    "output": "#8a63b8",
    "restart": "#c8500a",
    "input": "#b8860b",
}
PHASE_COLOURS = {
    "open": "#9aa5b1",
    "metadata": "#8a63b8",
    "write": "#0b62a4",
    "read": "#c8500a",
    "sync": "#00886a",
    "close": "#d3a63c",
}
TREND_COLOURS = {
    "session": "#0b62a4",
    "fit": "#1f2830",
    "change": "#c8500a",
    "outlier": "#8a5a00",
    "failed": "#a3211a",
    "upgrade": "#8a63b8",
}
_METHOD_PALETTE = (
    "#0b62a4",
    "#d1495b",
    "#00886a",
    "#8a63b8",
    "#c8800a",
    "#3c8dad",
    "#7a5230",
    "#5b6770",
)
_PLACE_PALETTE = ("#1f6f8b", "#a05510", "#5b3a8c", "#6f7300", "#8b1e3f", "#2f5d3a")
# Of heat maps: without the palest, which cannot be told from paper, white or inverted.
HEAT = ListedColormap([colormaps["YlGnBu"](k / 255) for k in range(80, 256)], "heat")
MUTED = "#6b7785"


def place_colour(place: str, places: Sequence[str]) -> str:
    """The same colour for a place everywhere on a page that knows `places`; grey of others."""
    if place not in places:  # no run of it was measured
        return MUTED
    return _PLACE_PALETTE[list(places).index(place) % len(_PLACE_PALETTE)]


def method_colour(method: str, methods: Sequence[str]) -> str:
    """The same colour for a method everywhere on a page that knows `methods`."""
    return _METHOD_PALETTE[list(methods).index(method) % len(_METHOD_PALETTE)]
