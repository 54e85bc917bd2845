"""An application's ADIOS descriptor: the adios-config XML as groups, variables and methods.

Reading checks everything that ADIOS 1.13.1 would say of it, and what that library passes over in
silence: one message with file, line and element. What it refuses although only one meaning is
possible (a dimension named without its path, a missing XML declaration) is set right.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.xmlfile import Element, check_printable, is_whole, load
from understudy_skel import schema
from understudy_skel.types import BY_NAME, TEXT, TYPES, UNFIT, ElementType

ROOT = "adios-config"
YAML_SUFFIXES = (".yaml", ".yml")
TOP = ("adios-group", "method", "transport", "buffer")
# Methods of ADIOS 1.13.1 that write files and work.
METHODS = ("POSIX", "MPI", "MPI_LUSTRE", "MPI_AMR", "MPI_AGGREGATE")
IN_PIECES = "POSIX"  # the only one that writes the buffer when it is full
BROKEN_METHODS = {
    "VAR_MERGE": "in ADIOS 1.13.1 it loses data or aborts",
    "PHDF5": "in ADIOS 1.13.1 it drops arrays without global bounds and does not say so",
    "NC4": "in ADIOS 1.13.1 it fails on arrays without global bounds",
    "NULL": "it writes nothing",
}
LANGUAGES = {"c": "C", "fortran": "Fortran"}
STATISTICS = ("", "on", "off", "default", "minmax", "full", "no")
TRANSFORMS = (
    "none",
    "identity",
    "zlib",
    "bzip2",
    "szip",
    "isobar",
    "aplod",
    "alacrity",
    "zfp",
    "sz",
    "lz4",
    "blosc",
    "mgard",
)
# adios_group_size fails where these would have to know a scalar before it is written.
NEED_NUMBERS = ("lz4", "blosc")
MAX_GROUP_BYTES = 200  # file names have at most 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A condition around variables, from <gwrite src="if (...)"/>."""

    name: str
    source: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A scalar (no dimensions) or an array.

    `name` is the full name, path and all. Dimensions, global dimensions and offsets are numbers or
    full names of scalars or attributes, in the order of the file (Fortran: fastest first); the
    time dimension is left out and noted in `over_time`. `when` lists the switches (name, value)
    that must hold for it to be written.
    """

    name: str
    path: str
    type: ElementType
    element: Element
    dimensions: tuple[str, ...] = ()
    global_dimensions: tuple[str, ...] = ()
    offsets: tuple[str, ...] = ()
    over_time: bool = False
    gwrite: str = ""
    when: tuple[tuple[str, bool], ...] = ()

    @property
    def transform(self) -> str:
        """How ADIOS changes the contents, with parameters, as zlib:5; empty: not at all."""
        text = self.element.get("transform").strip()
        return "" if text.lower() == "none" else text

    @property
    def leaf(self) -> str:
        """The name without its path, as it stands in the file."""
        return self.name.removeprefix(full_name(self.path, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """`value` or `variable`, the other is empty."""

    name: str
    path: str
    type: str
    value: str
    variable: str


@dataclass(frozen=True, kw_only=True)  # without slots: properties are kept
class Group:
    """`copied`: elements of the file that describe variables to readers, such as meshes."""

    name: str
    element: Element
    language: str
    communicator: str
    time_index: str
    stats: str
    variables: tuple[Variable, ...]
    attributes: tuple[Attribute, ...]
    switches: tuple[Switch, ...]
    copied: tuple[Element, ...] = ()

    @cached_property
    def scalars(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if not v.dimensions)

    @cached_property
    def arrays(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.dimensions)

    @cached_property
    def types(self) -> Mapping[str, ElementType]:
        """The type of each variable by its full name."""
        return {v.name: v.type for v in self.variables}

    @cached_property
    def _values(self) -> Mapping[str, str]:
        """The values of attributes that state one, by full name."""
        stated = (a for a in reversed(self.attributes) if a.value)
        return {full_name(a.path, a.name): a.value for a in stated}

    def constant(self, token: str) -> int | None:
        """The number that a dimension states by itself or by an attribute's value; None for one
        that a scalar holds."""
        value = token if is_whole(token) else self._values.get(token)
        return None if value is None else int(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    group: str
    name: str
    parameters: str
    element: Element


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """`ignored`: messages on what has no effect here."""

    file: str
    language: str
    groups: tuple[Group, ...]
    methods: tuple[Method, ...]
    buffer_mb: int | None
    schema_version: str = ""
    ignored: tuple[str, ...] = ()

    def group(self, name: str) -> Group:
        for group in self.groups:
            if group.name == name:
                return group
        names = ", ".join(g.name for g in self.groups)
        raise UnderstudyError(f"{self.file}: there is no group {name!r}; expected one of {names}")

    def method(self, group: str) -> Method | None:
        return next((m for m in self.methods if m.group == group), None)


def read(path: Path, method: str | None = None) -> Descriptor:
    """The descriptor in an adios-config XML file; with `method`, all groups are written by that
    one, and what the file says, such as a method that writes no files, is not checked."""
    if path.suffix.lower() in YAML_SUFFIXES and path.exists():
        raise UnderstudyError(
            f"{path}: a YAML file, as ADIOS2 takes it; expected a descriptor of ADIOS 1.x "
            "(adios-config XML)"
        )
    root = load(path, ROOT)
    for element in root.all("io"):
        raise element.fault(
            "this is a config of ADIOS2, which has engines but no variables; expected a "
            "descriptor of ADIOS 1.x, with <adios-group>, or a BP file with this config: "
            "understudy describe FILE.bp --config CONFIG"
        )
    language = _language(root, "Fortran")
    groups: dict[str, Group] = {}
    for element in root.all("adios-group"):
        group = _Reader(element, language=_language(element, language)).group()
        if group.name in groups:
            first = groups[group.name].element.line
            raise element.fault(f"a group of this name stands in line {first} already")
        groups[group.name] = group
    if not groups:
        raise root.fault("no <adios-group> in it")
    for element in root.children:
        _check_top(element, groups)
    return Descriptor(
        file=str(path),
        language=language,
        groups=tuple(groups.values()),
        methods=_methods(root, groups, method),
        buffer_mb=_buffer(root),
        schema_version=root.get("schema-version"),
        ignored=tuple(schema.ignored(root)),
    )


def _language(element: Element, default: str) -> str:
    language = element.get("host-language", default)
    if language.lower() not in LANGUAGES:
        raise element.fault(f"host-language {language!r}: expected C or Fortran")
    return LANGUAGES[language.lower()]


def _check_top(element: Element, groups: Mapping[str, Group]) -> None:
    """ADIOS ends reading at an element that it does not know."""
    tag = element.tag.lower()
    if tag == "time-aggregation":
        _check_aggregation(element, groups)
    elif tag == "analysis":
        raise element.fault("ADIOS 1.13.1 crashes on it; expected a descriptor without it")
    elif tag not in TOP:
        raise element.fault(
            "unknown element; expected adios-group, method, buffer or time-aggregation"
        )


def _check_aggregation(element: Element, groups: Mapping[str, Group]) -> None:
    _group_of(element, "group", groups)
    size = element.get("buffer-size", "0").strip()
    if not is_whole(size):
        raise element.fault(f"buffer-size {size!r}: expected a whole number")
    if int(size) > 0:
        raise element.fault(
            f"buffer-size {size}: steps stay in the buffer of ADIOS until it is full, so that "
            "they cannot be measured or described one by one; expected a descriptor without it, "
            'or buffer-size="0"'
        )


def _group_of(element: Element, key: str, groups: Mapping[str, Group]) -> Group:
    name = element.need(key)
    if name not in groups:
        raise element.fault(f"there is no group {name!r}; expected one of {', '.join(groups)}")
    return groups[name]


def full_name(path: str, name: str) -> str:
    """ADIOS' name of a variable: the path without a slash at its end, a slash, the name."""
    return f"{path.rstrip('/')}/{name}" if path else name


