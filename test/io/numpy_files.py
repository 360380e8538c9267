#!/usr/bin/python3
"""Arrays go from NumPy through files to the library and back: every dtype, byte order, memory order and kind of archive.

usage: numpy_files.py [--no-archives] NPY_COPY, or a command that runs it; exits with 77, which meson counts as skipped, where there is no NumPy
"""
import io
import pathlib
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy as np
except ImportError:
    print("skipped: numpy: there is no NumPy")
    sys.exit(77)

DTYPES = ["float32", "float64", "int8", "int32", "int64", "uint8", "bool", "complex64", "complex128", "float16", "int16", "uint16", "uint32", "uint64"]
SHAPES = [(), (1,), (3,), (0,), (2, 0, 3), (2, 3), (4, 3, 2), (1, 2, 1, 2, 1, 2, 1, 2), (70, 1000)]


def arrays():
    """Name, array."""
    random = np.random.default_rng(1)
    for dtype in DTYPES:
        for shape in SHAPES:
            values = random.normal(size=shape) * 100
            x = np.asarray(values + 1j * values[..., ::-1] if dtype.startswith("complex") and shape else values).astype(dtype)
            for order in "<>":
                for layout in "CF":
                    name = f"{dtype} {'x'.join(map(str, shape))} {'little' if order == '<' else 'big'} {layout}"
                    yield name, np.array(x.astype(x.dtype.newbyteorder(order)), order=layout)


def same(a, b):
    native = a.astype(a.dtype.newbyteorder("="))
    return b.dtype == native.dtype and b.shape == a.shape and b.tobytes() == native.tobytes()


def members(path):
    # In numpy.load's archives, the time of each look-up is proportional to the number of names.
    with zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name))) for name in archive.namelist()}


def copy(command, pairs):
    subprocess.run([*command, *[str(path) for pair in pairs for path in pair]], check=True)


def main(command, with_archives):
    everything = dict(arrays())
    # Enough members to need ZIP64; NumPy writes each member in ZIP64 form anyway.
    many = {f"a{i}": np.array(i) for i in range(66_000)}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pairs = []
        for i, x in enumerate(everything.values()):
            pairs.append((folder / f"{i}.npy", folder / f"{i}-back.npy"))
            np.save(pairs[-1][0], x)
        # Versions 2 and 3 of the format.
        for version in [(2, 0), (3, 0)]:
            pairs.append((folder / f"version{version[0]}.npy", folder / f"version{version[0]}-back.npy"))
            with open(pairs[-1][0], "wb") as file:
                np.lib.format.write_array(file, np.arange(6.0).reshape(2, 3), version=version)
        np.savez(folder / "plain.npz", **everything)
        np.savez_compressed(folder / "deflated.npz", **everything)
        np.savez_compressed(folder / "many.npz", **many)
        archives = [(folder / f"{kind}.npz", folder / f"{kind}-back.npz") for kind in ("plain", "deflated", "many")] if with_archives else []
        copy(command, pairs + archives)

        wrong = [name for (name, x), (_, back) in zip(everything.items(), pairs) if not same(x, np.load(back))]
        wrong += [str(back) for _, back in pairs[-2:] if not same(np.arange(6.0).reshape(2, 3), np.load(back))]
        checked = len(pairs)
        for expected, (_, back) in zip((everything, everything, many), archives):
            there = members(back)
            wrong += [f"{back.name}: its names"] if sorted(there) != sorted(expected) else [f"{back.name}: {name}" for name, x in expected.items() if not same(x, there[name])]
            checked += len(expected)
    print(f"{checked} arrays, {len(wrong)} wrong")
    for name in wrong[:20]:
        print(f"  {name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main([w for w in words if w != "--no-archives"], "--no-archives" not in words))
