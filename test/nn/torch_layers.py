#!/usr/bin/python3
"""Computes layers and their gradients with torch, and writes them to test/data/layers.safetensors.

usage: test/nn/torch_layers.py [--check]
  --check  compare with the file instead of writing it
Each case has its input "x", "y", a cotangent "dy", the gradient "dx", and of each variable NAME "var/NAME" and "grad/NAME", all in
the layout of tapedeck. Numbers are f64 from a fixed seed.
"""
import json
import os
import pathlib
import struct
import sys

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"torch_layers: {error}", file=sys.stderr)
    sys.exit(1 if os.environ.get("CI") == "true" else 77)   # 77: skipped

FILE = pathlib.Path(__file__).resolve().parent.parent / "data/layers.safetensors"
rng = np.random.default_rng(20)
cases = {}


def random(*shape, scale=1.0):
    return torch.tensor(rng.normal(size=shape) * scale, requires_grad=True)


def case(name, x, variables, function, extra=None):
    """function(x, variables) is run as it is: the variables are in tapedeck's layout."""
    y = function(x, variables)
    dy = torch.tensor(rng.normal(size=y.shape))
    y.backward(dy)
    put = lambda what, tensor: cases.__setitem__(f"{name}:{what}", tensor.detach().numpy())
    put("x", x), put("y", y), put("dy", dy)
    if x.grad is not None:
        put("dx", x.grad)
    for key, v in variables.items():
        put("var/" + key, v)
        if v.grad is not None:
            put("grad/" + key, v.grad)
    for key, v in (extra or {}).items():
        put(key, v)


def first(x, n):   # channels from the end to the front of the last n axes
    return x.movedim(-1, -1 - n)


def last(y, n):
    return y.movedim(-1 - n, -1)


case("dense", random(2, 3, 4), {"kernel": random(4, 5), "bias": random(5)}, lambda x, v: F.linear(x, v["kernel"].T, v["bias"]))

ids = torch.tensor([[1, 0, 3], [3, 3, 5]])
case("embedding", ids, {"table": random(6, 4)}, lambda x, v: F.embedding(x, v["table"]))

for d, conv, transposed in ((1, F.conv1d, F.conv_transpose1d), (2, F.conv2d, F.conv_transpose2d), (3, F.conv3d, F.conv_transpose3d)):
    extents, window = (9, 8, 7)[:d], (3, 2, 3)[:d]
    kernel = lambda v, d=d: v["kernel"].permute(d + 1, d, *range(d))   # [window, in, out] as [out, in, window]
    case(f"conv{d}d", random(2, *extents, 4), {"kernel": random(*window, 2, 6), "bias": random(6)},
         lambda x, v: last(conv(first(x, d), kernel(v), v["bias"], stride=2, padding=1, dilation=2, groups=2), d))
    # tapedeck's [window, out / groups, in] is torch's [in, out / groups, window]
    case(f"conv{d}d_transpose", random(2, *(4, 3, 2)[:d], 4), {"kernel": random(*window, 3, 4), "bias": random(6)},
         lambda x, v: last(transposed(first(x, d), kernel(v), v["bias"], stride=2, padding=1, groups=2), d))

case("layer_norm", random(3, 5, 6), {"scale": random(6), "offset": random(6)}, lambda x, v: F.layer_norm(x, (6,), v["scale"], v["offset"], 1e-5))
case("rms_norm", random(3, 5, 6), {"scale": random(6)}, lambda x, v: x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * v["scale"])
case("group_norm", random(2, 3, 4, 6), {"scale": random(6), "offset": random(6)},
     lambda x, v: last(F.group_norm(first(x, 2), 3, v["scale"], v["offset"], 1e-5), 2))

running = {"mean": torch.tensor(rng.normal(size=3)), "variance": torch.tensor(rng.uniform(1, 2, size=3))}
after = {"mean": running["mean"].clone(), "variance": running["variance"].clone()}
trainable = {"scale": random(3), "offset": random(3)}
case("batch_norm", random(4, 5, 3), {**trainable, **running},
     lambda x, v: last(F.batch_norm(first(x, 1), after["mean"], after["variance"], v["scale"], v["offset"], True, 0.1, 1e-5), 1),
     {"mean": after["mean"], "variance": after["variance"]})
