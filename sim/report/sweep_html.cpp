// SPDX-License-Identifier: Apache-2.0
#include "report/page.hpp"
#include "report/sweep.hpp"

namespace fabricast::report {

std::string sweep_html(const SweepReport& sweep) {
  return page(sweep.plan.name, boxed("", "<pre>" + escaped(sweep_text(sweep)) + "</pre>"));
}

}  // namespace fabricast::report
