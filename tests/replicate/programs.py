"""The other small programs that the tests of replication run, by name.

Promises: those in ALIKE print and write the same in every run of `python`; those in ANEW differ from run to run, but must not differ
between shards. Nothing here imports them.
"""

ALIKE = {
    "output": """
import logging, sys, warnings, os
print("first", end=" ")
print("second", flush=True)
sys.stdout.write("written\\n")
print("error", file=sys.stderr)
warnings.warn("a warning")
logging.basicConfig(filename="log.txt", format="%(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("here")
for k in range(100):
    log.info("message %d", k)
log.warning("warned")
logging.shutdown()
print(sum(1 for _ in open("log.txt")))
os.write(1, b"raw\\n")
sys.stdout.buffer.write(b"bytes\\n")
sys.stdout.flush()
""",
    "terminals": """
import os, sys
print(sys.stdout.isatty(), sys.stdin.isatty(), os.isatty(1), sys.stdout.encoding)
""",
    "inputs": """
import sys
print(input("name? "))
print(repr(sys.stdin.readline()), sys.stdin.encoding)
print(repr(sys.stdin.read(3)))
for line in sys.stdin:
    print("line", line.rstrip())
    if line.startswith("stop"):
        break
print(sys.stdin.buffer.read())
try:
    input()
except EOFError as error:
    print("EOF", error)
""",
    "low_input": """
import os, select, sys
print(os.read(0, 4), select.select([sys.stdin], [], [], 1) == ([sys.stdin], [], []))
with open(0, "rb", buffering=0, closefd=False) as file:
    print(file.read(7))
print(open("/dev/stdin").read())
""",
    "debugger": """
import sys
x = 5
name = input()
breakpoint()
print("after", x)
import code
code.interact("banner", readfunc=lambda prompt: input(prompt), local={"x": 6}, exitmsg="left")
""",
    "interview": """
numbers = []
while True:
    try:
        text = input()
    except EOFError:
        break
    numbers.append(len(text))
print(sum(numbers), len(numbers))
""",
    "processes": """
import os, subprocess, sys
print(subprocess.run([sys.executable, "-c", "print(5)"], capture_output=True, text=True).stdout)
print(subprocess.check_output("echo one; echo two", shell=True), subprocess.getoutput("echo out"))
print(subprocess.run(["sh", "-c", "cat; exit 3"], input=b"given", capture_output=True))
try:
    subprocess.run("exit 4", shell=True, check=True)
except subprocess.CalledProcessError as error:
    print(error, error.returncode)
try:
    subprocess.run(["no-such-program"])
except OSError as error:
    print(error)
try:
    subprocess.run(["sleep", "5"], timeout=0.1)
except subprocess.TimeoutExpired as error:
    print(error.cmd)
process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
process.stdin.write("to the cat\\n")
process.stdin.close()
print(process.stdout.read(), process.wait(), process.returncode, process.poll())
with subprocess.Popen(["sh", "-c", "for k in 1 2 3; do echo $k; done"], stdout=subprocess.PIPE) as process:
    for line in process.stdout:
        print(line)
print(os.system("echo counted >> count.txt"), os.popen("echo popen").read(), open("count.txt").read())
subprocess.run("echo counted >> count.txt", shell=True)
print(open("count.txt").read())
with open("out.txt", "w") as out:
    subprocess.run(["echo", "into a file"], stdout=out)
print(open("out.txt").read())
print(sorted(name for name in subprocess.run(["env"], capture_output=True, text=True).stdout.split() if "RANK" in name))
print(isinstance(process, subprocess.Popen), repr(process))
""",
    "replaced": """
import os, sys
try:
    os.execv("no-such-program", ["x"])
except OSError as error:
    print(error)
print("before", flush=True)
os.execvp("sh", ["sh", "-c", "echo replaced; exit 5"])
""",
    "children": """
import os, subprocess, sys
print("before", flush=True)
os.system("echo from a child")
subprocess.run(["echo", "from another"])
subprocess.run("echo to stderr >&2", shell=True)
print("after")
""",
    "workers": """
import concurrent.futures as futures, math, multiprocessing, os, threading
def square(x):
    return x * x
def write(name):
    with open(f"worker-{name}.txt", "w") as file:
        file.write(f"by {name}")
    with open(f"worker-{name}.txt") as file:
        return file.read()
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(pool.map(square, range(5)))
        print(pool.map(write, ["a", "b"]))
    with futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(math.factorial, range(6))))
    with futures.ThreadPoolExecutor(2) as pool:
        print(list(pool.map(write, ["c", "d"])))
        list(pool.map(os.mkdir, ["made-1", "made-2"]))
    print(sorted(os.listdir()))
    results = []
    threads = [threading.Thread(target=lambda k=k: results.append(k)) for k in range(4)]
    for thread in threads:
        thread.start()
        thread.join()
    print(results)
    queue = multiprocessing.Queue()
    process = multiprocessing.Process(target=queue.put, args=("from a child",))
    process.start()
    print(queue.get())
    process.join()
    child = os.fork()
    if child == 0:
        with open("forked.txt", "a") as file:
            file.write("by a child\\n")
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), open("forked.txt").read())
""",
    "names": """
import copy, datetime, glob, inspect, io, os, pickle, random, shutil, socket, subprocess, time, uuid
for function in (open, os.mkdir, os.stat, os.open, time.time, os.getpid, os.scandir, time.strftime, os.getcwd):
    print(repr(function), function.__name__, pickle.loads(pickle.dumps(function)) is function,
          copy.deepcopy(function) is function, callable(function))
print(inspect.signature(os.mkdir), inspect.signature(open), os.mkdir.__doc__)
print(subprocess.Popen, socket.socket, issubclass(subprocess.Popen, object), datetime.datetime.now.__name__, random.seed.__name__)
print(os.stat in os.supports_dir_fd, os.scandir in os.supports_fd, os.mkdir in os.supports_dir_fd, shutil.rmtree.avoids_symlink_attacks)
print(pickle.loads(pickle.dumps(datetime.datetime(2020, 1, 2))), datetime.datetime.__mro__)
""",
    "threads": """
import numpy as np
from concurrent.futures import ThreadPoolExecutor
def work(k):
    x = np.arange(500_000.0) + k
    x[::2] = 0
    return float((x * 2).sum()), x.shape, float(np.sort(np.sin(x))[-1])
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(work, range(6))))
print(work(3))
""",
    "network": """
import http.server, socket, threading, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    count = 0
    def do_GET(self):
        Handler.count += 1
        body = f"served {Handler.count}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/"
for _ in range(2):
    with urllib.request.urlopen(address) as response:
        print(response.status, response.read(), response.headers["Content-Length"])
try:
    socket.create_connection(("127.0.0.1", 1), timeout=2)
except OSError as error:
    print(error)
server.shutdown()
""",
    "failing": """
import sys
with open("before.txt", "w") as file:
    file.write("before")
def inner():
    return 1 / 0
print("printed")
inner()
""",
    "exit_code": """
import atexit, sys
import numpy as np
held = np.ones(1_000_000) * 2
def last():
    with open("last.txt", "w") as file:
        file.write("at exit")
    print("at exit")
atexit.register(last)
left_open = open("left.txt", "w")
left_open.write("never closed")
sys.exit(7)
""",
    "weak": """
import gc, weakref
class Node:
    def __init__(self, k):
        self.k, self.me = k, self
    def __del__(self):
        if self.k % 10000 == 0:
            with open("deaths.txt", "a") as file:
                file.write(f"{self.k}\\n")
for k in range(30000):
    Node(k)
gc.collect()
print(gc.isenabled(), open("deaths.txt").read().split())
dead = []
node = Node(1)
weakref.finalize(node, dead.append, 1)
del node
gc.collect()
print(dead)
""",
}

