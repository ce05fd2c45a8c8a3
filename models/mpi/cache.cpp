// SPDX-License-Identifier: Apache-2.0
#include "mpi/cache.hpp"

#include <cmath>

namespace fabricast::models::mpi {

double share_beyond_cache(double working_set, double cache) {
  if (working_set <= cache) return 0;
  if (cache <= 0) return 1;
  const double times = working_set / cache;
  // Of the two solutions 0 is the one of a set that fits: the other lies between 0 and 1 and is found by halving.
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (1 - std::exp(-middle * times) > middle ? low : high) = middle;
  }
  return high;
}

}  // namespace fabricast::models::mpi
