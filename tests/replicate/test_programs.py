"""Several shards run a program, and the world sees what one Python does: the same output, files, errors and exit code.

Promises that every program runs with two and three shards, and that no shard's own output differs from that of shard 0.
"""
import pytest

from tests import candidate
from tests.replicate.array_programs import ARRAYS
from tests.replicate.file_programs import FILES
from tests.replicate.library_programs import LIBRARIES
from tests.replicate.programs import ALIKE, ANEW, PRINTING_CHILDREN
from tests.replicate.shards import run

PROGRAMS = {**FILES, **ARRAYS, **LIBRARIES, **ALIKE}
# What each program reads; some have words of their own.
INPUTS = {"debugger": "Ada\np x\nx = 7\nc\nprint(x)\n"}
INPUT = "Ada\nsecond line\nabcdef\nstop here\nrest\nof it"


def tree(folder):
    """Every file below a folder, with what it holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def folders(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir())


def place(tmp_path, name, text):
    script = tmp_path / f"{name}.py"
    script.write_text(text)
    here = tmp_path / "here"
    here.mkdir()
    return str(script), here


@pytest.mark.parametrize("shards", [2, 3])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_world_sees_one(tmp_path, name, shards):
    script, here = place(tmp_path, name, PROGRAMS[name])
    there = tmp_path / "there"
    there.mkdir()
    expected = candidate.run([*candidate.python(), script], cwd=there, stdin=INPUTS.get(name, INPUT))
    seen = run([script], shards, cwd=here, stdin=INPUTS.get(name, INPUT))
    assert seen.stdout == expected.stdout, seen.stderr
    assert (seen.code, seen.stderr) == (expected.code, expected.stderr)
    for stdout, stderr, code in seen.others:
        assert code == seen.code or name in PRINTING_CHILDREN, stderr
        assert stdout == seen.stdout or name in PRINTING_CHILDREN, stderr
    assert tree(here) == tree(there)
    assert folders(here) == folders(there)


@pytest.mark.parametrize("shards", [2, 3])
@pytest.mark.parametrize("name", sorted(ANEW))
def test_all_shards_are_one(tmp_path, name, shards):
    script, here = place(tmp_path, name, ANEW[name])
    seen = run([script], shards, cwd=here)
    assert seen.code == 0, seen.stderr
    for stdout, stderr, code in seen.others:
        assert (stdout, code) == (seen.stdout, seen.code), stderr


@pytest.mark.parametrize("name", sorted(FILES | ARRAYS))
def test_shards_without_common_files(tmp_path, name):
    script, here = place(tmp_path, name, PROGRAMS[name])
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    there.mkdir()
    elsewhere.mkdir()
    expected = candidate.run([*candidate.python(), script], cwd=there, stdin=INPUTS.get(name, INPUT))
    seen = run([script], 2, cwd=here, elsewhere=elsewhere, stdin=INPUTS.get(name, INPUT))
    assert (seen.stdout, seen.stderr) == (expected.stdout, expected.stderr)
    assert seen.others[0][0] == seen.stdout, seen.others[0][1]
    assert tree(here) == tree(there)
    assert list(elsewhere.iterdir()) == []


def test_a_program_from_standard_input(tmp_path):
    text = "import time, os\nprint(time.time() > 0, __name__)\nopen('made', 'w').close()\nprint(os.listdir())\n"
    for words in ([], ["-"]):
        seen = run(words, 2, cwd=tmp_path, stdin=text)
        assert (seen.stdout, seen.code) == ("True __main__\n['made']\n", 0), seen.stderr
        assert seen.others[0][0] == seen.stdout, seen.others[0][1]
