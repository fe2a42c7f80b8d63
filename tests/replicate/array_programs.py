"""Small programs about large arrays in files, by name: each shard has its own part of them to write and to read.

Promises: they print and write the same in every run of `python`. Nothing here imports them.
"""

START = """
import hashlib, io, os
import numpy as np
def h(x):
    return hashlib.md5(np.ascontiguousarray(x).tobytes()).hexdigest()[:8]
A = np.arange(1200 * 1000.).reshape(1200, 1000) * 1.5
"""
ARRAYS = {
    "arrays in parts": START + """
kinds = {"rows": A, "columns": np.asfortranarray(A[:, ::2]), "strided": A[::2, 1::3], "whole": A.astype("i4"), "pairs": A[:600] + 1j,
         "turned": A.T, "row": A[0], "few": A[:3], "cube": A.reshape(10, 120, 1000)}
for name, x in kinds.items():
    np.save(name, x)
    y = np.load(name + ".npy")
    print(name, h(y), y.dtype, y.shape, y.flags.c_contiguous, y.flags.f_contiguous, y.flags.owndata, float(y.sum().real))
    x.tofile(name + ".bin")
    z = np.fromfile(name + ".bin", x.dtype)
    print(h(z), z.shape, z.flags.owndata, h(np.fromfile(name + ".bin", x.dtype, count=500, offset=16)))
A[:] = 0
np.save("rows.npy", A)
B = np.load("rows.npy")
B[5] = 1
B += 2
print(h(B), np.fromfile("rows.npy", "u1", count=10**8).shape)
""",
    "arrays in open files": START + """
with open("f.npy", "wb") as file:
    np.save(file, A)
    np.save(file, A[:, ::-1])
    A[:700].tofile(file)
    print(file.tell())
with open("f.npy", "rb") as file:
    print(h(np.load(file)), h(np.load(file)), h(np.fromfile(file)))
kept = io.BytesIO()
np.save(kept, A)
print(hashlib.md5(kept.getvalue()).hexdigest())
np.savez("z.npz", A, columns=A.T, small=np.arange(3))
d = np.load("z.npz")
print(sorted(d.files), h(d["arr_0"]), h(d["columns"]))
np.savez_compressed("zc", q=A)
print(h(np.load("zc.npz")["q"]))
os.remove("z.npz")
os.remove("zc.npz")
np.save("m.npy", A)
m = np.load("m.npy", mmap_mode="r")
print(h(m[3]), float((m * 2).sum()))
""",
    "arrays that cannot be saved": START + """
A.tofile("raw.bin")
np.save("short.npy", A)
with open("short.npy", "r+b") as file:
    file.truncate(5_000_000)
for text in ("np.load('nope.npy')", "np.save('no/such.npy', A)", "A.tofile('no/x')", "A.tofile('.')", "np.fromfile('nope')",
             "np.load('raw.bin')", "np.load()", "np.save('x')", "np.save('x', A, foo=1)", "A.tofile('/dev/full')",
             "np.fromfile('raw.bin', 'q9')", "np.load('raw.bin', encoding='x')", "np.save(open('raw.bin', 'rb'), A)",
             "np.load('short.npy')", "np.fromfile('raw.bin', count=3, offset=-1)"):
    try:
        print(text, eval(text))
    except Exception as error:
        print(text, type(error).__name__, error)
print(float((A + 1).sum()))
""",
}
