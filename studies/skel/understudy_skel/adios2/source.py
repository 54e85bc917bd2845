"""A skeletal application in C++ for ADIOS2: its source, table of blocks, configuration and build
files."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from understudy.adios2.output import STRING, Attribute
from understudy.errors import UnderstudyError
from understudy_skel import generate
from understudy_skel.adios2.plan import JOINED, Layout, Plan, Put, Side, spans
from understudy_skel.escape import CText, MakeText, c_comment, c_string, environment, word
from understudy_skel.identifiers import plain

CPP_TYPES = {
    "float complex": "std::complex<float>",
    "double complex": "std::complex<double>",
    STRING: "std::string",
}
COMPLEX = re.compile(r"\(?\s*([^,()\s]+)\s*,\s*([^,()\s]+)\s*\)?")
IO = "output"  # name of the io in a configuration that states none
ROW = 12  # numbers in a row of a table of values
# Types whose arrays of values stand in the source under this name.
INTEGERS = {
    f"{sign}int{bits}_t": (0 if sign else -(1 << bits - 1), (1 << bits - (not sign)) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
} | {"char": (-128, 255)}


def names(application: str) -> dict[str, str]:
    """Names of the files of an application."""
    proved = word(application, "the application's name")
    return {
        "config": f"{proved}_skel.xml",
        "program": f"{proved}_skel_write",
        "blocks": f"{proved}_skel_blocks.h",
    }


def literal(kind: str, text: str) -> CText:
    """A value of a type of ADIOS2, given as text, as an expression of C++."""
    if kind == STRING:
        if "\0" in text:
            raise ValueError("expected a text without NUL")
        return c_string(text)
    if kind in INTEGERS:
        return _integer(kind, int(text))
    if kind.endswith("complex"):
        parts = COMPLEX.fullmatch(text)
        numbers = parts.groups() if parts else (text, "0")
        return CText.of("{{{}, {}}}", *map(_real, numbers))
    return CText.of("{}{}", _real(text), CText("L" if kind == "long double" else ""))


def _integer(kind: str, value: int) -> CText:
    low, high = INTEGERS[kind]
    if not low <= value <= high:
        raise ValueError(f"expected a number from {low} to {high}")
    if value == -(1 << 63):
        return CText("INT64_MIN")
    if kind == "char":
        return CText.of("static_cast<char>({})", value)
    return CText.of("{}{}", value, CText("U" if value >= 1 << 63 else ""))


def _real(text: str) -> CText:
    value = float(text)
    if math.isnan(value):
        return CText("NAN")
    if math.isinf(value):
        return CText("INFINITY" if value > 0 else "-INFINITY")
    return CText(repr(value))


def cpp_type(kind: str) -> CText:
    return CText(CPP_TYPES.get(kind, kind))


def files(plan: Plan, application: str, io: str) -> dict[str, str]:
    """Name and text of the source and of what it carries, but for the runtime."""
    stated = names(application)
    templates = environment(CText)
    context = _context(plan, application, io)
    texts = {
        f"{stated['program']}.cpp": templates.get_template("adios2/write.cpp").render(**context)
    }
    if context["tables"] or context["choices"]:
        texts[stated["blocks"]] = templates.get_template("adios2/blocks.h").render(**context)
    return texts


def config(plan: Plan, io: str) -> str:
    """The configuration of ADIOS2: engine, parameters and operators."""
    parameters = dict(plan.output.parameters)
    aggregators = {"numaggregators", "numsubfiles", "substreams", "aggregatorratio"}
    if plan.output.subfiles and not aggregators & {key.lower() for key in parameters}:
        parameters["NumAggregators"] = str(plan.output.subfiles)
    operations = {put.variable.name: put.variable.operators for put in plan.puts}
    rows = {name: list(operators) for name, operators in operations.items() if operators}
    for text in [io, *parameters, *parameters.values(), *rows]:
        if not all(c.isprintable() for c in text):
            raise UnderstudyError(
                f"{plan.output.path}: {text!r}: expected only characters that can be printed"
            )
    template = environment(None).get_template("adios2/skel.xml")
    return template.render(
        io=io, engine=plan.output.engine, parameters=parameters, operations=rows
    )


def build_files(application: str) -> dict[str, str]:
    """Name and text of the files that build the program: CMake's and make's."""
    stated = names(application)
    sources = [
        MakeText(name) for name in generate.runtime_files(adios=2) if name.endswith((".c", ".cpp"))
    ]
    return {
        name: environment(MakeText)
        .get_template(f"adios2/{name}")
        .render(
            application=MakeText(application),
            project=plain(application),
            program=MakeText(stated["program"]),
            runtime=sources,
        )
        for name in ("CMakeLists.txt", "Makefile")
    }


def _context(plan: Plan, application: str, io: str) -> dict[str, Any]:
    stated = names(application)
    tables = _Tables(plan)
    groups = list(_groups(plan, tables))
    return {
        "literal": CText,
        "application": application,
        "file": CText(c_comment(plan.output.path.name)),
        "config": stated["config"],
        "io": io,
        "name": f"{application}-write",
        "main": plain(stated["program"]),
        "blocks": CText(stated["blocks"]),
        "ranks": plan.writers,
        "steps": plan.steps,
        "formulas": [_formula(layout) for layout in plan.layouts if layout.sides is not None],
        "tables": [_table(layout) for layout in plan.tables],
        "choices": tables.choices,
        "values": tables.values,
        "flags": tables.flags,
        "writers": tables.writers,
        "numbers": [layout.number for layout in plan.layouts],
        "uses_math": "NAN" in tables.text or "INFINITY" in tables.text,
        "attributes": [_attribute(plan, attribute) for attribute in plan.attributes],
        "groups": groups,
        "uses_rank": any(put["condition"] or put["call"] for g in groups for put in g["puts"]),
        "uses_step": any(
            g["condition"] or "step" in str(put["argument"]) for g in groups for put in g["puts"]
        ),
    }


# ---- Layouts


def _formula(layout: Layout) -> dict[str, Any]:
    sides = layout.sides or ()
    starts = [] if layout.local else [_start(side) for side in sides]
    return {
        "number": layout.number,
        "shape": _shape(layout),
        "starts": CText.joined(", ", starts),
        "counts": CText.joined(", ", [_count(side) for side in sides]),
        "uses_rank": any(
            not side.is_whole
            and (not layout.local or side.larger > 0 or side.count != side.last_count)
            for side in sides
        ),
    }


def _index(side: Side) -> CText:
    text = CText("rank") if side.stride == 1 else CText.of("rank / {}", side.stride)
    return CText.of("{} % {}", text, side.parts)


def _start(side: Side) -> CText:
    if side.is_whole:
        return CText.of("{}", 0)
    start = CText.of("{} * {}", _index(side), side.step)
    if side.larger:
        return CText.of("{} + std::min<size_t>({}, {})", start, _index(side), side.larger)
    return start


def _count(side: Side) -> CText:
    if side.larger:
        return CText.of("{}u + ({} < {})", side.count, _index(side), side.larger)
    if side.is_whole or side.count == side.last_count:
        return CText.of("{}", side.last_count)
    return CText.of(
        "({} == {} ? {}u : {}u)", _index(side), side.parts - 1, side.last_count, side.count
    )


def _shape(layout: Layout) -> CText:
    sides = [
        CText("adios2::JoinedDim") if side == JOINED else CText.of("{}", side)
        for side in layout.shape or ()
    ]
    return CText.joined(", ", sides)


def _table(layout: Layout) -> dict[str, Any]:
    return {
        "number": layout.number,
        "shape": _shape(layout),
        "dimensions": layout.dimensions,
        "local": CText("true" if layout.local else "false"),
        "rows": [CText.joined(", ", [int(n) for n in row]) for row in layout.rows()],
    }


# ---- Variables


class _Tables:
    """Arrays by the step: numbers of layouts, values, and whether a variable is written; arrays of
    ranks that write a value."""

    def __init__(self, plan: Plan) -> None:
        self.steps = plan.steps
        self.choices: list[dict[str, Any]] = []
        self.values: list[dict[str, Any]] = []
        self.flags: list[dict[str, Any]] = []
        self.writers: list[dict[str, Any]] = []
        self.text = ""
        self._of: dict[tuple[str, object], CText] = {}

    def _array(self, into: list[dict[str, Any]], stem: str, key: object, **row: Any) -> CText:
        name = self._of.get((stem, key))
        if name is None:
            name = CText(f"{stem}_{len(into)}")
            into.append({"name": name, **row})
            self._of[(stem, key)] = name
        return name

    def choice(self, numbers: Sequence[int]) -> CText:
        texts = CText.joined(", ", numbers)
        return self._array(self.choices, "layouts", tuple(numbers), numbers=texts)

    def value(self, kind: str, texts: Sequence[CText]) -> CText:
        rows = [CText.joined(", ", texts[i : i + ROW]) for i in range(0, len(texts), ROW)]
        return self._array(self.values, "values", (kind, *texts), type=cpp_type(kind), rows=rows)

    def flag(self, steps: Sequence[int]) -> CText:
        on = set(steps)
        texts = CText.joined(
            ", ", [CText("true" if s in on else "false") for s in range(self.steps)]
        )
        return self._array(self.flags, "steps", tuple(steps), values=texts)

    def among(self, ranks: Sequence[int]) -> CText:
        texts = CText.joined(", ", ranks)
        return self._array(self.writers, "writers", tuple(ranks), ranks=texts, count=len(ranks))


def _groups(plan: Plan, tables: _Tables) -> Iterator[dict[str, Any]]:
    """Variables in their order, those written in the same steps together."""
    group: dict[str, Any] = {}
    steps: tuple[int, ...] | None = None
    for put in plan.puts:
        if not put.steps:
            continue
        if put.steps != steps:
            if group:
                yield group
            steps = put.steps
            condition = _condition(steps, plan.steps, tables)
            group = {"condition": condition, "puts": []}
        group["puts"].append(_put(plan, put, tables))
    if group:
        yield group


def _condition(steps: Sequence[int], count: int, tables: _Tables) -> CText:
    """When they are written; empty: always."""
    runs = spans(steps)
    if runs == [(0, count - 1)]:
        return CText("")
    if len(runs) == 1:
        first, last = runs[0]
        if first == last:
            return CText.of("step == {}", first)
        if last == count - 1:
            return CText.of("step >= {}", first)
        if first == 0:
            return CText.of("step <= {}", last)
        return CText.of("step >= {} && step <= {}", first, last)
    return CText.of("{}[step]", tables.flag(steps))


def _by_step(values: Mapping[int, Any], steps: int, absent: Any) -> list[Any]:
    """One for each step."""
    return [values.get(step, absent) for step in range(steps)]


def _put(plan: Plan, put: Put, tables: _Tables) -> dict[str, Any]:
    variable = put.variable
    row = {"name": variable.name, "type": cpp_type(variable.type), "condition": CText("")}
    if put.layouts:
        numbers = set(put.layouts.values())
        if len(numbers) == 1:
            argument = CText.of("layout_{}(rank)", numbers.pop())
        else:
            name = tables.choice(_by_step(put.layouts, plan.steps, next(iter(numbers))))
            argument = CText.of("layout({}[step], rank)", name)
        return {**row, "call": CText("put"), "argument": argument}
    try:
        texts = {step: literal(variable.type, text) for step, text in put.values.items()}
    except ValueError as error:
        raise UnderstudyError(f"{plan.output.path}: variable {variable.name!r}: {error}") from None
    tables.text += "".join(texts.values())
    first = next(iter(texts.values()))
    if len(set(texts.values())) == 1:
        argument = first
    else:
        name = tables.value(variable.type, _by_step(texts, plan.steps, first))
        argument = CText.of("{}[step]", name)
    if put.ranks == (0,) and plan.writers > 1:
        row["condition"] = CText("rank == 0")
    elif len(put.ranks) < plan.writers:
        name = tables.among(put.ranks)
        row["condition"] = CText.of("skel::among({}, {}, rank)", name, len(put.ranks))
    call = CText("local_value" if put.local_value else "value")
    return {**row, "call": call, "argument": argument}


def _attribute(plan: Plan, attribute: Attribute) -> dict[str, Any]:
    try:
        values = [literal(attribute.type, value) for value in attribute.values]
    except (ValueError, KeyError) as error:
        raise UnderstudyError(
            f"{plan.output.path}: attribute {attribute.name!r}: {error}"
        ) from None
    return {
        "name": attribute.name,
        "type": cpp_type(attribute.type),
        "values": CText.joined(", ", values),
    }
