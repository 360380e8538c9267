#!/usr/bin/env bash
# The digits program as its user runs it: wrong options, damaged data, and the same output with any number of threads.
#   digits_test.sh PROGRAM
source "$(dirname "${BASH_SOURCE[0]}")/../expect.sh"
data=$(dirname "${BASH_SOURCE[0]}")/../../examples/data/digits.csv.gz

# digits STATUS TEXT ARGUMENT…: checks the program's exit status, and that its output contains TEXT.
digits() { expect "$1" "$2" "$program" --plot "$folder/loss.svg" --tape "$folder/tape.dot" "${@:3}"; }

digits 0 "--epochs" --help
digits 2 "there is no option --epoch; see --help" --epoch 3
digits 2 "there is no option 3; see --help" 3
digits 2 '--epochs takes a whole number from 1 to 100000: "0"' --epochs 0
digits 2 '--batch takes a whole number from 1 to 100000: "ten"' --batch ten
digits 2 '--seed takes a whole number from 0 to 18446744073709551615: "-1"' --seed=-1
digits 2 "--threads needs a value" --threads
digits 2 '--replicas takes a whole number from 1 to 1024: "0"' --replicas 0
digits 2 '--model takes mlp, cnn or both: "rnn"' --model rnn

# damaged TEXT: the program must print TEXT for the file on standard input. The input is not piped, so that the function runs in
# this shell and sets its `failed`.
damaged() {
  cat > "$folder/digits.csv"
  digits 1 "$1" --data "$folder/digits.csv"
}
damaged "digits.csv has 0 digits, not 1797" < /dev/null
damaged "digits.csv is damaged" < <(head -c 20000 "$data")
damaged "digits.csv is damaged" < <({ head -c 20000 "$data"; head -c 100 /dev/zero; tail -c +20101 "$data"; })
damaged "digits.csv has 100 digits, not 1797" < <(zcat "$data" | head -n 100)
damaged "digits.csv, line 7: pixel 0 is not a number from 0 to 16" < <(zcat "$data" | sed '7s/^0/17/')
damaged "digits.csv, line 8: pixel 0 is not a number from 0 to 16" < <(zcat "$data" | sed '8s/^0/-1/')
damaged "digits.csv, line 9: the label is not a number from 0 to 9" < <(zcat "$data" | sed '9s/.$/x/')
damaged "digits.csv, line 9: the label is not a number from 0 to 9" < <(zcat "$data" | sed '9s/.$/12/')
damaged "digits.csv, line 10: there is more than 64 pixels and a label" < <(zcat "$data" | sed '10s/$/,5/')
damaged "digits.csv, line 11: a comma is missing" < <(zcat "$data" | sed '11s/,/;/')
damaged "digits.csv has 1796 digits, not 1797" < <(zcat "$data" | sed '12d')
digits 1 "cannot open $folder/none.csv" --data "$folder/none.csv"
digits 1 "cannot write $folder/none/loss.svg" --plot "$folder/none/loss.svg"
digits 1 "cannot write $folder/none/tape.dot" --tape "$folder/none/tape.dot"

# The output for a seed does not depend on the number of threads, and its last line is the accuracy.
run() { "$program" --epochs 2 --plot "$folder/loss.svg" --tape "$folder/tape.dot" "$@"; }
last_line() { tail -n 1 "$1" | grep -qE "^test accuracy:$2\$" || { echo "the last line is not the accuracy: $(tail -n 1 "$1")"; failed=1; }; }
run --seed 2 --threads 1 > "$folder/one" && run --seed 2 --threads 2 --log "$folder/logs" > "$folder/two" && run --seed 3 > "$folder/other" || failed=1
cmp "$folder/one" "$folder/two" || failed=1
if cmp -s "$folder/one" "$folder/other"; then echo "another seed gives the same digits"; failed=1; fi
last_line "$folder/one" ' mlp 0\.[0-9]{3} cnn 0\.[0-9]{3}'
[ "$(grep -c '<polyline' "$folder/loss.svg")" = 4 ] && tail -n 1 "$folder/loss.svg" | grep -q '^</svg>$' || { echo "loss.svg is not whole"; failed=1; }
grep -q 'label="conv2d' "$folder/tape.dot" && tail -n 1 "$folder/tape.dot" | grep -q '^}$' || { echo "tape.dot is not whole"; failed=1; }
if command -v dot >/dev/null; then
  grep -q '</svg>' "$folder/tape.svg" || { echo "tape.svg is not whole"; failed=1; }
else
  echo "skipped: digits, the picture of the tape: there is no Graphviz"
fi

# The same bits where the step is recorded.
run --seed 2 --weights "$folder/eager.safetensors" > "$folder/one" && run --seed 2 --recorded --weights "$folder/recorded.safetensors" > "$folder/recorded" || failed=1
cmp "$folder/one" "$folder/recorded" && cmp "$folder/eager.safetensors" "$folder/recorded.safetensors" || failed=1
digits 2 "there is no option --recorded=1; see --help" --recorded=1

# 45 batches and one test in each of two epochs, after the settings; the log changes nothing else.
for network in mlp cnn; do
  counts=$(awk '/"model":/ {m++} /"kind":"train"/ {a++} /"kind":"test"/ {b++} END {print m, a, b, NR}' "$folder/logs/$network.jsonl")
  [ "$counts" = "1 90 2 93" ] || { echo "$network.jsonl has other lines: $counts"; failed=1; }
done

# Replicas that get no examples of a batch.
digits 0 "3 replicas, with the same bits in all weights" --replicas 3 --batch 2 --epochs 1 --recorded

# A network gives the same results alone as together with the other one; without Graphviz only the picture is missing.
rm -f "$folder/tape.svg"
run --seed 2 --model cnn > "$folder/cnn" && PATH=$folder run --seed 2 --model mlp > "$folder/mlp" || failed=1
grep -q "^tape of a step: $folder/tape.dot$" "$folder/mlp" || { echo "the picture of the tape is there without Graphviz"; failed=1; }
last_line "$folder/cnn" ' cnn 0\.[0-9]{3}'
last_line "$folder/mlp" ' mlp 0\.[0-9]{3}'
diff <(grep "^cnn epoch" "$folder/one") <(grep "^cnn epoch" "$folder/cnn") && diff <(grep "^mlp epoch" "$folder/one") <(grep "^mlp epoch" "$folder/mlp") || failed=1
exit $failed
