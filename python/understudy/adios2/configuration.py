"""Configurations of ADIOS2, which select engines: XML and YAML of ADIOS2, JSON and TOML of
openPMD-api. They name no sizes; `applied` puts one to the variables of an output."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from understudy import xmlfile
from understudy.adios2 import engines
from understudy.adios2.output import Operator, Output
from understudy.contracts import human
from understudy.errors import UnderstudyError, one_line
from understudy.files import read_bytes
from understudy.xmlfile import Element

LARGEST_BYTES = 16 << 20
OPENPMD = "openPMD"  # the name of the only IO of a configuration of openPMD-api
ITERATION = re.compile(r"/data/[0-9]+/")  # of openPMD, before the names of its datasets
# Between ".*" in a pattern: characters, any character, classes. It is matched in linear time.
SEGMENT = re.compile(r"(?:[^\\.*+?^$|(){}\[\]]|\\[^\w\s]|\.|\[\^?[\w-]+\])*")
ADIOS_1 = ("adios-group", "method", "transport", "buffer", "analysis")


@dataclass(frozen=True, slots=True, kw_only=True)
class IO:
    """An IO: its `engine` as it is written, empty for the default, the engine's parameters, the
    types and parameters of transports, the operators of variables (those of "*" of all), those of
    the variables that patterns select, of which the first counts, and `notes` on what has no
    effect."""

    name: str
    engine: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    transports: tuple[tuple[str, Mapping[str, str]], ...] = ()
    operators: Mapping[str, tuple[Operator, ...]] = field(default_factory=dict)
    selections: tuple[tuple[re.Pattern[str], tuple[Operator, ...] | None], ...] = ()
    notes: tuple[str, ...] = ()

    def all_operators(self) -> Iterator[tuple[Operator, ...]]:
        """Of each name and pattern."""
        yield from self.operators.values()
        yield from (rows for _, rows in self.selections if rows is not None)

    def operators_of(self, variable: str) -> tuple[Operator, ...] | None:
        """What the data of a variable go through; None: it does not say."""
        for pattern, rows in self.selections:
            if pattern.fullmatch(variable) or pattern.fullmatch(
                ITERATION.sub("", variable, count=1)
            ):
                return rows
        return self.operators.get(variable, self.operators.get("*"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The IOs in a file by their names."""

    path: Path
    ios: Mapping[str, IO]

    def io(self, name: str | None = None) -> IO:
        """The IO of that name; the only one without a name."""
        names = ", ".join(map(one_line, self.ios))
        if name is None and len(self.ios) > 1:
            raise UnderstudyError(f"{self.path}: {len(self.ios)} IOs; choose one of {names}")
        if name is not None and name not in self.ios:
            raise UnderstudyError(f"{self.path}: no IO {name!r}; expected one of {names}")
        return self.ios[name] if name is not None else next(iter(self.ios.values()))


def read(path: Path) -> Configuration:
    """The configuration in a file."""
    readers = {".xml": _xml, ".yaml": _yaml, ".yml": _yaml, ".json": _json, ".toml": _toml}
    if path.suffix.lower() not in readers:
        raise UnderstudyError(
            f"{path}: expected a configuration of ADIOS2 or openPMD, a file {', '.join(readers)}"
        )
    data = content(path)
    ios: dict[str, IO] = {}
    for io in readers[path.suffix.lower()](path, data):
        if io.name in ios:
            raise UnderstudyError(f"{path}: IO {io.name!r}: defined twice")
        ios[io.name] = io
    if not ios:
        raise UnderstudyError(f"{path}: no IO in it; expected one with an engine")
    return Configuration(path=path, ios=ios)


def content(path: Path) -> bytes:
    try:
        data = read_bytes(path)
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_BYTES:
        raise UnderstudyError(f"{path}: {len(data):,} bytes: expected at most {LARGEST_BYTES:,}")
    return data


def _xml(path: Path, data: bytes) -> Iterator[IO]:
    """XML of ADIOS2."""
    root = xmlfile.parse(data, str(path), "adios-config")
    for element in root.children:
        if element.tag in ADIOS_1:
            raise element.fault(
                "of ADIOS 1, whose descriptors have variables: understudy describe FILE.xml; "
                "expected a configuration of ADIOS2 with <io>"
            )
    defined: dict[str, Operator] = {}
    for element in root.all("operator"):
        defined[element.need("name")] = element.need("type"), _parameters(element)
    for element in root.all("io"):
        yield _io(element, defined)


