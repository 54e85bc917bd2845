"""Texts of a skeletal application's files, from the templates in templates/."""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from understudy.errors import UnderstudyError
from understudy.paths import ROOT
from understudy.skel import expressions, identifiers, parameters
from understudy.skel.descriptor import Attribute, Descriptor, Group, Variable
from understudy.skel.dialects import DIALECTS, Dialect
from understudy.skel.expressions import RANK, RANKS
from understudy.skel.parameters import Batch, GroupParameters, Parameters, Test

HERE = Path(__file__).parent
RUNTIME = HERE / "runtime"
TEMPLATES = HERE / "templates"
SUBMIT = TEMPLATES / "submit"
# The calls of ADIOS that application.c in RUNTIME takes.
MEASURED_CALLS = ("init", "init_noxml", "open", "group_size", "write", "close", "finalize")
MEASURED_FORTRAN_CALLS = (*(f"{call}_" for call in MEASURED_CALLS), "write_f2c_")
# Sources of an application by their suffix: C, and Fortran in free form.
C_SUFFIXES, FORTRAN_SUFFIXES = (".c",), (".f90", ".F90")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the files of an application are called, as Skel called them."""

    application: str

    @property
    def config(self) -> str:
        return f"{self.application}_skel.xml"

    @property
    def parameters(self) -> str:
        return f"{self.application}_params.xml"

    def program(self, group: str) -> str:
        """The program (and its source, without .c) that writes a group."""
        return f"{self.application}_skel_{identifiers.of([group])[group]}_write"


def _environment(escaping: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=escaping,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"shell": shlex.quote}
    environment.globals |= {"optional": _optional, "parts": _parts, "dimensions": _dimensions}
    return environment


def _optional(key: str, value: str) -> str:
    """An XML attribute, or nothing where it has no value."""
    return Markup(' {}="{}"').format(key, value) if value else ""


def _dimensions(descriptor: Descriptor, group: Group, variable: Variable) -> str:
    """The time dimension is the slowest: ADIOS cannot read back what has it elsewhere."""
    time = (group.time_index,) if variable.over_time else ()
    if descriptor.language == "Fortran":
        return ",".join((*variable.dimensions, *time))
    return ",".join((*time, *variable.dimensions))


# ---- The descriptor as ADIOS takes it


def config(descriptor: Descriptor, application: str) -> str:
    """The adios-config of the skeletal application."""
    template = _environment(True).get_template("skel.xml")
    return template.render(descriptor=descriptor, application=application)


def _parts(group: Group) -> Iterator[dict[str, Any]]:
    """A group's elements: attributes that a dimension may name; conditions and variables in the
    order of the file, those under the same global bounds together; attributes of variables."""

    def like(variable: Variable) -> tuple[Any, ...]:
        return variable.when, variable.global_dimensions, variable.offsets

    sources = {switch.name: switch.source for switch in group.switches}
    for attribute in group.attributes:
        if attribute.value:
            yield _part(attribute=attribute)
    conditions: tuple[tuple[str, bool], ...] = ()
    for (when, bounds, _), members in groupby(group.variables, like):
        yield from _conditions(sources, conditions, when)
        conditions = when
        variables = list(members)
        yield _part(bounds=variables[0] if bounds else None, variables=variables)
    yield from _conditions(sources, conditions, ())
    for attribute in group.attributes:
        if attribute.variable:
            yield _part(attribute=attribute)


def _part(
    gwrite: str = "", attribute: Attribute | None = None, bounds: Variable | None = None,
    variables: list[Variable] | None = None,
) -> dict[str, Any]:  # fmt: skip
    return {
        "gwrite": gwrite, "attribute": attribute, "bounds": bounds, "variables": variables or [],
    }  # fmt: skip


def _conditions(
    sources: dict[str, str], old: tuple[tuple[str, bool], ...], new: tuple[tuple[str, bool], ...]
) -> Iterator[dict[str, Any]]:
    """What ends and begins between two variables: else, ends, and begins."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    if same < min(len(old), len(new)) and old[same][0] == new[same][0]:
        for _ in old[same + 1 :]:
            yield _part(gwrite="endif")
        yield _part(gwrite="else")
        same += 1
    else:
        for _ in old[same:]:
            yield _part(gwrite="endif")
    for name, value in new[same:]:
        yield _part(gwrite=sources[name])
        if not value:
            yield _part(gwrite="else")


def parameters_text(descriptor: Descriptor, values: Parameters) -> str:
    """The file of parameters."""
    template = _environment(True).get_template("params.xml")
    return template.render(descriptor=descriptor, parameters=values)


# ---- The program


