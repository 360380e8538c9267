#!/usr/bin/env bash
# Assigns every file of lib/ and include/ to a layer, and fails if a file includes one of a higher layer. The order of the
# layers is defined here only; docs/inside/design.md explains them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find lib include -path lib/pch -prune -o \( -name '*.h' -o -name '*.cpp' \) -print | LC_ALL=C sort | xargs awk '
  # A file of lib/ is in the layer of its folder, a public header in the layer named here.
  function headers(layer, list,   n, names, i) {
    n = split(list, names)
    for (i = 1; i <= n; i++) layer_of_header[names[i]] = layer
  }
  BEGIN {
    # Bottom up.
    split("core kernels op tape ops transforms debug optim minimize compile io nn distribute", layers)
    for (i in layers) rank[layers[i]] = i + 0

    headers("core", "error half dtype shape creation owned tensor memory named_tensors refs axes ints random_key threads build_info")
    headers("kernels", "scalars simd/adjoint simd/calls simd/choices simd/dual simd/elementary simd/functions simd/lane_trace simd/numbers simd/partials simd/pass simd/scalar simd/scan_pass simd/slopes")
    headers("op", "operand indexed_slices gradient op")
    headers("tape", "variable named_variable gradient_tape forward_accumulator record_operation")
    headers("ops", "ops operators map xtensor")   # and all of ops/
    headers("transforms", "function gradients grad control custom_gradient map_scan")
    headers("debug", "debug gradcheck")
    headers("optim", "saved_state optimizer schedule update_rule keras training gradient_transform moving_average")
    headers("minimize", "minimize")
    headers("compile", "compile")
    headers("io", "npy safetensors checkpoint csv dataset training_log")
    headers("nn", "nn")   # and all of nn/
    headers("distribute", "distribute tapedeck")   # tapedeck.h includes all others

    # "file include": the reason for an exception.
    # The interface that optimizers call uses LossReduction of the public header.
    allowed["lib/optim/communicator.h tapedeck/distribute.h"]
    # The ops that the engine calls are declared where users find them.
    split("array complex join math reduce", called)
    for (i in called) allowed["lib/op/primitives.h tapedeck/ops/" called[i] ".h"]
  }
  function complain(why) { printf "layers: %s:%d: %s: %s\n", FILENAME, FNR, why, $0; bad = 1 }
  # The layer of a path below lib/ or include/, or "".
  function layer_of(path,   part, name) {
    split(path, part, "/")
    if (part[1] != "tapedeck") return part[1] in rank ? part[1] : ""
    if (part[2] == "ops" || part[2] == "nn") return part[2]
    name = path
    sub(/^tapedeck\//, "", name)
    sub(/\.h$/, "", name)
    return name in layer_of_header ? layer_of_header[name] : ""
  }

  FNR == 1 {
    path = FILENAME
    sub(/^(lib|include)\//, "", path)
    layer = layer_of(path)
    if (layer == "") complain("this file has no layer; test/layers.sh lists them")
  }
  /^#include [<"]xtensor/ && FILENAME !~ /^lib\/(kernels|ops)\/.*\.cpp$/ && FILENAME != "include/tapedeck/xtensor.h" {
    complain("xtensor belongs into .cpp files of lib/kernels and lib/ops, and into the public xtensor.h")
  }
  /^#include (<fmt|"core\/format\.h")/ && FILENAME !~ /\.cpp$/ && FILENAME !~ /^lib\/(core\/format|compile\/ir\/broken_rule)\.h$/ {
    complain("fmt belongs into .cpp files")
  }
  FILENAME ~ /^include/ && (/^#include "/ && !/^#include "tapedeck\// ||
      /^#include <[^>]*[.\/]/ && FILENAME != "include/tapedeck/xtensor.h" && FILENAME !~ /^include\/tapedeck\/simd\/(elementary|lane_trace)\.h$/) {
    complain("a public header includes only the standard library and other public headers")
    next
  }
  /^#include "/ && layer != "" {
    split($0, quoted, "\"")
    used = layer_of(quoted[2])
    if (used == "") {
      complain("include files as \"layer/file.h\" or \"tapedeck/header.h\", of a layer that test/layers.sh lists")
      next
    }
    exception = FILENAME " " quoted[2]
    if (exception in allowed) { seen[exception]; next }
    if (rank[used] > rank[layer] && used == "ops" && layer ~ /^(op|tape)$/)
      complain(layer " calls ops through op/primitives.h alone")
    else if (rank[used] > rank[layer])
      complain(layer " may not include " used ", which lies above it")
    else if (quoted[2] ~ /^ops/ && layer != "ops")
      complain("files of lib/ops are for ops; include its public headers")
    else if (used == "kernels" && quoted[2] ~ /^kernels/ && layer !~ /^(kernels|ops|optim|compile)$/ && FILENAME !~ /^lib\/op\/(elementwise|rules)\./)
      complain("kernels are for ops, optim, compile, op/elementwise and op/rules")
  }
  END {
    for (e in allowed) if (!(e in seen)) { print "layers: this exception is not needed any more: " e; bad = 1 }
    exit bad
  }'
