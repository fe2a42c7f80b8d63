"""Which Python `legate` finds, and what it says where that one will not do.

Promises: works in a copied layout of executables and environments, with scripts that stand in for interpreters. Tests nothing
that runs after Python has started.
"""
import ast
import os
import shutil
from pathlib import Path

import pytest

from tests import candidate

BINARY = candidate.TOP / ".venv" / "bin" / "legate"
PRINT = "import sys; print(sys.executable)"


def environment_at(folder, python=None):
    """An environment's folder whose interpreter is this one's, or the script `python`."""
    (folder / "bin").mkdir(parents=True)
    path = folder / "bin" / "python"
    if python is None:
        real = candidate.python()[-1]
        (folder / "pyvenv.cfg").write_text((Path(real).parent.parent / "pyvenv.cfg").read_text())
        path.symlink_to(os.path.realpath(real))
    else:
        path.write_text(python)
        path.chmod(0o755)
    return path


def pretender(version, numpy):
    """A script that answers as an interpreter of that version with that NumPy ('' for none)."""
    return f"""#!/bin/sh
case "$*" in
    *sys.executable*) printf %s "$0";;
    *find_spec*) printf '%s\\n%s\\n' {version} '{numpy}';;
    *) echo "pretender ran"; exit 7;;
esac
"""


def legate(*words, tmp_path, binary=BINARY, **variables):
    """Runs the binary with the named variables alone saying which Python to use."""
    env = {"VIRTUAL_ENV": "", "CONDA_PREFIX": "", **variables}
    return candidate.run(["env", *(f"{name}={value}" for name, value in env.items()), str(binary), *words], cwd=tmp_path)


def found(outcome):
    """The interpreter and the way it was found, as `--info` tells."""
    rows = dict(line.split("  ", 1) for line in (line.strip() for line in outcome.stdout.splitlines()) if "  " in line)
    return rows["python"].strip().split(" in ")[1], rows["found by"].strip()


@pytest.fixture
def alone(tmp_path):
    """A copy of the binary that sits in no environment."""
    folder = tmp_path / "tree" / "target" / "release"
    folder.mkdir(parents=True)
    (tmp_path / "tree" / "site-packages").symlink_to(candidate.TOP / "site-packages")
    return shutil.copy(BINARY, folder / "legate")


def test_order(tmp_path, alone):
    active, conda, on_path, asked = (environment_at(tmp_path / name) for name in ("active", "conda", "path", "asked"))
    (on_path.parent / "python3").symlink_to(on_path.name)
    everything = {"VIRTUAL_ENV": active.parent.parent, "CONDA_PREFIX": conda.parent.parent, "PATH": f"{on_path.parent}:/usr/bin:/bin"}
    info = lambda *words, **variables: found(legate("--info", *words, tmp_path=tmp_path, **variables))  # noqa: E731
    assert info("--python", str(asked), **everything) == (str(asked), "--python")
    assert info("--python", str(asked.parent.parent), **everything) == (str(asked), "--python")
    assert info(LEGATE_PYTHON=asked, **everything) == (str(asked), "--python")
    assert info(**everything) == (str(active), "VIRTUAL_ENV")
    everything["VIRTUAL_ENV"] = tmp_path / "removed"
    assert info(**everything) == (str(BINARY.parent / "python"), "legate's own environment")
    assert info(binary=alone, **everything) == (str(conda), "CONDA_PREFIX")
    everything["CONDA_PREFIX"] = ""
    assert info(binary=alone, **everything) == (str(on_path.parent / "python3"), "PATH")


def test_script_in_place_of_an_interpreter_is_asked(tmp_path):
    real = candidate.python()[-1]
    shim = environment_at(tmp_path / "shims", f'#!/bin/sh\nexec "{real}" "$@"\n')
    outcome = legate("--python", str(shim), "-c", PRINT, tmp_path=tmp_path)
    assert (outcome.stdout, outcome.stderr) == (f"{real}\n", "")


