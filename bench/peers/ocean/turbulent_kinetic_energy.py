"""A step of the turbulent kinetic energy: the formulas of bench/function/turbulent_kinetic_energy.cpp."""
import numpy

from ocean.cells import HERE, X, Y, Z, Cells, along, beside

NAME = "turbulent kinetic energy"
MARGIN = 2

# Indices of inputs. VELOCITY, MASK_AT (of faces), SIZE and DISTANCE are the first of three each, along z, x and y.
ENERGY, MASK, VELOCITY, MASK_AT, VISCOSITY, MIXING_LENGTH, FORCING, TENDENCY, LEFT_AS_IS, BOTTOM = 0, 1, 2, 5, 8, 9, 10, 11, 12, 13
OF_SURFACE, LEVEL, IS_TOP, IS_MIXED, SIZE, DISTANCE, COSINE, COSINE_OF_FACE = 14, 15, 16, 17, 18, 21, 24, 25
DISSIPATION, MIXING, AHEAD = 0.7, 2000, 0.1


def arrays(library, x):
    """Computed by `library`, which is numpy or torch."""
    c = Cells(x, ENERGY, MARGIN)
    where = library.where
    zero, one, tiny = (library.full_like(x[LEVEL][:1], v) for v in (0.0, 1.0, 1e-20))
    levels = c.extents[Z]

    def mixed_upwards(cell):
        above = beside(cell, Z, 1)
        return c(IS_MIXED, cell) * 0.5 * (c(VISCOSITY, cell) + c(VISCOSITY, above)) / c(SIZE + Z, above)

    def limiter(r):
        return library.clip(library.maximum(library.clip(2 * r, None, 1), library.clip(r, None, 2)), 0, None)

    def length(axis, cell):
        return c(DISTANCE + Z, cell) if axis == Z else c(COSINE, cell) * c(SIZE + axis, cell)

    def carried(axis, face):
        def rise(cell):
            other = beside(cell, axis, 1)
            return (c(ENERGY, other) - c(ENERGY, cell)) * (c(MASK, cell) * c(MASK, other))
        ahead = beside(face, axis, 1)
        speed = c(VELOCITY + axis, face)
        if axis == Y:
            speed = speed * c(COSINE_OF_FACE, face)
        here = rise(face)
        share = limiter(where(speed >= 0, rise(beside(face, axis, -1)), rise(ahead)) / where(abs(here) >= tiny, here, tiny))
        courant = abs(speed / length(axis, face))
        return (0.5 * speed * (c(ENERGY, ahead) + c(ENERGY, face))
                - 0.5 * abs(speed) * ((1 - share) + courant * share) * here)

    def diffused(axis, face):
        flow = (MIXING * (c(ENERGY, beside(face, axis, 1)) - c(ENERGY, face)) * c(MASK_AT + axis, face)
                / c(DISTANCE + axis, face))
        return flow / c(COSINE, face) if axis == X else flow * c(COSINE_OF_FACE, face)

    def gain(axis, flow):
        return (flow(axis, HERE) - flow(axis, along(axis, -1))) / length(axis, HERE)

    up, down, height = mixed_upwards(HERE), mixed_upwards(along(Z, -1)), c(DISTANCE + Z)
    lost = DISSIPATION * library.sqrt(library.clip(c(ENERGY), 0, None)) / c(MIXING_LENGTH)
    water, lowest = c(LEVEL) >= c(BOTTOM), c(BOTTOM) >= c(LEVEL)
    below = where(water, where(lowest, zero, -down / height), zero)
    here = where(water, 1 + where(lowest, up, up + down) / height + lost, one)
    above = where(water, -up / height, zero)
    right = where(water, c(ENERGY) + c(FORCING) + c(IS_TOP) * c(OF_SURFACE) / height, zero)

    factors, energies = [above[0] / here[0]], [right[0] / here[0]]
    for k in range(1, levels):
        rest = here[k] - below[k] * factors[-1]
        factors.append(above[k] / rest)
        energies.append((right[k] - below[k] * energies[-1]) / rest)
    for k in reversed(range(levels - 1)):
        energies[k] = energies[k] - factors[k] * energies[k + 1]

    mixed = where(water, library.stack(energies), c(LEFT_AS_IS))
    kept = where(c(IS_TOP) >= 1, library.clip(mixed, 0, None), mixed)
    spread = kept + c(MASK) * (gain(X, diffused) + gain(Y, diffused))
    change = c(MASK) * (-gain(X, carried) - gain(Y, carried)) - gain(Z, carried)
    return [spread + ((1.5 + AHEAD) * change - (0.5 + AHEAD) * c(TENDENCY)), change]


