// SPDX-License-Identifier: Apache-2.0
// Programs are put together as asked: chains, operations after several nodes, joins of several ends.
#include "fabricast/models/program.hpp"

#include <doctest/doctest.h>

using fabricast::models::Node;
using fabricast::models::NodeKind;
using fabricast::models::Program;

namespace {

Node delay(std::vector<int> after = {}) {
  Node node;
  node.kind = NodeKind::delay;
  node.after = std::move(after);
  return node;
}

Program chain(int length) {
  Program out;
  for (int n = 0; n < length; ++n) out.then(delay());
  return out;
}

}  // namespace

TEST_CASE("a node put behind the others waits for the last of them, and for what it names") {
  auto program = chain(3);
  CHECK(program.then(delay({0})) == 3);
  CHECK(program.nodes[0].after.empty());
  CHECK(program.nodes[1].after == std::vector<int>{0});
  CHECK(program.nodes[3].after == std::vector<int>{0, 2});
  CHECK(program.is_chain());
  program.nodes.push_back(delay({2}));
  CHECK_FALSE(program.is_chain());
  CHECK(Program{}.is_chain());
}

TEST_CASE("an appended operation keeps its order, starts after what is asked and lies on one stream") {
  auto program = chain(2);
  program.streams = {{"GPU 0 compute", 0}, {"GPU 0 NCCL", 0}};
  CHECK(program.append(chain(3), {0}, 1) == 4);
  CHECK(program.nodes[2].after == std::vector<int>{0});
  CHECK(program.nodes[3].after == std::vector<int>{2});
  CHECK(program.nodes[4].after == std::vector<int>{3});
  for (std::size_t n = 2; n < 5; ++n) CHECK(program.nodes[n].stream == 1);
  CHECK(program.nodes[1].stream == -1);
}

TEST_CASE("several ends, or none, are joined by a delay of no time that others can wait for") {
  auto fork = chain(1);
  fork.nodes.push_back(delay({0}));
  fork.nodes.push_back(delay({0}));
  auto program = chain(1);
  CHECK(program.append(fork, {0}, -1) == 4);
  CHECK(program.nodes[4].kind == NodeKind::delay);
  CHECK(program.nodes[4].after == std::vector<int>{2, 3});
  CHECK(program.nodes[4].fixed.empty());
  CHECK(program.append({}, {1, 4}, -1) == 5);
  CHECK(program.nodes[5].after == std::vector<int>{1, 4});
}