def _path(element: Element) -> str:
    """The path of a variable or an attribute; "/" is another than none."""
    path = element.get("path")
    return path.rstrip("/") or path[:1]


def check_method(name: str, element: Element | None = None) -> str:
    """The method's name as ADIOS writes it; a fault names the element, or the option --method."""
    upper = name.upper()
    if upper in METHODS:
        return upper
    if upper in BROKEN_METHODS:
        message = f"method {name}: {BROKEN_METHODS[upper]}; use one of {', '.join(METHODS)}"
    else:
        message = (
            f"method {name!r} writes no files in ADIOS 1.13.1; expected one of "
            f"{', '.join(METHODS)}"
        )
        message += ", here or by the option --method" if element is not None else ""
    if element is not None:
        raise element.fault(message)
    raise UnderstudyError(f"--method: {message}")


def _methods(root: Element, groups: Mapping[str, Group], asked: str | None) -> tuple[Method, ...]:
    methods: dict[str, Method] = {}
    for element in root.all("method", "transport"):
        group = _group_of(element, "group", groups).name
        if group in methods:
            first = methods[group].element.line
            raise element.fault(
                f"the group {group!r} has a method in line {first} already; expected one of each "
                "group"
            )
        name = element.need("method").upper()
        parameters = " ".join(element.text.split())
        if asked is None:
            name = check_method(element.need("method"), element)
        elif name != asked.upper():
            name, parameters = asked.upper(), ""
        check_printable(parameters, element, "parameters")
        methods[group] = Method(group=group, name=name, parameters=parameters, element=element)
    if asked is not None:
        for declared in groups.values():
            given = Method(
                group=declared.name,
                name=asked.upper(),
                parameters="",
                element=declared.element,
            )
            methods.setdefault(declared.name, given)
    return tuple(methods.values())