def _io(element: Element, defined: Mapping[str, Operator]) -> IO:
    engine, parameters = "", dict[str, str]()
    transports = []
    operators: dict[str, tuple[Operator, ...]] = {}
    notes = []
    for child in element.children:
        if child.tag == "engine":
            if engine:
                raise child.fault("a second engine of an IO; expected one")
            engine, parameters = child.need("type"), _parameters(child)
        elif child.tag == "transport":
            transports.append((child.need("type"), _parameters(child)))
        elif child.tag == "variable":
            name = child.need("name")
            rows = tuple(_operation(row, defined) for row in child.all("operation"))
            operators[name] = operators.get(name, ()) + rows
        else:
            notes.append(f"<{one_line(child.tag)}> of an IO has no effect.")
    return IO(
        name=element.need("name"),
        engine=engine,
        parameters=parameters,
        transports=tuple(transports),
        operators=operators,
        notes=tuple(notes),
    )


def _parameters(element: Element) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for child in element.all("parameter"):
        key, value = child.need("key"), child.get("value")
        if "value" not in map(str.lower, child.attributes):
            raise child.fault(f'the attribute value="..." of {one_line(key)} is missing')
        if parameters.setdefault(key, value) != value:
            raise child.fault(f"{one_line(key)}: given twice")
    return parameters


def _operation(element: Element, defined: Mapping[str, Operator]) -> Operator:
    kind, name = element.get("type").strip(), element.get("operator").strip()
    if bool(kind) == bool(name):
        raise element.fault("expected either a type or the name of an operator")
    if name and name not in defined:
        raise element.fault(f"operator {name!r}: not defined")
    parameters = _parameters(element)
    return (kind, parameters) if kind else (defined[name][0], {**defined[name][1], **parameters})


class Rows:
    """Nested maps and lists of a YAML, JSON or TOML file, with where they stand for messages."""

    def __init__(self, path: Path, value: Any, where: str = "") -> None:
        self.path = path
        self.value = value
        self.where = where

    def fault(self, expected: str) -> UnderstudyError:
        shown = one_line(repr(self.value))
        shown = shown if len(shown) < 60 else f"{shown[:60]}…"
        return UnderstudyError(
            f"{self.path}: {self.where or 'top level'}: {shown}: expected {expected}"
        )

    def map(self) -> dict[str, "Rows"]:
        if self.value is None or self.value == "":
            return {}
        if not isinstance(self.value, dict):
            raise self.fault("a map")
        return {
            str(key): Rows(self.path, value, f"{self.where}.{one_line(str(key))}".lstrip("."))
            for key, value in self.value.items()
        }

    def list(self) -> list["Rows"]:
        if self.value is None or self.value == "":
            return []
        if not isinstance(self.value, list):
            raise self.fault("a list")
        return [Rows(self.path, row, f"{self.where}[{k}]") for k, row in enumerate(self.value)]

    def text(self) -> str:
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if not isinstance(self.value, str | int | float):
            raise self.fault("a text or number")
        text = str(self.value)
        if not text.isprintable():
            raise self.fault("a text of one line")
        return text

    def texts(self) -> dict[str, str]:
        return {key: row.text() for key, row in self.map().items()}


def take(rows: dict[str, Rows], key: str) -> Rows | None:
    """The value of a key, whether or not capitals count, which is taken out."""
    match = next((name for name in rows if name.lower() == key.lower()), None)
    return rows.pop(match) if match is not None else None


