#!/usr/bin/python3
"""Times models of oceans by numba, numexpr and TorchScript, if installed, compared with replays of them.

usage: scripts/bench models [WORD…]    those with a word in their names, "model, n=cells"

f64, one thread. All run alternately; the figures are medians of three rounds, or of one round from 10⁶ cells on.
They compute the formulas of bench/function, and must agree with the results that its program writes.
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[threads] = "1"

import numpy

from ocean import equation_of_state, isoneutral_mixing, turbulent_kinetic_energy

ROUNDS, SECONDS, TOLERANCE, LARGE = 3, 0.5, 1e-10, 500_000
MODELS = (equation_of_state, isoneutral_mixing, turbulent_kinetic_energy)
SIZES = (4096, 65536, 1048576, 4194304)
REPLAYS = pathlib.Path(__file__).resolve().parents[2] / "build/bench/function_bench"


def by_numba(model, x, **options):
    import numba
    return model.loop(numba.njit(**options))


def by_free_numba(model, x):
    """Without checks of divisions, and free to reorder and contract operations."""
    return by_numba(model, x, error_model="numpy", fastmath=True)


def by_numexpr(model, x):
    import numexpr
    numexpr.set_num_threads(1)
    return model.text(numexpr.evaluate) if hasattr(model, "text") else None   # supports a single formula only


class Torch:
    """torch, with NumPy's clip."""

    def __init__(self, torch):
        self.torch = torch

    def __getattr__(self, name):
        return getattr(self.torch, name)

    def clip(self, x, low, high):
        return x.clamp(min=low, max=high)


def by_torchscript(model, x):
    import torch
    torch.set_num_threads(1)
    library = Torch(torch)
    warnings.simplefilter("ignore", torch.jit.TracerWarning)   # shapes are constants
    traced = torch.jit.trace(lambda *x: tuple(model.arrays(library, x)), tuple(map(torch.from_numpy, x)), check_trace=False)

    def call(x):
        with torch.no_grad():
            return [y.numpy() for y in traced(*map(torch.from_numpy, x))]
    return call


PEERS = {"numba": by_numba, "numba with fastmath": by_free_numba, "numexpr": by_numexpr, "TorchScript": by_torchscript}


def seconds_of(run, x):
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < SECONDS or len(times) < 3:
        start = time.perf_counter()
        run(x)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def seconds_of_replays(name):
    line = subprocess.run([REPLAYS, name], check=True, capture_output=True, text=True).stdout
    return float(re.search(r"([-+.\de]+) us,", line[line.index(f"{name} "):])[1]) / 1e6


def values(name):
    """The model's inputs and results."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([REPLAYS, "--write", folder, name], check=True)
        return [[numpy.load(f) for f in sorted(pathlib.Path(folder).glob(f"{letter}*.npy"))] for letter in "xy"]


def check(peer, name, found, wanted):
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        apart = numpy.max(numpy.abs(a - b)) / numpy.max(numpy.abs(b))
        if not apart <= TOLERANCE:
            sys.exit(f"models: {name}: result {i} by {peer} differs from that of the replay by {apart:.3g}")


def run(model, name):
    x, wanted = values(name)
    found = {}
    for peer, make in PEERS.items():
        try:
            call = make(model, x)
        except ImportError:
            print(f"skipped: {peer} is not installed")
            continue
        if call:
            check(peer, name, call(x), wanted)
            found[peer] = call
    times = {peer: [] for peer in ["replay", *found]}
    for _ in range(ROUNDS if wanted[0].size < LARGE else 1):
        times["replay"].append(seconds_of_replays(name))
        for peer, call in found.items():
            times[peer].append(seconds_of(call, x))
    replay = statistics.median(times.pop("replay"))
    beside = ", ".join(f"{peer} {statistics.median(t) / replay:.2f} times as long" for peer, t in times.items())
    print(f"{name}: {replay * 1e6:.4g} us; {beside}", flush=True)


def main():
    words = sys.argv[1:]
    for model in MODELS:
        for n in SIZES:
            name = f"{model.NAME}, n={n}"
            if not words or any(word in name for word in words):
                run(model, name)


main()
