#!/usr/bin/env python3
"""driver_test.py DRIVER: feeds the driver of GradBench's evals a transcript, and compares its replies with closed forms."""
import json
import math
import subprocess
import sys

runs = {"min_runs": 2, "min_seconds": 0}


def ht_input(theta, us, correspondences, points):
    identity = [[float(i == j) for j in range(4)] for i in range(4)]
    return {"theta": theta, "us": us, "data": {"correspondences": correspondences, "points": points, "model": {
        "bone_count": 1, "bone_names": ["wrist"], "parents": [-1], "base_relatives": [identity], "inverse_base_absolutes": [identity],
        "base_positions": [[1, 0, 0, 1], [0, 2, 0, 1], [0, 0, 3, 1]], "weights": [[1], [1], [1]], "triangles": [[0, 1, 2]],
        "is_mirrored": False}}}


# One observation: a quarter turn about z takes (1, 2, 4) to (-2, 1, 4), which projects to (-1/2, 1/4).
ba = {"n": 2, "m": 3, "p": 40, "cam": [0, 0, math.pi / 2, 0, 0, 0, 2, 1, 2, 0, 0], "x": [1, 2, 4], "w": 0.5, "feat": [0.5, 2]}
# d(u, v)/d(point) after the turn; d/d(rotation) about z turns (u, v) by a right angle.
ba_rows = {"camera": {2: (-0.25, -0.5), 3: (0, -0.25), 4: (0.25, 0), 6: (-0.25, 0.125), 7: (0.5, 0), 8: (0, 0.5)},
           "point": {0: (0, 0.25), 1: (-0.25, 0)}, "weight": (-0.5, 0.5)}

q, apart = 0.1, 0.3
sigma = math.exp(2 * q)
gmm = {"d": 1, "k": 1, "n": 1, "m": 0, "gamma": 1.0, "alpha": [0.7], "mu": [[0.2]], "q": [[q]], "l": [[]], "x": [[0.2 + apart]]}
gmm_value = -0.5 * math.log(2 * math.pi) + q - 0.5 * sigma * apart ** 2 - math.log(2) - 0.5 * sigma


def lstm_loss(main, extra):
    """One layer, one bit, two characters of which the second is 1."""
    sigmoid = lambda x: 1 / (1 + math.exp(-x))
    w, b = main
    h, c, x = 0.3, 0.4, extra[0]
    c = c * sigmoid(x * w[0] + b[0]) + sigmoid(h * w[1] + b[1]) * math.tanh(h * w[3] + b[3])
    y = sigmoid(x * w[2] + b[2]) * math.tanh(c) * extra[1] + extra[2]
    return math.log(2 + math.exp(y)) - y


lstm_main, lstm_extra = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]], [0.9, 0.8, 0.7]
lstm = {"main_params": lstm_main, "extra_params": [[x] for x in lstm_extra], "state": [[0.3], [0.4]], "sequence": [[1], [1]]}


def lstm_slope(i):
    def at(by):
        all = lstm_main[0] + lstm_main[1] + lstm_extra
        all[i] += by
        return lstm_loss([all[:4], all[4:8]], all[8:])
    return (at(1e-5) - at(-1e-5)) / 2e-5


def ba_check(output):
    rows, cols, vals = output["rows"], output["cols"], output["vals"]
    expected = []
    for row in range(2):
        expected += [ba_rows["camera"].get(i, (0, 0))[row] if i not in (0, 1, 5, 9, 10) else None for i in range(11)]
        expected += [ba_rows["point"].get(0)[row], ba_rows["point"].get(1)[row], None, ba_rows["weight"][row]]
    close([v for v, e in zip(vals, expected) if e is not None], [e for e in expected if e is not None], 1e-12)
    assert vals[30] == -1 and len(vals) == 31
    assert rows == [15 * i for i in range(30)] + [31 * 40]
    assert cols == 2 * ([*range(11)] + [22, 23, 24, 31]) + [22 + 9 + 39]


def ht_check(output):
    # The hand turned by a quarter about z: (1, 0, 0), (0, 2, 0), (0, 0, 3) go to (0, 1, 0), (-2, 0, 0), (0, 0, 3), then by (1, 1, 1).
    # Of each row, by u, v: the third corner minus the others; by the rotation's z, in column 4: minus the point turned by a right angle.
    corners = [(0, 1, 0), (-2, 0, 0), (0, 0, 3)]
    point = [0.5 * a + 0.25 * b + 0.25 * c for a, b, c in zip(*corners)]
    for i, row in enumerate(output):
        assert len(row) == 28
        close(row[:2], [corners[2][i] - corners[0][i], corners[2][i] - corners[1][i]], 1e-12)
        close([row[4]], [[point[1], -point[0], 0][i]], 1e-12)
        close(row[5:8], [-(i == j) for j in range(3)], 1e-12)
        close(row[8:], [0] * 20, 1e-12)


