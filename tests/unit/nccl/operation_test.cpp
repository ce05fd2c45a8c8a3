// SPDX-License-Identifier: Apache-2.0
// Which of the values of one name an operation reads: the most exact that there is.
#include "nccl/operation.hpp"

#include <doctest/doctest.h>

using namespace fabricast;
using namespace fabricast::models::nccl;

namespace {

ParameterSet set_of(const std::vector<std::string>& names) {
  ParameterSet set;
  for (const auto& name : names) {
    Parameter one;
    one.name = name;
    set.set(one);
  }
  return set;
}

const Architecture k_hopper{"hopper", {}, true};

std::string read(const ParameterSet& set, const char* protocol) {
  return parameter_for(set, k_hopper, "nccl.first_chunk"_stem, protocol).name;
}

}  // namespace

TEST_CASE("a protocol's own value comes before that of all protocols, a GPU generation's before that of all") {
  auto names = std::vector<std::string>{"nccl.first_chunk.ll.hopper", "nccl.first_chunk.ll", "nccl.first_chunk.hopper",
                                        "nccl.first_chunk"};
  for (; !names.empty(); names.erase(names.begin())) {
    CHECK(read(set_of(names), "ll") == names.front());
    CHECK(read(set_of({names.front()}), "ll") == names.front());
  }
  const auto of_ll = set_of({"nccl.first_chunk.ll.hopper", "nccl.first_chunk.ll", "nccl.first_chunk"});
  CHECK(read(of_ll, "simple") == "nccl.first_chunk");
  CHECK(parameter_for(of_ll, k_hopper, "nccl.first_chunk"_stem).name == "nccl.first_chunk");
}

TEST_CASE("an elder's value comes after an architecture's own and before that of all GPUs, protocol by protocol") {
  const Architecture blackwell{"blackwell", "hopper", true};
  auto names =
      std::vector<std::string>{"nccl.first_chunk.ll.blackwell", "nccl.first_chunk.ll.hopper", "nccl.first_chunk.ll",
                               "nccl.first_chunk.blackwell",    "nccl.first_chunk.hopper",    "nccl.first_chunk"};
  for (; !names.empty(); names.erase(names.begin())) {
    CHECK(parameter_for(set_of(names), blackwell, "nccl.first_chunk"_stem, "ll").name == names.front());
    CHECK(parameter_for(set_of({names.front()}), blackwell, "nccl.first_chunk"_stem, "ll").name == names.front());
  }
}
