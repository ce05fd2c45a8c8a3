// SPDX-License-Identifier: Apache-2.0
// Key tables of sweeps' plans and cost models.
#include "config/plan.hpp"
#include "config/schema_parts.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::config {

namespace {

using T = Schema::Type;
using namespace parts;

SchemaPtr anything() { return make({.type = T::any}); }
SchemaPtr settings() { return free_mapping(anything()); }
SchemaPtr a_number() { return make({.type = T::number_or_quantity}); }
SchemaPtr money() { return number(0, 1e15); }

SchemaPtr axis() {
  return mapping("an axis",
                 {{"path", text(),
                   "what varies: a path as for --set, or hosts, fabric.x, gpu.type, hca.type, "
                   "hca.count; default: the axis' name"},
                  {"values", list(anything()), "one design each"},
                  {"from", a_number(), "first value of a range"},
                  {"to", a_number(), "last value of a range"},
                  {"step", number(1e-12, 1e15), "difference of neighbours of a range"},
                  {"factor", number(1.0000001, 1e9), "ratio of neighbours of a range, instead of a step"},
                  {"scale", choice({"linear", "log"}), "of a range without step, for random sweeps; default linear"},
                  {"whole", flag(), "a range of whole numbers; default off"},
                  {"choices", free_mapping(settings()), "several settings at once, by label"}});
}

SchemaPtr one_design() {
  return mapping("a design",
                 {{"name", text(), "shown in tables"}, {"set", settings(), "its settings: path: value", true}});
}

SchemaPtr objective() {
  return mapping("an objective",
                 {{"maximise", text(), "a figure: images_per_second, busbw at 64 MiB ..."},
                  {"minimise", text(), "a figure: cost, power, step_time ..."}},
                 {{"maximise", "minimise"}});
}

SchemaPtr constraint() {
  return mapping("a constraint", {{"metric", text(), "a figure, as in objectives", true},
                                  {"at_least", a_number(), "lowest value that will do"},
                                  {"at_most", a_number(), "highest value that will do"}});
}

std::vector<Field> price_fields() {
  return {{"price", money(), "paid once"},
          {"low", money(), "lower end of the price's 80 % interval"},
          {"high", money(), "upper end of the price's 80 % interval"},
          {"per_year", money(), "paid every year: support, subscription"},
          {"per_metre", money(), "of cables, added to the price"},
          {"watts", number(0, 1e6), "drawn under load; default of GPUs: the catalogue's board power"},
          {"rack_units", number(0, 1000), "height"},
          {"includes", list(choice({"gpu", "hca"})), "of a host: what comes with it"},
          {"source", text(), "offer, list or study the value comes from", true},
          {"confidence", choice({"high", "medium", "low", "assumed"}), "assumed: the user's own assumption"}};
}

SchemaPtr price_list(const std::string& what) { return free_mapping(mapping(what, price_fields())); }

/// What hosts may wear for a licence to be due.
std::vector<std::string> worn_names() {
  auto names = virtual_mode_names();
  for (const auto hypervisor :
       {Hypervisor::esxi, Hypervisor::kvm, Hypervisor::cloud_hypervisor, Hypervisor::xen, Hypervisor::hyper_v})
    names.emplace_back(to_string(hypervisor));
  for (const auto* word : {"vmxnet3", "virtio", "remote", "virtual"}) names.emplace_back(word);
  return names;
}

SchemaPtr licence() {
  auto fields = price_fields();
  fields.push_back({"when", list(choice(worn_names())),
                    "modes (passthrough, sr-iov, vgpu ...), hypervisors (esxi, kvm ...) or virtual; default: always"});
  fields.push_back({"per", choice({"gpu", "host", "socket"}), "what is licensed; default host"});
  return mapping("a licence", std::move(fields));
}

}  // namespace

SchemaPtr cost_schema() {
  const auto prices = mapping(
      "the prices", {{"gpu", price_list("a price"), "by GPU type"},
                     {"host", price_list("a price"), "by host type"},
                     {"hca", price_list("a price"), "by adapter type"},
                     {"switch", price_list("a price"), "by switch type"},
                     {"switch_port", price_list("a price"), "per used port, by switch type"},
                     {"cable", price_list("a price"), "`host`: adapter to switch, `switch`: between switches"}});
  return mapping("a cost model",
                 {{"schema", choice({"fabricast/cost/1"}), "file kind and version", true},
                  {"name", text(), "name of the price list", true},
                  {"description", text(), "one line"},
                  {"currency", text(), "shown with every sum; default USD"},
                  {"years", number(0, 100), "over which running costs are counted; default 4"},
                  {"prices", prices, "by kind and type; the type `other` stands for all not named", true},
                  {"licences", free_mapping(licence()), "software by name"},
                  {"kilowatt_hour", mapping("a price", price_fields()), "of electricity"},
                  {"rack_unit", mapping("a price", price_fields()), "of room: `per_year` of one unit"},
                  {"power_usage_effectiveness", number(1, 10), "power of the building per power of devices; default 1"},
                  {"load", number(0, 1), "share of the time under load; default 1"}});
}

SchemaPtr plan_schema() {
  return mapping("a plan",
                 {{"schema", choice({"fabricast/plan/1"}), "file kind and version", true},
                  {"name", text(), "name of the sweep", true},
                  {"description", text(), "one line"},
                  {"question", text(), "the planner's question in words, shown on the page"},
                  {"scenario", text(), "scenario that is varied, relative to this file", true},
                  {"parameters", list(text()), "parameter files of every design, relative to this file"},
                  {"set", settings(), "settings of every design: path: value"},
                  {"vary", free_mapping(any_of({list(anything()), axis()})),
                   "what varies, by name: a list of values, a range or choices; all combinations are swept"},
                  {"designs", list(one_design()), "designs one by one, before the combinations"},
                  {"samples", integer(1, 1'000'000), "so many random combinations instead of all"},
                  {"seed", integer(0, 9'000'000'000'000'000'000.0), "of the random combinations; default 1"},
                  {"objectives", list(objective()), "what is better; the first ranks the designs", true},
                  {"constraints", list(constraint()), "what a design must reach"},
                  {"cost", any_of({text(), cost_schema()}), "cost model: a file relative to this one, or in place"},
                  {"top", integer(1, 1000), "designs that are recommended with reasons; default 5"}});
}

}  // namespace fabricast::config