# Programs whose children print by themselves: only shard 0 has children.
PRINTING_CHILDREN = {"children", "replaced"}

ANEW = {
    "chance": """
import os, random, secrets, uuid, tempfile
import numpy as np
print(random.random(), random.Random().random(), random.SystemRandom().random(), random.sample(range(100), 5))
print(os.urandom(5), os.urandom(5), os.getrandom(4) is not None, secrets.token_hex(4), secrets.randbelow(1000), secrets.choice("abc"))
print(uuid.uuid1(), uuid.uuid4(), uuid.getnode())
print(np.random.rand(2), np.random.default_rng().random(2), np.random.SeedSequence().entropy, np.random.RandomState().rand())
np.random.seed()
random.seed()
print(np.random.rand(), random.random(), np.random.Generator(np.random.MT19937()).random(), np.random.randint(10, size=200_000).sum())
print(tempfile.gettempdir(), os.path.basename(tempfile.mktemp()))
if random.random() < 0.5:
    open("heads", "w").close()
else:
    open("tails", "w").close()
print(os.listdir())
numbers = list(range(20))
random.shuffle(numbers)
print(numbers, {str(n) for n in numbers}, {object() for _ in range(3)} is not None)
""",
    "clocks": """
import datetime, time, timeit, os
from time import perf_counter
start = time.time()
steps = 0
while time.time() < start + 0.2:
    steps += 1
print(steps, time.time(), perf_counter(), time.monotonic_ns(), time.process_time(), time.thread_time_ns())
print(time.localtime(), time.gmtime().tm_sec, time.ctime(), time.strftime("%c"), time.asctime(), time.localtime(0).tm_year)
print(datetime.datetime.now(), datetime.datetime.utcnow(), datetime.date.today(), datetime.datetime.today())
print(datetime.datetime.now(datetime.timezone.utc), repr(datetime.datetime.now().microsecond))
print(timeit.timeit("pass", number=100), timeit.default_timer(), time.clock_gettime(time.CLOCK_REALTIME))
class Mine(datetime.datetime):
    pass
print(type(Mine.now()), Mine.now())
with open(f"run-{int(time.time())}.txt", "w") as file:
    file.write(str(time.time()))
print(os.path.getmtime(file.name), os.stat(file.name).st_mtime_ns, os.stat(file.name))
if time.time_ns() % 2:
    os.mkdir("odd")
print(os.listdir())
""",
    "identity": """
import os, socket, platform, getpass, threading, multiprocessing, sys
print(os.getpid(), os.getppid(), socket.gethostname(), platform.node(), getpass.getuser(), os.cpu_count(), os.uname())
print(threading.get_ident(), os.sched_getaffinity(0), os.environ.get("OF_THIS_NODE"), os.getenv("SLURM_PROCID"))
print(sorted(name for name in os.environ if name.startswith(("OMPI", "PMI", "SLURM", "LEGATE", "STAND"))))
print(os.times(), multiprocessing.cpu_count(), sys.flags.hash_randomization)
with open(f"of-{os.getpid()}.txt", "w") as file:
    file.write(str(os.getpid()))
print(os.listdir(), open(file.name).read())
import signal
signal.signal(signal.SIGUSR1, lambda *args: print("signalled"))
os.kill(os.getpid(), signal.SIGUSR1)
def child():
    return os.getpid() > 0
print(threading.Thread(target=child).run())
""",
}
