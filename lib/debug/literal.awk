# Prints a page as a raw string literal of C++, without indentation, comments and empty lines.
BEGIN { printf "R\"page(" }
{ sub(/^ +/, "") }
!/^$|^\/\/ / { print }
END { print ")page\"" }
