"""Mixing along surfaces of equal density: the formulas of bench/function/isoneutral_mixing.cpp."""
import numpy

from ocean.cells import HERE, X, Y, Z, Cells, along, beside

NAME = "isoneutral mixing"
MARGIN = 1

# Indices of inputs. MASK_AT (of faces), SIZE and DISTANCE are the first of three each, along z, x and y.
TEMPERATURE, SALINITY, DIFFUSIVITY, MASK, MASK_AT, DEPTH, SIZE, DISTANCE, COSINE, COSINE_OF_FACE = 0, 1, 2, 3, 4, 7, 8, 11, 14, 15
# Derived fields: expansion and contraction of each cell, and the gradients of temperature and of salinity along z, x and y.
EXPANSION, CONTRACTION, GRADIENT = 16, 17, 18


def expansion_of(temperature, mask, depth):
    return mask * (-(1e-5 * (temperature - 9.85) + 1.67e-4 * (1 + 1.1e-8 * 9.81 * 1024 * depth)) * 1024)


def part(array, axis, first):
    """An array without its last or its first plane across an axis."""
    if array.shape[axis] == 1:
        return array
    return array[(slice(None),) * axis + (slice(first, array.shape[axis] - 1 + first),)]


def with_derived(x):
    x = list(x)
    x += [expansion_of(x[TEMPERATURE], x[MASK], x[DEPTH]), x[MASK] * (0.78e-3 * 1024)]
    for tracer in TEMPERATURE, SALINITY:
        for axis in Z, X, Y:
            distance = x[DISTANCE + axis] * x[COSINE] if axis == X else x[DISTANCE + axis]
            rise = part(x[tracer], axis, 1) - part(x[tracer], axis, 0)
            x.append(part(x[MASK_AT + axis], axis, 0) * rise / part(distance, axis, 0))
    return x


def arrays(library, x):
    """Computed by `library`, which is numpy or torch."""
    c = Cells(with_derived(x), MASK, MARGIN)
    results = []

    def change(cell, axis, face):
        return (c(EXPANSION, cell) * c(GRADIENT + axis, face) + c(CONTRACTION, cell) * c(GRADIENT + 3 + axis, face))

    def slope_of(across, up):
        return -across / (library.clip(up, None, 0) - 1e-20)

    def taper(slope):
        return 0.5 * (1 + library.tanh((1e-3 - abs(slope)) / 1e-3))

    def mix_across(axis):
        ahead, below = along(axis, 1), along(Z, -1)
        mean = 0.25 * (c(DIFFUSIVITY) + c(DIFFUSIVITY, below) + c(DIFFUSIVITY, ahead) + c(DIFFUSIVITY, beside(ahead, Z, -1)))
        total = 0
        for face in -1, 0:
            for side in 0, 1:
                cell = along(axis, side)
                slope = slope_of(change(cell, axis, HERE), change(cell, Z, beside(cell, Z, face)))
                kept = taper(slope)
                total = total + c(DISTANCE + Z, along(Z, face)) * c(MASK_AT + axis) * library.clip(mean * kept, 50, None)
                results.append(kept * slope * c(MASK_AT + axis))
        results.append(total / (4 * c(SIZE + Z)))

    def mix_upwards(axis):
        total = 0
        for above in 0, 1:
            cell = along(Z, above)
            up = change(cell, Z, HERE)
            for side in -1, 0:
                slope = slope_of(change(cell, axis, beside(cell, axis, side)), up)
                kept = taper(slope)
                breadth = c(DISTANCE + axis, along(axis, side))
                if axis == Y:
                    breadth = breadth * c(COSINE_OF_FACE, along(axis, side))
                total = total + breadth * c(DIFFUSIVITY) * kept * slope * slope * c(MASK_AT)
                results.append(kept * slope * c(MASK_AT))
        return total

    mix_across(X)
    mix_across(Y)
    of_x, of_y = mix_upwards(X), mix_upwards(Y)
    results.append(of_x / (4 * c(SIZE + X)) + of_y / (4 * c(SIZE + Y) * c(COSINE)))
    return results


