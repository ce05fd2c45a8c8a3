// SPDX-License-Identifier: Apache-2.0
// A checked plan of a sweep to values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "config/plan.hpp"
#include "config/readers.hpp"

namespace fabricast::config {

namespace {

constexpr double k_most_values = 100'000;  ///< of one range

/// A value as --set takes it: words as they are, lists and mappings in one line.
std::string value_text(const Node& node) { return node.kind == Node::Kind::scalar ? node.scalar : flow_text(node); }

std::vector<SweepSetting> read_settings(const Node& node) {
  std::vector<SweepSetting> out;
  for (const auto& entry : node.entries) out.push_back({entry.key.scalar, value_text(entry.value)});
  return out;
}

/// `25 Gb/s` -> 25 and "Gb/s".
struct Amount {
  double number = 0;
  std::string unit;
};
Amount amount_of(const std::string& text) {
  const auto digits = text.find_first_not_of("0123456789.eE+-");
  if (digits == std::string::npos) return {std::strtod(text.c_str(), nullptr), ""};
  const auto unit = text.find_first_not_of(' ', digits);
  return {std::strtod(text.substr(0, digits).c_str(), nullptr), unit == std::string::npos ? "" : text.substr(unit)};
}

std::string amount_text(double number, const std::string& unit) {
  return fmt::format("{:.10g}{}{}", number, unit.empty() ? "" : " ", unit);
}

class PlanReader {
 public:
  PlanReader(const Node& document, std::string folder, Diagnostics& faults)
      : document_(document), folder_(std::move(folder)), faults_(faults) {}

  SweepPlan read(std::string& cost_file) {
    SweepPlan plan;
    plan.name = document_.find("name")->scalar;
    plan.file = document_.source->name;
    if (const auto* one = document_.find("description")) plan.description = one->scalar;
    if (const auto* one = document_.find("question")) plan.question = one->scalar;
    plan.scenario_file = resolved(folder_, document_.find("scenario")->scalar);
    if (const auto* files = document_.find("parameters")) {
      for (const auto& file : files->items) plan.parameter_files.push_back(resolved(folder_, file.scalar));
    }
    if (const auto* set = document_.find("set")) plan.settings = read_settings(*set);
    if (const auto* vary = document_.find("vary")) {
      for (const auto& entry : vary->entries) plan.axes.push_back(read_axis(entry));
    }
    if (const auto* designs = document_.find("designs")) read_designs(*designs, plan);
    if (const auto* samples = document_.find("samples")) plan.samples = static_cast<int>(as_integer(*samples));
    if (const auto* seed = document_.find("seed")) plan.seed = static_cast<std::uint64_t>(as_integer(*seed));
    if (const auto* top = document_.find("top")) plan.top = static_cast<int>(as_integer(*top));
    read_objectives(plan);
    read_constraints(plan);
    if (const auto* cost = document_.find("cost")) {
      if (cost->kind == Node::Kind::scalar)
        cost_file = resolved(folder_, cost->scalar);
      else
        plan.cost = read_cost(*cost, faults_);
    }
    check_ranges(plan);
    return plan;
  }

 private:
  void fault(const Node& at, std::string message, std::string hint) {
    faults_.push_back(at.error(std::move(message), std::move(hint)));
  }

  SweepAxis read_axis(const Node::Entry& entry) {
    SweepAxis axis;
    axis.name = entry.key.scalar;
    if (entry.value.kind == Node::Kind::sequence) {
      add_values(axis, axis.name, entry.value);
      return axis;
    }
    const auto* path = entry.value.find("path");
    const auto name = path == nullptr ? axis.name : path->scalar;
    const auto* values = entry.value.find("values");
    const auto* choices = entry.value.find("choices");
    const bool has_range = entry.value.find("from") != nullptr || entry.value.find("to") != nullptr;
    if ((values != nullptr) + (choices != nullptr) + has_range != 1) {
      fault(entry.key,
            fmt::format("axis '{}' needs exactly one of 'values', 'from' and 'to', and 'choices'", axis.name),
            "write e.g. `values: [4, 8, 16]`");
      axis.choices.push_back({});
      return axis;
    }
    if (values != nullptr) add_values(axis, name, *values);
    if (choices != nullptr) add_choices(axis, *choices);
    if (has_range) read_range(axis, name, entry);
    return axis;
  }

  void add_values(SweepAxis& axis, const std::string& path, const Node& values) {
    for (const auto& value : values.items) axis.choices.push_back({value_text(value), {{path, value_text(value)}}});
    finish(axis, values);
  }

  void add_choices(SweepAxis& axis, const Node& choices) {
    for (const auto& choice : choices.entries) axis.choices.push_back({choice.key.scalar, read_settings(choice.value)});
    finish(axis, choices);
  }

