#!/usr/bin/python3
"""Times the equation of state of seawater by numba, numexpr and TorchScript, those that are installed, beside replays of it.

usage: scripts/bench models

f64, one thread; all take turns, and the figures are medians of three rounds. They compute the formula of
bench/function/equation_of_state.cpp, and must agree with NumPy.
"""
import os
import pathlib
import re
import statistics
import subprocess
import time

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[threads] = "1"

import numpy

ROUNDS, SECONDS = 3, 0.5
SIZES = (4096, 65536, 1048576, 4194304)
REPLAYS = pathlib.Path(__file__).resolve().parents[2] / "build/bench/function_bench"


def polynomial(t, *c):
    y = c[-2] + t * c[-1]
    for k in reversed(c[:-2]):
        y = k + t * y
    return y


def density(s, t, p, root):
    mass = (polynomial(t, 9.998420897506056e2, 2.839940833161907, -3.147759265588511e-2, 1.181805545074306e-3)
            + s * (polynomial(t, -6.698001071123802, -2.986498947203215e-2, 2.327859407479162e-4)
                   + root * polynomial(t, -3.988822378968490e-2, 5.095422573880500e-4, -1.426984671633621e-5, 1.645039373682922e-7))
            + p * (polynomial(t, -2.233269627352527e-2, -3.436090079851880e-4, 3.726050720345733e-6)
                   + s * polynomial(t, -1.806789763745328e-4, 6.876837219536232e-7)
                   + p * (polynomial(t, -3.087032500374211e-7, -1.988366587925593e-8, -1.061519070296458e-11)
                          + s * 1.550932729220080e-10)))
    volume = (polynomial(t, 1.0, 2.775927747785646e-3, -2.349607444135925e-5, 1.119513357486743e-6, 6.743689325042773e-10)
              + s * (polynomial(t, -7.521448093615448e-3, -2.764306979894411e-5, 1.262937315098546e-7, 9.527875081696435e-10,
                                -1.811147201949891e-11)
                     + s * 5.419326551148740e-6
                     + root * polynomial(t, -3.303308871386421e-5, 3.801564588876298e-7, -7.672876869259043e-9,
                                         -4.634182341116144e-11, 2.681097235569143e-12))
              + p * (polynomial(t, -2.742185394906099e-5, -3.212746477974189e-7, 3.191413910561627e-9, -1.931012931541776e-12)
                     + s * polynomial(t, -1.105097577149576e-7, 6.211426728363857e-10)
                     + p * (-1.119011592875110e-10
                            + t * (polynomial(t, -1.941660213148725e-11, -1.864826425365600e-14) + s * 1.119522344879478e-14)
                            + p * polynomial(t, -1.200507748551599e-15, 6.057902487546866e-17))))
    return mass / volume


class Text:
    """What a formula is, as text."""

    def __init__(self, text):
        self.text = text

    def by(operator, swapped):
        def combined(self, other):
            a, b = self.text, getattr(other, "text", repr(other))
            return Text(f"({b} {operator} {a})" if swapped else f"({a} {operator} {b})")
        return combined

    __add__, __radd__ = by("+", False), by("+", True)
    __mul__, __rmul__ = by("*", False), by("*", True)
    __truediv__ = by("/", False)


FORMULA = density(*(Text(name) for name in ("s", "t", "p", "root"))).text


def by_numba():
    import numba
    names = {"sqrt": numpy.sqrt}
    exec("def run(all_s, all_t, all_p, y):\n  for i in range(y.size):\n    s, t, p = all_s[i], all_t[i], all_p[i]\n"
         f"    root = sqrt(s)\n    y[i] = {FORMULA}\n", names)
    run = numba.njit(names["run"])

    def call(s, t, p):
        y = numpy.empty_like(s)
        run(s, t, p, y)
        return y
    return call


def by_numexpr():
    import numexpr
    numexpr.set_num_threads(1)
    text = FORMULA.replace("root", "sqrt(s)")
    return lambda s, t, p: numexpr.evaluate(text, {"s": s, "t": t, "p": p})


def by_torchscript():
    import torch
    torch.set_num_threads(1)
    traced = torch.jit.trace(lambda s, t, p: density(s, t, p, torch.sqrt(s)), [torch.rand(8, dtype=torch.float64)] * 3)

    def call(*x):
        with torch.no_grad():
            return traced(*map(torch.from_numpy, x)).numpy()
    return call


def seconds_of(run, x):
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < SECONDS or len(times) < 3:
        start = time.perf_counter()
        run(*x)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def seconds_of_replays(n):
    line = subprocess.run([REPLAYS, f"equation of state, n={n}"], check=True, capture_output=True, text=True).stdout
    return float(re.search(r"([-+.\de]+) us,", line[line.index(f"n={n} "):])[1]) / 1e6


def peers():
    found = {}
    for name, make in (("numba", by_numba), ("numexpr", by_numexpr), ("TorchScript", by_torchscript)):
        try:
            found[name] = make()
        except ImportError:
            print(f"skipped: {name} is not installed")
    return found


def main():
    found = peers()
    numbers = numpy.random.default_rng(1)
    for n in SIZES:
        x = [numbers.uniform(low, high, n) for low, high in ((30, 38), (0, 25), (0, 4000))]
        expected = density(*x, numpy.sqrt(x[0]))
        for run in found.values():
            numpy.testing.assert_allclose(run(*x), expected, rtol=1e-12)
        times = {name: [] for name in ["replay", *found]}
        for _ in range(ROUNDS):
            times["replay"].append(seconds_of_replays(n))
            for name, run in found.items():
                times[name].append(seconds_of(run, x))
        replay = statistics.median(times.pop("replay"))
        beside = ", ".join(f"{name} {statistics.median(t) / replay:.2f} times as long" for name, t in times.items())
        print(f"equation of state, n={n}: {replay * 1e6:.4g} us; {beside}", flush=True)


main()
