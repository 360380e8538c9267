"""What ops compute, for scripts/oracle, in NumPy and plain loops: one function per op, of its attributes, in the order of their
fields, and of its inputs by name. Adjoints are made from the functions that they are adjoint to."""
import colorsys
import itertools
import math

import numpy as np


# Reductions.

def reduced(f):
    return lambda a, x: f(x, axis=tuple(a[0]), keepdims=a[1])


sum = reduced(np.sum)
prod = reduced(np.prod)
mean = reduced(np.mean)
max = reduced(np.max)
min = reduced(np.min)
euclidean_norm = reduced(lambda x, **o: np.sqrt(np.sum(np.abs(x) ** 2, **o)))
logsumexp = reduced(lambda x, **o: np.log(np.sum(np.exp(x), **o)))


def count_nonzero(a, x):
    return np.count_nonzero(x, axis=tuple(a[0]), keepdims=a[1]).astype(np.int64)


def share_of_extreme(a, x, best):
    axes = tuple(a[0])
    equal = x == (best if a[1] else np.expand_dims(best, axes))
    return equal / equal.sum(axis=axes, keepdims=True)


def prod_of_others(a, x):
    rows = x.reshape(-1, x.shape[-1])
    return np.array([[np.prod(np.delete(row, i)) for i in range(row.size)] for row in rows], x.dtype).reshape(x.shape)


def argmax(a, x):
    return np.argmax(x, axis=a[0][0], keepdims=a[1])


def argmin(a, x):
    return np.argmin(x, axis=a[0][0], keepdims=a[1])


def scanned(f, start):
    def scan(a, x):
        axis, exclusive, reverse = a
        x = np.moveaxis(x, axis, -1)
        x = x[..., ::-1] if reverse else x
        y = f(x, axis=-1)
        if exclusive:
            y = np.concatenate([np.full(y.shape[:-1] + (1,), start, y.dtype), y[..., :-1]], -1)
        return np.moveaxis(y[..., ::-1] if reverse else y, -1, axis)
    return scan


cumsum = scanned(np.cumsum, 0)
cumprod = scanned(np.cumprod, 1)


def cumulative_logsumexp(a, x):
    x = x[..., ::-1] if a[0] else x
    y = np.logaddexp.accumulate(x, axis=-1)
    return y[..., ::-1] if a[0] else y


def igamma_grad_a(attrs, a, x):
    import mpmath
    derivative = lambda a, x: float(mpmath.diff(lambda t: mpmath.gammainc(t, 0, x, regularized=True), a, attrs[0]))
    return np.vectorize(derivative, otypes=[float])(a, x)


def special_derivative(attrs, x):
    import mpmath
    f = [lambda t: mpmath.besseli(1, t), lambda t: mpmath.besselj(1, t), lambda t: mpmath.exp(-abs(t)) * mpmath.besseli(0, t),
         lambda t: mpmath.exp(-abs(t)) * mpmath.besseli(1, t), lambda t: mpmath.exp(t) * mpmath.besselk(0, t),
         lambda t: mpmath.exp(t) * mpmath.besselk(1, t), lambda t: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-t * t) * mpmath.erfi(t),
         lambda t: mpmath.polylog(2, 1 - t), mpmath.fresnels, mpmath.fresnelc][attrs[0]]
    with mpmath.workdps(40):
        return np.vectorize(lambda x: float(mpmath.diff(f, x, attrs[1]).real))(x)


def linear_recurrence(attrs, a, b):
    y = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    for i in range(y.shape[-1]):
        y[..., i] = b[..., i] + (a[..., i] * y[..., i - 1] if i else 0)
    return y


# Layout.

def conjugate_transpose(a, x):
    return np.swapaxes(x, -1, -2).conj()


def reshape(a, x):
    axes, shape = a
    return x.reshape(x.shape[:x.ndim - axes] + tuple(shape))


def expand_dims(a, x):
    return np.expand_dims(x, tuple(a[0]))


def squeeze(a, x):
    return np.squeeze(x, tuple(a[0]))


def transpose(a, x):
    perm = a[0]
    lead = x.ndim - len(perm)
    return np.transpose(x, list(range(lead)) + [lead + p for p in perm])


def reverse(a, x):
    return np.flip(x, tuple(a[0]))


def broadcast_to(a, x):
    return np.broadcast_to(x, a)


def tile(a, x):
    return np.tile(x, [1] * (x.ndim - len(a)) + a)


def one_hot(a, indices):
    return (indices[..., None] == np.arange(a[0])).astype(np.float32)


def fill(a, value):
    return np.full(a, value)


def identity_n(a, x):
    return x


def roll(a, x):
    return np.roll(x, a[1], a[0])


def repeat(a, x):
    axis, count, counts = a
    return np.repeat(x, counts if counts else count, axis)


def reverse_sequence(a, x, lengths):
    sequence, batch = a
    y = np.array(x)
    for at in np.ndindex(x.shape):
        n, i = lengths[at[batch]], at[sequence]
        if i < n:
            other = list(at)
            other[sequence] = n - 1 - i
            y[at] = x[tuple(other)]
    return y


def slice(a, x):
    lead = x.ndim - len(a[0])
    return x[(np.s_[:],) * lead + tuple(np.s_[b:b + n if n >= 0 else None] for b, n in zip(*a))]


def selected(a):
    """The index of each axis that strided slices select, for np.ix_."""
    _, begin, size, stride, _ = a
    return [b + np.arange(n) * s for b, n, s in zip(begin, size, stride)]


