#!/usr/bin/python3
"""Tensors print as NumPy prints arrays, but for the differences that words_of() and as_tapedeck() make.

usage: numpy_print.py PRINT_ARRAYS; exits with 77, which meson counts as skipped, where there is no NumPy
"""
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: numpy: there is no NumPy")
    sys.exit(77)

REALS = {"float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128"}
INTEGERS = {"int8": "i8", "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "bool"}
SHAPES = [(), (1,), (2,), (7,), (40,), (0,), (1, 1), (2, 3), (3, 30), (2, 0), (0, 2), (2, 1, 3), (2, 2, 2), (2, 3, 0), (2, 1, 2, 2),
          (1000,), (1001,), (7, 143), (6, 167), (501, 2), (2, 501), (11, 10, 10), (3, 2, 4, 50)]


def numbers(random, shape):
    """Kind, f64 array: what numbers of a tensor may have in common."""
    normal = random.normal(size=shape)
    yield "normal", normal
    yield "few decimals", np.round(normal * 100, 2)
    yield "whole", np.round(normal * 30)
    yield "tiny", normal * 1e-12
    yield "huge", normal * 1e12
    yield "apart", normal * 10.0 ** random.integers(-30, 30, shape)
    yield "near a thousand", 1 + 999 * random.integers(0, 2, shape) + random.integers(0, 2, shape) / 4
    yield "around the limits", np.choose(random.integers(0, 4, shape), [1e-4, 9.9999e-5, 1e8, 99999999.0])
    yield "one limit", np.choose(random.integers(0, 2, shape), [1e8 - 1, 1.0])
    yield "with others", np.choose(random.integers(0, 6, shape), [np.nan, np.inf, -np.inf, 0.0, -0.0, normal])
    yield "no number", np.choose(random.integers(0, 3, shape), [np.nan, np.inf, -np.inf])


def arrays():
    """Name, array."""
    random = np.random.default_rng(1)
    for shape in SHAPES:
        for dtype in REALS:
            for kind, x in numbers(random, shape):
                if dtype.startswith("complex"):
                    x = x + np.array(1j, dtype) * np.nan_to_num(x.flatten()[::-1].reshape(shape), posinf=7, neginf=-8)
                yield f"{dtype} {shape} {kind}", np.asarray(x).astype(dtype)
        for dtype in INTEGERS:
            low, high = (0, 2) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            yield f"{dtype} {shape} all", np.asarray(random.integers(low, high, shape, dtype="int64")).astype(dtype)
            yield f"{dtype} {shape} few", np.asarray(random.integers(0, min(high, 12), shape)).astype(dtype)


def aligned(words):
    return [word.rjust(max(map(len, words))) for word in words]


def number_words(x):
    """All numbers have the same number of decimals, one at least."""
    form = np.core.arrayprint.FloatingFormat(x, precision=8, floatmode="maxprec_equal", suppress_small=False, legacy=sys.maxsize)
    return aligned([re.sub(r"\.(?=e|$)", ".0", form(v).strip()) for v in x])


def scalar_word(v):
    # All digits of a large number, not those of the shortest number in f32 that rounds to it.
    text = f"{v:.1f}" if v.dtype == "float32" and 2.0**24 <= abs(v) < 1e16 else str(v)
    return re.sub(r"^(-?\d)e", r"\1.0e", text)


def words_of(x, of_reals):
    """The texts of elements."""
    if x.dtype == bool:
        return aligned([str(bool(v)).lower() for v in x])
    if x.dtype.kind == "i" or x.dtype.kind == "u":
        return aligned([str(v) for v in x])
    if x.dtype.kind == "f":
        return of_reals(x)
    # Written with an i and without parentheses.
    imaginary = [word.strip() for word in of_reals(x.imag)]
    imaginary = aligned([f"{'' if word[0] == '-' else '+'}{word}i" for word in imaginary])
    return [real + other for real, other in zip(of_reals(x.real), imaginary)]


def as_tapedeck(x):
    """What the library prints: NumPy's layout with the words of words_of, then the dtype unless it is f32."""
    name = {**REALS, **INTEGERS}[x.dtype.name]
    if x.size == 0:
        return f"[] {name}[{','.join(map(str, x.shape))}]"
    if x.ndim == 0:
        text = words_of(x.reshape(1), lambda part: [scalar_word(v) for v in part])[0]
    else:
        shown = np.core.arrayprint._leading_trailing(x, 3) if x.size > 1000 else x
        words = iter(words_of(shown.flatten(), number_words))
        text = np.array2string(x, formatter={"all": lambda _: next(words)})
    return text + ("" if name == "f32" else f" {name}")


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "arrays.npz"
        everything = {f"{i:05} {name}": x for i, (name, x) in enumerate(arrays())}
        np.savez(file, **everything)
        texts = subprocess.run([program, file], check=True, capture_output=True, text=True).stdout.split("\0")
    wrong = [(name, text, as_tapedeck(x)) for (name, x), text in zip(everything.items(), texts) if text != as_tapedeck(x)]
    print(f"{len(everything)} arrays, {len(wrong)} wrong")
    for name, text, expected in wrong[:20]:
        print(f"{name}: printed\n{text}\nNumPy:\n{expected}")
    return 1 if wrong or len(texts) != len(everything) + 1 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
