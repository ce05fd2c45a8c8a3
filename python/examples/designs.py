# SPDX-License-Identifier: Apache-2.0
# %% One page of a notebook: what would twice the adapters bring, and which cluster reaches the target for the least money?
import sys

import fabricast

source = sys.argv[1] if len(sys.argv) > 1 else "."

# %% A forecast, and one line of difference
scenario = fabricast.load(f"{source}/scenarios/allreduce-dgx-a100-pair.yaml")
whole = scenario.run()
half = scenario.set({"topology.hosts.0.remove": ["hca1", "hca3", "hca5", "hca7"]}).run()
for size, many, few in zip(whole.size_bytes, whole.busbw_bytes_per_s, half.busbw_bytes_per_s):
    print(f"{size:>12} B  {many * 1e-9:8.2f} GB/s  {few * 1e-9:8.2f} GB/s with half the adapters")

# %% Where the time of the largest message goes
for name, seconds in sorted(whole.terms().items(), key=lambda term: -term[1])[:4]:
    print(f"{seconds * 1e6:10.1f} us  {name}")

# %% A plan, in two processes
plan = fabricast.sweep(f"{source}/tests/pages/plan.yaml", jobs=2)
for design in plan.front:
    cost, rate = design.metrics["cost"], design.metrics["busbw at 64 MiB"]
    print(f"{cost.value:12.0f} USD  {rate.value * 1e-9:6.1f} GB/s ({rate.low * 1e-9:.1f} .. {rate.high * 1e-9:.1f})  {design.name}")
print({design.reasons[0] for design in plan.designs if design.status == "infeasible"})
