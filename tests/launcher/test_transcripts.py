"""The command line as text: each file in `transcripts` holds commands with what they print and their exit codes.

Promises: run in an empty folder, without LEGATE settings, 100 columns wide; standard output and error together. What differs
between machines stands as a word in capitals (PYTHON, VERSION, CPUS, MEMORY, WHY, OTHERS). `scripts/bless` rewrites the files.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import candidate

FOLDER = Path(__file__).parent / "transcripts"
BLESS = os.environ.get("LEGATE_TEST_BLESS") == "1"
FILES = {"app.py": "import sys\nprint('app', sys.argv[1:])\n", "broken.py": "def f(:\n"}


def run(command, folder):
    """What a shell command prints, and its exit code as a last line when it isn't 0."""
    shown = candidate.environment({"COLUMNS": "100"})
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        shown.pop(name, None)
    shown["PATH"] = f"{Path(candidate.command()[-1]).parent}:{shown['PATH']}"
    found = subprocess.run(["bash", "-c", command], cwd=folder, env=shown, text=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    text = hide_machine(found.stdout, folder)
    return text + (f"exit code {found.returncode}\n" if found.returncode else "")


def hide_machine(text, folder):
    """Puts words in capitals for what differs between machines."""
    python = candidate.python()[0]
    version = subprocess.run([python, "-c", "import sys, numpy; print('%d.%d.%d' % sys.version_info[:3], numpy.__version__)"],
                             text=True, capture_output=True, check=True).stdout.split()
    text = text.replace(python, "PYTHON").replace(str(folder), "FOLDER")
    text = re.sub(r"^(python +)[\d.]+ in", rf"\1{'VERSION'} in", text, flags=re.M)
    text = re.sub(r"^(numpy +).*", r"\1VERSION in FOLDER", text, flags=re.M)
    text = re.sub(r"(embedded from|executed).*", "embedded or executed", text)
    text = re.sub(r"^(memory +).*", r"\1MEMORY", text, flags=re.M)
    text = re.sub(r"^(numa nodes|gpus|cards|  (?:cpus|bound|numa) {9}|  memory {7})( +).*", r"\1\2OTHERS", text, flags=re.M)
    text = re.sub(r"^(mpi +).*\n(?: {21}.*\n)*", r"\1OTHERS\n", text, flags=re.M)
    text = re.sub(r"(that this process may use):.*", r"\1: WHY", text)
    text = re.sub(r"(asked for .* this machine has) \d.*", r"\1 MEMORY", text)
    text = re.sub(r"for each of \d+ NUMA nodes?", "for each NUMA node", text)
    text = re.sub(r"(there is no .* this machine has) .*", r"\1 OTHERS", text)
    text = re.sub(r"\b\d+ (CPUs?\b|that this process)", r"N \1", text).replace("N CPUs", "N CPU")
    return text.replace(version[0], "VERSION")


def commands(text):
    """The commands of a transcript, in order, without what they print."""
    return [line[2:] for line in text.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_transcript(name, tmp_path):
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    expected = (FOLDER / name).read_text()
    head = expected[: expected.index("$ ")]
    found = head + "\n".join(f"$ {command}\n{run(command, tmp_path)}" for command in commands(expected))
    if BLESS:
        (FOLDER / name).write_text(found)
    assert found == (FOLDER / name).read_text(), f"to accept: scripts/bless (Python {sys.version_info[:2]})"