def strided_slice(a, x):
    whole, shape = a[0], a[4]
    lead = x.shape[:x.ndim - len(whole)]
    flat = x.reshape((-1,) + tuple(whole))
    return np.array([(e[np.ix_(*selected(a))] if whole else e) for e in flat]).reshape(lead + tuple(shape))


def placed(a, x, updates, combine):
    y = np.array(x)
    for target, source in zip(itertools.product(*selected(a)), np.ravel(updates)):
        y[target] = combine(y[target], source)
    return y


def strided_pad(a, x):
    return placed(a, np.zeros(a[0]), x, lambda old, new: new)


def strided_slice_update(a, x, updates):
    return placed(a, x, updates, lambda old, new: new)


def strided_slice_add(a, x, updates):
    return placed(a, x, updates, lambda old, new: old + new)


def pad(a, x):
    before, after, value = a
    if x.ndim == 0:
        return x
    lead = [(0, 0)] * (x.ndim - len(before))
    return np.pad(x, lead + list(zip(before, after)), constant_values=value)


def several(x):
    return x if isinstance(x, list) else [x]


def concat(attrs, a, b=()):
    return np.concatenate([a, *several(b)], attrs[0])


def stack(attrs, a, b=()):
    return np.stack([a, *several(b)], attrs[0])


def split(a, x):
    return np.split(x, np.cumsum(a[1])[:-1], a[0])


def unstack(a, x):
    return [np.take(x, i, a[0]) for i in range(x.shape[a[0]])]


def diagonal_places(a):
    """Row and position in its row of each element of the diagonals, and its row and column in the matrix."""
    low, high, rows, columns, longest, left_above, left_below, _ = a
    for k in range(low, high + 1):
        n = len(np.diagonal(np.empty((rows, columns)), k))
        left = left_above if k > 0 else left_below if k < 0 else True
        for i in range(n):
            yield high - k, i + (0 if left or n == longest else longest - n), i - (k if k < 0 else 0), i + (k if k > 0 else 0)


def diagonal_rows(a, x):
    """Diagonals [..., count, longest] from [..., longest] where there is one."""
    return x[..., None, :] if a[0] == a[1] else x


def matrix_diag_part(a, x):
    y = np.full(x.shape[:-2] + (a[1] - a[0] + 1, a[4]), a[7], x.dtype)
    for k, i, row, column in diagonal_places(a):
        y[..., k, i] = x[..., row, column]
    return y[..., 0, :] if a[0] == a[1] else y


def matrix_diag(a, x):
    x = diagonal_rows(a, x)
    y = np.full(x.shape[:-2] + (a[2], a[3]), a[7], x.dtype)
    for k, i, row, column in diagonal_places(a):
        y[..., row, column] = x[..., k, i]
    return y


def matrix_set_diag(a, x, diagonal):
    rows = diagonal_rows(a, diagonal)
    y = np.array(x)
    for k, i, row, column in diagonal_places(a):
        y[..., row, column] = rows[..., k, i]
    return y


def diag(a, x):
    shape = x.shape[x.ndim - a[0]:]
    n = int(np.prod(shape))
    return (x.reshape(x.shape[:x.ndim - a[0]] + (n, 1)) * np.eye(n)).reshape(x.shape[:x.ndim - a[0]] + 2 * shape)


def diag_part(a, x):
    half = a[0]
    shape = x.shape[x.ndim - half:]
    n = int(np.prod(shape))
    lead = x.shape[:x.ndim - 2 * half]
    return np.einsum("...ii->...i", x.reshape(lead + (n, n))).reshape(lead + shape)


def trace(a, x):
    return np.trace(x, axis1=-2, axis2=-1)


def band_part(a, x):
    low, high = a
    distance = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    return np.where((low <= distance) & (distance <= high), x, 0)


def space_to_batch_nd(a, x):
    ndim, block, before, after = a
    m = len(block)
    x = np.pad(x, [(0, 0)] + list(zip(before, after)) + [(0, 0)] * (ndim - 1 - m))
    return np.concatenate([x[(np.s_[:],) + tuple(np.s_[o::b] for o, b in zip(offset, block))]
                           for offset in np.ndindex(*block)], 0)


def batch_to_space_nd(a, x):
    ndim, block, before, after = a
    n = x.shape[0] // int(np.prod(block))
    y = np.zeros((n,) + tuple(d * b for d, b in zip(x.shape[1:], block)) + x.shape[1 + len(block):], x.dtype)
    for k, offset in enumerate(np.ndindex(*block)):
        y[(np.s_[:],) + tuple(np.s_[o::b] for o, b in zip(offset, block))] = x[k * n:(k + 1) * n]
    return y[(np.s_[:],) + tuple(np.s_[b:d - e] for b, e, d in zip(before, after, y.shape[1:]))]


def space_to_depth(a, x):
    b = a[0]
    return np.concatenate([x[..., i::b, j::b, :] for i in range(b) for j in range(b)], -1)


def depth_to_space(a, x):
    b = a[0]
    channels = x.shape[-1] // (b * b)
    y = np.zeros(x.shape[:-3] + (x.shape[-3] * b, x.shape[-2] * b, channels), x.dtype)
    for k, (i, j) in enumerate(np.ndindex(b, b)):
        y[..., i::b, j::b, :] = x[..., k * channels:(k + 1) * channels]
    return y


