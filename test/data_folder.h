// Where the data of tests lie. A function, so that one file alone is compiled with the path of the sources.
#pragma once
#include <filesystem>

namespace tapedeck::test {

/// The folder test/data of the sources.
std::filesystem::path data_folder();

}   // namespace tapedeck::test
