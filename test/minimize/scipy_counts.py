#!/usr/bin/python3
"""Prints the table of docs/guide/optimizers.md: on how many of the test problems minimize_lbfgs, minimize_newton and SciPy's L-BFGS-B
succeed. The problems are those of published_problems.cpp and random_problems.cpp, here in NumPy; the values at the starts must
agree. SciPy's gradients are complex steps, exact to the last digits.

usage: test/minimize/scipy_counts.py [--each | --starts] [PROGRAM]
  --each    also a line for each problem
  --starts  compare the values at the starts, and no more; this needs no SciPy
  PROGRAM   build/test/minimizer_counts unless given
"""
import os
import pathlib
import subprocess
import sys

EACH, STARTS = "--each" in sys.argv, "--starts" in sys.argv
try:
    import numpy as np
    if not STARTS:
        import scipy.optimize
except ImportError as error:
    print(f"scipy_counts: {error}", file=sys.stderr)
    sys.exit(1 if os.environ.get("CI") == "true" else 77)   # 77: skipped

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MINIMIZERS = ["minimize_lbfgs", "minimize_newton", "SciPy's L-BFGS-B"]
np.seterr(all="ignore")   # steps that are too long overflow


def to(n):
    return np.arange(1, n + 1, dtype=float)


def squares(*residuals):
    return sum(np.sum(np.asarray(r)**2) for r in residuals)


def magnitude(x):   # abs that complex steps go through
    return np.where(np.real(x) < 0, -x, x)


# The problems of Moré, Garbow and Hillstrom.

def freudenstein_roth(x):
    a, b = x
    return squares(a - 13 + ((5 - b) * b - 2) * b, a - 29 + ((b + 1) * b - 14) * b)


def powell_badly_scaled(x):
    return squares(1e4 * x[0] * x[1] - 1, np.exp(-x[0]) + np.exp(-x[1]) - 1.0001)


def brown_badly_scaled(x):
    return squares(x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2)


def beale(x):
    return squares(*(y - x[0] * (1 - x[1]**i) for i, y in enumerate([1.5, 2.25, 2.625], 1)))


def jennrich_sampson(x):
    i = to(10)
    return squares(2 + 2 * i - np.exp(i * x[0]) - np.exp(i * x[1]))


def helical_valley(x):
    a, b, c = x
    turns = np.arctan(b / a) / (2 * np.pi) + (0.5 if a.real < 0 else 0) if a != 0 else np.sign(b.real) / 4 - a / b / (2 * np.pi)
    return squares(10 * (c - 10 * turns), 10 * (np.sqrt(a * a + b * b) - 1), c)


def bard(x):
    y = np.array([.14, .18, .22, .25, .29, .32, .35, .39, .37, .58, .73, .96, 1.34, 2.10, 4.39])
    u = to(15)
    v = 16 - u
    return squares(y - x[0] - u / (v * x[1] + np.minimum(u, v) * x[2]))


def gaussian(x):
    half = [.0009, .0044, .0175, .0540, .1295, .2420, .3521]
    t = (8 - to(15)) / 2
    return squares(x[0] * np.exp(-x[1] * (t - x[2])**2 / 2) - np.array(half + [.3989] + half[::-1]))


def meyer(x):
    y = np.array([34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872])
    return squares(x[0] * np.exp(x[1] / (45 + 5 * to(16) + x[2])) - y)


def gulf(x):
    t = to(99) / 100
    y = 25 + (-50 * np.log(t))**(2 / 3)
    return squares(np.exp(-magnitude(y - x[1])**x[2] / x[0]) - t)


def box(x):
    t = to(10) / 10
    return squares(np.exp(-t * x[0]) - np.exp(-t * x[1]) - x[2] * (np.exp(-t) - np.exp(-10 * t)))


def powell_singular(x):
    a, b, c, d = x.reshape(-1, 4).T
    return squares(a + 10 * b, 5**.5 * (c - d), (b - 2 * c)**2, 10**.5 * (a - d)**2)


def wood(x):
    a, b, c, d = x
    return squares(10 * (b - a**2), 1 - a, 90**.5 * (d - c**2), 1 - c, 10**.5 * (b + d - 2), (b - d) / 10**.5)


def kowalik_osborne(x):
    y = np.array([.1957, .1947, .1735, .1600, .0844, .0627, .0456, .0342, .0323, .0235, .0246])
    u = np.array([4, 2, 1, .5, .25, .167, .125, .1, .0833, .0714, .0625])
    return squares(y - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3]))


def brown_dennis(x):
    t = to(20) / 5
    return squares((x[0] + t * x[1] - np.exp(t))**2 + (x[2] + x[3] * np.sin(t) - np.cos(t))**2)


