"""The templates of the pages, with autoescape and the filters that all of them have."""

import re

import jinja2
from markupsafe import Markup, escape

from understudy import studies, units
from understudy.paths import where


def environment() -> jinja2.Environment:
    """Names that a template does not know are errors."""
    jinja_environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([where("templates"), *studies.directories("templates")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    jinja_environment.filters |= {
        "size": units.size,
        "exact": units.exact,
        "rate": units.rate,
        "seconds": units.seconds,
        "percent": units.percent,
        "share": units.share,
        "three": units.three,
        "breakable": breakable,
    }
    return jinja_environment


def breakable(name: str) -> Markup:
    """A name that may go to the next line after _ and -."""
    return Markup(re.sub(r"([_-])", r"\1<wbr>", str(escape(name))))
