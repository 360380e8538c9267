#include "example.h"

std::string example_data(const std::string& name) { return EXAMPLE_DATA "/" + name; }