def loop(compiled):
    """Loops over all cells: derived fields first, then the results of each cell at once."""

    @compiled
    def derive(t, s, mask, mask_z, mask_x, mask_y, depth, dz, dx, dy, cosine, expansion, contraction, gradient):
        for i in range(t.shape[0]):
            for j in range(t.shape[1]):
                for k in range(t.shape[2]):
                    expansion[i, j, k] = mask[i, j, k] * (
                        -(1e-5 * (t[i, j, k] - 9.85) + 1.67e-4 * (1 + 1.1e-8 * 9.81 * 1024 * depth[i])) * 1024)
                    contraction[i, j, k] = mask[i, j, k] * (0.78e-3 * 1024)
                    if i + 1 < t.shape[0]:
                        gradient[0, i, j, k] = mask_z[i, j, k] * (t[i + 1, j, k] - t[i, j, k]) / dz[i]
                        gradient[3, i, j, k] = mask_z[i, j, k] * (s[i + 1, j, k] - s[i, j, k]) / dz[i]
                    if j + 1 < t.shape[1]:
                        gradient[1, i, j, k] = mask_x[i, j, k] * (t[i, j + 1, k] - t[i, j, k]) / (dx[j] * cosine[k])
                        gradient[4, i, j, k] = mask_x[i, j, k] * (s[i, j + 1, k] - s[i, j, k]) / (dx[j] * cosine[k])
                    if k + 1 < t.shape[2]:
                        gradient[2, i, j, k] = mask_y[i, j, k] * (t[i, j, k + 1] - t[i, j, k]) / dy[k]
                        gradient[5, i, j, k] = mask_y[i, j, k] * (s[i, j, k + 1] - s[i, j, k]) / dy[k]

    @compiled
    def slope_of(across, up):
        return -across / (min(up, 0.0) - 1e-20)

    @compiled
    def taper(slope):
        return 0.5 * (1 + numpy.tanh((1e-3 - abs(slope)) / 1e-3))

    @compiled
    def mix(diffusivity, mask_z, mask_x, mask_y, size_z, size_x, size_y, dz, dx, dy, cosine, cosine_of_face, expansion,
            contraction, gradient, y):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                for k in range(y.shape[3]):
                    a, b, c = i + 1, j + 1, k + 1   # after the margin
                    result = 0
                    for axis in range(1, 3):
                        p, q = (1, 0) if axis == 1 else (0, 1)
                        mask = mask_x[a, b, c] if axis == 1 else mask_y[a, b, c]
                        mean = 0.25 * (diffusivity[a, b, c] + diffusivity[a - 1, b, c] + diffusivity[a, b + p, c + q]
                                       + diffusivity[a - 1, b + p, c + q])
                        total = 0.0
                        for face in range(-1, 1):
                            for side in range(2):
                                m, n = b + p * side, c + q * side
                                grown, shrunk = expansion[a, m, n], contraction[a, m, n]
                                slope = slope_of(grown * gradient[axis, a, b, c] + shrunk * gradient[3 + axis, a, b, c],
                                                 grown * gradient[0, a + face, m, n] + shrunk * gradient[3, a + face, m, n])
                                kept = taper(slope)
                                total += dz[a + face] * mask * max(mean * kept, 50.0)
                                y[result, i, j, k] = kept * slope * mask
                                result += 1
                        y[result, i, j, k] = total / (4 * size_z[a])
                        result += 1
                    of_x = of_y = 0.0
                    for axis in range(1, 3):
                        p, q = (1, 0) if axis == 1 else (0, 1)
                        total = 0.0
                        for above in range(2):
                            grown, shrunk = expansion[a + above, b, c], contraction[a + above, b, c]
                            up = grown * gradient[0, a, b, c] + shrunk * gradient[3, a, b, c]
                            for side in range(-1, 1):
                                m, n = b + p * side, c + q * side
                                slope = slope_of(grown * gradient[axis, a + above, m, n] + shrunk * gradient[3 + axis, a + above, m, n], up)
                                kept = taper(slope)
                                breadth = dx[m] if axis == 1 else dy[n] * cosine_of_face[n]
                                total += breadth * diffusivity[a, b, c] * kept * slope * slope * mask_z[a, b, c]
                                y[result, i, j, k] = kept * slope * mask_z[a, b, c]
                                result += 1
                        if axis == 1:
                            of_x = total
                        else:
                            of_y = total
                    y[result, i, j, k] = of_x / (4 * size_x[b]) + of_y / (4 * size_y[c] * cosine[c])

    def call(x):
        lines = {f: x[f].reshape(-1) for f in (DEPTH, *range(SIZE, len(x)))}
        full = x[TEMPERATURE].shape
        expansion, contraction, gradient = numpy.empty(full), numpy.empty(full), numpy.empty((6, *full))
        derive(*x[TEMPERATURE:DIFFUSIVITY], *x[MASK:DEPTH], lines[DEPTH], *(lines[DISTANCE + a] for a in range(3)), lines[COSINE],
               expansion, contraction, gradient)
        y = numpy.empty((19, *(n - 2 * MARGIN for n in full)))
        mix(x[DIFFUSIVITY], *x[MASK_AT:DEPTH], *(lines[SIZE + a] for a in range(3)), *(lines[DISTANCE + a] for a in range(3)),
            lines[COSINE], lines[COSINE_OF_FACE], expansion, contraction, gradient, y)
        return list(y)
    return call
