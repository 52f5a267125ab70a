"""A real S3 server: moto, in a process of its own, where it is installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


def moto_server() -> str | None:
    """Where moto's server is: named by the environment, or beside this Python."""
    beside = shutil.which("moto_server", path=str(Path(sys.executable).parent))
    return os.environ.get("CLINOMETER_MOTO_SERVER") or beside


@contextlib.contextmanager
def s3_server():
    """The address of a server with one bucket, `shared`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [moto_server(), "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                request = urllib.request.Request(f"{address}/shared", method="PUT")
                urllib.request.urlopen(request, timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        server.kill()
        server.wait()
