#!/usr/bin/python3
"""Times the training steps of the examples with layers, and of the same networks in PyTorch.

usage: scripts/bench examples [name...]     all of them by default
       bench/peers/examples.py --step NAME  the median of PyTorch's seconds, as the example's --time prints its own

Both use one thread, f32 and the same sizes, and measure processor time. They run alternately; the figures are medians of three rounds.
"""
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROUNDS, WARM_UP, STEPS = 3, 5, 21
BUILD = pathlib.Path(__file__).resolve().parents[2] / "build/examples"
# The settings that make PyTorch fastest, as in bench/compare.cpp.
ALLOCATOR = "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"
BLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    torch = None


def bits(logits, rows):
    return F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()) / math.log(2)


def text_step(network, learning_rate):
    """A step on windows of a text of 94 different characters, with clipped gradients."""
    text = torch.randint(94, (136000,))
    adam = torch.optim.Adam(network.parameters(), lr=learning_rate)

    def step():
        begins = torch.randint(len(text) - 65, (16, 1))
        rows = text[begins + torch.arange(65)]
        adam.zero_grad()
        loss = bits(network(rows[:, :-1]), rows)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1)
        adam.step()
        loss.item()
    return step


def loss_step(network, learning_rate, loss):
    adam = torch.optim.Adam(network.parameters(), lr=learning_rate)

    def step():
        adam.zero_grad()
        value = loss()
        value.backward()
        adam.step()
        value.item()
    return step


def layers(*sizes):
    found = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        found += [nn.Linear(inputs, outputs), nn.Tanh()]
    return nn.Sequential(*found[:-1])


def char_transformer():
    width, heads, length = 64, 4, 64

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

        def forward(self, x):
            n = x.shape[0]
            q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(width // heads) + self.mask, -1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(n, length, width))
            return x + self.down(torch.relu(self.up(self.norm2(x))))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.places = nn.Embedding(94, width), nn.Embedding(length, width)
            self.blocks, self.norm, self.head = nn.Sequential(Block(), Block()), nn.LayerNorm(width), nn.Linear(width, 94)

        def forward(self, ids):
            return self.head(self.norm(self.blocks(self.table(ids) + self.places.weight)))
    return text_step(Transformer(), 4e-3)


def char_lstm():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.lstm, self.head = nn.Embedding(94, 32), nn.LSTM(32, 192, batch_first=True), nn.Linear(192, 94)

        def forward(self, ids):
            return self.head(self.lstm(self.table(ids))[0])
    return text_step(Network(), 8e-3)


def vae():
    encoder, decoder = layers(64, 128, 4), layers(2, 128, 128, 64)
    pixels = torch.rand(64, 64)

    def loss():
        mean, log_variance = encoder(pixels).chunk(2, -1)
        point = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        reconstruction = F.binary_cross_entropy_with_logits(decoder(point), pixels, reduction="none").sum(-1).mean()
        return reconstruction + (0.5 * (mean ** 2 + log_variance.exp() - 1 - log_variance)).sum(-1).mean()
    return loss_step(nn.ModuleList([encoder, decoder]), 2e-3, loss)


def pinn():
    network = layers(2, 24, 24, 24, 1)

    def grad(y, x):
        return torch.autograd.grad(y.sum(), x, create_graph=True)

    def loss():
        x, t = (torch.rand(512, 1) * 2 - 1).requires_grad_(), torch.rand(512, 1).requires_grad_()
        u = t * (1 - x ** 2) * network(torch.cat([x, t], 1)) - torch.sin(math.pi * x)
        u_x, u_t = grad(u, (x, t))
        u_xx, = grad(u_x, x)
        return ((u_t + u * u_x - 0.02 * u_xx) ** 2).mean()
    return loss_step(network, 8e-3, loss)


def neural_ode():
    f, h = layers(2, 32, 32, 2), 0.1
    seen = torch.randn(24, 60, 2)

    def loss():
        first = torch.randint(24, (64, 1)) * 60 + torch.randint(50, (64, 1))
        window = seen.view(-1, 2)[first + torch.arange(11)]
        y, states = window[:, 0], []
        for _ in range(10):
            k1 = f(y)
            k2 = f(y + h / 2 * k1)
            k3 = f(y + h / 2 * k2)
            k4 = f(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            states.append(y)
        return F.mse_loss(torch.stack(states, 1), window[:, 1:])
    return loss_step(f, 0.01, loss)


EXAMPLES = {f.__name__: f for f in (char_transformer, char_lstm, vae, pinn, neural_ode)}


def print_step(name):
    torch.set_num_threads(1)
    step = EXAMPLES[name]()
    for _ in range(WARM_UP):
        step()
    seconds = []
    for _ in range(STEPS):
        begin = time.process_time()
        step()
        seconds.append(time.process_time() - begin)
    print(f"seconds of a step: {statistics.median(seconds):.6g}")


def seconds_of(command, environment):
    done = subprocess.run(command, env=environment, check=True, text=True, stdout=subprocess.PIPE)
    return float(done.stdout.rpartition("seconds of a step: ")[2])


def compare(names):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    plain = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", TAPEDECK_THREADS="1")
    tuned = dict(plain)
    if pathlib.Path(ALLOCATOR).exists() and pathlib.Path(BLAS).exists():
        tuned |= {"ATEN_CPU_CAPABILITY": "avx512", "LD_PRELOAD": ALLOCATOR, "LD_LIBRARY_PATH": BLAS}
    elif torch:
        print("bench: libtcmalloc-minimal4 and libopenblas0-openmp are not installed, so PyTorch is not tuned", file=sys.stderr)
    if not torch:
        print("skipped: the examples beside PyTorch: there is no python3-torch", file=sys.stderr)
    print(f"{'training step':<18} {'tapedeck':>12} {'PyTorch':>12} {'times':>7}")
    for name in names:
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(seconds_of([BUILD / name / name, "--time"], plain))
            if torch:
                theirs.append(seconds_of([sys.executable, __file__, "--step", name], tuned))
        own = statistics.median(ours)
        beside = f"{1e3 * statistics.median(theirs):>9.3f} ms {statistics.median(theirs) / own:>6.2f}" if torch else f"{'-':>12} {'-':>6}"
        print(f"{name:<18} {1e3 * own:>9.3f} ms {beside}", flush=True)


def main():
    words = sys.argv[1:]
    if words[:1] == ["--step"] and torch and words[1:] and words[1] in EXAMPLES:
        print_step(words[1])
    elif set(words) <= set(EXAMPLES):
        compare(words or EXAMPLES)
    else:
        sys.exit(f"{__doc__}examples: {' '.join(EXAMPLES)}")


if __name__ == "__main__":
    main()