def loop(compiled):
    """Loops over all cells: for each row of columns the system from bottom to top and back, then the rest for each cell."""

    @compiled
    def carried(speed, length, e0, e1, e2, e3, m0, m1, m2, m3):
        """The flow between the second and the third of four cells."""
        rise0, here, rise2 = (e1 - e0) * (m0 * m1), (e2 - e1) * (m1 * m2), (e3 - e2) * (m2 * m3)
        r = (rise0 if speed >= 0 else rise2) / (here if abs(here) >= 1e-20 else 1e-20)
        share = max(max(min(2 * r, 1.0), min(r, 2.0)), 0.0)
        courant = abs(speed / length)
        return 0.5 * speed * (e2 + e1) - 0.5 * abs(speed) * ((1 - share) + courant * share) * here

    @compiled
    def step(e, mask, vz, vx, vy, mask_x, mask_y, viscosity, mixing_length, forcing, tendency, left, bottom, of_surface, level,
             is_top, is_mixed, size_z, size_x, size_y, dz, dx, dy, cosine, cosine_of_face, factor, solution, energy, change):
        levels, rows, columns = energy.shape
        for j in range(rows):
            b = j + 2
            for i in range(levels):
                a = i + 2
                for k in range(columns):
                    c = k + 2
                    up = is_mixed[a] * 0.5 * (viscosity[a, b, c] + viscosity[a + 1, b, c]) / size_z[a + 1]
                    down = is_mixed[a - 1] * 0.5 * (viscosity[a - 1, b, c] + viscosity[a, b, c]) / size_z[a]
                    lost = 0.7 * numpy.sqrt(max(e[a, b, c], 0.0)) / mixing_length[a, b, c]
                    water, lowest = level[a] >= bottom[b, c], bottom[b, c] >= level[a]
                    below = -down / dz[a] if water and not lowest else 0.0
                    here = 1 + (up if lowest else up + down) / dz[a] + lost if water else 1.0
                    above = -up / dz[a] if water else 0.0
                    right = e[a, b, c] + forcing[a, b, c] + is_top[a] * of_surface[b, c] / dz[a] if water else 0.0
                    if i > 0:
                        here -= below * factor[i - 1, k]
                        right -= below * solution[i - 1, k]
                    factor[i, k] = above / here
                    solution[i, k] = right / here
            for i in range(levels - 1, -1, -1):
                a = i + 2
                if i + 1 < levels:
                    for k in range(columns):
                        solution[i, k] -= factor[i, k] * solution[i + 1, k]
                for k in range(columns):
                    c = k + 2
                    value = solution[i, k] if level[a] >= bottom[b, c] else left[a, b, c]
                    if is_top[a] >= 1:
                        value = max(value, 0.0)
                    flow_x = 2000 * (e[a, b + 1, c] - e[a, b, c]) * mask_x[a, b, c] / dx[b] / cosine[c]
                    flow_x -= 2000 * (e[a, b, c] - e[a, b - 1, c]) * mask_x[a, b - 1, c] / dx[b - 1] / cosine[c]
                    flow_y = 2000 * (e[a, b, c + 1] - e[a, b, c]) * mask_y[a, b, c] / dy[c] * cosine_of_face[c]
                    flow_y -= 2000 * (e[a, b, c] - e[a, b, c - 1]) * mask_y[a, b, c - 1] / dy[c - 1] * cosine_of_face[c - 1]
                    long_x, long_y = cosine[c] * size_x[b], cosine[c] * size_y[c]
                    value += mask[a, b, c] * (flow_x / long_x + flow_y / long_y)
                    by_x = carried(vx[a, b, c], long_x, e[a, b - 1, c], e[a, b, c], e[a, b + 1, c], e[a, b + 2, c],
                                   mask[a, b - 1, c], mask[a, b, c], mask[a, b + 1, c], mask[a, b + 2, c])
                    by_x -= carried(vx[a, b - 1, c], cosine[c] * size_x[b - 1], e[a, b - 2, c], e[a, b - 1, c], e[a, b, c],
                                    e[a, b + 1, c], mask[a, b - 2, c], mask[a, b - 1, c], mask[a, b, c], mask[a, b + 1, c])
                    by_y = carried(vy[a, b, c] * cosine_of_face[c], long_y, e[a, b, c - 1], e[a, b, c], e[a, b, c + 1],
                                   e[a, b, c + 2], mask[a, b, c - 1], mask[a, b, c], mask[a, b, c + 1], mask[a, b, c + 2])
                    by_y -= carried(vy[a, b, c - 1] * cosine_of_face[c - 1], cosine[c - 1] * size_y[c - 1], e[a, b, c - 2],
                                    e[a, b, c - 1], e[a, b, c], e[a, b, c + 1], mask[a, b, c - 2], mask[a, b, c - 1],
                                    mask[a, b, c], mask[a, b, c + 1])
                    by_z = carried(vz[a, b, c], dz[a], e[a - 1, b, c], e[a, b, c], e[a + 1, b, c], e[a + 2, b, c],
                                   mask[a - 1, b, c], mask[a, b, c], mask[a + 1, b, c], mask[a + 2, b, c])
                    by_z -= carried(vz[a - 1, b, c], dz[a - 1], e[a - 2, b, c], e[a - 1, b, c], e[a, b, c], e[a + 1, b, c],
                                    mask[a - 2, b, c], mask[a - 1, b, c], mask[a, b, c], mask[a + 1, b, c])
                    moved = mask[a, b, c] * (-by_x / long_x - by_y / long_y) - by_z / dz[a]
                    change[i, j, k] = moved
                    energy[i, j, k] = value + (1.6 * moved - 0.6 * tendency[a, b, c])

    def call(x):
        lines = [a.reshape(-1) for a in x[LEVEL:]]
        planes = [x[f][0] for f in (BOTTOM, OF_SURFACE)]
        levels, rows, columns = (n - 2 * MARGIN for n in x[ENERGY].shape)
        y = [numpy.empty((levels, rows, columns)) for _ in range(2)]
        step(*x[:MASK_AT], *x[MASK_AT + X:BOTTOM], *planes, *lines, *(numpy.empty((levels, columns)) for _ in range(2)), *y)
        return y
    return call