  /// Every choice once; none is no sweep.
  void finish(SweepAxis& axis, const Node& at) {
    if (axis.choices.empty()) {
      fault(at, fmt::format("axis '{}' has no value", axis.name), "list at least one");
      axis.choices.push_back({});
    }
    for (std::size_t i = 0; i < axis.choices.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (axis.choices[i].label == axis.choices[k].label)
          return fault(at, fmt::format("axis '{}' has '{}' twice", axis.name, axis.choices[i].label),
                       "list every value once: a design counts once");
      }
    }
  }

  void read_range(SweepAxis& axis, const std::string& path, const Node::Entry& entry) {
    const auto* from = entry.value.find("from");
    const auto* to = entry.value.find("to");
    axis.choices.clear();
    if (from == nullptr || to == nullptr) {
      axis.choices.push_back({});
      return fault(entry.key, fmt::format("the range of axis '{}' needs 'from' and 'to'", axis.name), "add the other");
    }
    const auto low = amount_of(from->scalar);
    const auto high = amount_of(to->scalar);
    const auto* step = entry.value.find("step");
    const auto* factor = entry.value.find("factor");
    const auto* scale = entry.value.find("scale");
    axis.path = path;
    axis.from = low.number;
    axis.to = high.number;
    axis.unit = low.unit;
    axis.is_logarithmic = scale != nullptr && scale->scalar == "log";
    if (const auto* whole = entry.value.find("whole")) axis.is_whole = as_flag(*whole);
    const auto refuse = [&](const Node& at, std::string message, std::string hint) {
      fault(at, std::move(message), std::move(hint));
      axis.choices.push_back({});
    };
    if (low.unit != high.unit)
      return refuse(*to, fmt::format("'{}' and '{}' have different units", from->scalar, to->scalar),
                    "write both ends in one unit");
    if (!(low.number < high.number))
      return refuse(*to, fmt::format("the range ends at '{}', not above its start '{}'", to->scalar, from->scalar),
                    "write the smaller end first");
    if ((axis.is_logarithmic || factor != nullptr) && low.number <= 0)
      return refuse(*from, fmt::format("a range by factors starts at '{}'", from->scalar), "start above 0");
    if (step != nullptr && factor != nullptr)
      return refuse(*factor, "a range has a 'step' or a 'factor', not both", "take one out");
    if (step != nullptr) add_steps(axis, *step, as_quantity(*step, Dimension::number), false);
    if (factor != nullptr) add_steps(axis, *factor, as_quantity(*factor, Dimension::number), true);
  }

  void add_steps(SweepAxis& axis, const Node& at, double by, bool is_factor) {
    const double count =
        std::floor((is_factor ? std::log(axis.to / axis.from) / std::log(by) : (axis.to - axis.from) / by) + 1e-9);
    if (count >= k_most_values) {
      fault(at, fmt::format("axis '{}' has more than {} values", axis.name, k_most_values), "take a larger step");
      axis.choices.push_back({});
      return;
    }
    for (int i = 0; i <= static_cast<int>(count); ++i) {
      const double value = is_factor ? axis.from * std::pow(by, i) : axis.from + by * i;
      const auto text = amount_text(axis.is_whole ? std::round(value) : value, axis.unit);
      axis.choices.push_back({text, {{axis.path, text}}});
    }
  }

  void read_designs(const Node& designs, SweepPlan& plan) {
    for (const auto& item : designs.items) {
      SweepChoice choice;
      if (const auto* name = item.find("name")) choice.label = name->scalar;
      choice.settings = read_settings(*item.find("set"));
      plan.designs.push_back(std::move(choice));
    }
  }

  std::optional<Metric> metric(const Node& node) {
    std::string why;
    auto found = metric_from(node.scalar, why);
    if (!found) fault(node, why, fmt::format("figures are {}", fmt::join(metric_names(), ", ")));
    return found;
  }

  void read_objectives(SweepPlan& plan) {
    const auto& list = *document_.find("objectives");
    if (list.items.empty()) fault(list, "'objectives' is empty", "write e.g. `- minimise: cost`");
    for (const auto& item : list.items) {
      const auto* up = item.find("maximise");
      const auto* down = item.find("minimise");
      if (auto found = metric(up != nullptr ? *up : *down)) plan.objectives.push_back({*found, up != nullptr});
      if (!plan.objectives.empty()) check_cost(plan.objectives.back().metric, item);
    }
  }

  void read_constraints(SweepPlan& plan) {
    const auto* list = document_.find("constraints");
    if (list == nullptr) return;
    for (const auto& item : list->items) {
      auto found = metric(*item.find("metric"));
      if (!found) continue;
      Constraint out;
      out.metric = *found;
      out.location = item.location();
      out.at_least = bound(item.find("at_least"), *found);
      out.at_most = bound(item.find("at_most"), *found);
      if (item.find("at_least") == nullptr && item.find("at_most") == nullptr)
        fault(item, fmt::format("the constraint on '{}' has no bound", found->text), "add 'at_least' or 'at_most'");
      if (out.at_least && out.at_most && *out.at_least > *out.at_most)
        fault(item, fmt::format("no '{}' is both at least and at most these values", found->text), "swap the bounds");
      check_cost(out.metric, item);
      plan.constraints.push_back(std::move(out));
    }
  }