def osborne_1(x):
    y = np.array([.844, .908, .932, .936, .925, .908, .881, .850, .818, .784, .751, .718, .685, .658, .628, .603, .580,
                  .558, .538, .522, .506, .490, .478, .467, .457, .448, .438, .431, .424, .420, .414, .411, .406])
    t = 10 * (to(33) - 1)
    return squares(y - x[0] - x[1] * np.exp(-t * x[3]) - x[2] * np.exp(-t * x[4]))


def biggs_exp6(x):
    t = to(13) / 10
    y = np.exp(-t) - 5 * np.exp(-10 * t) + 3 * np.exp(-4 * t)
    return squares(x[2] * np.exp(-t * x[0]) - x[3] * np.exp(-t * x[1]) + x[5] * np.exp(-t * x[4]) - y)


def osborne_2(x):
    y = np.array([1.366, 1.191, 1.112, 1.013, .991, .885, .831, .847, .786, .725, .746, .679, .608, .655, .616, .606, .602,
                  .626, .651, .724, .649, .649, .694, .644, .624, .661, .612, .558, .533, .495, .500, .423, .395, .375,
                  .372, .391, .396, .405, .428, .429, .523, .562, .607, .653, .672, .708, .633, .668, .645, .632, .591,
                  .559, .597, .625, .739, .710, .729, .720, .636, .581, .428, .292, .162, .098, .054])
    t = (to(65) - 1) / 10
    peaks = sum(x[i] * np.exp(-(t - x[i + 7])**2 * x[i + 4]) for i in [1, 2, 3])
    return squares(y - x[0] * np.exp(-t * x[4]) - peaks)


def watson(x):
    n = len(x)
    t = to(29)[:, None] / 29
    slopes = t**np.maximum(np.arange(n) - 1, 0) * np.arange(n)
    return squares(slopes @ x - (t**np.arange(n) @ x)**2 - 1, x[0], x[1] - x[0]**2 - 1)


def rosenbrock(x):
    a, b = x.reshape(-1, 2).T
    return squares(10 * (b - a**2), 1 - a)


def penalty_1(x):
    return 1e-5 * squares(x - 1) + (np.sum(x**2) - 0.25)**2


def penalty_2(x):
    i = to(len(x))
    y = np.exp(i / 10) + np.exp((i - 1) / 10)
    e = np.exp(x / 10)
    return squares(x[0] - 0.2, np.sum(i[::-1] * x**2) - 1) + 1e-5 * squares(e[1:] + e[:-1] - y[1:], e[1:] - np.exp(-0.1))


def variably_dimensioned(x):
    s = np.sum(to(len(x)) * (x - 1))
    return squares(x - 1, s, s**2)


def trigonometric(x):
    return squares(len(x) - np.sum(np.cos(x)) + to(len(x)) * (1 - np.cos(x)) - np.sin(x))


def brown_almost_linear(x):
    return squares(x[:-1] + np.sum(x) - (len(x) + 1), np.prod(x) - 1)


def discrete_boundary_value(x):
    h = 1 / (len(x) + 1)
    padded = np.concatenate([[0], x, [0]])
    return squares(2 * x - padded[:-2] - padded[2:] + h**2 / 2 * (x + h * to(len(x)) + 1)**3)


def discrete_integral_equation(x):
    h = 1 / (len(x) + 1)
    t = h * to(len(x))
    kernel = np.minimum(t[:, None], t) * (1 - np.maximum(t[:, None], t))
    return squares(x + h / 2 * kernel @ (x + t + 1)**3)


def broyden_tridiagonal(x):
    padded = np.concatenate([[0], x, [0]])
    return squares((3 - 2 * x) * x - padded[:-2] - 2 * padded[2:] + 1)


def broyden_banded(x):
    apart = np.arange(len(x)) - np.arange(len(x))[:, None]
    band = (apart >= -5) & (apart <= 1) & (apart != 0)
    return squares(x * (2 + 5 * x**2) + 1 - band @ (x * (1 + x)))


def linear_full_rank(x):
    return squares(x - np.sum(x) / 10 - 1) + 10 * (np.sum(x) / 10 + 1)**2


def linear_rank_1(x):
    return squares(to(20) * np.sum(to(10) * x) - 1)


def linear_rank_1_with_zeros(x):
    return squares((to(19) - 1) * np.sum(to(10)[1:9] * x[1:9]) - 1) + 1


def chebyquad(x):
    y = 2 * x - 1
    polynomials = [np.ones(len(x)), y]
    while len(polynomials) <= len(x):
        polynomials.append(2 * y * polynomials[-1] - polynomials[-2])
    return squares(*(np.mean(t) + (0 if i % 2 else 1 / (i * i - 1)) for i, t in enumerate(polynomials) if i > 0))