case("batch_norm_inference", random(4, 5, 3), {"scale": random(3), "offset": random(3), **running},
     lambda x, v: last(F.batch_norm(first(x, 1), v["mean"], v["variance"], v["scale"], v["offset"], False, 0.1, 1e-5), 1))

lengths = torch.tensor([4, 1, 3])


def packed_run(x, function, states, weights):
    """Runs a function of torch over sequences of these lengths. Its outputs beyond them are zero."""
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y, *last_states = function(packed.data, packed.batch_sizes, states, weights, True, 1, 0.0, False, False)
    outputs = torch.nn.utils.rnn.PackedSequence(y, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
    y, _ = torch.nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
    return torch.cat([y.reshape(-1)] + [h[0][packed.unsorted_indices].reshape(-1) for h in last_states])


def zeros():
    return torch.zeros(1, 3, 5, dtype=torch.float64)


def lstm(x, v):
    """torch's gates are i f g o, tapedeck's i g f o; its kernels are transposed, of inputs and state apart."""
    u, n = 5, x.shape[2]
    order = torch.tensor([g * u + k for g in (0, 2, 1, 3) for k in range(u)])
    own = [v["kernel"][:n].T[order], v["kernel"][n:].T[order], v["bias"][order], torch.zeros(4 * u, dtype=torch.float64)]
    return packed_run(x, torch._VF.lstm, (zeros(), zeros()), own)


def gru(x, v):
    return packed_run(x, torch._VF.gru, zeros(), [v["kernel"].T, v["recurrent"].T, v["bias"], v["recurrent_bias"]])


case("lstm", random(3, 4, 2), {"kernel": random(7, 20), "bias": random(20)}, lstm, {"lengths": lengths})
case("gru", random(3, 4, 2), {"kernel": random(2, 15), "recurrent": random(5, 15), "bias": random(15), "recurrent_bias": random(15)}, gru,
     {"lengths": lengths})


def projections(memory):
    return {f"{p}/{k}": random(*((memory if p in ("key", "value") else 8, 8) if k == "kernel" else (8,)))
            for p in ("query", "key", "value", "output") for k in ("kernel", "bias")}


def multi_head(x, v, memory=None, mask=None):
    memory = x if memory is None else memory
    bias = torch.cat([v[p + "/bias"] for p in ("query", "key", "value")])
    t = lambda a: a.transpose(0, 1)
    y, _ = F.multi_head_attention_forward(
        t(x), t(memory), t(memory), 8, 2, None, bias, None, None, False, 0.0, v["output/kernel"].T, v["output/bias"], attn_mask=mask,
        use_separate_proj_weight=True, q_proj_weight=v["query/kernel"].T, k_proj_weight=v["key/kernel"].T, v_proj_weight=v["value/kernel"].T)
    return t(y)


causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
case("attention", random(2, 5, 8), projections(8), lambda x, v: multi_head(x, v, mask=causal))
memory = torch.tensor(rng.normal(size=(2, 4, 6)))
allowed = torch.tensor(rng.uniform(size=(5, 4)) < 0.7)
allowed[:, 0] = True
case("attention_to_memory", random(2, 5, 8), projections(6), lambda x, v: multi_head(x, v, memory, ~allowed), {"memory": memory, "mask": allowed})


def write(path):
    header, data = {}, b""
    for name, a in cases.items():
        a = np.ascontiguousarray(a)
        raw = a.tobytes()
        kind = {"float64": "F64", "int64": "I64", "bool": "BOOL"}[str(a.dtype)]
        header[name] = {"dtype": kind, "shape": list(a.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path):
    raw = path.read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    kinds = {"F64": np.float64, "I64": np.int64, "BOOL": np.bool_}
    return {name: np.frombuffer(raw[8 + n + e["data_offsets"][0]:8 + n + e["data_offsets"][1]], kinds[e["dtype"]]).reshape(e["shape"])
            for name, e in json.loads(raw[8:8 + n]).items()}


if "--check" in sys.argv:
    there = read(FILE)
    if there.keys() != cases.keys():
        sys.exit("torch_layers: the file has other cases; write it again")
    for name, a in cases.items():
        if not np.allclose(a.astype(float), there[name].astype(float), rtol=1e-9, atol=1e-11):
            sys.exit(f"torch_layers: {name} differs")
    print(f"torch_layers: {len(cases)} tensors are as in the file")
else:
    write(FILE)
