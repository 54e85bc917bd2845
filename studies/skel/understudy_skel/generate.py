"""Texts of a skeletal application's files, from the templates in templates/."""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from understudy import studies
from understudy.errors import UnderstudyError
from understudy.paths import where
from understudy_skel import expressions, identifiers, parameters, schema
from understudy_skel.descriptor import Attribute, Descriptor, Group, Variable
from understudy_skel.dialects import DIALECTS, Dialect
from understudy_skel.escape import (
    TEMPLATES,
    Identifier,
    MakeText,
    ShellText,
    Text,
    cmake_path,
    environment,
    shell,
    word,
    xml_attribute,
)
from understudy_skel.expressions import RANK, RANKS
from understudy_skel.parameters import Batch, GroupParameters, Parameters, Test

SUBMIT = TEMPLATES / "submit"
# The calls of ADIOS that proxies/skeleton/application.c intercepts.
MEASURED_CALLS = ("init", "init_noxml", "open", "group_size", "write", "close", "finalize")
MEASURED_FORTRAN_CALLS = (*(f"{call}_" for call in MEASURED_CALLS), "write_f2c_")
FILLS = {fill: f"SKELETON_FILL_{fill.upper()}" for fill in parameters.FILLS}
# Sources of an application by their suffix: C, and Fortran in free form.
C_SUFFIXES, FORTRAN_SUFFIXES = (".c",), (".f90", ".F90")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of the files of an application, as Skel called them. The application's name becomes
    part of file names and targets and is checked for that."""

    application: str

    def __post_init__(self) -> None:
        word(self.application, "the application's name")

    @property
    def config(self) -> str:
        return f"{self.application}_skel.xml"

    @property
    def parameters(self) -> str:
        return f"{self.application}_params.xml"

    def program(self, group: str) -> str:
        """The program (and its source, without .c) that writes a group."""
        return f"{self.application}_skel_{identifiers.plain(group)}_write"

    def programs(self, groups: Iterable[str]) -> dict[str, str]:
        """The group that each program writes."""
        group_of: dict[str, str] = {}
        for group in groups:
            program = self.program(group)
            if group_of.setdefault(program, group) != group:
                raise UnderstudyError(
                    f"the groups {group_of[program]!r} and {group!r} would both be written by "
                    f"{program}; expected names that differ in letters and digits"
                )
        return group_of


def _dimensions(group: Group, variable: Variable) -> str:
    """The time dimension is the slowest: ADIOS cannot read back what has it elsewhere."""
    time = (group.time_index,) if variable.over_time else ()
    if group.language == "Fortran":
        return ",".join((*variable.dimensions, *time))
    return ",".join((*time, *variable.dimensions))


def _rendered(language: type[Text] | None, template: str, **context: object) -> str:
    templates = environment(language)
    if language is not None:
        templates.globals["literal"] = language
    templates.globals |= {
        "optional": xml_attribute,
        "parts": _parts,
        "dimensions": _dimensions,
        "copied": schema.copied,
        "copied_of_var": schema.COPIED_OF_VAR,
    }
    return templates.get_template(template).render(**context)


# ---- The descriptor as ADIOS takes it


def config(descriptor: Descriptor) -> str:
    """The adios-config of the skeletal application."""
    return _rendered(None, "skel.xml", descriptor=descriptor)


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
    gwrite: str = "",
    attribute: Attribute | None = None,
    bounds: Variable | None = None,
    variables: list[Variable] | None = None,
) -> dict[str, Any]:
    return {
        "gwrite": gwrite,
        "attribute": attribute,
        "bounds": bounds,
        "variables": variables or [],
    }


def _conditions(
    sources: dict[str, str], old: tuple[tuple[str, bool], ...], new: tuple[tuple[str, bool], ...]
) -> Iterator[dict[str, Any]]:
    """Parts that end and begin between two variables: else, ends, and begins."""
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
    return _rendered(None, "params.xml", descriptor=descriptor, parameters=values)


# ---- The program


def source(
    descriptor: Descriptor, values: Parameters, group: Group, test: Test, language: str = "c"
) -> str:
    """The program that writes a group, in C or Fortran."""
    names = Names(application=values.application)
    dialect = DIALECTS[language]
    text = _rendered(
        dialect.language,
        dialect.template,
        application=values.application,
        group=group,
        config=names.config,
        test=test,
        main=identifiers.plain(names.program(group.name)),
        program=f"{values.application}-{group.name}",
        **_Program(group, values.groups[group.name], dialect).parts(),
    )
    return dialect.folded(text)


class _Program:
    """A group's variables as texts of a language."""

    def __init__(self, group: Group, values: GroupParameters, dialect: Dialect) -> None:
        self.group = group
        self.values = values
        self.dialect = dialect
        self.names = identifiers.members(v.name for v in group.variables)
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
                {
                    "macro": self._macro(s.name),
                    "comment": self.dialect.comment(s.source),
                    "value": int(self.values.switches[s.name]),
                }
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
        }

    def _macro(self, switch: str) -> Identifier:
        return self.macros[f"WITH_{switch.upper()}"]

    def _runs(
        self, variables: tuple[Variable, ...]
    ) -> Iterator[tuple[list[Variable], dict[str, Text]]]:
        """Variables under the same conditions, with the text of these."""
        for when, members in groupby(variables, lambda v: v.when):
            words = self.dialect.condition([(self._macro(name), value) for name, value in when])
            indent = self.dialect.constant("    " if words else "")
            yield list(members), {"condition": words, "indent": indent}

    def _variable(self, variable: Variable) -> dict[str, Any]:
        kind = variable.type
        return {
            "name": variable.name,
            "id": self.names[variable.name],
            "type": self.dialect.type_of(kind),
            "bytes": kind.bytes // kind.parts,
            "note": self._note(variable),
        }

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
        none = self.dialect.constant("")
        places = [self.dialect.part(n) if len(parts) > 1 else none for n in range(len(parts))]
        return {
            **self._variable(variable),
            "values": list(zip(places, parts, strict=True)),
            "declared": self.dialect.declared(kind, name, size),
            "size": self.dialect.size(kind, name, size),
            "text": kind.text,
        }

    def _value(self, name: str) -> Text:
        if name in (RANK, RANKS):
            return self.dialect.constant("rank" if name == RANK else "ranks")
        return self.dialect.value(self.names[name])

    def _token(self, token: str) -> Text:
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
            **self._variable(variable),
            "c_enum": self.dialect.constant(variable.type.c_enum),
            "elements": self.dialect.product(local + parts),
            "fill": self.dialect.constant(FILLS[self.values.fills[variable.name]]),
            "bounds": list(zip(offsets, local, whole, strict=True)),
        }

    def _note(self, variable: Variable) -> Text:
        """The source's own names, where the identifier does not tell them."""
        words = []
        if self.names[variable.name] != f"{variable.name}_":
            words.append(variable.name)
        if variable.dimensions:
            words.append(f"[{', '.join(variable.dimensions)}]")
        if variable.gwrite and variable.gwrite != variable.name:
            words.append(f"from {variable.gwrite}")
        return self.dialect.comment(" ".join(words)) if words else self.dialect.constant("")


