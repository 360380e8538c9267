// The folder of test data. It is a function so that only one file is compiled with the path of the sources.
#pragma once
#include <filesystem>

namespace tapedeck::test {

/// The folder test/data of the sources.
std::filesystem::path data_folder();

}   // namespace tapedeck::test
