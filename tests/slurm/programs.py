"""Small programs for the ranks of Slurm jobs, as texts.

Promises: each prints once and quickly; what only a test may know of a rank comes by `legate._core` or by the C library.
"""

# The nodes of all ranks, a sum, the standard input; ends with the exit code in the last argument.
NODES = """
import ctypes, sys
import numpy as np
from legate import _core
name = ctypes.create_string_buffer(64)
ctypes.CDLL(None).gethostname(name, 64)
print(*sorted(node.decode() for node in _core.collect(name.value)))
print(np.arange(1_000_000.0).sum(), sys.argv[1:], repr(sys.stdin.read()))
sys.exit(int(sys.argv[-1]) if len(sys.argv) > 1 else 0)
"""
RAISES = """
import numpy as np
a = np.ones(100_000)
a[100_000] = 1
"""
# Goes on until it is stopped.
WAITS = """
import sys, time
import numpy as np
a = np.ones(100_000)
print("start", flush=True)
for step in range(100_000):
    a = a + 1
    if float(a[5]) < 0:
        break
    time.sleep(0.01)
"""
# Saves when it is told to end.
SAVES = """
import signal, sys, time
import numpy as np
def save(number, frame):
    np.save("saved.npy", a)
    print("saved", bool((a == a[0]).all()), flush=True)
    sys.exit(5)
signal.signal(signal.SIGTERM, save)
""" + WAITS.lstrip()
# One rank dies.
DIES = """
import os, signal
import numpy as np
from legate import _core
a = np.ones(100_000) + 1
print("start", float(a[5]), flush=True)
_core.collect(b"")
if _core.shard() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    a = a + 1
    _core.collect(b"")
"""
PROGRAMS = {"nodes.py": NODES, "raises.py": RAISES, "waits.py": WAITS, "saves.py": SAVES, "dies.py": DIES}