# ---- Building and running it


def build_files(values: Parameters, language: str = "c") -> dict[str, str]:
    """Name and text of the files that build the programs: CMake's, make's, and what both use."""
    names = Names(application=values.application)
    return _build_files(
        names.application,
        programs=[MakeText(name) for name in names.programs(values.tested)],
        fortran=language == "fortran",
        suffix=MakeText(DIALECTS[language].suffix),
    )


def measured_files(program: str, sources: Iterable[Path]) -> dict[str, str]:
    """Name and text of the files that build an application from its own sources so that its calls
    of ADIOS are measured."""
    paths = [path.resolve() for path in sources]
    fortran = in_fortran(paths)
    calls = MEASURED_CALLS + (MEASURED_FORTRAN_CALLS if fortran else ())
    return _build_files(
        word(program, "the program's name"),
        fortran=fortran,
        measured={MakeText(program): [cmake_path(path) for path in paths]},
        calls=[MakeText(call) for call in calls],
    )


def in_fortran(sources: Iterable[Path]) -> bool:
    """Is one of an application's sources in Fortran?"""
    return any(path.suffix in FORTRAN_SUFFIXES for path in sources)


def _build_files(proved: str, **context: object) -> dict[str, str]:
    """`proved`: the name of the application."""
    texts = {
        name: _rendered(
            MakeText,
            name,
            application=MakeText(proved),
            project=identifiers.plain(proved),
            runtime=_runtime_sources(),
            **({"programs": [], "measured": {}, "fortran": False} | context),
        )
        for name in ("CMakeLists.txt", "Makefile")
    }
    [finder] = studies.directories("cmake/adios.cmake")
    return texts | {finder.name: finder.read_text(encoding="utf-8")}


