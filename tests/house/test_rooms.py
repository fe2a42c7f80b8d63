"""House rules that a machine can check: how files open, how long they are, what rooms are called, where unsafe lives.

Promises: walks every tracked or new file of ours, once per rule, and names the file and the line that breaks it. Judges no code.
"""
import re
import subprocess

import pytest

from tests.candidate import TOP

LONGEST = 500
# What the top of the tree may hold besides dot files.
TOP_ROOMS = {"Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "kernels", "launcher", "pyproject.toml", "scripts", "shim",
             "site-packages", "tests"}
# Names that say how code came about, not what it is about.
NO_ROOMS = {"utils", "util", "common", "base", "helpers", "helper", "impl", "misc", "core_utils", "tools", "stuff"}
# Copies of what users run: they look as users write.
USERS_FILES = ("tests/programs/", "tests/cases/")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|farm)/")


def files():
    """Paths of all files that git tracks or would track, as text below the top."""
    found = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=TOP, text=True,
                           capture_output=True, check=True)
    return sorted(name for name in set(found.stdout.splitlines()) if (TOP / name).is_file())


FILES = files()
SOURCES = [name for name in FILES if name.endswith((".rs", ".py", ".sh")) or name.startswith(("scripts/", ".ci/"))]
OURS = [name for name in SOURCES if not name.startswith(USERS_FILES)]


def text(name):
    return (TOP / name).read_text()


def first_lines(name):
    """The lines of a file from its first that is neither a shebang, an attribute nor blank."""
    lines = text(name).splitlines()
    while lines and (lines[0].startswith(("#!/", "#![")) or not lines[0].strip()):
        attribute = lines[0].startswith("#![")
        while attribute and not lines[0].rstrip().endswith("]"):
            lines.pop(0)
        lines.pop(0)
    return lines


def opens_with_a_doc_line(name):
    lines = first_lines(name)
    if not lines:
        return name.endswith("__init__.py")
    if name.endswith(".rs"):
        return lines[0].startswith("//! ")
    if name.endswith(".py") or lines[0].startswith('"""'):
        return lines[0].startswith(('"""', 'r"""'))
    return lines[0].startswith("# ")


@pytest.mark.parametrize("name", OURS)
def test_opens_with_a_doc_line(name):
    assert opens_with_a_doc_line(name), f"{name}: the first line says what lives here"


def test_lengths():
    long = {name: lines for name in OURS if (lines := text(name).count("\n")) > LONGEST}
    assert not long, "which two nouns do these hold?"


def test_rooms_are_subjects():
    parts = {part.rsplit(".", 1)[0] for name in OURS for part in name.split("/")}
    assert not parts & NO_ROOMS


def test_the_top_holds_its_rooms_only():
    tops = {name.split("/")[0] for name in FILES if not name.startswith(".")}
    assert tops <= TOP_ROOMS, tops - TOP_ROOMS


def test_no_path_of_one_machine():
    bad = [f"{name}:{number}" for name in FILES if not name.startswith(("tests/numpy_suite/api_", "Cargo.lock"))
           for number, line in enumerate(text(name).splitlines(), 1) if MACHINE_PATH.search(line)]
    assert not bad, bad


def without_strings(line):
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)


def unsafe_lines(name):
    """Numbers of lines that open an unsafe block or say `unsafe impl`, comments and strings left out."""
    for number, line in enumerate(text(name).splitlines(), 1):
        code = without_strings(line).split("//")[0]
        if re.search(r"\bunsafe\s*(\{|impl\b)", code):
            yield number


@pytest.mark.parametrize("name", [name for name in OURS if name.endswith(".rs")])
def test_unsafe_is_announced_and_justified(name):
    """Clippy asks for the SAFETY comment of each block (undocumented_unsafe_blocks); here: that the file announces them."""
    if next(unsafe_lines(name), None) is None:
        return
    head = "\n".join(text(name).splitlines()[:40])
    assert re.search(r"#!\[(cfg_attr\(.*, )?expect\(\s*unsafe_code,\s*reason = ", head), f"{name}: opens with #![expect(unsafe_code, reason = ...)]"


@pytest.mark.parametrize("name", [name for name in OURS if not name.startswith("tests/house/")])
def test_nothing_unfinished(name):
    found = re.search(r"\b(TODO|FIXME|XXX|HACK)\b|\btodo!|\bunimplemented!|\bdbg!", text(name))
    assert not found, f"{name}: {found[0]}"
