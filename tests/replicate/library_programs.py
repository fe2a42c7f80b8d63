"""Small programs that reach the world through libraries, by name: the standard library's, and installed ones.

Promises: they print and write the same in every run of `python`. Nothing here imports them.
"""

LIBRARIES = {
    "paths": """
from pathlib import Path
here = Path(".")
(here / "a" / "b").mkdir(parents=True)
(here / "a" / "b").mkdir(parents=True, exist_ok=True)
for name in "xyz":
    (here / "a" / name).touch()
(here / "a" / "x").write_text("text\\n")
(here / "a" / "y").write_bytes(b"bytes")
print(sorted(here.iterdir()), sorted(here.glob("a/*")), sorted(here.rglob("*")))
print((here / "a" / "x").read_text(), (here / "a" / "x").stat().st_size, (here / "a" / "x").exists(), (here / "a").is_dir())
(here / "a" / "z").unlink()
(here / "a" / "z").unlink(missing_ok=True)
try:
    (here / "a" / "z").unlink()
except OSError as error:
    print(error)
(here / "a" / "y").rename(here / "a" / "w")
(here / "link").symlink_to("a/x")
print((here / "link").is_symlink(), (here / "link").resolve() == (here / "a" / "x").resolve(), (here / "a" / "w").read_bytes())
with (here / "a" / "x").open("a") as file:
    file.write("more\\n")
print((here / "a" / "x").read_text().splitlines(), (here / "a" / "x").samefile(here / "link"))
(here / "a" / "w").replace(here / "v")
(here / "v").chmod(0o640)
print(oct((here / "v").stat().st_mode), Path.cwd() == Path().resolve(), (here / "none").exists())
""",
    "archives": """
import bz2, gzip, lzma, tarfile, zipfile, os, io
for module, ending in ((gzip, "gz"), (bz2, "bz2"), (lzma, "xz")):
    with module.open(f"f.{ending}", "wt") as file:
        file.write("line\\n" * 1000)
    with module.open(f"f.{ending}", "rt") as file:
        print(sum(1 for _ in file))
    with module.open(f"f.{ending}", "rb") as file:
        print(file.read(6))
with tarfile.open("t.tar", "w") as archive:
    archive.add("f.xz")
with tarfile.open("t.tar") as archive:
    print(archive.getnames(), len(archive.extractfile("f.xz").read()) == os.path.getsize("f.xz"))
    archive.extractall("out", filter="data")
with zipfile.ZipFile("z.zip", "w") as archive:
    archive.write("f.bz2")
with zipfile.ZipFile("z.zip", "a") as archive:
    archive.writestr("inside.txt", "x")
with zipfile.ZipFile("z.zip") as archive:
    archive.extractall("out")
    print(archive.namelist(), archive.testzip(), sorted(os.listdir("out")))
for name in ("f.gz", "t.tar", "z.zip"):
    os.remove(name)
""",
    "descriptors": """
import fcntl, mmap, os, sys, codecs, io, select
with open("lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    fcntl.lockf(file.fileno(), fcntl.LOCK_UN)
    file.write("locked")
    file.flush()
    os.fsync(file.fileno())
with open("map", "w+b") as file:
    file.truncate(4096)
    with mmap.mmap(file.fileno(), 4096) as memory:
        memory[:5] = b"hello"
        memory.flush()
    file.seek(0)
    print(file.read(5))
with open("map", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    print(memory[:5], memory.find(b"l"), len(memory))
    memory[0:1] = b"J"
print(open("map", "rb").read(5))
with codecs.open("coded", "w", "utf-16") as file:
    file.write("text")
print(codecs.open("coded", encoding="utf-16").read())
with io.FileIO("raw", "w") as file:
    print(file.write(b"raw bytes"))
print(io.FileIO("raw").readall())
a, b = os.pipe()
os.write(b, b"through a pipe")
print(os.read(a, 100), os.isatty(a))
os.close(a)
os.close(b)
kept = os.dup(1)
sys.stdout.flush()
number = os.open("stdout.txt", os.O_WRONLY | os.O_CREAT)
os.dup2(number, 1)
print("into the file", flush=True)
os.dup2(kept, 1)
print(open("stdout.txt").read())
standard = sys.stdout
with open("redirected", "w") as sys.stdout:
    print("redirected")
sys.stdout = standard
print(open("redirected").read(), os.fdopen(os.open("redirected", os.O_RDONLY)).read())
with os.fdopen(os.open("low", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
    file.write("by fdopen")
print(open("low").read(), oct(os.stat("low").st_mode))
source, target = os.open("low", os.O_RDONLY), os.open("sent", os.O_WRONLY | os.O_CREAT)
print(os.sendfile(target, source, 0, 100), os.fstat(target).st_size)
""",
    "logs": """
import logging, logging.handlers, os, traceback, warnings, configparser, shelve, fileinput, faulthandler
handler = logging.handlers.RotatingFileHandler("rotating.log", maxBytes=300, backupCount=3)
log = logging.getLogger("rotating")
log.addHandler(handler)
for k in range(40):
    log.warning("message number %d", k)
print(sorted(os.listdir()), os.path.getsize("rotating.log.1"))
timed = logging.FileHandler("timed.log", "w")
timed.setFormatter(logging.Formatter("%(asctime)s %(process)d %(thread)d %(relativeCreated)d %(message)s"))
log.addHandler(timed)
for k in range(500):
    log.warning("timed")
logging.shutdown()
print(sum(1 for _ in open("timed.log")))
os.remove("timed.log")
config = configparser.ConfigParser()
config["section"] = {"key": "value"}
with open("config.ini", "w") as file:
    config.write(file)
config.read(["config.ini", "missing.ini"])
print(dict(config["section"]))
with open("trace.txt", "w") as file:
    try:
        1 / 0
    except ZeroDivisionError:
        traceback.print_exc(file=file)
print(open("trace.txt").read().splitlines()[-1])
os.remove("trace.txt")
with fileinput.input("config.ini", inplace=True) as lines:
    for line in lines:
        print(line.upper(), end="")
print(open("config.ini").read())
with open("module_made.py", "w") as file:
    file.write("answer = 42\\n")
import sys
sys.path.insert(0, os.getcwd())
sys.dont_write_bytecode = True
import module_made
print(module_made.answer)
exec(open("module_made.py").read())
print(answer)
""",
    "shelves": """
import shelve, dbm, os, glob
with shelve.open("shelf") as shelf:
    shelf["k"] = [1, 2, 3]
with shelve.open("shelf") as shelf:
    print(dict(shelf))
print(bool(glob.glob("shelf*")))
for name in glob.glob("shelf*"):
    os.remove(name)
""",
    "loops": """
import asyncio, os, sys
async def child(n):
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", f"print({n})", stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].strip()
async def write(n):
    await asyncio.sleep(n / 50)
    with open(f"{n}.txt", "w") as file:
        file.write(str(n))
    return await asyncio.to_thread(lambda: open(f"{n}.txt").read())
async def main():
    print(await asyncio.gather(*(child(n) for n in range(3))))
    print(await asyncio.gather(*(write(n) for n in range(3))))
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    server.close()
asyncio.run(main())
print(sorted(os.listdir()))
""",
    "waiting": """
import os, subprocess, time
process = subprocess.Popen("sleep 0.3; touch flag", shell=True)
turns = 0
while not os.path.exists("flag"):
    time.sleep(0.02)
    turns += 1
print(turns > 2, process.wait())
process = subprocess.Popen(["sleep", "10"])
process.terminate()
print(process.wait())
process = subprocess.Popen(["sh", "-c", "sleep 0.2; exit 3"])
while process.poll() is None:
    time.sleep(0.02)
print(process.returncode)
""",
    "science": """
import io, os
import numpy as np
import scipy.io, scipy.io.wavfile, joblib
scipy.io.savemat("m.mat", {"x": np.arange(5)})
print(scipy.io.loadmat("m.mat")["x"])
os.remove("m.mat")
scipy.io.wavfile.write("w.wav", 8000, np.zeros(100, "i2"))
print(scipy.io.wavfile.read("w.wav"))
joblib.dump({"x": np.arange(1000)}, "j.joblib")
print(joblib.load("j.joblib")["x"].sum())
memory = joblib.Memory("cache", verbose=0)
@memory.cache
def square(x):
    print("computed")
    return x * x
print(square(3), square(3))
import shutil
shutil.rmtree("cache")
print(joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-k) for k in range(4)))
import PIL.Image
PIL.Image.fromarray(np.zeros((4, 4), "u1")).save("i.png")
print(np.asarray(PIL.Image.open("i.png")).shape)
m = np.lib.format.open_memmap("o.npy", mode="w+", dtype="f8", shape=(10,))
m[:] = 3
m.flush()
print(np.load("o.npy").sum())
buffer = io.BytesIO()
np.savez(buffer, a=np.arange(3))
buffer.seek(0)
print(np.load(buffer)["a"])
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.plot(np.arange(3))
plt.savefig("f.svg", metadata={"Date": None})
plt.savefig("f.pdf")
os.remove("f.pdf")
os.remove("f.svg")
""",
    "compiled": """
import os, numba, sys
os.environ["NUMBA_CACHE_DIR"] = "cache"
open("module_fast.py", "w").write('''
import numba
@numba.njit(cache=True)
def f(x):
    return x + 1
''')
sys.path.insert(0, os.getcwd())
sys.dont_write_bytecode = True
import module_fast
print(module_fast.f(1), module_fast.f(2.5))
import shutil
shutil.rmtree("__pycache__", ignore_errors=True)
shutil.rmtree("cache", ignore_errors=True)
""",
    "signals": """
import os, signal, time
def handler(number, frame):
    raise TimeoutError("too long")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    time.sleep(5)
except TimeoutError as error:
    print(error)
print(signal.signal(signal.SIGTERM, lambda number, frame: print("terminated", number, frame.f_code.co_name)))
os.kill(os.getpid(), signal.SIGTERM)
print(callable(signal.getsignal(signal.SIGTERM)), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
signal.raise_signal(signal.SIGTERM)
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted again")
def handler(number, frame):
    with open("handled.txt", "a") as file:
        file.write(f"{number}\\n")
signal.signal(signal.SIGUSR1, handler)
os.kill(os.getpid(), signal.SIGUSR1)
print(open("handled.txt").read(), signal.signal(signal.SIGUSR1, signal.SIG_IGN) is handler, signal.getsignal(signal.SIGUSR1))
os.kill(os.getpid(), signal.SIGUSR1)
""",
}
