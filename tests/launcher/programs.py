"""The small programs that the launcher's tests run, by file name.

Promises: they print only what is the same in every run of `python`: no addresses, times or process ids. Nothing here imports them.
"""

STATE = """
import builtins, os, sys
main = sys.modules["__main__"]
print(__name__, __file__ if "__file__" in globals() else None)
print(sorted(name for name in vars(main)), main.__name__, repr(main.__spec__)[:60], type(main.__loader__))
print(sys.argv, sys.orig_argv, sys.executable, sys.prefix, sys.base_prefix, sep="\\n")
print(sys.path)
print(sys.flags, sys.warnoptions, sys._xoptions)
print(sys.stdin.encoding, sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering, sys.stdout.write_through)
print(sys.getfilesystemencoding(), sys.dont_write_bytecode, sys.getrecursionlimit(), sys.gettrace(), __debug__)
print(sorted(item for item in os.environ.items() if not item[0].startswith("LEGATE_")))
print(sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, hasattr(sys, "ps1"))
"""

FILES = {
    "state.py": STATE,
    "--odd.py": STATE,
    "package/__init__.py": "print('package', __name__)\n",
    "package/__main__.py": STATE,
    "package/inner.py": STATE,
    "folder/__main__.py": STATE,
    "customized/sitecustomize.py": "import builtins\nbuiltins.customized = __name__\n",
    "customized_package/__init__.py": "",
    "fail_package/__init__.py": "",
    "fail_package/inner.py": "import no_such_module\n",
    "startup.py": "started = 'yes'\n",
    "broken.py": "x = 1\ndef f(:\n    pass\n",
    "zero_byte.py": "x = 1\0\n",
    "fail.py": """
def inner(x):
    return 1 / x

def outer():
    try:
        inner(0)
    except ZeroDivisionError as error:
        raise ValueError("outer") from error

outer()
""",
    "fail_group.py": """
try:
    {}["key"]
except KeyError:
    try:
        raise ExceptionGroup("several", [ValueError(1), ExceptionGroup("more", [TypeError("two")])])
    except* TypeError as group:
        error = AttributeError("noted")
        error.add_note("a note")
        raise error from group
""",
    "recursion.py": """
import sys
def depth(n=1):
    try:
        return depth(n + 1)
    except RecursionError:
        return n
print(depth())
def forever():
    forever()
forever()
""",
    "hook.py": """
import sys, traceback
def hook(kind, error, frames):
    print(kind.__name__, error, [frame.f_code.co_name for frame, _ in traceback.walk_tb(frames)])
    print([frame.f_code.co_filename.rpartition("/")[2] for frame, _ in traceback.walk_stack(frames.tb_frame)])
sys.excepthook = hook
def f():
    raise KeyError("k")
f()
""",
    "at_exit.py": """
import atexit, sys, threading, weakref
atexit.register(print, "first registered, last run")
atexit.register(print, "last registered, first run")
threading.Thread(target=lambda: print("thread ends before")).start()
class Thing:
    def __del__(self):
        print("deleted")
thing = Thing()
sys.exit("text")
""",
    "at_exit_arrays.py": """
import numpy as np
class Thing:
    def __del__(self):
        print("deleted")
thing = Thing()
held = np.ones(1_000_000) * 2
left_open = open(1, "w", closefd=False)
left_open.write(f"{held[5]} was never flushed")
""",
    "threads.py": """
import sys, threading
def work(n):
    if n == 2:
        raise RuntimeError("in a thread")
    print("worked", n)
for n in range(4):
    thread = threading.Thread(target=work, args=(n,), name=f"worker {n}")
    thread.start()
    thread.join()
print(threading.active_count(), threading.current_thread() is threading.main_thread())
""",
    "warn.py": """
import warnings
def f():
    warnings.warn("user", UserWarning, stacklevel=2)
    warnings.warn("old", DeprecationWarning)
f()
f()
print(warnings.filters[:3])
""",
    "interrupted.py": """
import os, signal, time
def wait():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
try:
    wait()
finally:
    print("finally", flush=True)
""",
    "waiting.py": """
import sys, time
try:
    print("ready", flush=True)
    for _ in range(300):
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
finally:
    print("finally", flush=True)
""",
    "send_signal.py": """
import subprocess, sys, time
sent, words = int(sys.argv[1]), sys.argv[2:]
process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
print(process.stdout.readline())
time.sleep(0.5)
process.send_signal(sent)
out, err = process.communicate(timeout=20)
print(out, err, "ended by", process.returncode)
""",
    "processes.py": """
import multiprocessing, os, sys, warnings
def work(x):
    return x * x, __name__, sys.argv[1:], sys.flags.optimize, sys.executable, sys.warnoptions, sys._xoptions, sys.path
def shout(queue):
    queue.put(("child", multiprocessing.parent_process() is not None, os.getppid() != 1))
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(work, range(4)))
    queue = context.Queue()
    process = context.Process(target=shout, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    print(process.exitcode)
    failing = context.Process(target=sys.exit, args=(3,))
    failing.start()
    failing.join()
    print(failing.exitcode)
""",
    "executor.py": """
import concurrent.futures as futures, math
if __name__ == "__main__":
    with futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(math.factorial, range(6))))
        try:
            pool.submit(math.sqrt, -1).result()
        except ValueError as error:
            print(error)
    with futures.ThreadPoolExecutor(2) as pool:
        print(list(pool.map(math.factorial, range(6))))
""",
    "children.py": """
import os, subprocess, sys
code = "import sys; print(sys.argv, sys.flags.optimize, [m for m in sys.modules if m.startswith('legate')], sys.path)"
print(subprocess.run([sys.executable, "-c", code, "x"], text=True, capture_output=True, check=True).stdout)
print(subprocess.run([sys.executable, "-"], input=code, text=True, capture_output=True, check=True).stdout)
print(subprocess.run("exit 4", shell=True).returncode)
print(os.popen("echo popen").read())
print(sorted(name for name in os.environ if name.startswith("PYTHON")))
pid = os.fork()
if pid == 0:
    print("child", flush=True)
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.stdout.flush()
os.execv(sys.executable, [sys.executable, "-c", "print('replaced')"])
""",
    "asynchronous.py": """
import asyncio, sys
async def child(n):
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", f"print({n})", stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].strip()
async def main():
    print(await asyncio.gather(*(child(n) for n in range(3))))
    raise LookupError("at the end")
asyncio.run(main())
""",
}