boundary = to(10) / 11 * (to(10) / 11 - 1)
PUBLISHED = [   # the function, the start, and the minima as published; local ones and those at infinity follow the least
    ("Rosenbrock", rosenbrock, [-1.2, 1], [0]),
    ("Freudenstein and Roth", freudenstein_roth, [.5, -2], [0, 48.98425]),
    ("Powell badly scaled", powell_badly_scaled, [0, 1], [0]),
    ("Brown badly scaled", brown_badly_scaled, [1, 1], [0]),
    ("Beale", beale, [1, 1], [0]),
    ("Jennrich and Sampson", jennrich_sampson, [.3, .4], [124.362]),
    ("Helical valley", helical_valley, [-1, 0, 0], [0]),
    ("Bard", bard, [1, 1, 1], [8.21487e-3, 17.4286]),
    ("Gaussian", gaussian, [.4, 1, 0], [1.12793e-8]),
    ("Meyer", meyer, [.02, 4000, 250], [87.9458]),
    ("Gulf", gulf, [5, 2.5, .15], [0]),
    ("Box", box, [0, 10, 20], [0]),
    ("Powell singular", powell_singular, [3, -1, 0, 1], [0]),
    ("Wood", wood, [-3, -1, -3, -1], [0]),
    ("Kowalik and Osborne", kowalik_osborne, [.25, .39, .415, .39], [3.07505e-4, 1.02734e-3]),
    ("Brown and Dennis", brown_dennis, [25, 5, -5, -1], [85822.2]),
    ("Osborne 1", osborne_1, [.5, 1.5, -1, .01, .02], [5.46489e-5]),
    ("Biggs EXP6", biggs_exp6, [1, 2, 1, 1, 1, 1], [0, 5.65565e-3]),
    ("Osborne 2", osborne_2, [1.3, .65, .65, .7, .6, 3, 5, 7, 2, 4.5, 5.5], [4.01377e-2]),
    ("Watson 6", watson, [0] * 6, [2.28767e-3]),
    ("Watson 9", watson, [0] * 9, [1.39976e-6]),
    ("Watson 12", watson, [0] * 12, [4.72238e-10]),
    ("Extended Rosenbrock", rosenbrock, [-1.2, 1] * 5, [0]),
    ("Extended Powell singular", powell_singular, [3, -1, 0, 1] * 3, [0]),
    ("Penalty I", penalty_1, to(10), [7.08765e-5]),
    ("Penalty II", penalty_2, [.5] * 10, [2.93660e-4]),
    ("Variably dimensioned", variably_dimensioned, 1 - to(10) / 10, [0]),
    ("Trigonometric", trigonometric, [.1] * 10, [0, 2.79506e-5]),
    ("Brown almost linear", brown_almost_linear, [.5] * 10, [0, 1]),
    ("Discrete boundary value", discrete_boundary_value, boundary, [0]),
    ("Discrete integral equation", discrete_integral_equation, boundary, [0]),
    ("Broyden tridiagonal", broyden_tridiagonal, [-1] * 10, [0]),
    ("Broyden banded", broyden_banded, [-1] * 10, [0]),
    ("Linear, full rank", linear_full_rank, [1] * 10, [10]),
    ("Linear, rank 1", linear_rank_1, [1] * 10, [380 / 82]),
    ("Linear, rank 1 with zeros", linear_rank_1_with_zeros, [1] * 10, [454 / 74]),
    ("Chebyquad", chebyquad, to(8) / 9, [3.51687e-3]),
]


def swing_up(u, pull, cost, speed):
    angle = 0
    for force in u:
        speed = speed + 0.05 * (force - pull * np.sin(angle))
        angle = angle + 0.05 * speed
    return 100 * (angle - np.pi)**2 + 100 * speed**2 + cost * np.sum(u**2)


def pendulum(u):
    return swing_up(u, 9.81, 0.01, 0)


class Random:   # SplitMix64
    def __init__(self, seed):
        self.state = seed

    def uniform(self, low, high):
        mask = 2**64 - 1
        z = self.state = (self.state + 0x9e3779b97f4a7c15) & mask
        z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & mask
        z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & mask
        return low + (high - low) * ((z ^ (z >> 31)) >> 11) * 2.0**-53

    def count(self, low, high):
        return low + int(self.uniform(0, high - low + 1))

    def values(self, shape, low, high):
        return np.array([self.uniform(low, high) for _ in range(int(np.prod(shape)))]).reshape(shape)


def waves(r):
    n = r.count(2, 20)
    w, a, b = r.values((2 * n, n), -2, 2), r.values(2 * n, 0, 1), r.values(2 * n, 0, 2 * np.pi)
    return lambda x: 0.05 * np.sum(x**2) + np.sum(a * np.sin(w @ x + b)), r.values(n, -3, 3)


