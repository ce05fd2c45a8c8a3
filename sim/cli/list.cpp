// SPDX-License-Identifier: Apache-2.0
// fabricast list devices|networks|profiles|algorithms|parameters|keys [FILTER]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/parameter_keys.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "fabricast/models/names.hpp"
#include "fabricast/models/virtualization.hpp"
#include "fabricast/training.hpp"

namespace fabricast::cli {

namespace {

std::string shown(double value, Dimension dimension) { return quantity_text(value, dimension, 6); }

std::string parameter_table(const std::vector<const Parameter*>& parameters) {
  std::size_t widest = 9;
  for (const auto* parameter : parameters) widest = std::max(widest, parameter->name.size());
  std::string out = fmt::format("{:<{}}  {:>12}  {:>25}  {:<10}  {}\n", "parameter", widest, "value", "80 % interval",
                                "confidence", "source");
  for (const auto* p : parameters) {
    const auto interval = p->has_interval()
                              ? fmt::format("{} .. {}", shown(p->low, p->dimension), shown(p->high, p->dimension))
                              : std::string("-");
    out += fmt::format("{:<{}}  {:>12}  {:>25}  {:<10}  {}\n", p->name, widest, shown(p->value, p->dimension), interval,
                       to_string(p->confidence), p->source);
  }
  return out;
}

/// In either case: people write H100 and the catalogue 'h100-sxm'.
bool matches(const std::string& text, const std::string& filter) {
  return filter.empty() || lower(text).find(lower(filter)) != std::string::npos;
}

std::string devices(const Catalogue& catalogue, const std::string& filter) {
  const auto exact = std::find_if(catalogue.device_types.begin(), catalogue.device_types.end(),
                                  [&](const DeviceType& type) { return type.name == filter; });
  if (exact != catalogue.device_types.end()) {
    std::string out = fmt::format("{} ({}): {}\n", exact->name, exact->kind, exact->description);
    for (const auto& [key, value] : exact->attributes) out += fmt::format("  {}: {}\n", key, value);
    std::vector<const Parameter*> values;
    for (const auto& [name, parameter] : catalogue.parameters.all()) {
      if (name.rfind(exact->name + ".", 0) == 0) values.push_back(&parameter);
    }
    return values.empty() ? out : out + parameter_table(values);
  }
  auto types = catalogue.device_types;
  std::sort(types.begin(), types.end(),
            [](const auto& a, const auto& b) { return std::pair(a.kind, a.name) < std::pair(b.kind, b.name); });
  std::string out;
  std::string kind;
  for (const auto& type : types) {
    if (!matches(type.name, filter) && type.kind != filter) continue;
    if (type.kind != kind) out += fmt::format("{}{}\n", kind.empty() ? "" : "\n", type.kind);
    kind = type.kind;
    out += fmt::format("  {:<44} {}\n", type.name, type.description);
  }
  return out;
}

std::string algorithms(const std::string& filter) {
  std::string out = fmt::format("{:<22} {:<50} {}\n", "benchmark", "algorithms", "protocols");
  for (const auto& name : benchmark_names()) {
    const auto benchmark = *benchmark_from_name(name);
    if (!matches(name, filter) || !is_collective(benchmark)) continue;
    out += fmt::format("{:<22} {:<50} {}\n", name,
                       fmt::format("auto{}{}", models::algorithms_of(benchmark).empty() ? "" : ", ",
                                   fmt::join(models::algorithms_of(benchmark), ", ")),
                       models::protocols_of(benchmark).empty()
                           ? "auto"
                           : fmt::format("auto, {}", fmt::join(models::protocols_of(benchmark), ", ")));
  }
  return out;
}

/// vGPU and MIG profiles; a dash where a profile shares the whole GPU's.
std::string gpu_profiles(const ParameterSet& parameters, const std::string& filter) {
  std::string out;
  for (const auto& family : models::profile_families(parameters)) {
    for (const auto& profile : models::gpu_profiles(family, parameters)) {
      if (!matches(profile.name, filter)) continue;
      const auto own = [&](double share) { return profile.is_mig ? fmt::format("{:.3f}", share) : std::string("-"); };
      const auto mixed = profile.max_instances_mixed > 0 ? std::to_string(profile.max_instances_mixed) : "-";
      out += fmt::format("{:<18}  {:<11}  {:>6g}  {:>7}  {:>6}  {:>7}  {:>9}  {:>7}  {}\n", profile.name,
                         profile.is_mig ? "MIG" : "time-sliced", profile.framebuffer_gb, profile.max_instances, mixed,
                         own(profile.compute_fraction), own(profile.memory_fraction),
                         profile.is_mig ? std::to_string(profile.copy_engines) : "-", profile.source);
    }
  }
  if (out.empty()) return out;
  return fmt::format("{:<18}  {:<11}  {:>6}  {:>7}  {:>6}  {:>7}  {:>9}  {:>7}  {}\n", "GPU profile", "kind", "GB",
                     "per GPU", "mixed", "compute", "bandwidth", "copies", "source") +
         out;
}

/// Networks to train, with what one sample costs; one by its name, with its source.
std::string networks(const std::vector<Network>& all, const std::string& filter) {
  std::string out = fmt::format("{:<22} {:<10} {:>12} {:>8} {:>14}  {}\n", "network", "sample", "parameters", "tensors",
                                "forward GFLOP", "description");
  for (const auto& network : all) {
    if (!matches(network.name, filter)) continue;
    const auto sample = network.tokens > 0 ? fmt::format("{} tokens", network.tokens) : network.sample;
    out += fmt::format("{:<22} {:<12} {:>8.4g} M {:>8} {:>14.5g}  {}\n", network.name, sample,
                       static_cast<double>(network.parameters()) * 1e-6, network.num_tensors(),
                       network.forward_flop() * 1e-9, network.description);
    if (network.name != filter) continue;
    out += fmt::format("source: {}\n", network.source);
    if (network.transformer && network.transformer->experts > 0)
      out += fmt::format("activated: {:.4g} M parameters per token, without the embedding\n",
                         network.activated_parameters() * 1e-6);
  }
  return out;
}

std::vector<std::string> parts_of(std::string_view pattern) {
  std::vector<std::string> parts;
  for (auto begin = pattern.find('{'); begin != std::string_view::npos; begin = pattern.find('{', begin + 1))
    parts.emplace_back(pattern.substr(begin + 1, pattern.find('}', begin) - begin - 1));
  return parts;
}

/// What a parameter may be called, in which unit and range, and what it means.
std::string keys(const std::string& filter) {
  const auto* exact = key_of(filter);
  std::vector<const ParameterKey*> found;
  std::set<std::string> parts;
  std::size_t widest = 3;
  for (const auto& key : parameter_keys()) {
    if (exact != nullptr ? &key != exact : !matches(std::string(key.pattern), filter)) continue;
    found.push_back(&key);
    widest = std::max(widest, key.pattern.size());
    for (auto& part : parts_of(key.pattern)) parts.insert(std::move(part));
  }
  if (found.empty()) return {};
  std::string out = fmt::format("{:<{}}  {:<9}  {:<22}  {}\n", "key", widest, "unit", "range", "meaning");
  for (const auto* key : found)
    out += fmt::format("{:<{}}  {:<9}  {:<22}  {}\n", key->pattern, widest, to_string(key->dimension),
                       to_string(range_of(*key), key->dimension), key->meaning);
  if (!parts.empty()) out += "\n";
  for (const auto& part : parts) out += fmt::format("{:<15} {}\n", "{" + part + "}", words_of_part(part));
  return out;
}

int list(const std::string& what, const std::string& filter) {
  int exit_code = exit_ok;
  const auto catalogue = load_whole_catalogue();
  if (!catalogue) {
    print_faults(catalogue.error());
    return exit_internal;
  }
  std::string text;
  if (what == "algorithms") text = algorithms(filter);
  if (what == "networks") {
    const auto all = load_shipped_networks();
    if (!all) {
      print_faults(all.error());
      return exit_internal;
    }
    text = networks(*all, filter);
  }
  if (what == "devices") text = devices(*catalogue, filter);
  if (what == "keys") text = keys(filter);
  if (what == "profiles" || what == "parameters") {
    std::vector<const Parameter*> found;
    for (const auto& [name, parameter] : catalogue->parameters.all()) {
      const bool is_profile = std::any_of(
          models::mpi_profiles().begin(), models::mpi_profiles().end(),
          [&, &key = name](const std::string& profile) { return key.rfind("mpi." + profile + ".", 0) == 0; });
      if (matches(name, filter) && (what == "parameters" || is_profile)) found.push_back(&parameter);
    }
    if (what == "parameters" || !found.empty()) text = parameter_table(found);
    if (what == "profiles") {
      const auto cut_up = gpu_profiles(catalogue->parameters, filter);
      if (!text.empty() && !cut_up.empty()) text += "\n";
      text += cut_up;
    }
  }
  // A header alone is no answer.
  const bool has_header = what == "algorithms" || what == "parameters" || what == "networks";
  if (std::count(text.begin(), text.end(), '\n') <= (has_header ? 1 : 0)) {
    std::fputs(
        fmt::format("fabricast: none of the {} matches '{}'; 'fabricast list {}' shows all\n", what, filter, what)
            .c_str(),
        stderr);
    return exit_usage;
  }
  write_output("-", text, exit_code);
  return exit_code;
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  auto what = std::make_shared<std::string>();
  auto filter = std::make_shared<std::string>();
  auto* command = app.add_subcommand(
      "list", "the catalogue: devices, networks, profiles, algorithms, parameters and their keys, with sources");
  command->footer(
      "Examples:\n  fabricast list devices v100-sxm2-16\n  fabricast list parameters nccl.hop_time\n  fabricast list "
      "keys nccl.hop_time");
  command->add_option("WHAT", *what, "devices, networks, profiles, algorithms, parameters or keys")
      ->required()
      ->check(CLI::IsMember({"devices", "networks", "profiles", "algorithms", "parameters", "keys"}).description(""));
  command->add_option("FILTER", *filter, "a name, a part of it, or a device kind");
  command->callback([what, filter, &exit_code] { exit_code = list(*what, *filter); });
}

}  // namespace fabricast::cli