def _buffer(root: Element) -> int | None:
    """In MiB, of the last <buffer>; None: no limit."""
    size = None
    for element in root.all("buffer"):
        text = element.get("max-size-MB") or element.get("size-MB")
        if not is_whole(text.strip()):
            raise element.fault(f"max-size-MB {text!r}: expected a whole number")
        size = int(text) or size  # ADIOS ignores 0
    return size


def tokens(text: str) -> tuple[str, ...]:
    """The comma-separated parts of a list of dimensions."""
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


@dataclass(kw_only=False)
class _Reader:
    """Reads one group; what has been read so far is what a dimension may name."""

    element: Element
    language: str
    variables: dict[str, Variable] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    by_leaf: dict[str, list[str]] = field(default_factory=dict)
    switches: list[Switch] = field(default_factory=list)
    open: list[tuple[str, bool]] = field(default_factory=list)
    copied: list[Element] = field(default_factory=list)

    def group(self) -> Group:
        name = self.element.need("name")
        if "/" in name or name.startswith((".", "-")) or len(name.encode()) > MAX_GROUP_BYTES:
            raise self.element.fault(
                f"a group's files are named after it in the run directory; expected a name of at "
                f"most {MAX_GROUP_BYTES} bytes without '/', not beginning with '.' or '-'"
            )
        for child in self.element.children:
            self._child(child)
        if self.open:
            opened = next(s for s in self.switches if s.name == self.open[-1][0])
            raise self.element.fault(
                f"the condition of line {opened.line}, {opened.source!r}, is never ended"
            )
        if not self.variables:
            raise self.element.fault("no <var> in it")
        stats = self.element.get("stats")
        if stats.lower() not in STATISTICS:
            raise self.element.fault(f"stats {stats!r}: expected {', '.join(STATISTICS[1:])}")
        return Group(
            name=name,
            element=self.element,
            language=self.language,
            communicator=self.element.get("coordination-communicator", "comm"),
            time_index=self.element.get("time-index"),
            stats=stats,
            variables=tuple(self.variables.values()),
            attributes=tuple(self.attributes.values()),
            switches=tuple(self.switches),
            copied=tuple(self.copied),
        )

    def _child(self, child: Element) -> None:
        tag = child.tag.lower()
        if tag == "var":
            self._variable(child, (), ())
        elif tag == "global-bounds":
            self._bounds(child)
        elif tag == "attribute":
            self._attribute(child)
        elif tag == "gwrite":
            self._condition(child)
        elif tag in schema.COPIED:
            self.copied.append(child)
        else:
            raise child.fault("unknown element; expected var, global-bounds, attribute or gwrite")

    def _bounds(self, bounds: Element) -> None:
        keys = ("dimensions", "dimension", "global-dimensions", "global-dimension")
        dimensions = next((bounds.get(key) for key in keys if bounds.get(key)), "")
        if not dimensions.strip():
            raise bounds.fault("the dimensions of the global bounds are missing")
        offsets = bounds.need("offsets")
        for child in bounds.children:
            if child.tag.lower() == "gwrite":
                self._condition(child)
            elif child.tag.lower() == "var":
                self._variable(child, tokens(dimensions), tokens(offsets))
            else:
                raise child.fault("unknown element in <global-bounds>; expected var")

    def _variable(
        self, element: Element, bounds: tuple[str, ...], offsets: tuple[str, ...]
    ) -> None:
        path = _path(element)
        name = full_name(path, element.need("name"))
        if name in self.variables:
            line = self.variables[name].element.line
            raise element.fault(f"a variable of this name stands in line {line} already")
        local = tokens(element.get("dimensions") or element.get("dimension"))
        time = self.element.get("time-index")
        timeless = tuple(t for t in local if not time or t.lower() != time.lower())
        if bounds and (len(bounds), len(offsets)) != (len(timeless), len(timeless)):
            raise element.fault(
                f"{len(timeless)} dimensions ({', '.join(timeless)}) in global bounds of "
                f"{len(bounds)} dimensions ({', '.join(bounds)}) and {len(offsets)} offsets"
            )
        variable = Variable(
            name=name,
            path=path,
            type=self._type(element),
            element=element,
            dimensions=self._names(element, timeless),
            global_dimensions=self._names(element, bounds),
            offsets=self._names(element, offsets),
            over_time=timeless != local,
            gwrite=element.get("gwrite"),
            when=tuple(self.open),
        )
        self._check_transform(variable)
        self.variables[name] = variable
        self._remember(name)

    def _remember(self, name: str) -> None:
        """A full name, as what a dimension may name from now on."""
        self.by_leaf.setdefault(name.rsplit("/", 1)[-1], []).append(name)

    def _check_transform(self, variable: Variable) -> None:
        kind = variable.transform.partition(":")[0].lower()
        if not kind:
            return
        if kind not in TRANSFORMS:
            raise variable.element.fault(
                f"transform {variable.transform!r}: expected one of {', '.join(TRANSFORMS)}, with "
                "its parameters behind a colon"
            )
        named = [token for token in variable.dimensions if token in self.variables]
        if kind in NEED_NUMBERS and named:
            raise variable.element.fault(
                f"transform {variable.transform!r}: adios_group_size of ADIOS 1.13.1 fails for it "
                f"where a scalar holds a dimension ({named[0]}); expected numbers"
            )

    def _type(self, element: Element) -> ElementType:
        text = " ".join(element.need("type").lower().split())
        if text in UNFIT:
            raise element.fault(f"type {text}: {UNFIT[text]}; expected one with a fixed size")
        if text == TEXT.names[0] and (element.get("dimensions") or element.get("dimension")):
            raise element.fault("type string: ADIOS has no arrays of texts; expected a scalar")
        if text not in BY_NAME:
            names = ", ".join(kind.names[0] for kind in TYPES)
            raise element.fault(f"unknown type {element.get('type')!r}; expected one of {names}")
        return BY_NAME[text]

    def _names(self, element: Element, parts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._dimension(element, part) for part in parts)

    def _dimension(self, element: Element, token: str) -> str:
        """The number, or the full name of what holds it. ADIOS 1.13.1 takes full names only; a
        name without its path is meant where only one variable or attribute has it."""
        if not token:
            raise element.fault("a dimension is missing between two commas")
        if is_whole(token):
            return token
        names = self.by_leaf.get(token.rsplit("/", 1)[-1], [])
        fitting = [name for name in names if name == token] or self.by_leaf.get(token, [])
        if len(fitting) != 1:
            why = (
                f"could be {' or '.join(fitting)}"
                if fitting
                else "is no number, nor an integer scalar that stands before it in the group"
            )
            raise element.fault(f"dimension {token!r} {why}")
        [name] = fitting
        attribute = self.attributes.get(name)
        if attribute is not None and attribute.variable:
            name = self._dimension(element, attribute.variable)
        elif attribute is not None and not is_whole(attribute.value):
            raise element.fault(f"dimension {token!r}: the attribute's value is no number")
        held = self.variables.get(name)
        if held is not None and (held.dimensions or not held.type.integer):
            raise element.fault(f"dimension {token!r}: expected an integer scalar")
        return name

    def _attribute(self, element: Element) -> None:
        name, value, variable = element.need("name"), element.get("value"), element.get("var")
        if bool(value) == bool(variable):
            raise element.fault("expected either a value or a var")
        path = _path(element)
        full = full_name(path, name)
        if full not in self.attributes:
            self._remember(full)
        self.attributes[full] = Attribute(
            name=name,
            path=path,
            type=element.get("type", "string"),
            value=value,
            variable=variable,
        )

    def _condition(self, element: Element) -> None:
        source = element.need("src")
        text = source.strip().lower()
        if re.match(r"(\}\s*)?else\b", text) and self.open:
            name, value = self.open.pop()
            self.open.append((name, not value))
        elif re.match(r"end\s*if\b|\}|#\s*endif\b", text):
            if not self.open:
                raise element.fault(f"{source!r} ends a condition that was not begun")
            self.open.pop()
        elif re.match(r"#?\s*if(n?def)?\b", text):
            switch = Switch(name=self._switch_name(source), source=source, line=element.line)
            self.switches.append(switch)
            self.open.append((switch.name, True))
        # Any other statement is the application's own and writes nothing.

    def _switch_name(self, source: str) -> str:
        words = re.findall(r"\w+", re.sub(r"^\W*#?\s*if(n?def)?\b|\bthen\b", "", source.strip()))
        name = "_".join(words) or "condition"
        taken = [s.name for s in self.switches]
        return next(n for n in _numbered(name) if n not in taken)


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1