# Indices.

def gather(a, x, indices):
    axis, batch = a
    if batch == 0:
        return np.take(x, indices, axis)
    axis += x.ndim
    lead, inner = x.shape[:batch], axis - batch
    parts = [np.take(x[at], indices[at], inner) for at in np.ndindex(*lead)]
    rest = x.shape[batch:]
    return np.array(parts, x.dtype).reshape(lead + rest[:inner] + indices.shape[batch:] + rest[inner + 1:])


def scatter_add(a, x, indices):
    shape, axis, batch = a
    return adjoint(lambda z: gather([axis, batch], z, indices), shape, x)


def gather_nd(a, x, indices):
    lead = x.ndim - a[0]
    at = tuple(np.moveaxis(indices, -1, 0))
    return x[(np.s_[:],) * lead + at] if at else np.broadcast_to(x, indices.shape[:-1] + x.shape)


def scatter_nd(a, updates, indices):
    return tensor_scatter_add(a, np.zeros(a[0], updates.dtype), indices, updates)


def take_along_axis(a, x, indices):
    lead = x.shape[:x.ndim - a[1]]
    return np.take_along_axis(x, np.broadcast_to(indices, lead + indices.shape[indices.ndim - a[1]:]), a[0])


def add_along_axis(a, x, indices):
    shape, axis = a
    return adjoint(lambda z: np.take_along_axis(z, indices, axis), shape, x)


def scattered(combine):
    def scatter(a, x, indices, updates):
        y = np.array(x)
        count = indices.shape[-1]
        n = math.prod(indices.shape[:-1])
        flat = updates.reshape((n,) + x.shape[count:])
        for at, update in zip(indices.reshape(n, count), flat):
            y[tuple(at)] = combine(y[tuple(at)], update)
        return y
    return scatter


tensor_scatter_update = scattered(lambda old, new: new)
tensor_scatter_add = scattered(np.add)
tensor_scatter_sub = scattered(np.subtract)
tensor_scatter_max = scattered(np.maximum)
tensor_scatter_min = scattered(np.minimum)


def boolean_put(a, x, mask):
    y = np.zeros(mask.shape + x.shape[x.ndim - a[0]:])
    y[mask] = x
    return y


def dynamic_partition(a, x, partitions):
    return [x[partitions == j] for j in range(a[1])]


def partition_places(a, partitions):
    order = np.argsort(partitions.ravel(), kind="stable")
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return places


def stitch_places(a, indices):
    lists = [i.ravel().astype(np.int64) for i in several(indices)]
    everything = np.concatenate(lists)
    kept = np.array([i if i not in everything[k + 1:] else -1 for k, i in enumerate(everything)], np.int64)
    return np.split(kept, np.cumsum([i.size for i in lists])[:-1])


def kept_updates(a, x, indices):
    y = gather_nd(a, x, indices).copy()
    depth = indices.shape[-1]
    rows, rest = indices.reshape(int(np.prod(indices.shape[:-1])), depth), x.shape[x.ndim - a[0] + depth:]
    flat = y.reshape((len(rows),) + rest)
    for k, row in enumerate(rows):
        if any((row == later).all() for later in rows[k + 1:]):
            flat[k] = 0
    return flat.reshape(y.shape)


def dynamic_stitch(a, indices, x):
    """The inputs are pairs of indices and rows."""
    tensors = [indices, *several(x)]
    indices, x = tensors[::2], tensors[1::2]
    rest = x[0].shape[x[0].ndim - a[0]:]
    n = 1 + int(np.max([i.max() for i in indices if i.size], initial=-1))
    y = np.zeros((n,) + rest)
    for i, rows in zip(indices, x):
        for at, row in zip(i.ravel(), rows.reshape((i.size,) + rest)):
            y[at] = row
    return y


# Sorting.

def sort(a, x):
    i = argsort(a, x)
    return [np.take_along_axis(x, i, a[1]), i]


def argsort(a, x):
    descending, axis, k = a
    if not descending:
        return np.argsort(x, axis, kind="stable")[_first(k, axis, x.ndim)]
    n = x.shape[axis]
    flipped = np.argsort(np.flip(x, axis), axis, kind="stable")
    return (n - 1 - np.flip(flipped, axis))[_first(k, axis, x.ndim)]


def _first(k, axis, ndim):
    return tuple(np.s_[:k] if i == axis % ndim and k >= 0 else np.s_[:] for i in range(ndim))


top_k = sort


def nth_element(a, x):
    n, reverse = a
    return np.sort(x, -1)[..., x.shape[-1] - 1 - n if reverse else n]


def unique(a, x):
    """In the order in which the values first occur."""
    values = list(dict.fromkeys(x.ravel()))
    place = [values.index(v) for v in x.ravel()]
    counts = [place.count(i) for i in range(len(values))]
    return [np.array(values, x.dtype), np.array(place, np.int64).reshape(x.shape), np.array(counts, np.int64)]


# Groups.

def grouped(f, empty):
    def of_groups(a, x, ids, indices=None):
        count, axis = a
        x = np.moveaxis(x, axis, 0)
        x = x if indices is None else x[indices]
        rows = [f(x[ids == j]) if (ids == j).any() else np.full(x.shape[1:], empty(x.dtype)) for j in range(count)]
        return np.moveaxis(np.array(rows, x.dtype).reshape((count,) + x.shape[1:]), 0, axis)
    return of_groups


