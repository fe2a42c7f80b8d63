"""The options in the README, and what shells make of the completion scripts.

Promises: the README's table is what `legate --reference` prints (`scripts/bless` rewrites it); completions are asked of the shells
themselves, where they are installed.
"""
import os
import shutil
import subprocess

import pytest

from tests import candidate

README = candidate.TOP / "README.md"
BEGIN, END = "<!-- options:begin -->\n", "<!-- options:end -->\n"
BLESS = os.environ.get("LEGATE_TEST_BLESS") == "1"


def printed(*words):
    outcome = candidate.run([*candidate.command(), *words])
    assert outcome.code == 0, outcome.stderr
    return outcome.stdout


def test_the_readme_has_the_options():
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    expected = before + BEGIN + printed("--reference") + END + after
    if BLESS:
        README.write_text(expected)
    assert README.read_text() == expected, "to accept: scripts/bless"


def in_shell(shell, text):
    """What a shell prints, without its user's settings."""
    plain = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    found = subprocess.run([shell, *plain, "-c", text], text=True, capture_output=True, timeout=60, env=candidate.environment({}))
    assert not found.stderr, found.stderr
    return found.stdout.split()


# What is typed, the last word being under way, and some of what completes it.
TYPED = [
    (["--launch"], ["--launcher"]),
    (["--launcher", "m"], ["mpirun"]),
    (["--cpus", "2", "--compl"], ["--completion"]),
    (["--completion", "z"], ["zsh"]),
    (["app.py", "--launch"], []),
    (["-m", "app", "--launch"], []),
    (["--python", "app"], ["app.py"]),
    (["ap"], ["app.py"]),
]


@pytest.mark.parametrize("words, wanted", TYPED)
def test_bash(words, wanted, tmp_path, monkeypatch):
    (tmp_path / "app.py").touch()
    (tmp_path / "completion").write_text(printed("--completion", "bash"))
    monkeypatch.chdir(tmp_path)
    typed = " ".join(f"'{word}'" for word in words)
    state = f"COMP_WORDS=(legate {typed}); COMP_CWORD={len(words)}"
    found = in_shell("bash", f"source ./completion; {state}; _legate; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    assert set(wanted) <= set(found)
    if not wanted:
        assert not found


def test_zsh_and_fish_read_their_scripts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "legate.zsh").write_text(printed("--completion", "zsh"))
    (tmp_path / "legate.fish").write_text(printed("--completion", "fish"))
    assert in_shell("fish", "source legate.fish; complete -C 'legate --launcher m'")[0] == "mpirun"
    assert "ok" in in_shell("zsh", "autoload -Uz compinit; compinit -D; source ./legate.zsh; whence -w _legate; echo ok")