def layer(r):
    units = r.count(1, 5)
    z, y = r.values((2, 20), -2, 2), r.values(20, -1, 1)

    def f(x):
        w, b, v = x[:2 * units].reshape(2, units), x[2 * units:3 * units], x[3 * units:]
        return np.mean((v @ np.tanh(w.T @ z + b[:, None]) - y)**2) + 1e-3 * np.sum(x**2)
    return f, r.values(4 * units, -1, 1)


def valleys(r):
    n = r.count(2, 20)
    steep, bend, middle = 10**r.values(n - 1, 0, 3), r.values(n - 1, -1, 1), r.values(n, -1, 1)
    return lambda x: np.sum(steep * (x[1:] - bend * x[:-1]**2)**2) + np.sum((x - middle)**2), r.values(n, -2, 2)


def wells(r):
    n = r.count(2, 20)
    a, c = r.values(n, .1, 2), r.values((n, n), -.5, .5)
    return lambda x: np.sum(a * (x**2 - 1)**2) + x @ c @ x, r.values(n, -2, 2)


def swing(r):
    n = r.count(10, 25)
    pull, cost, speed = r.uniform(1, 20), r.uniform(1e-3, .1), r.uniform(-3, 3)
    return lambda u: swing_up(u, pull, cost, speed), r.values(n, -1, 1)


KINDS = [waves, layer, valleys, wells, swing]


def random_problems():
    r = Random(1)
    for kind in KINDS:
        for i in range(40):
            f, start = kind(r)
            yield f"{kind.__name__} {i + 1}", f, start, None


def gradient(f, x):
    steps = np.eye(len(x)) * 1e-100j
    return np.array([f(x + s).imag for s in steps]) / 1e-100


def by_scipy(f, start):
    """The value, the gradient's norm and the number of evaluations."""
    m = scipy.optimize.minimize(lambda x: f(x + 0j).real, start, jac=lambda x: gradient(f, x), method="L-BFGS-B",
                                options={"ftol": 0, "gtol": 1e-8, "maxiter": 5000, "maxfun": 100000})
    return m.fun, np.linalg.norm(gradient(f, m.x)), m.nfev


def succeeds(value, norm, minima):
    if minima is None:
        return norm <= 1e-5 * max(1, abs(value))
    return any(abs(value - least) <= (1e-5 * least or 1e-8) for least in minima)


def check_start(name, f, start, found):
    at_start = f(np.asarray(start, complex)).real
    if found[0] != name or abs(float(found[1]) - at_start) > 1e-11 * abs(at_start):
        sys.exit(f"scipy_counts: {name} begins at {at_start}, but {found[0]} at {found[1]}")


def run(name, f, start, minima, found):
    """Of each of the minimizers whether it succeeds, the value and the number of evaluations."""
    results = [[float(v) for v in found[i:i + 3]] for i in (2, 5)] + [by_scipy(f, np.asarray(start, float))]
    runs = [(succeeds(value, norm, minima), value, count) for value, norm, count in results]
    if EACH:
        print(name, *(f"{value:.6g} ({count:.0f})" + ("" if good else " FAILS") for good, value, count in runs), sep=" | ")
    return runs


def table_row(title, problems):
    cells = []
    least = [min(value for _, value, _ in runs) for runs in problems]
    for runs in zip(*problems):
        succeed = sum(good for good, _, _ in runs)
        lowest = sum(value <= m + 1e-6 * max(1, abs(m)) for (_, value, _), m in zip(runs, least))
        cells.append(f"{succeed}, {lowest}, {np.median([count for _, _, count in runs]):.0f}")
    print(f"| {title}: {len(problems)} |", " | ".join(cells), "|")


def main():
    program = [a for a in sys.argv[1:] if not a.startswith("--")] or [ROOT / "build/test/minimizer_counts"]
    lines = subprocess.run(program + ["--starts"] * STARTS, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    found = [line.split("\t") for line in lines]
    problems = PUBLISHED + [("pendulum", pendulum, np.zeros(60), None)] + list(random_problems())
    for (name, f, start, _), at in zip(problems, found, strict=True):
        check_start(name, f, start, at)
    if STARTS:
        return
    runs = [run(*p, at) for p, at in zip(problems, found)]
    print("|  |", " | ".join(MINIMIZERS), "|")
    print("|---|---|---|---|")
    table_row("published", runs[:len(PUBLISHED)])
    table_row("pendulum", runs[len(PUBLISHED):len(PUBLISHED) + 1])
    for i, kind in enumerate(KINDS):
        table_row(kind.__name__, runs[len(PUBLISHED) + 1 + 40 * i:][:40])


main()
