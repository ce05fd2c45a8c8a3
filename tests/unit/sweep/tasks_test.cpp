// SPDX-License-Identifier: Apache-2.0
// Work spread over processes: every task once, whatever their number and whoever dies.
#include <doctest/doctest.h>
#include <unistd.h>

#include <map>
#include <numeric>

#include "fabricast/sweep.hpp"

using namespace fabricast;

namespace {

struct Outcome {
  std::map<std::size_t, std::string> texts;
  std::size_t calls = 0;
};

Outcome spread(std::size_t count, int jobs, const std::function<std::string(std::size_t)>& work,
               const std::atomic<bool>* stop = nullptr) {
  std::vector<std::size_t> todo(count);
  std::iota(todo.begin(), todo.end(), std::size_t{100});
  Outcome out;
  run_tasks(
      todo, work,
      [&](std::size_t i, const std::string& text) {
        out.texts[i] = text;
        ++out.calls;
      },
      [](std::size_t i, const std::string&) { return "lost " + std::to_string(i); }, {jobs, stop});
  return out;
}

}  // namespace

TEST_CASE("every task is done once, with the same texts in any number of processes") {
  // Texts longer than a pipe's buffer too.
  const auto work = [](std::size_t i) { return std::string(i % 7 * 40'000, 'a') + std::to_string(i * i); };
  const auto alone = spread(23, 1, work);
  CHECK(alone.calls == 23);
  for (const int jobs : {2, 5, 40}) {
    CAPTURE(jobs);
    const auto several = spread(23, jobs, work);
    CHECK(several.calls == 23);
    CHECK(several.texts == alone.texts);
  }
  CHECK(spread(0, 3, work).calls == 0);
}

TEST_CASE("no task sees what others have left behind in its process") {
  int calls = 0;
  const auto found = spread(9, 2, [&](std::size_t) { return std::to_string(++calls); });
  CHECK(found.calls == 9);
  for (const auto& [i, text] : found.texts) CHECK(text == "1");
  CHECK(calls == 0);
}

TEST_CASE("a process that dies costs its own task and no other") {
  const auto work = [](std::size_t i) {
    if (i == 103 || i == 104) ::_exit(9);
    return std::to_string(i);
  };
  const auto found = spread(12, 2, work);
  CHECK(found.calls == 12);
  for (const auto& [i, text] : found.texts) CHECK(text == (i == 103 || i == 104 ? "lost " : "") + std::to_string(i));
}

TEST_CASE("a sweep that is stopped hands out no further task") {
  std::atomic<bool> stop{true};
  CHECK(spread(
            50, 2, [](std::size_t) { return std::string("x"); }, &stop)
            .calls < 50);
}
