// SPDX-License-Identifier: Apache-2.0
#include "engine/simgrid_clock.hpp"

#include <dlfcn.h>
#include <xbt/log.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"

namespace fabricast::engine {

namespace {

namespace s4u = simgrid::s4u;
using LinkImpl = simgrid::kernel::resource::StandardLinkImpl;

/// SimGrid counts payload in whole units; a unit of 1/1024 byte keeps the rounding below a picosecond up to 1 TB/s.
constexpr double k_units_per_byte = 1024;
constexpr double k_most_units = 0x1p62;  ///< larger payloads are counted in larger units
/// SimGrid's clock is a double: longer simulations run in seconds that are as many times shorter, so that their end is
/// known to 1 ps or 2e-16 of it.
constexpr double k_longest_on_clock_s = 4096;

/// Where SimGrid 3.32 keeps its clock, which no call of it sets back. Rounding depends on how large a clock is: two
/// simulations give the same last digit when both begin at 0. None in releases that keep it elsewhere.
double* simgrid_clock() { return static_cast<double*>(::dlsym(RTLD_DEFAULT, "_ZN7simgrid6kernel10EngineImpl4now_E")); }

}  // namespace

/// A zone of two end points whose route is whatever list of links the caller put in `route` before starting a flow.
class PathZone : public simgrid::kernel::routing::NetZoneImpl {
 public:
  PathZone() : NetZoneImpl("paths") {}
  std::vector<LinkImpl*> route;

  void get_local_route(const simgrid::kernel::routing::NetPoint*, const simgrid::kernel::routing::NetPoint*,
                       simgrid::kernel::routing::Route* into, double*) override {
    into->link_list_.insert(into->link_list_.end(), route.begin(), route.end());
  }
  void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                 std::map<std::string, xbt_edge_t, std::less<>>*) override {}
};

struct SimGridClock::Impl {
  struct InFlight {
    s4u::CommPtr comm;
    std::function<void()> then;
  };

  char program[10] = "fabricast";
  char* argv[2] = {program, nullptr};
  int argc = 1;
  s4u::Engine* engine = nullptr;
  PathZone* zone = nullptr;
  s4u::Host* from = nullptr;
  s4u::Host* to = nullptr;
  std::vector<s4u::Link*> links;  // pool; the first `num_resources` are in use
  std::vector<double> rates;      // what each pooled link is set to
  std::size_t num_resources = 0;
  std::size_t num_links_made = 0;
  std::unordered_map<const s4u::Activity*, InFlight> in_flight;
  std::vector<s4u::CommPtr> ended;  // released outside SimGrid's callbacks
  std::size_t timers_pending = 0;
  double* clock = simgrid_clock();
  double origin = 0;  // SimGrid's clock when the simulation began
  double scale = 1;   // SimGrid's seconds per second, a power of two
  double units = k_units_per_byte;

  s4u::Link* make_link(double rate) {
    auto* pool = s4u::create_empty_zone("pool" + std::to_string(num_links_made));
    pool->get_impl()->set_network_model(zone->get_network_model());
    auto* link = pool->create_link("r" + std::to_string(num_links_made++), rate);
    link->seal();
    return link;
  }
};

SimGridClock& SimGridClock::instance() {
  static auto* clock = new SimGridClock;
  return *clock;
}

SimGridClock::SimGridClock() : impl_(new Impl) {
  struct sigaction interrupt {};
  sigaction(SIGINT, nullptr, &interrupt);
  xbt_log_control_set("root.thres:error");
  impl_->engine = new s4u::Engine(&impl_->argc, impl_->argv);
  // CM02 without reverse traffic, window cap and weights is pure max-min sharing (tests/unit/engine).
  for (const auto* option : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:1e18",
                             "network/weight-S:0", "surf/precision:1e-12"}) {
    s4u::Engine::set_config(option);
  }
  impl_->zone = new PathZone;
  impl_->from = impl_->zone->create_host("from", std::vector<double>{1e9});
  impl_->to = impl_->zone->create_host("to", std::vector<double>{1e9});
  impl_->from->seal();
  impl_->to->seal();
  impl_->zone->get_iface()->seal();
  s4u::Activity::on_completion_cb([impl = impl_](const s4u::Activity& activity) {
    auto node = impl->in_flight.extract(&activity);
    if (node.empty()) return;
    impl->ended.push_back(std::move(node.mapped().comm));
    node.mapped().then();
  });
  sigaction(SIGINT, &interrupt, nullptr);  // SimGrid installs its own handler
}

double SimGridClock::now() const { return (s4u::Engine::get_clock() - impl_->origin) / impl_->scale; }

void SimGridClock::begin(const std::vector<double>& capacities, double longest) {
  FABRICAST_ASSERT(impl_->in_flight.empty(), "{} flows in flight while capacities change", impl_->in_flight.size());
  FABRICAST_ASSERT(std::isfinite(longest), "a simulation of {} s", longest);
  // Nothing is under way that counts from the old time.
  if (impl_->clock != nullptr && impl_->timers_pending == 0) *impl_->clock = 0;
  impl_->origin = s4u::Engine::get_clock();
  impl_->scale = longest <= k_longest_on_clock_s ? 1 : std::exp2(-std::ceil(std::log2(longest / k_longest_on_clock_s)));
  // No flow has more bytes than the widest resource carries in that time.
  double most = 0;
  for (const auto capacity : capacities) most = std::max(most, capacity * longest);
  const bool is_countable = !(most * k_units_per_byte > k_most_units);
  impl_->units = is_countable ? k_units_per_byte : std::exp2(std::floor(std::log2(k_most_units / most)));
  impl_->num_resources = capacities.size();
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    const double rate = capacities[i] * impl_->units / impl_->scale;
    if (i == impl_->links.size()) {
      impl_->links.push_back(impl_->make_link(rate));
      impl_->rates.push_back(rate);
    } else if (impl_->rates[i] != rate) {
      impl_->links[i]->set_bandwidth(rate);
      impl_->rates[i] = rate;
    }
  }
}

void SimGridClock::after(double seconds, std::function<void()> then) {
  ++impl_->timers_pending;
  simgrid::kernel::timer::Timer::set(s4u::Engine::get_clock() + seconds * impl_->scale,
                                     [impl = impl_, then = std::move(then)] {
                                       --impl->timers_pending;
                                       then();
                                     });
}

void SimGridClock::start_flow(double bytes, const std::vector<models::Crossing>& crossings,
                              std::function<void()> then) {
  auto& route = impl_->zone->route;
  route.clear();
  for (const auto& crossing : crossings) {
    FABRICAST_ASSERT(static_cast<std::size_t>(crossing.resource) < impl_->num_resources, "resource {} of {}",
                     crossing.resource, impl_->num_resources);
    auto* link = impl_->links[static_cast<std::size_t>(crossing.resource)]->get_impl();
    route.insert(route.end(), static_cast<std::size_t>(crossing.times), link);
  }
  auto comm = s4u::Comm::sendto_init(impl_->from, impl_->to);
  comm->set_payload_size(static_cast<std::uint64_t>(std::llround(bytes * impl_->units)));
  impl_->in_flight.emplace(comm.get(), Impl::InFlight{comm, std::move(then)});
  comm->start();
}

void SimGridClock::run() {
  impl_->engine->run();
  impl_->ended.clear();
  FABRICAST_ASSERT(impl_->in_flight.empty() && impl_->timers_pending == 0, "{} flows and {} timers never ended",
                   impl_->in_flight.size(), impl_->timers_pending);
}

}  // namespace fabricast::engine
