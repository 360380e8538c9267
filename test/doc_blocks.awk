# Markdown in, a Catch2 program out. The cpp blocks of one section are one function, line after line;
# a block with `int main()` is a program of its own, in its own namespace. Includes move to the top.
FNR == 1 { file = FILENAME; sub(/^.*\.\.\//, "", file); section = "start" }

!inside && /^#+ / { section = $0; sub(/^#+ /, "", section); gsub(/["\\]/, "", section) }
/^```cpp$/ { inside = 1; block = ""; program = 0; line = FNR + 1; next }
/^```$/ && inside {
  inside = 0
  block = "#line " line " \"" file "\"\n" block
  if (program) {
    ++programs
    tests = tests "namespace program_" programs " {\n" block "}\n" \
      "TEST_CASE(\"" file ":" line "\") { program_" programs "::run_program(); }\n\n"
  } else {
    name = file ": " section
    if (!(name in statements)) order[++sections] = name
    statements[name] = statements[name] block
  }
  next
}
inside && /^#include / { if (!($0 in hoisted)) includes = includes $0 "\n"; hoisted[$0]; $0 = "" }
inside && sub(/int main\(\)/, "void run_program()") { program = 1 }
inside { block = block $0 "\n" }

END {
  print "#include <catch2/catch.hpp>\n#include <tapedeck/tapedeck.h>\n" includes "\nnamespace td = tapedeck;\n\n" tests
  for (i = 1; i <= sections; ++i) print "TEST_CASE(\"" order[i] "\") {\n" statements[order[i]] "}\n"
}
