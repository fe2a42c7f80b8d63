"""A person at a terminal, for tests: types when something has appeared, and looks at all that was shown.

Promises that a session ends within its limit with everything that it started, and that what it leaves behind is found by a mark in
the environment. Does not know what is right: tests compare with Python's own prompt.
"""
import os
import pty
import re
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests import candidate

# Seconds within which what was waited for must appear.
LIMIT_S = 30
# The variable that all processes of a session have.
MARK = "TEST_SESSION"
# What moves the cursor and paints.
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07")
CTRL_C, CTRL_D, CTRL_Z, TAB = "\x03", "\x04", "\x1a", "\t"


@dataclass(frozen=True)
class After:
    """Keys that are pressed some seconds after what was waited for has appeared."""

    seconds: float
    keys: str


class Session:
    """A command at a terminal of its own."""

    def __init__(self, words, folder, environment=None):
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        ours, theirs = pty.openpty()
        environment = candidate.environment({"TERM": "dumb", "HOME": str(folder), "PYTHON_BASIC_REPL": "1", MARK: self.mark,
                                             **(environment or {})})
        self._process = subprocess.Popen(words, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
                                         start_new_session=True, preexec_fn=_take_terminal)
        os.close(theirs)
        self._terminal = ours
        self._shown = ""
        self._seen = 0

    @property
    def process(self):
        """The command's process number."""
        return self._process.pid

    def _read(self, seconds):
        """Takes in what is shown within some time; False at the end."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return True
        try:
            some = os.read(self._terminal, 65536)
        except OSError:
            some = b""
        self._shown += ESCAPES.sub("", some.decode(errors="replace").replace("\r\n", "\n"))
        return bool(some)

    def wait_for(self, text, limit_s=LIMIT_S):
        """Waits until the text appears after all that was waited for before; what appeared up to it."""
        until = time.monotonic() + limit_s
        while (at := self._shown.find(text, self._seen)) < 0:
            if time.monotonic() > until or not self._read(0.2):
                self.close()
                raise AssertionError(f"no {text!r} in {self._shown[self._seen:]!r}")
        before, self._seen = self._shown[self._seen:at], at + len(text)
        return before

    def press(self, keys):
        """Types keys, now."""
        os.write(self._terminal, keys.encode())

    def end(self):
        """Waits for the end; all that was shown, and the exit code."""
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until and self._read(0.2):
            pass
        self.close()
        return self._shown, self._process.returncode

    def close(self):
        """Ends the session, if it has not ended."""
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def left(self, within_s=5.0):
        """Processes of the session that are still there after some time."""
        until = time.monotonic() + within_s
        while (found := marked(self.mark)) and time.monotonic() < until:
            time.sleep(0.05)
        return found


def _take_terminal():
    """Makes standard input the terminal of this session, so that its keys make signals."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def marked(mark):
    """Processes with this mark in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and f"{MARK}={mark}\0" in (process / "environ").read_text(errors="replace"):
                found.append((process.name, (process / "cmdline").read_text().replace("\0", " ")))
        except OSError:
            continue
    return found


def talk(words, folder, steps, environment=None):
    """A session of (text to wait for, keys or `After`); all that was shown and the exit code. Nothing of it may be left."""
    session = Session(words, folder, environment)
    for text, keys in steps:
        session.wait_for(text)
        if isinstance(keys, After):
            time.sleep(keys.seconds)
            keys = keys.keys
        session.press(keys)
    shown = session.end()
    assert not session.left()
    return shown


def typed(text, last=CTRL_D):
    """Steps that type these lines, each at a prompt, and then end the session."""
    return [*(((">>> ", "... ")[line.startswith((" ", "\t")) or not line], line + "\n") for line in text.strip("\n").split("\n")),
            (">>> ", last)]
