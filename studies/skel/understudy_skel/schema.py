"""Elements and attributes of the adios-config of ADIOS 1.13.1, and what becomes of each: read,
copied into the config of the skeletal application as it is, or left out because it has no effect
there. ADIOS ignores attributes that it does not know; each is told in a message.
"""

from collections.abc import Iterator

from markupsafe import Markup

from understudy.xmlfile import Element

VAR = ("name", "path", "type", "dimensions", "dimension", "gwrite")
# They change what ADIOS writes of a variable, or add attributes to the file.
COPIED_OF_VAR = (
    "transform",
    "mesh",
    "center",
    "time-steps",
    "time-scale",
    "time-series-format",
    "hyperslab",
)
METHOD = ("group", "method")
READ: dict[str, tuple[str, ...]] = {
    "adios-config": ("host-language", "schema-version"),
    "adios-group": (
        "name",
        "host-language",
        "coordination-communicator",
        "time-index",
        "stats",
    ),
    "var": VAR + COPIED_OF_VAR,
    "global-bounds": (
        "dimensions",
        "dimension",
        "global-dimensions",
        "global-dimension",
        "offsets",
    ),
    "attribute": ("name", "path", "type", "value", "var"),
    "gwrite": ("src",),
    "method": METHOD,
    "transport": METHOD,
    "buffer": ("size-MB", "max-size-MB"),
    "time-aggregation": ("group", "buffer-size", "sync-with-group"),
}
# No effect: on reading only, not used by ADIOS 1.13.1, or on several methods for one group.
WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    "adios-group": ("coordination-var",),
    "var": ("gread", "read"),
    "method": ("priority", "iterations"),
    "transport": ("priority", "iterations"),
}
# Elements that are copied with all that is in them.
COPIED = ("mesh", "multilink")
BASE_PATH = "base-path"


def ignored(element: Element) -> Iterator[str]:
    """Messages on the attributes of an element, and of those below it, that are left out although
    the descriptor's author may have expected an effect."""
    tag = element.tag.lower()
    if tag in READ:
        keys = {key.lower() for key in (*READ[tag], *WITHOUT_EFFECT.get(tag, ()))}
        for key, value in element.attributes.items():
            if key.lower() == BASE_PATH and tag in ("method", "transport"):
                why = "the program writes to the directory given with -o"
            elif key.lower() not in keys:
                why = "ADIOS 1.13.1 does not know it"
            else:
                continue
            place = f"{element.file}: line {element.line}: {element}"
            yield f'{place}: {key}="{value}" is ignored: {why}'
        for child in element.children:
            yield from ignored(child)


def copied(element: Element) -> Markup:
    """An element as XML, with its attributes and all elements in it."""
    attributes = Markup("").join(
        Markup(' {}="{}"').format(key, value) for key, value in element.attributes.items()
    )
    inside = Markup("").join(copied(child) for child in element.children)
    return Markup("<{0}{1}>{2}</{0}>").format(element.tag, attributes, inside)