def source(
    descriptor: Descriptor, values: Parameters, group: Group, test: Test, language: str = "c"
) -> str:
    """The program that writes a group, in C or Fortran."""
    names = Names(application=values.application)
    made = _Program(group, values.groups[group.name], DIALECTS[language])
    text = _environment(False).get_template(DIALECTS[language].template).render(
        application=values.application, group=group, config=names.config, test=test,
        main=names.program(group.name), program=f"{values.application}-{group.name}",
        text=made.dialect, **made.parts(),
    )  # fmt: skip
    return DIALECTS[language].folded(text)


class _Program:
    """A group's variables as texts of a language."""

    def __init__(self, group: Group, values: GroupParameters, dialect: Dialect) -> None:
        self.group = group
        self.values = values
        self.dialect = dialect
        self.names = identifiers.of(v.name for v in group.variables)
        self.ordered = parameters.parsed(group, values)
        self.macros = identifiers.of(f"WITH_{s.name.upper()}" for s in group.switches)

    def parts(self) -> dict[str, Any]:
        scalars = {v.name: self._scalar(v) for v in self.group.scalars}
        arrays = {v.name: self._array(v) for v in self.group.arrays}
        rows = scalars | arrays
        ordered = [*self.ordered, *(name for name in scalars if name not in self.ordered)]
        values = [scalars[name]["values"][0][1] for name in self.ordered]
        bounds = [text for array in arrays.values() for bound in array["bounds"] for text in bound]
        return {
            "scalars": list(scalars.values()),
            "arrays": list(arrays.values()),
            "ordered": [scalars[name] for name in ordered],
            "uses_rank": any(re.search(r"\brank\b", value) for value in values),
            "uses_ranks": any(re.search(r"\branks\b", value) for value in values),
            "uses_text": any(scalar["text"] for scalar in scalars.values()),
            "uses_data_in_bounds": any("data" in text for text in bounds),
            "switches": [
                {"macro": self._macro(s.name), "source": s.source,
                 "value": int(self.values.switches[s.name])}
                for s in self.group.switches
            ],
            "runs": [
                {"variables": [rows[v.name] for v in members], **block}
                for members, block in self._runs(self.group.variables)
            ],
            "by_condition": [
                {"arrays": [rows[v.name] for v in members], **block}
                for members, block in self._runs(self.group.arrays)
            ],
        }  # fmt: skip

    def _macro(self, switch: str) -> str:
        return self.macros[f"WITH_{switch.upper()}"]

    def _runs(
        self, variables: tuple[Variable, ...]
    ) -> Iterator[tuple[list[Variable], dict[str, str]]]:
        """Variables under the same conditions, with the text of these."""
        for when, members in groupby(variables, lambda v: v.when):
            words = self.dialect.condition([(self._macro(name), value) for name, value in when])
            yield list(members), {"condition": words, "indent": "    " if words else ""}

    def _variable(self, variable: Variable) -> dict[str, Any]:
        kind = variable.type
        return {
            "name": variable.name, "id": self.names[variable.name],
            "type": self.dialect.type_of(kind), "bytes": kind.bytes // kind.parts,
            "note": self._note(variable),
        }  # fmt: skip

    def _scalar(self, variable: Variable) -> dict[str, Any]:
        """`values`: which part of the scalar, and what."""
        kind, name = variable.type, self.names[variable.name]
        size = kind.bytes
        if kind.text:
            text = parameters.text_of(variable, self.values)
            size = len(text.encode())
            parts = [self.dialect.text(text)]
        elif variable.name in self.ordered:
            code = self.ordered[variable.name].to_code(self.dialect, self._value)
            parts = [self.dialect.integer(kind, code)]
        else:
            numbers = parameters.numbers_of(variable, self.values)
            parts = [self.dialect.real(kind, number) for number in numbers]
        places = [self.dialect.part(n) if len(parts) > 1 else "" for n in range(len(parts))]
        return {
            **self._variable(variable), "values": list(zip(places, parts, strict=True)),
            "declared": self.dialect.declared(kind, name, size),
            "size": self.dialect.size(kind, name, size), "text": kind.text,
        }  # fmt: skip

    def _value(self, name: str) -> str:
        known = {RANK: "rank", RANKS: "ranks"}
        return known.get(name) or self.dialect.value(self.names[name])

    def _token(self, token: str) -> str:
        number = self.group.constant(token)
        return self.dialect.number(number) if number is not None else self._value(token)

    def _array(self, variable: Variable) -> dict[str, Any]:
        local = [self._token(t) for t in variable.dimensions]
        if variable.global_dimensions:
            whole = [self._token(t) for t in variable.global_dimensions]
            offsets = [self._token(t) for t in variable.offsets]
        else:
            whole, offsets = local, [self.dialect.number(0)] * len(local)
        parts = [self.dialect.number(2)] if variable.type.parts > 1 else []
        return {
            **self._variable(variable), "c_enum": variable.type.c_enum,
            "elements": self.dialect.product(local + parts),
            "fill": f"SKELETON_FILL_{self.values.fills[variable.name].upper()}",
            "bounds": list(zip(offsets, local, whole, strict=True)),
        }  # fmt: skip

    def _note(self, variable: Variable) -> str:
        """The source's own names, where the identifier does not tell them."""
        words = []
        if self.names[variable.name] != variable.name:
            words.append(variable.name)
        if variable.dimensions:
            words.append(f"[{', '.join(variable.dimensions)}]")
        if variable.gwrite and variable.gwrite != variable.name:
            words.append(f"from {variable.gwrite}")
        return f" {self.dialect.comment(' '.join(words))}" if words else ""