  std::optional<double> bound(const Node* node, const Metric& of) {
    if (node == nullptr) return std::nullopt;
    const auto parsed = parse_quantity(node->scalar, of.dimension);
    if (parsed.ok && of.name == "scaling_efficiency" && parsed.value > 1)
      fault(*node, fmt::format("the bound of '{}' is {}, a share is at most 1", of.text, node->scalar),
            "write 0.9 for 90 %");
    if (parsed.ok) return parsed.value;
    fault(*node, fmt::format("the bound of '{}': {}", of.text, parsed.error),
          parsed.hint.empty() ? fmt::format("a {} is expected", to_string(of.dimension)) : parsed.hint);
    return std::nullopt;
  }

  void check_cost(const Metric& of, const Node& at) {
    if ((of.is_money || of.name == "rack_units") && document_.find("cost") == nullptr)
      fault(at, fmt::format("'{}' needs prices", of.text), "name a cost model: `cost: prices.yaml`");
  }

  void check_ranges(const SweepPlan& plan) {
    for (const auto& axis : plan.axes) {
      if (axis.is_range() && !plan.samples)
        fault(*document_.find("vary")->find(axis.name),
              fmt::format("the range of axis '{}' has no step, and all combinations are swept", axis.name),
              "add 'step' or 'factor', or sweep at random with `samples`");
    }
    if (plan.axes.empty() && plan.samples)
      fault(*document_.find("samples"), "'samples' without anything to vary", "add `vary`");
  }

  const Node& document_;
  std::string folder_;
  Diagnostics& faults_;
};

Price read_price(const Node& node, Diagnostics& faults) {
  Price out;
  const auto number = [&](const char* key, double otherwise) {
    const auto* found = node.find(key);
    return found == nullptr ? otherwise : as_quantity(*found, Dimension::number);
  };
  out.price = number("price", 0);
  out.low = number("low", out.price);
  out.high = number("high", out.price);
  out.per_year = number("per_year", 0);
  out.per_metre = number("per_metre", 0);
  out.watts = number("watts", 0);
  out.rack_units = number("rack_units", 0);
  if (const auto* includes = node.find("includes")) {
    for (const auto& item : includes->items) out.includes.push_back(item.scalar);
  }
  out.source = node.find("source")->scalar;
  if (const auto* confidence = node.find("confidence")) out.is_assumed = confidence->scalar == "assumed";
  out.location = node.location();
  if (out.low > out.price || out.high < out.price)
    faults.push_back(
        node.error(fmt::format("the interval {:g} to {:g} does not hold the price {:g}", out.low, out.high, out.price),
                   "write low <= price <= high"));
  return out;
}

}  // namespace

CostModel read_cost(const Node& document, Diagnostics& faults) {
  CostModel out;
  out.name = document.find("name")->scalar;
  out.file = document.source ? document.source->name : "";
  if (const auto* one = document.find("currency")) out.currency = one->scalar;
  if (const auto* one = document.find("years")) out.years = as_quantity(*one, Dimension::number);
  for (const auto& kind : document.find("prices")->entries) {
    for (const auto& entry : kind.value.entries)
      out.prices[kind.key.scalar][entry.key.scalar] = read_price(entry.value, faults);
  }
  if (const auto* licences = document.find("licences")) {
    for (const auto& entry : licences->entries) {
      Licence licence;
      licence.name = entry.key.scalar;
      if (const auto* when = entry.value.find("when")) {
        for (const auto& item : when->items) licence.when.push_back(item.scalar);
      }
      if (const auto* per = entry.value.find("per")) licence.per = per->scalar;
      licence.price = read_price(entry.value, faults);
      out.licences.push_back(std::move(licence));
    }
  }
  if (const auto* one = document.find("kilowatt_hour")) out.kilowatt_hour = read_price(*one, faults);
  if (const auto* one = document.find("rack_unit")) out.rack_unit = read_price(*one, faults);
  if (const auto* one = document.find("power_usage_effectiveness"))
    out.power_usage_effectiveness = as_quantity(*one, Dimension::number);
  if (const auto* one = document.find("load")) out.load = as_quantity(*one, Dimension::number);
  return out;
}

SweepPlan read_plan(const Node& document, const std::string& folder, std::string& cost_file, Diagnostics& faults) {
  return PlanReader(document, folder, faults).read(cost_file);
}

}  // namespace fabricast::config