def lowest(t):
    return -np.inf if t.kind == "f" else np.iinfo(t).min


def highest(t):
    return np.inf if t.kind == "f" else np.iinfo(t).max


segment_sum = unsorted_segment_sum = sparse_segment_sum = grouped(lambda x: x.sum(0), lambda t: 0)
segment_mean = sparse_segment_mean = grouped(lambda x: x.mean(0), lambda t: 0)
sparse_segment_sqrt_n = grouped(lambda x: x.sum(0) / np.sqrt(len(x)), lambda t: 0)
segment_prod = unsorted_segment_prod = grouped(lambda x: x.prod(0), lambda t: 1)
segment_max = grouped(lambda x: x.max(0), lambda t: 0)
segment_min = grouped(lambda x: x.min(0), lambda t: 0)
unsorted_segment_max = grouped(lambda x: x.max(0), lowest)
unsorted_segment_min = grouped(lambda x: x.min(0), highest)


def share_of_group_extreme(a, x, ids, best):
    x, best = np.moveaxis(x, a[1], 0), np.moveaxis(best, a[1], 0)
    equal = [x[k] == best[i] for k, i in enumerate(ids)]
    shares = [equal[k] / np.sum([equal[m] for m in np.flatnonzero(ids == i)], axis=0) if i >= 0 else 0 * x[k] for k, i in enumerate(ids)]
    return np.moveaxis(np.array(shares, x.dtype).reshape(x.shape), 0, a[1])


def group_divisors(a, ids):
    count, axis, is_root = a
    n = np.maximum([np.sum(ids == i) for i in range(count)], 1).astype(np.float64)
    return (np.sqrt(n) if is_root else n).reshape((count,) + (1,) * (-1 - axis))


def rows_of_groups(a, x, ids):
    x = np.moveaxis(x, a[0], 0)
    y = np.array([x[i] if i >= 0 else 0 * x[0] for i in ids]).reshape((len(ids),) + x.shape[1:])
    return np.moveaxis(y, 0, a[0])


# Linear algebra.

def turned(x, flag):
    return np.swapaxes(x, -1, -2) if flag else x


def matmul(attrs, a, b):
    return turned(a, attrs[0]) @ turned(b, attrs[1])


def einsum(attrs, x):
    a, b, output = (labels.translate({i: 64 + i for i in range(1, 27)}) for labels in attrs)
    x = several(x)
    return np.einsum((f"...{a},...{b}" if len(x) == 2 else f"...{a}") + f"->...{output}", *x)


def each_matrix(f):
    """f of matrices, for all leading axes, which broadcast."""
    def of_all(*x):
        lead = np.broadcast_shapes(*(t.shape[:-2] for t in x))
        x = [np.broadcast_to(t, lead + t.shape[-2:]) for t in x]
        one = [f(*(t[at] for t in x)) for at in np.ndindex(*lead)]
        return np.array(one).reshape(lead + one[0].shape) if one else np.zeros(lead + x[-1].shape[-2:])
    return of_all


cholesky = lambda a, x: each_matrix(np.linalg.cholesky)((x + np.swapaxes(x, -1, -2).conj()) / 2)


def triangle(a, attrs):
    lower, transposed = attrs
    return turned(np.tril(a) if lower else np.triu(a), transposed)


def triangular_solve(attrs, a, b):
    return each_matrix(np.linalg.solve)(triangle(a, attrs), b)


def solve(attrs, a, b):
    return each_matrix(np.linalg.solve)(turned(a, attrs[0]), b)


def lu(a, x):
    """By elimination with the largest pivot."""
    lead, (m, n) = x.shape[:-2], x.shape[-2:]
    packed, order = np.array(x), np.zeros(lead + (m,), np.int64)
    for at in np.ndindex(*lead):
        u, p = packed[at], np.arange(m)
        for k in range(np.minimum(m, n)):
            pivot = k + np.abs(u[k:, k]).argmax()
            u[[k, pivot]], p[[k, pivot]] = u[[pivot, k]], p[[pivot, k]]
            u[k + 1:, k] /= u[k, k]
            u[k + 1:, k + 1:] -= np.outer(u[k + 1:, k], u[k, k + 1:])
        packed[at], order[at] = u, p
    return [packed, order]


def lstsq(attrs, a, b):
    h = np.swapaxes(a, -1, -2).conj()
    return each_matrix(np.linalg.solve)(h @ a + attrs[0] * np.eye(a.shape[-1]), h @ b) if attrs[0] else np.linalg.pinv(a) @ b


def with_phase(v):
    """Columns whose component of largest magnitude is positive."""
    if v.size == 0:
        return v
    largest = np.take_along_axis(v, np.abs(v).argmax(-2)[..., None, :], -2)
    return v * (np.abs(largest) / largest)


def eigh(a, x):
    w, v = np.linalg.eigh(x, "L")
    return [w, with_phase(v)]


def svd(a, x):
    u, s, vh = np.linalg.svd(x, full_matrices=a[0])
    if u.size == 0:
        return [u, s, vh]
    n = s.shape[-1]
    phase = (with_phase(u) / np.where(u == 0, 1, u))
    factor = np.take_along_axis(phase, np.abs(u).argmax(-2)[..., None, :], -2)[..., 0, :n]
    vh = np.array(vh)
    vh[..., :n, :] *= np.conj(factor)[..., None]
    return [with_phase(u), s, vh]


