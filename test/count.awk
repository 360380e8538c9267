# Reads meson's test log. Prints how many passed and failed: for a Catch2 program its test cases, for any other test itself.
# Status 77 means skipped, which counts as neither.
/^result: / { if (seen) count(); seen = $0 !~ /exit status 77/; ok = $0 ~ /exit status 0/; p = f = 0 }
/^All tests passed \(.* test cases?\)/ { p = $(NF - 2) }
/^test cases: / {
  for (i = 1; i < NF; ++i) {
    if ($(i + 1) == "passed") p = $i
    if ($(i + 1) == "failed") f = $i
  }
}
/^Summary of Failures/ { exit }
END { if (seen) count(); print passed + 0, failed + 0 }

# A program that ended badly without a failed case has crashed.
function count() {
  if (ok && p + f == 0) p = 1
  if (!ok && f == 0) f = 1
  passed += p
  failed += f
}
