"""Shards joined by Unix sockets instead of MPI, for fast tests of what Python does: each computes all arrays by itself.

Found by `site` in the processes that `tests.replicate.shards` starts. Promises the functions `shard`, `shards`, `agree` and `collect`
of `legate._core`, then starts legate as the launcher would.
"""
import os
import pickle
import socket
import sys

shard, shards, *numbers = (int(word) for word in os.environ.pop("STAND_IN").split())
here = os.path.dirname(__file__)
site_packages = os.environ.pop("STAND_IN_SITE_PACKAGES")
sys.path[:] = [folder for folder in sys.path if folder != here]
os.environ["PYTHONPATH"] = os.pathsep.join(
    folder for folder in os.environ["PYTHONPATH"].split(os.pathsep) if folder not in (here, site_packages)
)
if not os.environ["PYTHONPATH"]:
    del os.environ["PYTHONPATH"]
peers = [socket.socket(fileno=number) for number in numbers]


def _send(peer, data):
    peer.sendall(len(data).to_bytes(8, "little") + data)


def _receive(peer):
    def exactly(size):
        pieces = []
        while size:
            piece = peer.recv(min(size, 1 << 20))
            if not piece:
                sys.stderr.write(f"shard {shard}: another shard has ended\n")
                sys.stderr.flush()
                os._exit(99)
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    return exactly(int.from_bytes(exactly(8), "little"))


def agree(payload):
    """Shard 0's payload on every shard."""
    if shard:
        return _receive(peers[0])
    for peer in peers:
        _send(peer, payload)
    return payload


def collect(payload):
    """The payloads of all shards on every shard."""
    if shard:
        _send(peers[0], payload)
        return pickle.loads(_receive(peers[0]))
    payloads = [payload] + [_receive(peer) for peer in peers]
    for peer in peers:
        _send(peer, pickle.dumps(payloads))
    return payloads


from legate import _core  # noqa: E402

_core.shard = lambda: shard
_core.shards = lambda: shards
_core.agree = agree
_core.collect = collect
import legate.shards  # noqa: E402
import legate.start  # noqa: E402

legate.shards.connect = legate.shards.begin_to_finish = legate.shards.finish = lambda: None

legate.start.begin()
