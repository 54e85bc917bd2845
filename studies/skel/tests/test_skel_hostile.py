"""Hostile text in every field of a descriptor, its parameters, a BP file and the command line: the
generated programs, scripts and build files are built and run, and nothing of it is executed."""

import re
import shutil
import subprocess
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from studies.skel.tests.support import DESCRIPTOR, descriptor, run, shapes, succeed, understudy
from tests.support.needs import need
from understudy_skel import bpfile, bpindex, escape, identifiers
from understudy_skel.dialects import DIALECTS
from understudy_skel.escape import CText, Identifier, UnfilteredError

MARK = "EXECUTED"
# What can be printed: it is escaped. A group's name has no '/'; see `of_group`.
PAYLOADS = {
    "c comment": f'*/ __attribute__((constructor)) static void f(void){{fopen("{MARK}","w");}} /*',
    "split comment end": "**//**//*/*/ int x[-1]; /*",
    "c string": f'"); system("touch {MARK}"); ("',
    "trigraphs": f'??/" ??\' system("touch {MARK}"); ??<??> *??/',
    "backslashes": f'\\" \\\\" \\n \\x41 \\101 \\"; system("touch {MARK}"); \\',
    "formats": "%s%n%n%n%d %1$n",
    "command": f"$(touch {MARK})",
    "backticks": f"b`touch {MARK}`",
    "separators": f"; touch {MARK} & touch {MARK} | touch {MARK} #",
    "quotes": f"' ; touch {MARK} ; '",
    "make": f"$(shell touch {MARK})",
    "cmake": f'" ) execute_process(COMMAND touch {MARK}) #[[ ${{x}} $<1:y> ]] @y@',
    "fortran": f'\' // " ; call execute_command_line("touch {MARK}") ; ! &',
    "jinja": "{{ 7 * 7 }} {% raw %} {# x #}",
    "xml": '<x y="&amp;"/> ]]> --> <!-- &lt; \'',
    "macros": "__DATE__ unix",
    "long": "y" * 70 + " " + '"' * 40 + " " + "z" * 79,
    "words of others": "élan ÄÖ 漢字",
}
WORDS = (
    "unix",
    "NULL",
    "MPI_INT",
    "linux",
    "errno",
    "stdin",
    "int",
    "data",
    "elements",
    "rank",
    "end",
    "type",
    "I",
    "assert",
    "EOF",
    "bool",
    "va_arg",
)
# What cannot be printed, or cannot be in the field at all: it is refused.
REFUSED = {
    "newline": f"a\ntouch {MARK}\n",
    "carriage return": f"a\rtouch {MARK}",
    "escape": "a\x1b[2Jb",
    "bidi": "a\u202e\u2066b",
    "line separator": f"a\u2028touch {MARK}",
    "zero width": "a\u200bb",
    "NUL": "a\0b",
}
CONTROL = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}


def attribute(text: str) -> str:
    return quoteattr(text, CONTROL)


def of_group(text: str) -> str:
    """Groups whose names differ in marks only are refused; the number tells them apart."""
    return text.replace("/", "|") + f" {list(PAYLOADS.values()).index(text)}"


def of_dimension(text: str) -> str:
    """Commas separate dimensions, braces begin and end names in expressions."""
    return re.sub(r"[{},]", "|", text)


# Every field of a descriptor that takes any text, by the way that it stands in XML.
FIELDS = (
    "group",
    "communicator",
    "variable",
    "path",
    "gwrite",
    "dimension",
    "condition",
    "array",
    "attribute",
    "value",
    "method parameters",
    "text",
)


