# Reads Markdown and prints a Catch2 program. The cpp blocks of one section form one function; a block with `int main()` is a
# program of its own, in its own namespace. Includes move to the top. A line that prints to std::cout and ends with "// → text"
# must be reached, and print this text. The text goes on in lines below that are comments indented by three spaces.
function quoted(words) { gsub(/["\\]/, "\\\\&", words); return words }

shown != "" && match($0, /^ *\/\/   /) { text = text "\\n" quoted(substr($0, RLENGTH + 1)); below = below "\n"; next }
shown != "" {
  block = block before "{ std::ostringstream shown; shown" shown " CHECK(shown.str() == \"" text "\\n\"); ++compared; }\n" below
  shown = below = ""
}

FNR == 1 { file = FILENAME; sub(/^.*\.\.\//, "", file); section = "start" }

!inside && /^#+ / { section = $0; sub(/^#+ /, "", section); gsub(/["\\]/, "", section) }
/^```cpp$/ { inside = 1; block = ""; program = 0; arrows = 0; line = FNR + 1; next }
/^```$/ && inside {
  inside = 0
  block = "#line " line " \"" file "\"\n" block
  if (program) {
    ++programs
    tests = tests "namespace {\nnamespace program_" programs " {\n" block "}\n}\n" \
      "TEST_CASE(\"" file ":" line "\") { compared = 0; program_" programs "::run_program(); CHECK(compared >= " arrows "); }\n\n"
  } else {
    name = file ": " section
    if (!(name in statements)) order[++sections] = name
    statements[name] = statements[name] block
    expected[name] += arrows
  }
  next
}
inside && /^#include / { if (!($0 in hoisted)) includes = includes $0 "\n"; hoisted[$0]; $0 = "" }
inside && sub(/int main\(\)/, "void run_program()") { program = 1 }
inside && (arrow = index($0, "// → ")) && (print_at = index($0, "std::cout << ")) {
  text = quoted(substr($0, arrow + length("// → ")))
  shown = substr($0, print_at + length("std::cout"), arrow - print_at - length("std::cout"))
  before = substr($0, 1, print_at - 1)
  ++arrows
  next
}
inside { block = block $0 "\n" }

END {
  print "#include <sstream>\n#include <catch2/catch.hpp>\n#include <tapedeck/tapedeck.h>\n" includes "\nnamespace td = tapedeck;\n" (includes ~ /<tapedeck\/nn/ ? "namespace nn = tapedeck::nn;\n" : "") "\nstatic int compared = 0;\n\n" tests
  for (i = 1; i <= sections; ++i) print "TEST_CASE(\"" order[i] "\") {\ncompared = 0;\n" statements[order[i]] "CHECK(compared >= " expected[order[i]] + 0 ");\n}\n"
}
