// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/sha256.hpp"
#include "fabricast/inputs.hpp"
#include "tests/support/folder.hpp"

using namespace fabricast;

TEST_CASE("a file is noted once, as it was read, with or without a byte order mark") {
  std::vector<InputFile> inputs;
  note_input(inputs, "a.yaml", "abc");
  note_input(inputs, "a.yaml", "changed since");
  note_input(inputs, "b.yaml",
             "\xEF\xBB\xBF"
             "abc");
  REQUIRE(inputs.size() == 2);
  CHECK(inputs[0].sha256 == sha256("abc"));
  CHECK(inputs[1].sha256 == sha256("abc"));
  const test::Folder folder("inputs");
  note_file(inputs, folder.write("c.yaml", "abc"));
  REQUIRE(inputs.size() == 3);
  CHECK(inputs[2].sha256 == sha256("abc"));
}

TEST_CASE("a file that is missing and a pipe have no hash: nobody can read them again") {
  std::vector<InputFile> inputs;
  note_file(inputs, "/nonexistent/optional.log");
  const test::Folder folder("inputs-pipe");
  const auto pipe = (folder.path / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  note_file(inputs, pipe);
  note_hash(inputs, pipe, "");
  CHECK(inputs.empty());
  note_hash(inputs, pipe, sha256("abc"));
  CHECK(inputs.size() == 1);
}