def eig(a, x):
    w, v = np.linalg.eig(x)
    w, v = w.astype(complex), v.astype(complex)
    if v.size:
        v = v / np.take_along_axis(v, np.abs(v).argmax(-2)[..., None, :], -2)
    return [w, v]


def matrix_square_root(a, x):
    def root(m):
        w, v = np.linalg.eig(m)
        y = v @ np.diag(np.sqrt(w.astype(complex))) @ np.linalg.inv(v)
        return y if np.iscomplexobj(m) else y.real
    return each_matrix(root)(x)


def sylvester(attrs, x, b):
    def one(m, c):
        n = len(m)
        return np.linalg.solve(np.kron(m, np.eye(n)) + np.kron(np.eye(n), m.T), c.ravel()).reshape(n, n)
    return each_matrix(one)(x, b)


def banded_triangular_solve(attrs, bands, b):
    """Row i of the bands has the elements a[j, j - i]; of an upper triangle, a[j, j + k - 1 - i]."""
    lower, transposed = attrs
    k, n = bands.shape[-2:]
    a = np.zeros(bands.shape[:-2] + (n, n), bands.dtype)
    for i, j in np.ndindex(k, n):
        other = j - i if lower else j + i
        if 0 <= other < n:
            a[..., j, other] = bands[..., i if lower else k - 1 - i, j]
    return each_matrix(np.linalg.solve)(turned(a, transposed), b)


def tridiagonal(diagonals):
    n = diagonals.shape[-1]
    a = np.zeros(diagonals.shape[:-2] + (n, n), diagonals.dtype)
    for i, j in np.ndindex(3, n):
        if 0 <= j + 1 - i < n:
            a[..., j, j + 1 - i] = diagonals[..., i, j]
    return a


def tridiagonal_matmul(attrs, diagonals, x):
    return tridiagonal(diagonals) @ x


def tridiagonal_solve(attrs, diagonals, b):
    return each_matrix(np.linalg.solve)(tridiagonal(diagonals), b)


# Fourier transforms.

def last_axes(a):
    return tuple(range(-a[0], 0))


fft = fft2d = fft3d = ifft = ifft2d = ifft3d = lambda a, x: (np.fft.ifftn if a[1] else np.fft.fftn)(x, axes=last_axes(a))


def rfft(a, x):
    return np.fft.rfftn(x, axes=last_axes(a))


def irfft(a, x):
    return np.fft.irfftn(x, s=x.shape[x.ndim - a[0]:-1] + (a[1],), axes=last_axes(a))


rfft2d = rfft3d = rfft
irfft2d = irfft3d = irfft


# Neural networks.

def softmax(a, x):
    return np.exp(log_softmax(a, x))


def log_softmax(a, x):
    axis = a[0] if a else -1
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def softmax_derivative(a, p, v):
    axis = a[0] if a else -1
    return p * (v - (p * v).sum(axis, keepdims=True))


def block_lstm(a, x, h, c, weights):
    weights, bias = weights
    all_h, all_c, all_gates = [], [], []
    for step in x:
        i, g, f, o = np.split(np.concatenate([step, h], -1) @ weights + bias, 4, -1)
        i, g, f, o = sigmoid(i), np.tanh(g), sigmoid(f + a[0]), sigmoid(o)
        c = f * c + i * g
        h = o * np.tanh(c)
        all_h.append(h), all_c.append(c), all_gates.append(np.concatenate([i, g, f, o], -1))
    shape = x.shape[:2]
    return [np.array(t).reshape(shape + (-1 if t else n,)) if t else np.zeros(shape + (n,))
            for t, n in ((all_h, h.shape[-1]), (all_c, h.shape[-1]), (all_gates, 4 * h.shape[-1]))]


def dot_product_attention(a, query, key, value, mask):
    return attention_and_weights(a, query, key, value, mask)[0]


def attention_and_weights(a, query, key, value, mask):
    heads, causal, scale = a
    batch, queries, keys = query.shape[0], query.shape[1], key.shape[1]
    y = np.zeros((batch, queries, value.shape[2]))
    weights, at = np.zeros((batch, heads, queries, keys)), np.ones((batch, heads, queries, keys), bool)
    if mask.shape != (0,):
        at &= mask.astype(bool)
    if causal:
        at &= np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
    n, m = query.shape[2] // heads, value.shape[2] // heads
    for b, h, i in np.ndindex(batch, heads, queries):
        scores = np.where(at[b, h, i], key[b, :, h * n:(h + 1) * n] @ query[b, i, h * n:(h + 1) * n] * scale, -1e300)
        p = np.exp(scores - scores.max())
        weights[b, h, i] = p / p.sum()
        y[b, i, h * m:(h + 1) * m] = weights[b, h, i] @ value[b, :, h * m:(h + 1) * m]
    return y, weights, at


