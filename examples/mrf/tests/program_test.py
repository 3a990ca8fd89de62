#!/usr/bin/env python3
"""The mrf program end to end, without a GPU.

usage: program_test.py MRF
"""
import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

MRF = sys.argv[1]
failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", what)


def run(*arguments, status=0, message=None):
    result = subprocess.run([MRF, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    check(result.returncode == status,
          f"{arguments}: status {result.returncode} instead of {status}: {result.stderr}")
    if message is not None:
        check(message in result.stderr, f"{arguments}: '{message}' not in: {result.stderr}")
        check(len(result.stderr.splitlines()) == 1, f"{arguments}: not one line: {result.stderr}")
    return result


def nifti(path, size, values, code="h", kind=4, slope=1.0, intercept=0.0, frames=1):
    """A NIfTI-1 file as the format's definition has it, little-endian."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    dims = [4 if frames > 1 else 3, *size, frames, 1, 1, 1]
    struct.pack_into("<8h", header, 40, *dims)
    struct.pack_into("<hh", header, 70, kind, 8 * struct.calcsize(code))
    struct.pack_into("<8f", header, 76, 1, 2, 2, 3, 1, 1, 1, 1)
    struct.pack_into("<fff", header, 108, 352, slope, intercept)
    header[344:348] = b"n+1\0"
    data = bytes(header) + struct.pack(f"<{len(values)}{code}", *values)
    with (gzip.open if path.endswith(".gz") else open)(path, "wb") as file:
        file.write(data)


def read_labels(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        data = file.read()
    size = struct.unpack_from("<3h", data, 42)
    spacing = struct.unpack_from("<3f", data, 80)
    kind = struct.unpack_from("<h", data, 70)[0]
    return size, spacing, kind, data[352:]


def read_png(path):
    """Width, height and pixels of an 8-bit RGB PNG."""
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, b""
    while at < len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + length]
        if name == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", body)
            assert (depth, colour) == (8, 2)
        if name == b"IDAT":
            parts += body
        at += 12 + length
    raw, rows, previous = zlib.decompress(parts), [], bytes(3 * width)
    for y in range(height):
        line = raw[y * (3 * width + 1):(y + 1) * (3 * width + 1)]
        row = bytearray(line[1:])
        for i in range(3 * width):
            a = row[i - 3] if i >= 3 else 0
            b, c = previous[i], previous[i - 3] if i >= 3 else 0
            if line[0] == 1:
                row[i] = (row[i] + a) & 255
            elif line[0] == 2:
                row[i] = (row[i] + b) & 255
            elif line[0] == 3:
                row[i] = (row[i] + (a + b) // 2) & 255
            elif line[0] == 4:
                p = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))
                row[i] = (row[i] + p[2]) & 255
        rows.append(bytes(row))
        previous = bytes(row)
    return width, height, rows


with tempfile.TemporaryDirectory() as folder:
    def path(name):
        return os.path.join(folder, name)

    # Two bright boxes in a dark volume: labels are known without any noise.
    size = (9, 7, 5)
    values = [900 if x < 4 and z < 3 else 400 if y > 4 else -100
              for z in range(5) for y in range(7) for x in range(9)]
    truth = bytes({900: 2, 400: 1, -100: 0}[v] for v in values)
    for name, code, kind, scale in (("a.nii", "h", 4, 1), ("b.nii.gz", "h", 4, 1),
                                    ("c.nii", "f", 16, 1), ("d.nii", "i", 8, 3),
                                    ("e.nii.gz", "d", 64, 0.5)):
        nifti(path(name), size, [int(v * 2 * scale) if code in "hi" else v * 2 * scale for v in values],
              code, kind, slope=0.5 / scale, intercept=7)
        result = run("--input", path(name), "--classes", 3, "--beta", 0.2, "--device", "cpu",
                     "--labels", path("out_" + name), "--stats", path("s.json"),
                     "--slices", path("slices/of a volume"), "--slice-step", 2)
        got, spacing, kind, labels = read_labels(path("out_" + name))
        check(got == size and spacing == (2, 2, 3) and kind == 2, f"{name}: header of labels")
        check(labels == truth, f"{name}: labels")
        stats = json.load(open(path("s.json")))
        # To within a level, 1000 / 4095.
        check(all(abs(c["mean"] - v) < 0.25 for c, v in zip(stats["classes"], (-93, 407, 907))),
              f"{name}: means in the file's units: {stats['classes']}")
        check([c["voxels"] for c in stats["classes"]] == [truth.count(k) for k in range(3)],
              f"{name}: counts")
    names = sorted(os.listdir(path("slices/of a volume")))
    check(names == ["axial_0001.png", "axial_0003.png", "coronal_0003.png", "sagittal_0004.png"],
          f"slices: {names}")
    width, height, rows = read_png(path("slices/of a volume/axial_0001.png"))
    check((width, height) == (18, 7), "size of a slice")
    # Bottom left: brightest, left half grey, right half the colour of class 2; row 0 is y = 6.
    check(rows[6][:3] == b"\xff\xff\xff" and rows[6][27:30] == bytes((230, 159, 0)), "bright corner")
    check(rows[6][24:27] == b"\0\0\0" and rows[6][51:54] == b"\0\0\0", "dark corner")
    check(rows[0][51:54] == bytes((0, 114, 178)), "middle class")

    # A series needs a choice.
    nifti(path("series.nii"), size, [1] * len(values) + values, frames=2)
    run("--input", path("series.nii"), status=3, message="choose one with --frame, 0 to 1")
    run("--input", path("series.nii"), "--frame", 2, status=3, message="no volume 2 in a series of 2")
    run("--input", path("series.nii"), "--frame", 0, status=3, message="every voxel has the same value")
    run("--input", path("series.nii"), "--frame", 1, "--classes", 3, "--device", "cpu", "--beta", 0.2,
        "--labels", path("f.nii"))
    check(read_labels(path("f.nii"))[3] == truth, "labels of a frame")

    # What is made without input has a known truth, and segmentation must approach it.
    result = run("--synthetic", "40x33x21", "--noise", 0.4, "--seed", 7, "--stats", "-", "--device", "cpu",
                 "--write-input", path("made.nii.gz"), "--labels", path("made_labels.nii"))
    stats = json.loads(result.stdout)
    check(stats["accuracy"] > 0.95 > stats["accuracy_first"], f"accuracy: {stats}")
    check(stats["runs"][0]["voxel_updates_per_second"] > 1e5, "rate")
    check(stats["energy_last"] < stats["energy_first"], "energy")
    # The same volume from the file gives the same labels; so does another run.
    run("--input", path("made.nii.gz"), "--window", "0:4095", "--device", "cpu", "--labels", path("again.nii"))
    check(read_labels(path("again.nii"))[3] == read_labels(path("made_labels.nii"))[3], "same labels")

    # Bad input: one line, a status, no output file.
    open(path("text.nii"), "w").write("not an image\n" * 100)
    whole = open(path("a.nii"), "rb").read()
    open(path("cut.nii"), "wb").write(whole[:-200])
    open(path("header.nii"), "wb").write(whole[:100])
    zipped = open(path("b.nii.gz"), "rb").read()
    open(path("cut.nii.gz"), "wb").write(zipped[:len(zipped) // 2])
    nifti(path("complex.nii"), (2, 2, 2), [1.0] * 16, "f", 32)
    nifti(path("negative.nii"), (2, -2, 2), [1] * 8)
    for name, message in (("none.nii", "no such file"), ("text.nii", "not a NIfTI file"),
                          ("cut.nii", "ends before"), ("header.nii", "NIfTI"),
                          ("cut.nii.gz", ""), ("complex.nii", "not supported"),
                          ("negative.nii", "")):
        run("--input", path(name), "--device", "cpu", "--labels", path("never.nii"), status=3, message=message)
    run("--input", folder, status=3, message="not a NIfTI file")
    check(not os.path.exists(path("never.nii")), "no output after an error")
    for arguments, message in ((("--classes", 12), "--classes"), (("--classes", "many"), "'many' is not a number"),
                               (("--neighbours", 18), "6 or 26"), (("--beta", "-1"), "--beta"),
                               (("--window", "5:5"), "LOW must be below HIGH"), (("--window", "5"), "no ':'"),
                               (("--synthetic", "8x8"), "no 'x'"), (("--device", "tpu"), "cpu, gpu or auto"),
                               (("--wrong",), "unknown argument"), (("--seed",), "a value is missing"),
                               (("--beta=nan",), "--beta"), (("--labels=",), "empty")):
        run(*arguments, status=2, message=message)
    small = ("--synthetic", "8x8x8", "--device", "cpu")
    run(*small, "--labels", path("labels.img"), status=2, message=".nii or .nii.gz")
    run(*small, "--labels", path("no/folder.nii"), status=7, message="cannot be written")
    run(*small, "--slices", path("a.nii"), status=7, message=path("a.nii"))
    run(*small, "--stats", path("no/folder.json"), status=7, message="cannot be written")
    if os.path.exists("/dev/full"):
        run(*small, "--stats", "/dev/full", status=7, message="cannot be written")

    # Without a GPU: said, and done on the CPU; an error when a GPU was demanded.
    environment_has_gpu = os.path.exists("/dev/nvidia0")
    if not environment_has_gpu:
        result = run("--synthetic", "8x8x8", message="on the CPU, because")
        check("one CPU core" in result.stdout, "device named")
        cpu_only = "without the CUDA headers" in result.stderr
        run("--synthetic", "8x8x8", "--device", "gpu", status=4,
            message="without the CUDA headers" if cpu_only else "no NVIDIA driver")
        run("--synthetic", "8x8x8", "--compare", status=4)
    else:
        check("equal" in run("--synthetic", "33x20x9", "--compare").stdout, "devices agree")
    for shape in ("1x1x2", "64x1x1", "1x40x1", "1x1x50", "5x5x1"):
        run("--synthetic", shape, "--device", "cpu", "--slices", path("thin"))

sys.exit(1 if failures else 0)
