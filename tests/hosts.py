"""Host names for processes: how a test makes one machine look like several.

Promises the words of a command that gives another command a host name of its own, for root and for everybody else where the kernel
lets them. Starts nothing by itself.
"""
import os
import subprocess

# Everybody but root needs a space of their own in which they may.
UNSHARE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]), "--uts"]


def may_name():
    """Whether a process may be given a host name here."""
    try:
        return subprocess.run([*UNSHARE, "hostname", "n"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def named(host):
    """What to put before a command's words."""
    return [*UNSHARE, "sh", "-c", f'hostname {host}; exec "$@"', "sh"]
