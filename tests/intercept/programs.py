"""The programs that tests of interception run, as files of one folder.

`whose(np)` tells ours from the host NumPy by what only ours has: the table prints a name and "ours" or "host". Nothing here imports them.
"""

WHOSE = """
import sys
def whose(module):
    host = sys.modules["numpy"]
    return "host" if module is host else "ours"
"""

FILES = {
    "whose.py": WHOSE,
    "beside.py": "import numpy\n",
    "package/__init__.py": "",
    "package/inside.py": "import numpy as np\nfrom whose import whose\nprint('package', whose(np))\n",
    "package/__main__.py": "import numpy as np\nfrom package import inside\nfrom whose import whose\nprint('main', whose(np))\n",
    "lib/site-packages/installed.py": """
import numpy
import importlib
again = importlib.import_module("numpy")
""",
    "forms.py": """
import sys
import numpy
import numpy as np
import numpy.linalg
import numpy.linalg as la
import numpy.random as nr
from numpy import random, zeros, ndarray
from numpy.random import rand, default_rng
from numpy.linalg import norm
from whose import whose
import importlib
host = sys.modules["numpy"]
print("plain", whose(numpy), "as", whose(np), numpy is np)
print("module", whose(importlib.import_module("numpy")), importlib.import_module("numpy.random") is nr, random is nr is np.random)
print("dunder", whose(__import__("numpy")), whose(__import__("numpy", fromlist=["x"])), __import__("numpy.random").random is nr)
print("names", zeros is np.zeros, ndarray is host.ndarray, la.norm is norm is host.linalg.norm, rand is nr.rand, nr is not host.random)

def inner():
    import numpy as inside
    return inside
print("function", whose(inner()))

spaces = [{}, {"__name__": "made"}, {"__builtins__": __builtins__}]
for space in spaces:
    exec("import numpy as np", space)
    print("exec", whose(space["np"]))
print("eval", whose(eval("__import__('numpy')")), whose(eval("__import__('numpy')", {})))
star = {"__name__": "star"}
exec("from numpy import *", star)
print("star", star["zeros"] is zeros, star["sqrt"] is host.sqrt, {"linspace", "pi", "array"} <= star.keys())
made = type(sys)("made")
exec("import numpy", made.__dict__)
print("made module", whose(made.numpy))
import beside
print("beside", whose(beside.numpy))
sys.path.insert(0, sys.path[0] + "/lib/site-packages")
import installed
print("installed", whose(installed.numpy), whose(installed.again))
import timeit
print("timeit", timeit.timeit("assert whose(np) == 'ours'", "import numpy as np\\nfrom whose import whose", number=1) > 0)
import legate.numpy
print("legate.numpy", legate.numpy is np)
try:
    import numpy.no_such_module
except ImportError as error:
    print(type(error).__name__, error)
try:
    from numpy import no_such_name
except ImportError as error:
    print(type(error).__name__, str(error).split("(")[0])
try:
    np.no_such_name
except AttributeError as error:
    print(type(error).__name__, error)
""",
    "forms.expected": """
plain ours as ours True
module ours True True
dunder ours ours True
names True True True True True
function ours
exec ours
exec ours
exec ours
eval ours ours
star True True True
made module ours
beside ours
installed host host
timeit True
legate.numpy True
ModuleNotFoundError No module named 'numpy.no_such_module'
ImportError cannot import name 'no_such_name' from 'numpy' 
AttributeError module 'numpy' has no attribute 'no_such_name'
""",
    "threads.py": """
import sys
import threading
from whose import whose
sys.setswitchinterval(1e-6)
seen = set()
def work():
    import numpy
    seen.add((whose(numpy), id(numpy), id(numpy.random), id(numpy.fft), numpy.random.default_rng(3).random()))
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(seen), seen.pop()[0])
""",
    "added.py": """
import sys
import numpy as np
np.added = 5
host = sys.modules["numpy"]
print(host.added, np.added, "added" in host.__dict__)
""",
    "doc.py": """
'''
>>> import numpy as np
>>> whose(np)
'ours'
'''
from whose import whose
import doctest
print(doctest.testmod())
""",
    "missing.py": "import numpy as np\nnp.no_such_name\n",
    "bad_call.py": "import numpy as np\nnp.zeros('x')\n",
    "bad_inside.py": "import numpy as np\nnp.linspace(0, 1, -3)\n",
    "own_class.py": """
import numpy as np
class Holder:
    def __init__(self, values):
        self.values = values
    def __array__(self, dtype=None, copy=None):
        return self.values
class Derived(Holder):
    pass
for n in (3, 100_000):
    holder = Derived(np.arange(float(n)))
    print(np.asarray(holder).sum(), np.sqrt(holder)[1], np.median(holder), np.add(holder, 1)[0], type(Holder.__array__).__name__)
""",
    "pickled.py": """
import pickle
import subprocess
import sys
import numpy as np
functions = [np.zeros, np.array, np.eye, np.linspace, np.sqrt, np.median, np.random.default_rng]
text = pickle.dumps(functions)
print(all(a is b for a, b in zip(pickle.loads(text), functions)))
child = "import pickle, sys; print([f.__name__ for f in pickle.loads(sys.stdin.buffer.read())], 'legate' in sys.modules)"
print(subprocess.run([sys.executable, "-c", child], input=text, capture_output=True).stdout.decode())
""",
    "lib/site-packages/asking.py": """
import numpy as np

def is_real(array):
    # What compiled code would ask.
    return type(array) is np.ndarray

def is_mask(key):
    if isinstance(key, (str, list, np.ndarray, tuple)):
        return is_real(key) and key.dtype == bool
    return False

def pick(values, key):
    if is_mask(key):
        return "mask", is_real(key), int(np.asarray(values)[key].sum())
    return ("labels",)

def each(keys):
    kinds = []
    for key in keys:
        if not isinstance(key, np.ndarray):
            raise TypeError("arrays are wanted")
        kinds.append(is_real(key))
    return kinds, all(isinstance(key, np.ndarray) for key in keys)

def inside(key):
    def asks():
        return isinstance(key, np.ndarray)
    return asks(), is_real(key)

def matched(key):
    match key:
        case np.ndarray():
            return is_real(key)
    return "nothing"

def fill(array):
    if isinstance(array, np.ndarray) and is_real(array):
        array[::2] = 7

def keeps(array, kept=[]):
    if isinstance(array, np.ndarray):
        kept.append(array)
    return kept

class Holder:
    def __init__(self, array):
        self.array, self.others = array, []

    def double(self):
        if not isinstance(self.array, np.ndarray):
            return "no array"
        self.array *= 2
        return is_real(self.array), self.array[:3]
""",
    "asks.py": """
import sys
import numpy as np
sys.path.insert(0, "lib/site-packages")
import asking
values = np.arange(100_000) % 31
mask = values > 11
index = np.argsort(values, kind="stable")
for key in (mask, ~mask, index, 5, [1, 2]):
    print(asking.pick(values, key))
print(asking.each([mask, index, mask, mask]), asking.inside(index), asking.matched(mask))
try:
    asking.each([mask, 5])
except TypeError as error:
    print(error)
asking.fill(values)
values += 1
asking.fill(values[1:])
print(values[:4], values.sum(), isinstance(mask, np.ndarray), isinstance(mask, (list, tuple)))
kept, = asking.keeps(values)
values *= 2
kept[1] = 40
print(kept[:3], values[:3], kept.sum() == values.sum())
held = values + 1
holder = asking.Holder(held)
print(holder.double(), held[:3], (held == holder.array).all())
print(asking.Holder(5).double())
"""
}