# What the runtime takes from the player, so that both name things alike.
SHARED = ("interfaces/mount", "job/mpi_settings", "text/error", "text/print", "text/sha256")

# Files of the runtime that only one version of ADIOS needs, by their stem.
OF_ONE_ADIOS = {"adios1": 1, "config": 1, "output": 2}


def runtime_files(
    language: str = "c", *, application: bool = False, adios: int = 1
) -> dict[str, str]:
    """Name and text of the files that measure, which every program carries in skeleton/: a
    skeleton in that language, or an `application` that calls ADIOS itself. `adios`: 1, or 2 whose
    programs are in C++ or Python."""
    paths = sorted(path for path in where("skeleton").iterdir() if path.is_file())
    if language == "python":
        of_python = [path for path in paths if path.suffix == ".py"]
        return {f"skeleton/{path.name}": path.read_text(encoding="utf-8") for path in of_python}
    texts = {}
    for path in [path for path in paths if path.suffix != ".py"]:
        of_application = path.stem.startswith("application")
        of_fortran = path.suffix == ".f90" or path.stem.endswith("_fortran")
        if (of_application and not application) or (of_fortran and language != "fortran"):
            continue
        if of_fortran and application and not of_application:
            continue
        if path.stem in OF_ONE_ADIOS and OF_ONE_ADIOS[path.stem] != adios:
            continue
        texts[f"skeleton/{path.name}"] = path.read_text(encoding="utf-8")
    for name in SHARED:
        for suffix in (".c", ".h"):
            path = where("proxies") / "core" / f"{name}{suffix}"
            texts[f"skeleton/{name}{suffix}"] = path.read_text(encoding="utf-8")
    return texts


def _runtime_sources() -> list[MakeText]:
    """In C, of every program."""
    return [MakeText(name) for name in runtime_files() if name.endswith(".c")]


def submit_systems() -> list[str]:
    """The batch systems that there is a template for: the listing of templates/submit/."""
    return sorted(path.stem for path in SUBMIT.glob("*.sh"))


def submit(
    values: Parameters,
    batch: Batch,
    system: str,
    *,
    cores_per_node: int,
    target: str,
    account: str,
    launcher: str,
) -> str:
    """The job script of a batch. `target` is the directory that the tests write under."""
    names = Names(application=values.application)
    tests = [
        {
            "program": ShellText(names.program(test.group)),
            "name": ShellText(f"{names.program(test.group)}-{number}-{test.method}"),
            "method": ShellText(test.method),
            "parameters": method_parameters(test, batch.cores),
            "steps": test.steps,
            "iterations": test.iterations,
        }
        for number, test in enumerate(batch.tests)
    ]
    job = f"{names.application}_{word(batch.name, 'the name of the batch')}"
    return _rendered(
        ShellText,
        f"submit/{system}.sh",
        job=ShellText(job),
        short_job=ShellText(job[:15]),
        cores=batch.cores,
        walltime=ShellText(batch.walltime),
        tests=tests,
        nodes=-(-batch.cores // cores_per_node),
        cores_per_node=min(cores_per_node, batch.cores),
        account=ShellText(word(account, "--account") if account else ""),
        launcher=_launcher(launcher),
        target=target,
        config=names.config,
    )


def _launcher(text: str) -> ShellText:
    """The words of a command, each quoted."""
    try:
        return ShellText(" ".join(map(shell, shlex.split(text))))
    except ValueError as error:
        raise UnderstudyError(f"--launcher {text!r}: {error}; expected a command") from None


def method_parameters(test: Test, cores: int) -> str:
    """A test's method parameters with the expressions in braces worked out: at least 1 each."""

    def value(match: re.Match[str]) -> str:
        try:
            expression = expressions.parse(match.group(1))
            if expression.names or RANK in expression.text:
                raise ValueError(f"{expression.text!r}: expected only skel_mpi_size")
            return str(max(1, int(expression.evaluate({}, cores)[0])))
        except ValueError as error:
            raise UnderstudyError(f"method_params {test.method_parameters!r}: {error}") from None

    return re.sub(r"\{([^{}]*)\}", value, test.method_parameters)
