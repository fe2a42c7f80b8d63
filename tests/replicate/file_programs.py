"""Small programs about files, by name: each asks for trouble in one way when several shards run it.

Promises: they print and write the same in every run of `python`. Nothing here imports them.
"""

FILES = {
    "files": """
import json, os, io, csv, pathlib, pickle
with open("a.txt", "w") as file:
    for k in range(3000):
        file.write(f"line {k}\\n")
    print(file.tell(), file.name, file.mode, file.writable(), file.closed)
with open("a.txt") as file:
    lines = file.readlines()
print(len(lines), lines[-1], file.closed)
with open("a.txt", "a") as file:
    print(file.tell())
    file.write("end\\n")
print(sum(1 for _ in open("a.txt")), os.path.getsize("a.txt"), os.stat("a.txt").st_size)
with open("a.txt", "r+") as file:
    print(file.readline())
    file.seek(0)
    file.write("LINE")
    file.seek(0)
    print(file.readline())
print(open("a.txt").readline())
with open("b.bin", "wb") as file:
    file.write(bytes(range(256)) * 100)
    file.seek(10)
    file.write(b"zz")
with open("b.bin", "r+b") as file:
    file.seek(100)
    print(file.read(4))
    file.truncate(1000)
print(os.path.getsize("b.bin"))
with open("c.bin", "w+b", buffering=0) as file:
    print(file.write(b"abcdef"), file.seek(2), file.read(2))
json.dump({"n": 1}, open("config.json", "w"))
for _ in range(5):
    config = json.load(open("config.json"))
    config["n"] += 1
    json.dump(config, open("config.json", "w"))
print(json.load(open("config.json")))
with open("t.csv", "w", newline="") as file:
    csv.writer(file).writerows([[1, "a,b"], [2, "c"]])
print(list(csv.reader(open("t.csv", newline=""))))
pathlib.Path("p.txt").write_text("päth", encoding="utf-8")
print(pathlib.Path("p.txt").read_text(encoding="utf-8"), pathlib.Path("p.txt").read_bytes())
pickle.dump([1, 2], open("p.pkl", "wb"))
print(pickle.load(open("p.pkl", "rb")))
os.remove("p.pkl")
print(sorted(os.listdir()))
with open("flushed.txt", "w") as file:
    print("one", file=file, flush=True)
    print(open("flushed.txt").read())
fd = os.open("low.txt", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
print(os.write(fd, b"low level"), os.lseek(fd, 4, 0), os.read(fd, 5), os.fstat(fd).st_size)
os.close(fd)
print(open("low.txt").read())
print(repr(open("low.txt", "a"))[:40], repr(open("low.txt", "rb"))[:40], io.open is open)
""",
    "arrays": """
import io, os, zipfile
import numpy as np
x = np.arange(600_000, dtype=np.float32).reshape(600, 1000)
np.save("x.npy", x)
y = np.load("x.npy")
m = np.load("x.npy", mmap_mode="r")
print(y.shape, float(y[599, 999]), float(m[3, 4]), bool((x == y).all()), os.path.getsize("x.npy"))
y += 1
np.save("x.npy", y)
print(float(np.load("x.npy")[0, 0]))
np.savez("both.npz", x=x, t=np.arange(3))
np.savez_compressed("packed.npz", x=x)
print(sorted(np.load("both.npz").files), np.load("packed.npz")["x"].sum())
np.savetxt("t.csv", x[:2, :3], delimiter=",")
print(open("t.csv").read().count("\\n"), np.loadtxt("t.csv", delimiter=",").sum(), np.genfromtxt("t.csv", delimiter=",").shape)
x.tofile("raw.bin")
print(np.fromfile("raw.bin", dtype=np.float32).sum())
np.arange(5).tofile("text.txt", sep=" ")
print(np.fromfile("text.txt", sep=" "))
with open("two.npy", "wb") as file:
    np.save(file, np.arange(3))
    np.save(file, np.arange(4.0))
    print(file.tell())
with open("two.npy", "rb") as file:
    print(np.load(file), np.load(file))
w = np.memmap("map.bin", dtype="i4", mode="w+", shape=(100,))
w[:] = np.arange(100)
w.flush()
del w
r = np.memmap("map.bin", dtype="i4", mode="r+")
r[0] = 42
r.flush()
print(r.sum(), np.fromfile("map.bin", "i4")[:3])
with zipfile.ZipFile("z.zip", "w") as archive:
    archive.writestr("inner.txt", "inside", zipfile.ZIP_DEFLATED)
    archive.write("t.csv")
print(zipfile.ZipFile("z.zip").namelist(), zipfile.ZipFile("z.zip").read("inner.txt"))
os.remove("z.zip")
os.remove("both.npz")
os.remove("packed.npz")
""",
    "operands": """
import os, subprocess, time
import numpy as np
x = np.arange(300_000, dtype="u1")
number = os.open("raw.bin", os.O_CREAT | os.O_WRONLY)
print(os.write(number, x), os.write(number, x[::2].copy()))
with open("other.bin", "wb", buffering=0) as file:
    print(file.write(x + 1))
with open("third.bin", "wb") as file:
    print(file.write(x * 2), file.write((x * 3)[5:9]))
os.truncate("raw.bin", (x[:100] * 1).sum())
print(os.path.getsize("raw.bin"), len(open("other.bin", "rb").read()))
print(subprocess.run(["wc", "-c"], input=x.tobytes(), capture_output=True).stdout)
print(subprocess.run(["echo", str(x.sum())], capture_output=True, text=True).stdout)
time.sleep(x.max() / 10000)
print(time.localtime((x * 0).sum()).tm_year, time.gmtime(x.max()).tm_sec)
""",
    "large": """
import os
import numpy as np
x = np.arange(2_000_000, dtype="f8")
for k in range(4):
    np.save("big.npy", x)
    x = np.load("big.npy") + 1
    with open("big.npy", "rb") as file:
        head = file.read(6)
        file.seek(-8, 2)
        tail = np.frombuffer(file.read(8))
    os.rename("big.npy", "other.npy")
    os.replace("other.npy", "big.npy")
print(x[0], x[-1], head, tail)
with open("big.npy", "r+b") as file:
    file.seek(128)
    file.write(b"\\0" * 8)
print(np.load("big.npy", mmap_mode="r")[:2])
data = open("big.npy", "rb").read()
print(len(data), os.path.getsize("big.npy"))
""",
    "errors": """
import os, shutil
def attempt(function, *args, **options):
    try:
        print(function(*args, **options))
    except Exception as error:
        print(type(error).__name__, error)
attempt(open, "missing/there", "w")
attempt(open, "missing")
attempt(open, "missing", "r+")
attempt(open, ".")
attempt(open, ".", "w")
attempt(open, "x", "rz")
attempt(open, "x", "rb", encoding="utf-8")
attempt(open, None)
attempt(open, "zero\\0byte")
os.mkdir("d")
attempt(os.mkdir, "d")
attempt(os.rmdir, "missing")
open("d/f", "x").close()
attempt(open, "d/f", "x")
attempt(os.rmdir, "d")
attempt(os.remove, "d/g")
attempt(os.rename, "missing", "e")
attempt(shutil.copy, "missing", "e")
attempt(os.listdir, "missing")
attempt(os.stat, "missing")
attempt(os.path.getsize, "missing")
attempt(open("d/f").write, "x")
attempt(open, "/dev/full", "w", 0)
full = open("/dev/full", "w")
attempt(full.write, "x" * 10)
attempt(full.flush)
attempt(full.close)
try:
    with open("/dev/full", "w") as file:
        file.write("y")
except OSError as error:
    print("with:", error)
attempt(open, "d/f", "w", 0)
attempt(open, "d/f", "r", encoding="no such")
attempt(os.makedirs, "d/f/e")
os.makedirs("d/a/b", exist_ok=True)
os.makedirs("d/a/b", exist_ok=True)
print(os.path.exists("d/a/b"), os.path.isdir("d"), os.path.isfile("d/f"), os.access("d", os.W_OK))
open("missing/at/the/end.txt", "w")
""",
    "folders": """
import glob, os, pathlib, shutil, tempfile
os.makedirs("tree/left/leaf")
for name in "abc":
    pathlib.Path(f"tree/{name}.txt").write_text(name)
pathlib.Path("tree/left/leaf/x.dat").touch()
os.symlink("a.txt", "tree/link")
print(sorted(os.listdir("tree")), sorted(entry.name for entry in os.scandir("tree") if entry.is_file()))
print(sorted((top, sorted(folders), sorted(files)) for top, folders, files in os.walk("tree")))
print(sorted(glob.glob("tree/**/*.txt", recursive=True)), sorted(map(str, pathlib.Path("tree").rglob("*.dat"))))
with os.scandir("tree") as entries:
    print(sorted((entry.name, entry.is_dir(), entry.is_symlink(), entry.stat().st_size, os.fspath(entry)) for entry in entries
                 if entry.is_file()))
print(os.readlink("tree/link"), os.path.islink("tree/link"), os.path.samefile("tree/link", "tree/a.txt"))
shutil.copy("tree/a.txt", "tree/d.txt")
shutil.copytree("tree", "copy", ignore=shutil.ignore_patterns("*.dat"))
shutil.move("copy/b.txt", "moved.txt")
os.chmod("moved.txt", 0o600)
os.utime("moved.txt", (1, 2))
print(os.stat("moved.txt").st_mode & 0o777, os.path.getmtime("moved.txt"), oct(os.stat("moved.txt").st_mode))
os.truncate("tree/d.txt", 10)
print(os.path.getsize("tree/d.txt"))
shutil.rmtree("copy")
print(os.path.exists("copy"), shutil.which("no-such-program"))
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "inside"), "w") as file:
        file.write("text")
    print(os.listdir(folder))
print(os.path.exists(folder))
with tempfile.NamedTemporaryFile("w+", suffix=".txt") as file:
    file.write("abc")
    file.flush()
    print(os.path.exists(file.name), open(file.name).read())
    file.seek(0)
    print(file.read())
with tempfile.TemporaryFile() as file:
    file.write(b"abc")
    file.seek(1)
    print(file.read())
with tempfile.SpooledTemporaryFile(max_size=10) as file:
    file.write(b"a" * 100)
    file.seek(90)
    print(file.read())
number, name = tempfile.mkstemp()
os.write(number, b"made")
os.close(number)
print(open(name).read())
os.unlink(name)
here = os.getcwd()
os.chdir("tree")
print(os.path.basename(os.getcwd()), open("a.txt").read(), os.path.abspath("a.txt") == os.path.join(here, "tree", "a.txt"))
os.chdir("..")
shutil.make_archive("packed", "tar", "tree/left")
shutil.unpack_archive("packed.tar", "unpacked")
print(os.listdir("unpacked"))
os.remove("packed.tar")
""",
    "database": """
import sqlite3, os
connection = sqlite3.connect("data.db")
connection.execute("create table t (k integer, v text)")
connection.executemany("insert into t values (?, ?)", [(k, str(k)) for k in range(100)])
connection.commit()
connection.close()
connection = sqlite3.connect("data.db")
print(connection.execute("select count(*), sum(k) from t").fetchone())
connection.close()
print(os.path.exists("data.db"))
os.remove("data.db")
with sqlite3.connect("data.db") as connection:
    try:
        connection.execute("select * from t")
    except sqlite3.OperationalError as error:
        print(error)
    connection.execute("create table u (k integer)")
connection.close()
try:
    sqlite3.connect("missing/data.db")
except sqlite3.OperationalError as error:
    print(error)
connection = sqlite3.connect(":memory:")
print(connection.execute("select 1").fetchone())
""",
    "hdf5": """
import h5py, os
import numpy as np
with h5py.File("data.h5", "w") as file:
    file["x"] = np.arange(1000.0)
    file.create_group("g").attrs["n"] = 3
with h5py.File("data.h5", "r") as file:
    print(file["x"][:].sum(), file["g"].attrs["n"], sorted(file))
with h5py.File("data.h5", "a") as file:
    file["x"][0] = 5
    file["y"] = 1
print(h5py.File("data.h5", "r")["x"][0], os.path.exists("data.h5"))
try:
    h5py.File("missing.h5", "r")
except OSError as error:
    print(error)
os.remove("data.h5")
""",
    "tables": """
import pandas as pd, numpy as np
frame = pd.DataFrame({"a": np.arange(5), "b": list("vwxyz")})
frame.to_csv("t.csv", index=False)
print(pd.read_csv("t.csv").equals(frame))
frame.to_pickle("t.pkl")
print(pd.read_pickle("t.pkl").shape)
frame.to_json("t.json")
print(open("t.json").read())
import os
os.remove("t.pkl")
""",
    "figure": """
import os, matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.plot([1, 3, 2])
plt.title("title")
plt.savefig("figure.png")
print(open("figure.png", "rb").read(4), os.path.getsize("figure.png") > 1000)
import PIL.Image
print(PIL.Image.open("figure.png").size)
""",
}
