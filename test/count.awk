# Reads meson's test log. Prints how many tests passed, failed and were skipped. A Catch2 program counts with each of its test
# cases, any other test as one. A test that exits with status 77 is skipped; one that prints a line "skipped: what: why" has
# skipped a part of its checks. These lines are repeated on standard error.
/^test:         / { end(); name = $0; sub(/^test: *(.* \/ )?/, "", name); seen = 1; p = f = s = 0; ok = 0; status = "" }
/^result:       / { status = $0; ok = /exit status 0$/ }
/^All tests passed \(.* test cases?\)/ { p = $(NF - 2) }
/^test cases: / {
  for (i = 1; i < NF; ++i) {
    if ($(i + 1) == "passed") p = $i
    if ($(i + 1) == "failed") f = $i
  }
}
/^No tests ran/ { f = 1 }
/^skipped: / { ++s; print >"/dev/stderr" }
/^Summary of Failures/ { exit }
END { end(); print passed + 0, failed + 0, skipped + 0 }

function end() {
  if (!seen) return
  seen = 0
  if (status ~ /exit status 77/) {
    if (!s) { s = 1; print "skipped: " name ": it does not say why" >"/dev/stderr" }
  } else {
    if (!ok && !f) f = 1   # a program that ends badly without a failed case has crashed
    if (ok && !p && !f) p = 1
  }
  passed += p
  failed += f
  skipped += s
}