def group_xml(payload: str, **only: str) -> str:
    """A group with the payload in every field; or, with `only`, in the fields that are named."""

    def put(field: str, usual: str, fit: object = str) -> str:
        return attribute(only.get(field, usual) if only else fit(payload))  # type: ignore[operator]

    words = "a=1" if only else of_dimension(payload).replace(";", "|")
    words = only.get("method parameters", words)
    group = put("group", "g", of_group)
    size = put("dimension", "nx", lambda p: f"n {of_dimension(p)}")
    return f"""
  <adios-group name={group} coordination-communicator={put("communicator", "comm")}
      stats={put("stats", "On", lambda p: "On")}>
    <var name={size} type="integer"/>
    <var name={put("variable", "v", lambda p: f"v {p}")} path={put("path", "p")} type="double"
         gwrite={put("gwrite", "x")}/>
    <var name="text" type="string"/>
    <gwrite src={put("condition", "if (x)", lambda p: f"if ({p}")}/>
    <var name={put("array", "a", lambda p: f"a {p}")} type="double" dimensions={size}/>
    <gwrite src="endif"/>
    <attribute name={put("attribute", "b")} value={put("value", "c")}/>
  </adios-group>
  <method group={group} method="POSIX">{attribute(words)[1:-1]}</method>"""


def config(groups: str) -> str:
    return f'<?xml version="1.0"?>\n<adios-config host-language="C">{groups}\n</adios-config>\n'


def nothing_executed(folder: Path) -> bool:
    return not list(folder.rglob(MARK))


