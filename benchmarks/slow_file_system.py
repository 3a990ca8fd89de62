#!/usr/bin/env python3
"""A read-only file system that is as slow as one likes: the files of a folder, at a given rate and latency.

usage: slow_file_system.py FOLDER MOUNT_POINT --rate BYTES_PER_SECOND --latency SECONDS

Every request takes the latency, and all of them together have the rate, as with a file server: who asks for much at a
time is served at the rate, who waits for each answer is not. Speaks the kernel's FUSE protocol (linux/fuse.h) itself, so
that nothing need be installed; needs root to mount. Ends when it is unmounted.
"""
import argparse
import ctypes
import errno
import os
import stat
import struct
import threading
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH = 1, 2, 3, 14, 15, 17, 18, 25
INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET = 26, 27, 28, 29, 34, 36, 42
ASYNC_READ, MAX_PAGES = 1 << 0, 1 << 22
ROOT, VALID, LARGEST = 1, 3600, 1 << 20


class Server:
    def __init__(self, folder, device, rate, latency):
        self.folder, self.device, self.rate, self.latency = folder, device, rate, latency
        self.paths, self.files, self.lock = {ROOT: folder}, {}, threading.Lock()
        self.free = 0.0  # when the line is free again

    def wait(self, size):
        with self.lock:
            self.free = max(self.free, time.monotonic()) + size / self.rate
            ready = self.free + self.latency
        time.sleep(max(0, ready - time.monotonic()))

    def attributes(self, node):
        info = os.stat(self.paths[node])
        times = int(info.st_mtime)
        return struct.pack("<6Q10I", node, info.st_size, (info.st_size + 511) // 512, times, times, times, 0, 0, 0,
                           info.st_mode, 1, info.st_uid, info.st_gid, 0, 4096, 0)

    def answer(self, opcode, node, body):
        """The answer's bytes, or None where there is none to give."""
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            return None
        if opcode == INIT:
            _, minor, ahead, flags = struct.unpack_from("<4I", body)
            return struct.pack("<4I2H2I2H8I", 7, min(minor, 31), ahead, flags & (ASYNC_READ | MAX_PAGES), 64, 48, 4096, 1,
                               LARGEST // 4096, 0, *[0] * 8)
        if opcode == LOOKUP:
            path = os.path.join(self.paths[node], os.fsdecode(body.rstrip(b"\0")))
            found = os.stat(path).st_ino + ROOT
            self.paths[found] = path
            return struct.pack("<4Q2I", found, 0, VALID, VALID, 0, 0) + self.attributes(found)
        if opcode == GETATTR:
            return struct.pack("<Q2I", VALID, 0, 0) + self.attributes(node)
        if opcode == OPEN:
            with self.lock:
                if node not in self.files:
                    self.files[node] = os.open(self.paths[node], os.O_RDONLY)
            return struct.pack("<Q2I", node, 0, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("<2QI", body)
            data = os.pread(self.files[node], size, offset)
            self.wait(len(data))
            return data
        if opcode == OPENDIR:
            return struct.pack("<Q2I", 0, 0, 0)
        if opcode == STATFS:
            return bytes(80)
        if opcode in (RELEASE, FLUSH, RELEASEDIR, ACCESS, READDIR):
            return b""
        raise OSError(errno.ENOSYS, "")

    def serve(self):
        while True:
            try:
                request = os.read(self.device, LARGEST + 65536)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return  # unmounted
            _, opcode, number, node = struct.unpack_from("<2I2Q", request)
            failure, data = 0, b""
            try:
                data = self.answer(opcode, node, request[40:])
            except OSError as error:
                failure = error.errno or errno.EIO
            if data is None:
                continue
            try:
                os.write(self.device, struct.pack("<IiQ", 16 + len(data), -failure, number) + data)
            except OSError:
                pass  # the asker is gone


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("mount_point")
    parser.add_argument("--rate", type=float, default=100e6)
    parser.add_argument("--latency", type=float, default=0.002)
    options = parser.parse_args()
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    words = f"fd={device},rootmode={stat.S_IFDIR:o},user_id={os.getuid()},group_id={os.getgid()},allow_other"
    if libc.mount(b"slow", os.fsencode(options.mount_point), b"fuse", 1, words.encode()) != 0:
        parser.exit(1, f"cannot mount: {os.strerror(ctypes.get_errno())}\n")
    server = Server(os.path.abspath(options.folder), device, options.rate, options.latency)
    threads = [threading.Thread(target=server.serve) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
