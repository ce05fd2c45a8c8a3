// SPDX-License-Identifier: Apache-2.0
// The README's example of the library: load a scenario, simulate it, print size and time. With a second argument,
// packet by packet, with the pauses of the fabric.
#include <fabricast/fabricast.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto loaded = fabricast::load_scenario(argv[1]);
  if (!loaded) {
    std::fputs(fabricast::render(loaded.error()).c_str(), stderr);
    return 3;
  }
  fabricast::SimulateOptions options;
  if (argc > 2) options.fidelity = fabricast::Fidelity::packet;
  const auto prediction = fabricast::simulate(loaded->topology, loaded->scenario, loaded->parameters, options);
  if (!prediction) return 3;
  for (const auto& row : prediction->workloads.front().rows) {
    std::printf("%lld %.3f\n", static_cast<long long>(row.size.value), row.time.us());
    if (row.fabric) std::printf("%llu pauses\n", static_cast<unsigned long long>(row.fabric->pauses));
  }
}
