// SPDX-License-Identifier: Apache-2.0
// Designs and plans as JSON: what worker processes answer, stores keep and --format jsonl prints. Numbers are written
// so that reading gives the same bits.
#include <array>
#include <nlohmann/json.hpp>

#include "base/sha256.hpp"
#include "fabricast/sweep.hpp"

namespace fabricast {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array k_statuses = {"feasible", "infeasible", "invalid", "failed"};

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json out = Json::object();
  for (const auto& entry : pairs) out[entry.first] = entry.second;
  return out;
}

Json settings_json(const std::vector<SweepSetting>& settings) {
  Json out = Json::array();
  for (const auto& one : settings) out.push_back({{"path", one.path}, {"value", one.value}});
  return out;
}

std::vector<SweepSetting> settings_from(const Json& json) {
  std::vector<SweepSetting> out;
  for (const auto& one : json) out.push_back({one.at("path"), one.at("value")});
  return out;
}

Json bill_json(const std::vector<CostLine>& bill) {
  Json out = Json::array();
  for (const auto& line : bill)
    out.push_back({{"what", line.what},
                   {"count", line.count},
                   {"once", line.once},
                   {"low", line.low},
                   {"high", line.high},
                   {"per_year", line.per_year},
                   {"source", line.source},
                   {"is_assumed", line.is_assumed}});
  return out;
}

Json inputs_json(const std::vector<std::pair<std::string, std::string>>& inputs) {
  Json out = Json::array();
  for (const auto& input : inputs) out.push_back({{"path", input.first}, {"sha256", input.second}});
  return out;
}

Json choices_json(const std::vector<SweepChoice>& choices) {
  Json out = Json::array();
  for (const auto& choice : choices)
    out.push_back({{"label", choice.label}, {"settings", settings_json(choice.settings)}});
  return out;
}

/// What results depend on.
Json work_json(const SweepPlan& plan, const std::string& version) {
  Json out{{"version", version},
           {"scenario", plan.scenario_file},
           {"parameters", plan.parameter_files},
           {"set", settings_json(plan.settings)},
           {"designs", choices_json(plan.designs)},
           {"seed", plan.seed},
           {"samples", plan.samples ? Json(*plan.samples) : Json()}};
  out["axes"] = Json::array();
  for (const auto& axis : plan.axes)
    out["axes"].push_back({{"name", axis.name},
                           {"choices", choices_json(axis.choices)},
                           {"path", axis.path},
                           {"from", axis.from},
                           {"to", axis.to},
                           {"unit", axis.unit},
                           {"is_logarithmic", axis.is_logarithmic},
                           {"is_whole", axis.is_whole}});
  out["metrics"] = Json::array();
  for (const auto& metric : metrics_of(plan)) out["metrics"].push_back(metric.text);
  return out;
}

std::optional<Metric> metric_of(const Json& json) {
  std::string fault;
  return metric_from(json.get<std::string>(), fault);
}

Json bound_json(const std::optional<double>& bound) { return bound ? Json(*bound) : Json(); }
std::optional<double> bound_from(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

}  // namespace

std::string_view to_string(DesignStatus status) { return k_statuses[static_cast<std::size_t>(status)]; }

const Estimate* DesignResult::find(std::string_view metric) const {
  for (const auto& entry : metrics) {
    if (entry.first == metric) return &entry.second;
  }
  return nullptr;
}

std::string record_of(const DesignResult& result) {
  Json out{{"id", result.index},
           {"name", result.name},
           {"values", pairs_json(result.values)},
           {"settings", settings_json(result.settings)},
           {"status", to_string(result.status)},
           {"reasons", result.reasons}};
  out["metrics"] = Json::object();
  for (const auto& entry : result.metrics)
    out["metrics"][entry.first] = {
        {"value", entry.second.value}, {"low", entry.second.low}, {"high", entry.second.high}};
  out["bottleneck"] = result.bottleneck;
  out["split"] = Json::array();
  for (const auto& part : result.split) out["split"].push_back({{"what", part.what}, {"share", part.share}});
  out["doubts"] = result.doubts;
  out["assumptions"] = result.assumptions;
  out["bill"] = bill_json(result.bill);
  out["inputs"] = inputs_json(result.inputs);
  return text_of(out);
}

