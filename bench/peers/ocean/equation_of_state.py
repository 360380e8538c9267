"""The equation of state of seawater: the formula of bench/function/equation_of_state.cpp."""
import numpy

NAME = "equation of state"


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
    """A formula as text, built by operators."""

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


def arrays(library, x):
    s, t, p = x
    return [density(s, t, p, library.sqrt(s))]


def loop(compiled):
    names = {"sqrt": numpy.sqrt}
    exec("def run(all_s, all_t, all_p, y):\n  for i in range(y.size):\n    s, t, p = all_s[i], all_t[i], all_p[i]\n"
         f"    root = sqrt(s)\n    y[i] = {FORMULA}\n", names)
    run = compiled(names["run"])

    def call(x):
        y = numpy.empty_like(x[0])
        run(*x, y)
        return [y]
    return call


def text(evaluate):
    formula = FORMULA.replace("root", "sqrt(s)")
    return lambda x: [evaluate(formula, dict(zip("stp", x)))]