def test_broken_script_on_path_is_passed_over(tmp_path, alone):
    real = environment_at(tmp_path / "good")
    broken = environment_at(tmp_path / "broken", "#!/bin/sh\necho 'command not found' >&2; exit 127\n")
    for path in (real, broken):
        path.rename(path.with_name("python3"))
    outcome = legate("--info", tmp_path=tmp_path, binary=alone, PATH=f"{broken.parent}:{real.parent}:/usr/bin:/bin")
    assert found(outcome) == (str(real.with_name("python3")), "PATH")


def test_no_python(tmp_path, alone):
    outcome = legate("-c", "1", tmp_path=tmp_path, binary=alone, PATH=tmp_path)
    assert outcome.stderr == ("legate: found no Python (looked at VIRTUAL_ENV, CONDA_PREFIX and PATH): "
                              "activate an environment or name one with --python\n")
    assert outcome.code == 2


@pytest.mark.parametrize("version, numpy, problem", [
    ("3.9", "", "needs Python 3.11 or newer, but PATH is 3.9"),
    ("3.12", "", "needs NumPy 2.3 or newer, but PATH has none"),
    ("3.12", "1.26.4", "needs NumPy 2.3 or newer, but PATH has 1.26"),
    ("3.12", "2.2.0", "needs NumPy 2.3 or newer, but PATH has 2.2"),
    ("3.12", "2.3.0", None),
    ("4.0", "10.0", None),
])
def test_what_is_too_old(tmp_path, version, numpy, problem):
    file = tmp_path / "version.py"
    file.write_text(f'version = "{numpy}"\n')
    python = environment_at(tmp_path / "old", pretender(version, file if numpy else ""))
    outcome = legate("--python", str(python), "-c", "1", tmp_path=tmp_path)
    if problem is None:
        assert (outcome.stdout, outcome.stderr, outcome.code) == ("pretender ran\n", "", 7)
        return
    first, second = outcome.stderr.splitlines()
    assert first == f"legate: {problem.replace('PATH', str(python))}"
    assert second.startswith("legate: ") and ("--python" in second or "pip install" in second)
    assert outcome.code == 2


def test_package_missing(tmp_path):
    lonely = shutil.copy(BINARY, tmp_path / "legate")
    outcome = legate("--python", candidate.python()[-1], "-c", "1", tmp_path=tmp_path, binary=lonely)
    assert outcome.stderr.startswith("legate: its Python package is not beside ")
    assert outcome.code == 2


def test_verbose_tells_how_python_is_started(tmp_path):
    outcome = legate("--verbose", "-c", PRINT, tmp_path=tmp_path)
    assert outcome.stdout == f"{BINARY.parent / 'python'}\n"
    assert outcome.stderr.startswith(f"legate: {BINARY.parent / 'python'} (found by legate's own environment), ")
    assert ("embedded from" in outcome.stderr) != ("executed (" in outcome.stderr)


def test_settings_reach_python(tmp_path):
    code = "import os; print(sorted(i for i in os.environ.items() if i[0].startswith('LEGATE_') and 'TEST' not in i[0]))"
    outcome = legate("--sysmem", "100", "--no-fusion", "-c", code, tmp_path=tmp_path, LEGATE_CONFIG="--cpus 1")
    expected = [("LEGATE_CONFIG", "--cpus 1"), ("LEGATE_CPUS", "1"), ("LEGATE_FUSION", "0"), ("LEGATE_SYSMEM", "104857600")]
    assert outcome.stdout == f"{expected}\n"


def test_defaults_in_the_help_are_the_runtimes(tmp_path):
    code = "import numpy, legate._core as core; print(core.settings())"
    settings = ast.literal_eval(legate("-c", code, tmp_path=tmp_path).stdout)
    shown = " ".join(legate("--help", tmp_path=tmp_path).stdout.split())
    for flag, name in (("--min-cpu-chunk", "min_chunk"), ("--window-size", "window"), ("--run-ahead", "run_ahead")):
        text = shown[shown.index(f"{flag} <"):]
        assert text[: text.index("]")].split("default: ")[1].split()[0] == str(settings[name])
    assert settings["cpus"] == settings["processors"]
    assert f"{settings['cpus']} that this process may use" in legate("--info", tmp_path=tmp_path).stdout
