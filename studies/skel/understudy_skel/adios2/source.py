"""The files of a skeletal application for ADIOS2: its source and its tables of blocks in a
language, the configuration of ADIOS2, and what builds it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from understudy.adios2.output import STRING, TYPE_BYTES, Attribute
from understudy.errors import UnderstudyError
from understudy_skel import generate
from understudy_skel.adios2.dialects import DIALECTS, Dialect
from understudy_skel.adios2.plan import JOINED, Layout, Plan, Put, spans
from understudy_skel.escape import MakeText, Text, cmake_path, environment, word
from understudy_skel.identifiers import plain

IO = "output"  # name of the io in a configuration that states none
ROW = 12  # numbers in a row of a table of values


def names(application: str) -> dict[str, str]:
    """Names of the files of an application."""
    proved = word(application, "the application's name")
    return {
        "config": f"{proved}_skel.xml",
        "program": f"{proved}_skel_write",
        "blocks": f"{plain(proved)}_skel_blocks",  # a module of Python
    }


def files(plan: Plan, application: str, io: str, language: str) -> dict[str, str]:
    """Name and text of the source and of what it carries, but for the runtime."""
    dialect = DIALECTS[language]
    stated = names(application)
    templates = environment(dialect.code)
    context = _context(plan, application, io, dialect)
    source = templates.get_template(dialect.template).render(**context)
    texts = {f"{stated['program']}.{dialect.suffix}": source}
    if context["tables"] or context["choices"]:
        name = stated["blocks"] + Path(dialect.tables.removesuffix(".jinja")).suffix
        texts[name] = templates.get_template(dialect.tables).render(**context)
    return texts


def config(plan: Plan, io: str) -> str:
    """The configuration of ADIOS2: engine, parameters and operators."""
    parameters = dict(plan.output.parameters)
    aggregators = {"numaggregators", "numsubfiles", "substreams", "aggregatorratio"}
    if plan.output.subfiles and not aggregators & {key.lower() for key in parameters}:
        parameters["NumAggregators"] = str(plan.output.subfiles)
    arrays = [put.variable for put in plan.puts if put.layouts]
    operations = {variable.name: variable.effective_operators for variable in arrays}
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
    program = MakeText(names(application)["program"])
    return _build_files(application, program, MakeText(f"{program}.cpp"), generated=True)


def measured_files(path: Path) -> dict[str, str]:
    """Name and text of the files that build an application that writes by skeleton/output.h."""
    name = word(path.stem, "the program's name")
    return _build_files(name, MakeText(name), cmake_path(path.resolve()), generated=False)


def _build_files(
    proved: str, program: MakeText, path: MakeText, *, generated: bool
) -> dict[str, str]:
    runtime = generate.runtime_files(adios=2)
    sources = [MakeText(name) for name in runtime if name.endswith((".c", ".cpp"))]
    return {
        name: environment(MakeText)
        .get_template(f"adios2/{name}")
        .render(
            application=MakeText(proved),
            project=plain(proved),
            program=program,
            source=path,
            generated=generated,
            runtime=sources,
        )
        for name in ("CMakeLists.txt", "Makefile")
    }


def _context(plan: Plan, application: str, io: str, dialect: Dialect) -> dict[str, Any]:
    stated = names(application)
    program = _Program(plan, dialect)
    groups = list(program.groups())
    return {
        "literal": dialect.code,
        "application": application,
        "file": dialect.comment(plan.output.path.name),
        "config": stated["config"],
        "io": io,
        "name": f"{application}-write",
        "blocks": dialect.code(stated["blocks"]),
        "ranks": plan.writers,
        "steps": plan.steps,
        "formulas": [program.formula(x) for x in plan.layouts if x.sides is not None],
        "tables": [program.table(layout) for layout in plan.tables],
        "choices": program.choices,
        "values": program.values,
        "flags": program.flags,
        "writers": program.writers,
        "numbers": [layout.number for layout in plan.layouts],
        "attributes": [program.attribute(attribute) for attribute in plan.attributes],
        "groups": groups,
    }


class _Program:
    """Texts of a plan in a language. Arrays by the step hold the numbers of layouts, values, and
    whether a variable is written; arrays of ranks, those that write a value."""

    def __init__(self, plan: Plan, dialect: Dialect) -> None:
        self.plan = plan
        self.dialect = dialect
        self.code = dialect.code
        self.choices: list[dict[str, Any]] = []
        self.values: list[dict[str, Any]] = []
        self.flags: list[dict[str, Any]] = []
        self.writers: list[dict[str, Any]] = []
        self._names: dict[tuple[str, object], Text] = {}

    # ---- Layouts

    def formula(self, layout: Layout) -> dict[str, Any]:
        sides = layout.sides or ()
        starts = [] if layout.local else [self.dialect.start(side) for side in sides]
        return {
            "number": layout.number,
            "shape": self._shape(layout),
            "starts": self.code.joined(", ", starts),
            "counts": self.code.joined(", ", [self.dialect.count(side) for side in sides]),
            "uses_rank": any(
                not side.is_whole
                and (not layout.local or side.larger > 0 or side.count != side.last_count)
                for side in sides
            ),
        }

    def _shape(self, layout: Layout) -> Text:
        sides = [
            self.dialect.joined() if side == JOINED else self.code.of("{}", side)
            for side in layout.shape or ()
        ]
        return self.code.joined(", ", sides)

    def table(self, layout: Layout) -> dict[str, Any]:
        return {
            "number": layout.number,
            "shape": self._shape(layout),
            "dimensions": layout.dimensions,
            "local": self.dialect.truth(layout.local),
            "rows": [self.code.joined(", ", row) for row in layout.rows().tolist()],
        }

    # ---- Arrays by the step

    def _array(self, into: list[dict[str, Any]], stem: str, key: object, **row: Any) -> Text:
        name = self._names.get((stem, key))
        if name is None:
            name = self.code(f"{stem}_{len(into)}")
            into.append({"name": name, **row})
            self._names[stem, key] = name
        return name

    def _choice(self, numbers: Sequence[int]) -> Text:
        texts = self.code.joined(", ", numbers)
        return self._array(self.choices, "layouts", tuple(numbers), numbers=texts)

    def _value(self, kind: str, texts: Sequence[Text]) -> Text:
        rows = [self.code.joined(", ", texts[i : i + ROW]) for i in range(0, len(texts), ROW)]
        of = self.dialect.type_of(kind)
        return self._array(self.values, "values", (kind, *texts), type=of, rows=rows)

    def _flag(self, steps: Sequence[int]) -> Text:
        on = set(steps)
        truths = [self.dialect.truth(step in on) for step in range(self.plan.steps)]
        texts = self.code.joined(", ", truths)
        return self._array(self.flags, "steps", tuple(steps), values=texts)

    def _among(self, ranks: Sequence[int]) -> Text:
        texts = self.code.joined(", ", ranks)
        name = self._array(self.writers, "writers", tuple(ranks), ranks=texts)
        return self.dialect.among(name, len(ranks))

    # ---- Variables

    def groups(self) -> Iterator[dict[str, Any]]:
        """Variables in their order, those written in the same steps together."""
        written = [put for put in self.plan.puts if put.steps]
        for steps, puts in groupby(written, lambda put: put.steps):
            condition = self._condition(steps)
            indent = self.code("    " if condition else "")
            rows = [self._put(put) for put in puts]
            yield {"condition": condition, "indent": indent, "puts": rows}

    def _condition(self, steps: Sequence[int]) -> Text:
        """When they are written; empty: always."""
        runs, end = spans(steps), self.plan.steps - 1
        if runs == [(0, end)]:
            return self.code("")
        if len(runs) > 1:
            return self.code.of("{}[step]", self._flag(steps))
        first, last = runs[0]
        if first == last:
            return self.code.of("step == {}", first)
        if last == end:
            return self.code.of("step >= {}", first)
        until = self.code.of("step <= {}", last)
        return self.dialect.both(self.code.of("step >= {}", first), until) if first else until

    def _by_step(self, values: Mapping[int, Any]) -> list[Any]:
        """One for each step, any where there is none."""
        absent = next(iter(values.values()))
        return [values.get(step, absent) for step in range(self.plan.steps)]

    def _put(self, put: Put) -> dict[str, Any]:
        variable = put.variable
        row = {"name": variable.name, "type": self.dialect.type_of(variable.type)}
        where = f"variable {variable.name!r}"
        self._literal(where, STRING, variable.name)  # a name that the language has
        if put.layouts:
            self._literal(where, variable.type, "0")  # a type that the language has
            numbers = set(put.layouts.values())
            if len(numbers) == 1:
                argument = self.code.of("layout_{}(rank)", numbers.pop())
            else:
                name = self._choice(self._by_step(put.layouts))
                argument = self.code.of("layout({}[step], rank)", name)
            return {**row, "condition": self.code(""), "call": self.code("put")} | {
                "argument": argument
            }
        texts = {s: self._literal(where, variable.type, text) for s, text in put.values.items()}
        argument = next(iter(texts.values()))
        if put.of_ranks:
            argument = self._of_rank(where, put)
        elif len(set(texts.values())) > 1:
            name = self._value(variable.type, self._by_step(texts))
            argument = self.code.of("{}[step]", name)
        condition = self.code("")
        if put.ranks == (0,) and self.plan.writers > 1:
            condition = self.code("rank == 0")
        elif len(put.ranks) < self.plan.writers:
            condition = self._among(put.ranks)
        call = self.code("local_value" if put.local_value else "value")
        return {**row, "condition": condition, "call": call, "argument": argument}

    def _of_rank(self, where: str, put: Put) -> Text:
        """A local value of the process, from a table of all."""
        kind, steps = put.variable.type, self._by_step(put.of_ranks)
        if len(set(steps)) == 1:
            texts = [self._literal(where, kind, text) for text in steps[0]]
            return self.code.of("{}[rank]", self._value(kind, texts))
        texts = [self._literal(where, kind, text) for row in steps for text in row]
        name = self._value(kind, texts)
        return self.code.of("{}[step * {} + rank]", name, self.plan.writers)

    def attribute(self, attribute: Attribute) -> dict[str, Any]:
        where = f"attribute {attribute.name!r}"
        self._literal(where, STRING, attribute.name)
        values = [self._literal(where, attribute.type, value) for value in attribute.values]
        return {
            "name": attribute.name,
            "type": self.dialect.type_of(attribute.type),
            "values": self.code.joined(", ", values),
            "array": attribute.array or len(values) != 1,
        }

    def _literal(self, where: str, kind: str, text: str) -> Text:
        if kind not in TYPE_BYTES:
            raise UnderstudyError(
                f"{self.plan.output.path}: {where}: type {kind!r}: expected one of "
                f"{', '.join(TYPE_BYTES)}"
            )
        try:
            return self.dialect.literal(kind, text)
        except ValueError as error:
            raise UnderstudyError(f"{self.plan.output.path}: {where}: {error}") from None
