#include "data_folder.h"

std::filesystem::path tapedeck::test::data_folder() { return TAPEDECK_TEST_DATA; }