@pytest.mark.parametrize("language", DIALECTS)
def test_hostile_text_is_written_and_not_executed(language: str, tmp_path: Path) -> None:
    """One project with a group for each payload, which stands in all fields of it."""
    need("ADIOS 1.13", *(["Fortran with MPI"] if language == "fortran" else []))
    source = tmp_path / "app.xml"
    source.write_text(config("".join(group_xml(payload) for payload in PAYLOADS.values())))
    values = tmp_path / "app_params.xml"
    succeed("skel", "params", source, "-n", 1, "-o", values, "--set", "text=x")
    text = values.read_text()
    for payload in PAYLOADS.values():  # the scalar of type string, in its group
        row = 'name="text" type="string" value='
        text = text.replace(f'{row}"x"', f"{row}{attribute(payload)}", 1)
    values.write_text(text.replace('value="no"', 'value="yes"'))
    succeed("skel", "source", source, "-d", tmp_path, "-l", language)
    built = succeed("skel", "build", source, "-d", tmp_path)
    assert "warning" not in built.stderr
    programs = sorted((tmp_path / "build").glob("app_skel_*_write"))
    assert len(programs) == len(PAYLOADS)
    for number, program in enumerate(programs):
        done = subprocess.run(
            [program, "-o", f"out{number}", "-k", "-r", f"{number}.json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{program.name}: {done.stderr}"
    names = {path.name for path in tmp_path.glob("out*/*.bp")}
    assert names == {f"{of_group(payload)}.0.bp" for payload in PAYLOADS.values()}
    assert nothing_executed(tmp_path)
    assert len(PAYLOADS) * len(FIELDS) == 216  # of each language


@pytest.mark.parametrize("name", REFUSED)
def test_text_that_cannot_be_printed_is_refused(name: str, tmp_path: Path) -> None:
    cases = 0
    for field in (
        "group",
        "communicator",
        "stats",
        "variable",
        "path",
        "gwrite",
        "dimension",
        "condition",
        "array",
        "attribute",
        "value",
    ):
        source = tmp_path / "app.xml"
        source.write_text(config(group_xml("", **{field: REFUSED[name]})))
        done = understudy("skel", "params", source)
        assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.stderr
        assert "cannot be printed" in done.stderr or "not XML" in done.stderr, done.stderr
        assert done.stderr.strip("\n").isprintable()
        cases += 1
    assert cases == 11 and [p.name for p in tmp_path.iterdir()] == ["app.xml"]


@pytest.mark.parametrize(
    "name", ["../evil", "/tmp/evil", ".", "..", "a/b", ".hidden", "-k", f"*/ {MARK} /*", "x" * 201]
)
def test_a_group_that_leads_out_of_the_run_directory_is_refused(name: str, tmp_path: Path) -> None:
    source = descriptor(tmp_path, "", "", DESCRIPTOR.replace('"g"', f'"{name}"'))
    for command in ("xml", "params", "source"):
        done = understudy("skel", command, source)
        assert done.exit_code == 2 and done.stderr.count("\n") == 1
        assert "expected a name of at most 200 bytes without '/'" in done.stderr, done.stderr


@pytest.mark.parametrize("language", DIALECTS)
def test_words_of_the_languages_can_be_names(language: str, tmp_path: Path) -> None:
    """All of them as scalars and as dimensions, in one program of a group that is called unix."""
    need("ADIOS 1.13", *(["Fortran with MPI"] if language == "fortran" else []))
    rows = "".join(f'<var name="{word}" type="integer"/>' for word in WORDS)
    rows += "".join(f'<var name="a_{word}" type="real" dimensions="{word}"/>' for word in WORDS)
    text = f'<adios-group name="unix">{rows}</adios-group><method group="unix" method="POSIX"/>'
    (tmp_path / "app.xml").write_text(config(text))
    succeed("skel", "params", tmp_path / "app.xml", "-n", 1, "-o", tmp_path / "app_params.xml")
    succeed("skel", "source", tmp_path / "app.xml", "-d", tmp_path, "-l", language)
    succeed("skel", "build", tmp_path / "app.xml", "-d", tmp_path)
    done = run(tmp_path / "build" / "app_skel_unix_write", 1, "-o", "out", "-k")
    assert done.returncode == 0, done.stderr
    assert {f"a_{word}" for word in WORDS} < set(shapes(tmp_path / "out" / "unix.0.bp"))


def test_no_macro_of_the_headers_is_an_identifier_of_a_program() -> None:
    compiler = shutil.which("mpicc")
    assert compiler is not None
    headers = "\n".join(f"#include <{name}.h>" for name in ("mpi", "stdlib", "string", "stdint"))
    done = subprocess.run(
        [compiler, "-x", "c", "-dM", "-E", "-"],
        input=headers,
        capture_output=True,
        text=True,
        check=True,
    )
    macros = re.findall(r"(?m)^#define (\w+)", done.stdout)
    assert len(macros) > 1000
    assert not set(macros) & set(identifiers.members(macros).values())


@pytest.mark.parametrize("name", PAYLOADS)
def test_the_command_line_is_refused_or_escaped(name: str, tmp_path: Path) -> None:
    """The target directory, the launcher, the account, the batch and the application of a job
    script; then the script is run."""
    payload = PAYLOADS[name]
    path = descriptor(tmp_path)
    values = tmp_path / "app_params.xml"
    succeed("skel", "params", path, "-n", 1, "-o", values)
    usual = values.read_text()
    for old in ('batch name="writes"', 'skel-config application="app"'):
        key = old.split("=")[0]
        values.write_text(usual.replace(old, f"{key}={attribute(payload)}"))
        for command in ("source", "submit"):
            done = understudy("skel", command, path, "-d", tmp_path)
            assert done.exit_code == 2 and "expected at most 200 letters" in done.stderr
    values.write_text(usual)
    assert understudy("skel", "submit", path, "-A", payload, "-d", tmp_path).exit_code != 0
    odd = tmp_path / f"{payload.replace('/', '|')}.xml"
    if len(odd.name.encode()) < 200:
        odd.write_text(path.read_text())
        assert "the application's name" in understudy("skel", "xml", odd).stderr
    words = ("skel", "submit", path, "-d", tmp_path, "-t", payload, "--launcher", payload, "-f")
    done = understudy(*words)
    if done.exit_code != 0:  # words that are not closed
        assert "expected a command" in done.stderr, done.stderr
        succeed("skel", "submit", path, "-d", tmp_path, "-t", payload)
    script = tmp_path / "submit_slurm_writes"
    subprocess.run(
        ["bash", script],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "1"},
    )
    assert nothing_executed(tmp_path)


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_bp_file_is_escaped(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables and texts of a file as bpls lists them."""
    payload = PAYLOADS[name].replace("/", "|")
    listing = (
        f"  integer  {payload}  scalar = 7\n        step 0: 1 instances available\n"
        f'  string   words  scalar = "{payload}"\n'
        "        step 0: 1 instances available\n"
    )
    monkeypatch.setattr(bpfile, "bpls_output", lambda path: listing)
    monkeypatch.setattr(bpindex, "transforms", lambda path: {})
    succeed("skel", "replay", tmp_path / "x y$(touch).bp", "-d", tmp_path, "--no-make")
    [source] = tmp_path.glob("*_write.c")
    assert escape.c_string(payload) in source.read_text()
    again = [path for path in tmp_path.glob("*_skel.xml")]
    succeed("skel", "xml", again[0], "-o", tmp_path / "again.xml")
    with pytest.raises(Exception, match="cannot be printed"):
        monkeypatch.setattr(
            bpfile, "bpls_output", lambda path: listing.replace("words", "w\u202e")
        )
        bpfile.read(tmp_path / "x.bp")


@pytest.mark.parametrize("name", ["a b", "a'b", "a$(touch x)b", "a#b", "${HOME}", "a(b)"])
def test_the_path_of_an_application_s_source(name: str, tmp_path: Path) -> None:
    """In CMake's file; what CMake cannot write is refused."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "app.c").write_text("int main(void) { return 0; }\n")
    succeed("skel", "measure", folder / "app.c", "-d", tmp_path, "--no-make")
    lines = (tmp_path / "CMakeLists.txt").read_text().splitlines()
    [call] = [line for line in lines if line.startswith("add_executable")]
    (tmp_path / "show.cmake").write_text(
        'function(shown)\nmessage(STATUS "${ARGV1}")\nendfunction()\n'
        f"{call.replace('add_executable', 'shown')}\n"
    )
    if shutil.which("cmake"):
        done = subprocess.run(
            ["cmake", "-P", tmp_path / "show.cmake"], capture_output=True, text=True, check=False
        )
        assert f"-- {folder / 'app.c'}" in done.stdout, done.stderr
    for bad in (f"a;b{MARK}", 'a"b', "a\\b", "a\nb"):
        (tmp_path / bad).mkdir()
        (tmp_path / bad / "app.c").touch()
        refused = understudy("skel", "measure", tmp_path / bad / "app.c", "-d", tmp_path, "-f")
        assert refused.exit_code == 2 and "CMake cannot build from this path" in refused.stderr
    for odd in ("a b.c", "$(x).c", "-x.c"):
        (tmp_path / odd).touch()
        refused = understudy("skel", "measure", "--", tmp_path / odd)
        assert refused.exit_code == 2 and "the program's name" in refused.stderr


def test_a_template_refuses_what_no_filter_made_safe() -> None:
    environment = escape.environment(CText)
    for value in ("x", "", None, True, 1.5, escape.shell("x"), CText("a") + "b"):
        with pytest.raises(UnfilteredError):
            environment.from_string("{{ value }}").render(value=value)
    for value in (7, CText("x"), Identifier("x_")):
        assert environment.from_string("{{ value }}").render(value=value) == str(value)
    text = environment.from_string("{{ value | c_string }}").render(value='"')
    assert text == '"\\""'
    with pytest.raises(UnfilteredError):
        Identifier("x;")
    with pytest.raises(UnfilteredError):
        CText.of("{}", "x")


def test_literals_of_templates_are_literals() -> None:
    for path in escape.TEMPLATES.rglob("*"):
        if path.is_file():
            for word in re.findall(r"\bliteral\((.)", path.read_text()):
                assert word == '"', path