def close(a, b, tolerance):
    if isinstance(b, dict):
        assert a.keys() == b.keys(), (a, b)
        for key in b:
            close(a[key], b[key], tolerance)
    elif isinstance(b, list):
        assert len(a) == len(b), (a, b)
        for x, y in zip(a, b):
            close(x, y, tolerance)
    else:
        assert abs(a - b) <= tolerance * max(1, abs(b)), (a, b)


# module, function, input, and the output: a value, or a function that checks it.
evaluations = [
    ("hello", "square", 3.0, 9), ("hello", "double", 3.0, 6),
    ("lse", "primal", {"x": [1, 1]}, 1 + math.log(2)), ("lse", "gradient", {"x": [1, 1]}, [0.5, 0.5]),
    ("llsq", "primal", {"x": [0.5], "n": 3}, 1.375), ("llsq", "gradient", {"x": [0.5], "n": 3}, [1.5]),
    ("det", "primal", {"A": [1, 2, 3, 4], "ell": 2}, -2), ("det", "gradient", {"A": [1, 2, 3, 4], "ell": 2}, [4, -3, -2, 1]),
    ("ode", "primal", {"x": [3, 5], "s": 4}, [6, 30]), ("ode", "gradient", {"x": [3, 5], "s": 4}, [10, 6]),
    ("kmeans", "cost", {"points": [[0], [2], [10]], "centroids": [[0.5], [9]]}, 3.5),
    ("kmeans", "dir", {"points": [[0], [2], [10]], "centroids": [[0.5], [9]]}, [[-0.5], [-1]]),
    ("gmm", "objective", gmm, gmm_value),
    ("gmm", "jacobian", gmm, {"alpha": [0], "mu": [[sigma * apart]], "q": [[1 - sigma * apart ** 2 - sigma]], "l": [[]]}),
    ("lstm", "objective", lstm, lstm_loss(lstm_main, lstm_extra)),
    ("lstm", "jacobian", lstm, lambda output: close(output, [lstm_slope(i) for i in range(11)], 1e-8)),
    ("ba", "objective", ba, {"reproj_error": {"elements": [-0.25, 0.25], "repeated": 40}, "w_err": {"element": 0.75, "repeated": 40}}),
    ("ba", "jacobian", ba, ba_check),
    ("ht", "objective", ht_input([0, 0, math.pi / 2, 1, 1, 1] + [0] * 20, [[0.5, 0.25]], [0], [[0, 0, 0]]), [-0.5, -1.5, -1.75]),
    ("ht", "jacobian", ht_input([0, 0, math.pi / 2, 1, 1, 1] + [0] * 20, [[0.5, 0.25]], [0], [[0, 0, 0]]), ht_check),
    ("saddle", "fr", {"start": [1.0, 1.0]}, [8.246324826140356e-06] * 4),   # as GradBench's eval expects it
    ("particle", "rf", {"w": 0.0}, 0.2071918746486116),
]
refused = [
    ("poetry", "square", 1.0, "there is no module poetry"), ("hello", "cube", 1.0, "hello has no function cube"),
    ("det", "primal", {"A": [1, 2], "ell": 2}, "A has ell * ell numbers"), ("lse", "primal", {"y": []}, "'x' not found"),
]


def main():
    modules = sorted({e[0] for e in evaluations})
    messages = [{"id": 0, "kind": "start", "eval": "all"}]
    messages += [{"id": 1 + i, "kind": "define", "module": m} for i, m in enumerate(modules)]
    first = len(messages)
    for module, function, value, _ in evaluations + refused:
        value = value | runs if isinstance(value, dict) else value
        messages.append({"id": len(messages), "kind": "evaluate", "module": module, "function": function, "input": value})
    messages.append({"id": len(messages), "kind": "analysis", "of": first, "valid": True})
    for form in ["expert", "natural"]:
        text = "".join(json.dumps(m) + "\n" for m in messages)
        done = subprocess.run([sys.argv[1], form], input=text, capture_output=True, text=True, check=True)
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        assert [r["id"] for r in replies] == [m["id"] for m in messages]
        assert replies[0]["tool"] == "tapedeck" and all(r["success"] for r in replies[1:first])
        assert replies[-1] == {"id": len(messages) - 1}
        for reply, (module, function, value, expected) in zip(replies[first:], evaluations):
            where = f"{form} {module} {function}: {reply}"
            assert reply["success"], where
            names = [t["name"] for t in reply["timings"]]
            assert names == ["prepare"] + ["evaluate"] * (2 if isinstance(value, dict) else 1), where
            assert all(t["nanoseconds"] > 0 for t in reply["timings"]), where
            try:
                expected(reply["output"]) if callable(expected) else close(reply["output"], expected, 1e-12)
            except AssertionError as e:
                raise AssertionError(where) from e
        for reply, (*_, error) in zip(replies[first + len(evaluations):], refused):
            assert not reply["success"] and error in reply["error"], reply


main()
