"""Fields of cells, with the layout of bench/function/ocean.h: an axis on which a field does not depend has extent 1, and the
others have a margin of neighbours on both sides."""

Z, X, Y = 0, 1, 2
HERE = (0, 0, 0)


def along(axis, n):
    return tuple(n if a == axis else 0 for a in range(3))


def beside(cell, axis, n):
    return tuple(c + (n if a == axis else 0) for a, c in enumerate(cell))


class Cells:
    """Fields at all cells at once, as arrays."""

    def __init__(self, fields, full, margin):
        """The field number `full` depends on all axes."""
        self.fields, self.margin = list(fields), margin
        self.extents = [n - 2 * margin for n in fields[full].shape]

    def __call__(self, field, cell=HERE):
        """A field at offset `cell` from each cell."""
        array = self.fields[field]
        return array[tuple(slice(None) if array.shape[a] == 1 else slice(self.margin + cell[a], self.margin + cell[a] + self.extents[a])
                           for a in range(3))]