std::optional<DesignResult> result_of(const std::string& record) try {
  const auto json = Json::parse(record);
  DesignResult out;
  out.index = json.at("id");
  out.name = json.at("name");
  for (const auto& entry : json.at("values").items()) out.values.emplace_back(entry.key(), entry.value());
  out.settings = settings_from(json.at("settings"));
  for (std::size_t i = 0; i < k_statuses.size(); ++i) {
    if (json.at("status") == k_statuses[i]) out.status = static_cast<DesignStatus>(i);
  }
  out.reasons = json.at("reasons");
  for (const auto& entry : json.at("metrics").items())
    out.metrics.emplace_back(entry.key(),
                             Estimate{entry.value().at("value"), entry.value().at("low"), entry.value().at("high")});
  out.bottleneck = json.at("bottleneck");
  for (const auto& part : json.at("split")) out.split.push_back({part.at("what"), part.at("share")});
  out.doubts = json.at("doubts");
  out.assumptions = json.at("assumptions");
  for (const auto& line : json.at("bill"))
    out.bill.push_back({line.at("what"), line.at("count"), line.at("once"), line.at("per_year"), line.at("low"),
                        line.at("high"), line.at("source"), line.at("is_assumed")});
  for (const auto& input : json.at("inputs")) out.inputs.emplace_back(input.at("path"), input.at("sha256"));
  return out;
} catch (const Json::exception&) { return std::nullopt; }

std::string header_of(const SweepPlan& plan, const std::string& version) {
  Json out = work_json(plan, version);
  out["name"] = plan.name;
  out["file"] = plan.file;
  out["description"] = plan.description;
  out["question"] = plan.question;
  out["top"] = plan.top;
  out["objectives"] = Json::array();
  for (const auto& one : plan.objectives)
    out["objectives"].push_back({{"metric", one.metric.text}, {"is_maximised", one.is_maximised}});
  out["constraints"] = Json::array();
  for (const auto& one : plan.constraints)
    out["constraints"].push_back(
        {{"metric", one.metric.text}, {"at_least", bound_json(one.at_least)}, {"at_most", bound_json(one.at_most)}});
  if (plan.cost)
    out["cost"] = {{"name", plan.cost->name}, {"currency", plan.cost->currency}, {"years", plan.cost->years}};
  out["inputs"] = inputs_json(plan.inputs);
  return text_of(out);
}

std::optional<SweepPlan> plan_of(const std::string& header) try {
  const auto json = Json::parse(header);
  SweepPlan plan;
  plan.name = json.at("name");
  plan.file = json.at("file");
  plan.description = json.at("description");
  plan.question = json.at("question");
  plan.top = json.at("top");
  plan.scenario_file = json.at("scenario");
  plan.parameter_files = json.at("parameters");
  plan.settings = settings_from(json.at("set"));
  plan.seed = json.at("seed");
  if (!json.at("samples").is_null()) plan.samples = json.at("samples").get<int>();
  const auto choices = [](const Json& list) {
    std::vector<SweepChoice> out;
    for (const auto& one : list) out.push_back({one.at("label"), settings_from(one.at("settings"))});
    return out;
  };
  plan.designs = choices(json.at("designs"));
  for (const auto& one : json.at("axes")) {
    SweepAxis axis;
    axis.name = one.at("name");
    axis.choices = choices(one.at("choices"));
    axis.path = one.at("path");
    axis.from = one.at("from");
    axis.to = one.at("to");
    axis.unit = one.at("unit");
    axis.is_logarithmic = one.at("is_logarithmic");
    axis.is_whole = one.at("is_whole");
    plan.axes.push_back(std::move(axis));
  }
  for (const auto& one : json.at("objectives")) {
    const auto metric = metric_of(one.at("metric"));
    if (!metric) return std::nullopt;
    plan.objectives.push_back({*metric, one.at("is_maximised")});
  }
  for (const auto& one : json.at("constraints")) {
    const auto metric = metric_of(one.at("metric"));
    if (!metric) return std::nullopt;
    plan.constraints.push_back({*metric, bound_from(one.at("at_least")), bound_from(one.at("at_most")), {}});
  }
  if (json.contains("cost")) {
    plan.cost = CostModel{};
    plan.cost->name = json["cost"].at("name");
    plan.cost->currency = json["cost"].at("currency");
    plan.cost->years = json["cost"].at("years");
  }
  for (const auto& input : json.at("inputs")) plan.inputs.emplace_back(input.at("path"), input.at("sha256"));
  return plan;
} catch (const Json::exception&) { return std::nullopt; }

std::string fingerprint_of(const SweepPlan& plan, const std::string& version) {
  auto work = work_json(plan, version);
  // Prices are part of results; the plan's own text is not, beyond what stands above.
  work["inputs"] = Json::array();
  for (std::size_t i = 1; i < plan.inputs.size(); ++i) work["inputs"].push_back(plan.inputs[i].second);
  if (plan.inputs.size() == 1 && plan.cost) work["inputs"].push_back(plan.inputs.front().second);
  return sha256(text_of(work));
}

}  // namespace fabricast