def dot_product_attention_gradient(a, dy, query, key, value):
    value, mask = value
    heads, _, scale = a
    _, weights, at = attention_and_weights(a, query, key, value, mask)
    dq, dk, dv = np.zeros(query.shape), np.zeros(key.shape), np.zeros(value.shape)
    n, m = query.shape[2] // heads, value.shape[2] // heads
    for b, h, i in np.ndindex(query.shape[0], heads, query.shape[1]):
        of, to, p = np.s_[h * n:(h + 1) * n], np.s_[h * m:(h + 1) * m], weights[b, h, i]
        dp = value[b, :, to] @ dy[b, i, to]
        ds = np.where(at[b, h, i], p * (dp - p @ dp), 0) * scale   # the softmax has the Jacobian diag(p) - p pᵀ
        dv[b, :, to] += np.outer(p, dy[b, i, to])
        dq[b, i, of] = ds @ key[b, :, of]
        dk[b, :, of] += np.outer(ds, query[b, i, of])
    return [dq, dk, dv]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def ctc_loss(a, labels, logits, label_lengths, logit_lengths):
    """By all alignments."""
    log_p = log_softmax(None, logits)
    losses = []
    for b in range(labels.shape[0]):
        wanted, time = list(labels[b, :label_lengths[b]]), logit_lengths[b]
        total = 0
        for path in itertools.product(range(logits.shape[-1]), repeat=int(time)):
            merged = [k for k, _ in itertools.groupby(path) if k != a[0]]
            if merged == wanted:
                total += np.exp(np.sum([log_p[t, b, k] for t, k in enumerate(path)]))
        losses.append(-np.log(total))
    return np.array(losses)


def sparse_softmax_cross_entropy(a, labels, logits):
    log_sum = np.log(np.exp(logits).sum(-1))
    return log_sum - np.take_along_axis(logits, labels[..., None].astype(np.int64), -1)[..., 0]


def dropout(a, x, dropped):
    return np.where(dropped, 0, x / (1 - a[0]))


def layer_norm(a, x, scale, offset):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + a[0]) * scale + offset


def layer_norm_gradient(a, dy, x, scale):
    centred = x - x.mean(-1, keepdims=True)
    root = np.sqrt((centred ** 2).mean(-1, keepdims=True) + a[0])
    normal, g = centred / root, dy * scale
    dx = (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True)) / root
    lead = tuple(range(dy.ndim - 1))
    return [dx, (dy * normal).sum(lead), dy.sum(lead)]


def batch_norm(a, x, scale, offset):
    axes = tuple(range(x.ndim - 1))
    n = x.size // x.shape[-1] if x.shape[-1] else 0
    mean, variance = x.mean(axes), x.var(axes)
    return [(x - mean) / np.sqrt(variance + a[0]) * scale + offset, mean, variance * n / (n - 1), mean, variance]


def batch_norm_gradient(a, dy, x, scale):
    axes = tuple(range(x.ndim - 1))
    root = np.sqrt(x.var(axes) + a[0])
    normal, g = (x - x.mean(axes)) / root, dy * scale
    dx = (g - g.mean(axes) - normal * (g * normal).mean(axes)) / root
    return [dx, (dy * normal).sum(axes), dy.sum(axes)]


def local_response_normalization(a, x):
    radius, bias, alpha, beta = a
    channels = np.arange(x.shape[-1])
    near = np.abs(channels[:, None] - channels) <= radius
    return x / (bias + alpha * (x ** 2 @ near)) ** beta


# Windows. `w` is, per axis: extent, size, stride, dilation, padding before, outputs.

def window_cells(w):
    """For each output and cell of the window that lies inside: the index of the output, of the cell and of the position."""
    ranges = []
    for extent, size, stride, dilation, before, outputs in w:
        inside = [(o, c, o * stride + c * dilation - before) for o in range(outputs) for c in range(size)]
        ranges.append([t for t in inside if 0 <= t[2] < extent])
    for places in itertools.product(*ranges):
        yield tuple(zip(*places))


def images(x, axes):
    """The leading axes of images, rows or volumes, and x with one axis in their place."""
    lead = x.shape[:x.ndim - axes - 1]
    return lead, x.reshape((math.prod(lead),) + x.shape[x.ndim - axes - 1:])


def outputs_of(w):
    return tuple(axis[5] for axis in w)


