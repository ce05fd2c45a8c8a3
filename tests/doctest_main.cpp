// SPDX-License-Identifier: Apache-2.0
// Runs the tests of an area. What they write to the temporary folder, in the program or in a child, goes with them.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <unistd.h>

int main(int argc, char** argv) {
  auto folder = (std::filesystem::temp_directory_path() / "fabricast-tests-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr || setenv("TMPDIR", folder.c_str(), 1) != 0) {
    std::perror(folder.c_str());
    return EXIT_FAILURE;
  }
  const int status = doctest::Context(argc, argv).run();
  std::error_code left;
  std::filesystem::remove_all(folder, left);
  return status;
}