def yaml_document(path: Path, data: bytes) -> Any:
    """The maps and lists of texts in a YAML file."""
    try:
        text = data.decode()
        if any(isinstance(event, yaml.AliasEvent) for event in human.events(text, str(path))):
            raise UnderstudyError(f"{path}: an alias (*name) is not read; expected its value")
        return yaml.load(text, human.TextLoader)
    except UnicodeDecodeError as error:
        raise UnderstudyError(f"{path}: no text at byte {error.start}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        what = str(getattr(error, "problem", None) or "too deep")
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark is not None else ""
        raise UnderstudyError(f"{path}:{line} not YAML: {one_line(what)}") from None


def _yaml(path: Path, data: bytes) -> Iterator[IO]:
    """YAML of ADIOS2, whose values are texts."""
    document = yaml_document(path, data)
    for row in Rows(path, document).list():
        keys = row.map()
        if (name := take(keys, "IO")) is None:
            continue
        yield _yaml_io(name.text(), keys)


def _yaml_io(name: str, keys: dict[str, Rows]) -> IO:
    engine = take(keys, "Engine")
    parameters = {} if engine is None else engine.map()
    kind = take(parameters, "Type")
    variables, transports = take(keys, "Variables"), take(keys, "Transports")
    operators: dict[str, tuple[Operator, ...]] = {}
    for row in () if variables is None else variables.list():
        variable = row.map()
        named, operations = take(variable, "Variable"), take(variable, "Operations")
        if named is None:
            raise row.fault("a map with Variable")
        rows = () if operations is None else operations.list()
        operators[named.text()] = tuple(_typed(operation) for operation in rows)
    return IO(
        name=name,
        engine="" if kind is None else kind.text(),
        parameters={key: value.text() for key, value in parameters.items()},
        transports=tuple(_typed(row) for row in (() if transports is None else transports.list())),
        operators=operators,
        notes=tuple(f"{one_line(key)} of an IO has no effect." for key in keys),
    )


def _typed(row: Rows) -> Operator:
    """A map with a type and parameters."""
    keys = row.map()
    kind = take(keys, "Type")
    if kind is None:
        raise row.fault("a map with Type")
    return kind.text(), {key: value.text() for key, value in keys.items()}


def _json(path: Path, data: bytes) -> Iterator[IO]:
    """JSON of openPMD-api."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise UnderstudyError(f"{path}: not JSON: too deep") from None
    except ValueError as error:
        raise UnderstudyError(f"{path}: not JSON: {one_line(str(error))}") from None
    yield _openpmd(Rows(path, document))


def _toml(path: Path, data: bytes) -> Iterator[IO]:
    """TOML of openPMD-api."""
    try:
        tomllib = import_module("tomllib")
    except ImportError:
        raise UnderstudyError(f"{path}: TOML needs Python 3.11; expected JSON") from None
    try:
        document = tomllib.loads(data.decode())
    except RecursionError:
        raise UnderstudyError(f"{path}: not TOML: too deep") from None
    except ValueError as error:
        raise UnderstudyError(f"{path}: not TOML: {one_line(str(error))}") from None
    yield _openpmd(Rows(path, document))


def _openpmd(document: Rows) -> IO:
    keys = document.map()
    backend = take(keys, "backend")
    if backend is not None and backend.text().lower() != "adios2":
        raise backend.fault("adios2, the backend of openPMD-api that this describes")
    inner = take(keys, "backend_config")  # of a plugin of PIConGPU
    if inner is not None and isinstance(inner.value, dict):
        return _openpmd(inner)
    if inner is not None:
        raise inner.fault("the configuration itself, such as the file that this names")
    part = take(keys, "adios2")
    if part is None:
        raise document.fault("the key adios2 of openPMD-api")
    adios2 = part.map()
    engine, dataset = take(adios2, "engine"), take(adios2, "dataset")
    rows = {} if engine is None else engine.map()
    kind, parameters = take(rows, "type"), take(rows, "parameters")
    operators, selections = _datasets(dataset)
    return IO(
        name=OPENPMD,
        engine="" if kind is None else kind.text(),
        parameters={} if parameters is None else parameters.texts(),
        operators={} if operators is None else {"*": operators},
        selections=selections,
    )


def _datasets(
    dataset: Rows | None,
) -> tuple[
    tuple[Operator, ...] | None, tuple[tuple[re.Pattern[str], tuple[Operator, ...] | None], ...]
]:
    """Operators of all variables, and of those that patterns select; a selection without the key
    has those of all."""
    if dataset is None:
        return None, ()
    if not isinstance(dataset.value, list):
        return _operators(dataset), ()
    has_default = False
    default: tuple[Operator, ...] | None = None
    selected = []
    for row in dataset.list():
        keys = row.map()
        select, cfg = take(keys, "select"), take(keys, "cfg")
        if cfg is None:
            raise row.fault("a map with cfg")
        operators = _operators(cfg)
        if select is None and has_default:
            raise row.fault("a map with select: one without stands before it")
        if select is None:
            has_default, default = True, operators
        else:
            texts = select.list() if isinstance(select.value, list) else [select]
            selected += [(_pattern(text), operators) for text in texts]
    return default, tuple(
        (pattern, default if rows is None else rows) for pattern, rows in selected
    )


def _pattern(row: Rows) -> re.Pattern[str]:
    """A regular expression of the names that a selection has."""
    segments = row.text().split(".*")
    if not all(SEGMENT.fullmatch(segment) for segment in segments):
        raise row.fault("a name, in which '.', '.*' and classes such as [xy] may stand")
    first, *others = segments
    last = f".*{others.pop()}" if others else ""
    # The first place of each segment is as good as any, so that none is tried again.
    between = (f"(?=(?P<s{n}>.*?{text}))(?P=s{n})" for n, text in enumerate(others))
    try:
        return re.compile(first + "".join(between) + last)
    except (re.error, RecursionError, OverflowError):
        raise row.fault("a name, in which '.', '.*' and classes such as [xy] may stand") from None


def _operators(row: Rows) -> tuple[Operator, ...] | None:
    """None: it does not say."""
    operators = take(row.map(), "operators")
    if operators is None:
        return None
    rows = []
    for operator in operators.list():
        keys = operator.map()
        kind, parameters = take(keys, "type"), take(keys, "parameters")
        if kind is None:
            raise operator.fault("a map with type")
        rows.append((kind.text(), {} if parameters is None else parameters.texts()))
    return tuple(rows)


def is_configuration(path: Path) -> bool:
    """True for a YAML file that is a list, as those of ADIOS2 are."""
    return isinstance(yaml_document(path, content(path)), list)


def chosen(output: Output, config: Path | None, name: str | None) -> Output:
    """The output with a configuration, if one is given."""
    if name is not None and config is None:
        raise UnderstudyError(f"--io {name}: expected only with --config")
    return output if config is None else applied(output, read(config), name)


def applied(output: Output, configuration: Configuration, name: str | None = None) -> Output:
    """The output as if it were written with an IO of a configuration: its engine, parameters and
    operators. What the engine does not take is an UnderstudyError, what it ignores a note."""
    io = configuration.io(name)
    try:
        engine = engines.engine_of(io.engine)
    except UnderstudyError as error:
        raise UnderstudyError(f"{configuration.path}: IO {io.name}: {error}") from None
    parameters_of = engines.PLAYED[engine]
    parameters: dict[str, str] = {}
    ignored = []
    for key, value in io.parameters.items():
        parameter = parameters_of.get(key.lower())
        if parameter is None or not parameter.writer:
            ignored.append(one_line(key))
            continue
        try:
            parameter.check(value)
        except ValueError as error:
            raise UnderstudyError(
                f"{configuration.path}: IO {io.name}: {parameter.name}: {value!r}: {error}"
            ) from None
        parameters[parameter.name] = value
    notes = [f"Engine and parameters are of IO {io.name} of a configuration.", *io.notes]
    if ignored:
        notes.append(f"{engine} ignores {', '.join(ignored)}.")
    operators = _checked(configuration.path, io)
    if operators:
        notes.append(
            f"Operators of the configuration ({', '.join(operators)}) are not in the sizes."
        )
    return replace(
        output,
        engine=engine,
        parameters=parameters,
        subfiles=0,
        variables=tuple(replace(v, configured=io.operators_of(v.name)) for v in output.variables),
        notes=(*output.notes, *notes),
    )


def _checked(path: Path, io: IO) -> list[str]:
    """The names of the operators of an IO."""
    names = sorted({kind for rows in io.all_operators() for kind, _ in rows})
    for name in names:
        if name.lower() not in engines.OPERATORS:
            raise UnderstudyError(
                f"{path}: IO {io.name}: operator {name!r}: expected one of "
                f"{', '.join(engines.OPERATORS)}"
            )
    return names