# ---- Building and running it


def build_files(values: Parameters, language: str = "c") -> dict[str, str]:
    """Name and text of the files that build the programs: CMake's, make's, and what both use."""
    names = Names(application=values.application)
    return _build_files(
        contents=f"the skeletal applications of {values.application}", project=values.application,
        programs=[names.program(group) for group in values.tested],
        fortran=language == "fortran", suffix=DIALECTS[language].suffix,
    )  # fmt: skip


def measured_files(program: str, sources: Iterable[Path]) -> dict[str, str]:
    """Name and text of the files that build an application from its own sources so that its calls
    of ADIOS are measured."""
    paths = [path.resolve() for path in sources]
    fortran = in_fortran(paths)
    return _build_files(
        contents=f"{program}, measured,", project=program, fortran=fortran,
        measured={program: [path.as_posix() for path in paths]},
        calls=MEASURED_CALLS + (MEASURED_FORTRAN_CALLS if fortran else ()),
    )  # fmt: skip


def in_fortran(sources: Iterable[Path]) -> bool:
    """Is one of an application's sources in Fortran?"""
    return any(path.suffix in FORTRAN_SUFFIXES for path in sources)


def _build_files(contents: str, project: str, **context: object) -> dict[str, str]:
    environment = _environment(False)
    made = {
        name: environment.get_template(name).render(
            contents=contents, project=identifiers.of([project])[project],
            **({"programs": [], "measured": {}, "fortran": False} | context),
        )
        for name in ("CMakeLists.txt", "Makefile")
    }  # fmt: skip
    return made | {"adios.cmake": (ROOT / "cmake" / "adios.cmake").read_text(encoding="utf-8")}


def runtime_files(language: str = "c", *, application: bool = False) -> dict[str, str]:
    """Name and text of the files that measure, which every program carries: a skeleton in that
    language, or an `application` that calls ADIOS itself."""
    names = [
        "skeleton.c",
        "skeleton.h",
        *(["application.c", "application.h"] if application else []),
    ]
    if language == "fortran":
        own = ["skeleton.f90", "skeleton_fortran.c"]
        names += ["application_fortran.c"] if application else own
    return {name: (RUNTIME / name).read_text(encoding="utf-8") for name in names}


def submit_systems() -> list[str]:
    """The batch systems that there is a template for: the listing of templates/submit/."""
    return sorted(path.stem for path in SUBMIT.glob("*.sh"))


def submit(
    values: Parameters, batch: Batch, system: str, *, cores_per_node: int, target: str,
    account: str, launcher: str,
) -> str:  # fmt: skip
    """The job script of a batch. `target` is the directory that the tests write under."""
    names = Names(application=values.application)
    tests = [
        {
            "program": names.program(test.group),
            "name": f"{names.program(test.group)}-{number}-{test.method}",
            "method": test.method,
            "parameters": method_parameters(test, batch.cores),
            "steps": test.steps,
            "iterations": test.iterations,
        }
        for number, test in enumerate(batch.tests)
    ]
    template = _environment(False).get_template(f"submit/{system}.sh")
    return template.render(
        job=f"{values.application}_{batch.name}", cores=batch.cores, walltime=batch.walltime,
        nodes=-(-batch.cores // cores_per_node), cores_per_node=min(cores_per_node, batch.cores),
        account=account, launcher=launcher, target=target, config=names.config, tests=tests,
    )  # fmt: skip


def method_parameters(test: Test, cores: int) -> str:
    """A test's method parameters with the expressions in braces worked out: at least 1 each."""

    def value(found: re.Match[str]) -> str:
        try:
            expression = expressions.parse(found.group(1))
            if expression.names or RANK in expression.text:
                raise ValueError(f"{expression.text!r}: expected only skel_mpi_size")
            return str(max(1, int(expression.evaluate({}, cores)[0])))
        except ValueError as error:
            raise UnderstudyError(f"method_params {test.method_parameters!r}: {error}") from None

    return re.sub(r"\{([^{}]*)\}", value, test.method_parameters)