def convolve(a, x, filters):
    w, groups = a
    n = len(w)
    k, o = filters.shape[-2:]
    lead, x = images(x, n)
    y = np.zeros((x.shape[0],) + outputs_of(w) + (o,))
    for out, cell, at in window_cells(w):
        for g in range(groups):
            outs = np.s_[g * (o // groups):(g + 1) * (o // groups)]
            y[(np.s_[:],) + out + (outs,)] += x[(np.s_[:],) + at + (np.s_[g * k:(g + 1) * k],)] @ filters[cell + (np.s_[:], outs)]
    return y.reshape(lead + y.shape[1:])


conv1d = conv2d = conv3d = convolve


def conv_input_gradient(a, dy, filters):
    w, groups = a
    lead = dy.shape[:dy.ndim - len(w) - 1]
    shape = lead + tuple(axis[0] for axis in w) + (filters.shape[-2] * groups,)
    return adjoint(lambda x: convolve(a, x, filters), shape, dy)


def conv_filter_gradient(a, x, dy):
    w, groups = a
    shape = tuple(axis[1] for axis in w) + (x.shape[-1] // groups, dy.shape[-1])
    return adjoint(lambda filters: convolve(a, x, filters), shape, dy)


def conv2d_transpose(a, x, filters):
    return conv_input_gradient(a, x, filters)


conv3d_transpose = conv2d_transpose


def depthwise_conv2d(a, x, filters):
    w = a[0]
    lead, x = images(x, 2)
    y = np.zeros((x.shape[0],) + outputs_of(w) + x.shape[-1:])
    for out, cell, at in window_cells(w):
        y[(np.s_[:],) + out] += x[(np.s_[:],) + at] * filters[cell]
    return y.reshape(lead + y.shape[1:])


def depthwise_conv2d_input_gradient(a, dy, filters):
    shape = dy.shape[:-3] + tuple(axis[0] for axis in a[0]) + dy.shape[-1:]
    return adjoint(lambda x: depthwise_conv2d(a, x, filters), shape, dy)


def depthwise_conv2d_filter_gradient(a, x, dy):
    return adjoint(lambda filters: depthwise_conv2d(a, x, filters), tuple(axis[1] for axis in a[0]) + x.shape[-1:], dy)


def dilation_and_positions(a, x, filters):
    w = a[0]
    size = math.prod(x.shape[-3:])
    lead, flat = images(x, 2)
    y = np.full((len(flat),) + outputs_of(w) + x.shape[-1:], -np.inf)
    in_x, in_filters = np.zeros(y.shape, np.int64), np.zeros(y.shape, np.int64)
    for out, cell, at in window_cells(w):
        for image, channel in np.ndindex(len(flat), x.shape[-1]):
            value = flat[(image,) + at + (channel,)] + filters[cell + (channel,)]
            place = (image,) + out + (channel,)
            if value > y[place]:
                y[place] = value
                in_x[place] = image * size + np.ravel_multi_index(at + (channel,), x.shape[-3:])
                in_filters[place] = np.ravel_multi_index(cell + (channel,), filters.shape)
    return [t.reshape(lead + t.shape[1:]) for t in (y, in_x, in_filters)]


def dilation2d(a, x, filters):
    return dilation_and_positions(a, x, filters)[0]


def dilation2d_positions(a, x, filters):
    return dilation_and_positions(a, x, filters)[1:]


def patches(a, x):
    w = a[0]
    lead, x = images(x, len(w))
    y = np.zeros((x.shape[0],) + outputs_of(w) + tuple(axis[1] for axis in w) + x.shape[-1:])
    for out, cell, at in window_cells(w):
        y[(np.s_[:],) + out + cell] = x[(np.s_[:],) + at]
    return y.reshape(lead + outputs_of(w) + (math.prod(y.shape[1 + len(w):]),))


extract_image_patches = extract_volume_patches = patches


def patches_gradient(a, dy):
    w = a[0]
    channels = dy.shape[-1] // int(np.prod([axis[1] for axis in w]))
    shape = dy.shape[:dy.ndim - len(w) - 1] + tuple(axis[0] for axis in w) + (channels,)
    return adjoint(lambda x: patches(a, x), shape, dy)


# Pools: per axis, the extent and the first and last cell of each window.

def pool_windows(axes):
    for out in np.ndindex(*(len(cells) for _, cells in axes)):
        yield out, tuple(np.s_[cells[o][0]:cells[o][1]] for o, (_, cells) in zip(out, axes))


def pooled(f):
    def pool(a, x):
        axes = a[0]
        n = len(axes)
        lead, x = images(x, n)
        y = np.zeros((x.shape[0],) + tuple(len(cells) for _, cells in axes) + x.shape[-1:])
        for out, cells in pool_windows(axes):
            y[(np.s_[:],) + out] = f(x[(np.s_[:],) + cells], axis=tuple(range(1, n + 1)))
        return y.reshape(lead + y.shape[1:])
    return pool


max_pool1d = max_pool2d = max_pool3d = fractional_max_pool = pooled(np.max)
avg_pool1d = avg_pool2d = avg_pool3d = fractional_avg_pool = pooled(np.mean)


def max_pool_with_argmax(a, x):
    axes, through = a
    n, image = len(axes), x.shape[-len(axes) - 1:]
    lead, flat = images(x, n)
    index = np.arange(flat.size).reshape(flat.shape) if through else np.broadcast_to(np.arange(np.prod(image)).reshape(image), flat.shape)
    y = max_pool2d(a, flat)
    position = np.zeros(y.shape, np.int64)
    for out, cells in pool_windows(axes):
        for i, c in np.ndindex(len(flat), image[-1]):
            window = flat[(i,) + cells + (c,)]
            position[(i,) + out + (c,)] = index[(i,) + cells + (c,)].ravel()[window.ravel().argmax()]
    return [y.reshape(lead + y.shape[1:]), position.reshape(lead + y.shape[1:])]


def max_pool_gather(a, v, x):
    position = max_pool_with_argmax([a[0], True], np.broadcast_to(x, v.shape))[1]
    return v.ravel()[position]


def max_pool_scatter(a, dy, x):
    shape = dy.shape[:dy.ndim - len(a[0]) - 1] + x.shape[x.ndim - len(a[0]) - 1:]
    return adjoint(lambda v: max_pool_gather(a, v, x), shape, dy)


def avg_pool_gradient(a, dy):
    axes = a[0]
    shape = dy.shape[:dy.ndim - len(axes) - 1] + tuple(extent for extent, _ in axes) + dy.shape[-1:]
    return adjoint(lambda x: avg_pool2d(a, x), shape, dy)


# Images.

def resample(a, x):
    matrix, axis, inputs = a
    return np.moveaxis(np.moveaxis(x, axis, -1) @ np.array(matrix).reshape(-1, inputs).T, -1, axis)


def resize(a, x):
    return resample(a[1], resample(a[0], x))


resize_nearest = resize_bilinear = resize_bicubic = scale_and_translate = resize


def pixel(image, row, column, outside):
    inside = 0 <= row < image.shape[0] and 0 <= column < image.shape[1]
    return image[row, column] if inside else np.full(image.shape[-1], outside)


def nearest(x):
    """Halves go away from 0."""
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def bilinear(image, row, column, outside):
    top, left = math.floor(row), math.floor(column)
    return np.sum([(1 - abs(row - r)) * (1 - abs(column - c)) * pixel(image, r, c, outside)
                   for r in (top, top + 1) for c in (left, left + 1)], axis=0)


def cropped_at(low, high, extent, n, i):
    if n > 1 and i == n - 1:
        return high * (extent - 1)
    return (low + i * (high - low) / (n - 1) if n > 1 else (low + high) / 2) * (extent - 1)


def crop_and_resize(a, x, boxes, box_indices):
    _, height, width, rows, columns, smooth, outside = a
    lead, channels = x.shape[:-4], x.shape[-1]
    y = np.full(lead + (len(boxes), rows, columns, channels), outside, float)
    for at in np.ndindex(*lead, len(boxes), rows, columns):
        box, i, j = at[-3:]
        row = cropped_at(boxes[box, 0], boxes[box, 2], height, rows, i)
        column = cropped_at(boxes[box, 1], boxes[box, 3], width, columns, j)
        if 0 <= row <= height - 1 and 0 <= column <= width - 1:
            image = x[at[:-3]][box_indices[box]]
            y[at] = bilinear(image, row, column, 0) if smooth else image[nearest(row), nearest(column)]
    return y


def crop_and_resize_adjoint(a, dy, boxes, box_indices):
    shape = dy.shape[:-4] + tuple(a[:3]) + dy.shape[-1:]
    return adjoint(lambda x: crop_and_resize(a[:6] + [0], x, boxes, box_indices), shape, dy)


def projective_transform(a, x, transforms):
    _, height, width, rows, columns, smooth, outside = a
    y = np.full(x.shape[:-3] + (rows, columns, x.shape[-1]), outside, float)
    for at in np.ndindex(*y.shape[:-1]):
        i, j = at[-2:]
        t = transforms if transforms.ndim == 1 else transforms[at[-3]]
        scale = t[6] * j + t[7] * i + 1
        row, column = (t[3] * j + t[4] * i + t[5]) / scale, (t[0] * j + t[1] * i + t[2]) / scale
        image = x[at[:-2]]
        y[at] = bilinear(image, row, column, outside) if smooth else pixel(image, nearest(row), nearest(column), outside)
    return y


def projective_transform_adjoint(a, dy, transforms):
    shape = dy.shape[:-3] + tuple(a[1:3]) + dy.shape[-1:]
    return adjoint(lambda x: projective_transform(a[:6] + [0], x, transforms), shape, dy)


def rgb_to_hsv(a, x):
    return np.array([colorsys.rgb_to_hsv(*p) for p in x.reshape(-1, 3)]).reshape(x.shape)


def rgb_to_hsv_gradient(a, x, dy):
    """By central differences of 40 digits."""
    import mpmath
    step = mpmath.mpf(10) ** -15
    dx = np.zeros(x.shape)
    with mpmath.workdps(50):
        for at in np.ndindex(*x.shape):
            def moved(by):
                color = [mpmath.mpf(v) for v in x[at[:-1]]]
                color[at[-1]] += by
                return colorsys.rgb_to_hsv(*color)
            dx[at] = sum_of((p - m) / (2 * step) * d for p, m, d in zip(moved(step), moved(-step), dy[at[:-1]]))
    return dx


def sum_of(terms):
    total = 0
    for t in terms:
        total += t
    return total


def hsv_to_rgb(a, x):
    return np.array([colorsys.hsv_to_rgb(*p) for p in x.reshape(-1, 3)]).reshape(x.shape)


# Quantization.

def fake_quant(x, bits, narrow, low, high):
    first, last = (1 if narrow else 0), 2 ** bits - 1
    step = (high - low) / (last - first)
    zero = np.clip(np.floor(first - low / step + 0.5), first, last)
    low, high = (first - zero) * step, (last - zero) * step
    return np.floor((np.clip(x, low, high) - low) / step + 0.5) * step + low


def fake_quant_with_min_max_args(a, x):
    return fake_quant(x, *a)


def fake_quant_with_min_max_vars(a, x, min, max):
    return fake_quant(x, a[0], a[1], min, max)


fake_quant_with_min_max_vars_per_channel = fake_quant_with_min_max_vars


def quantize_and_dequantize(a, x, min, max):
    is_signed, bits, narrow, half_up, axis, _ = a
    if axis is not None:
        shape = [1] * x.ndim
        shape[axis] = -1
        min, max = min.reshape(shape), max.reshape(shape)
    most = 2 ** (bits - 1) - 1 if is_signed else 2 ** bits - 1
    least = (-most if narrow else -most - 1) if is_signed else 0
    below = np.where(least * min > 0, min / least if least else 0, 0)
    step = np.maximum(below, np.where(max > 0, max / most, 0))
    clipped = np.clip(x, least * step, most * step)
    parts = clipped / np.where(step > 0, step, 1)
    return np.where(step > 0, (np.floor(parts + 0.5) if half_up else np.round(parts)) * step, 0)


def adjoint(f, shape, dy):
    """The adjoint of a linear f, for arguments of that shape, from its values for unit tensors."""
    dx = np.zeros(shape)
    for at in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[at] = 1
        dx[at] = np.sum(f(unit) * dy)
    return dx
