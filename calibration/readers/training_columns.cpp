// SPDX-License-Identifier: Apache-2.0
#include "readers/training_columns.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "readers/text.hpp"

namespace fabricast::readers {
namespace {

constexpr int k_gpus_per_host = 8;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// Lower case letters, digits and what parts units; no blanks, underscores or hyphens.
std::string plain(std::string_view text) {
  auto out = lower(text);
  std::erase_if(out, [](char c) { return !is_letter(c) && !is_digit(c) && c != '/' && c != '('; });
  return out;
}

struct Name {
  std::string_view begins;
  Column column;
  double unit = 1;
  bool is_whole = true;
};

/// The first that fits counts.
constexpr std::array k_names{
    Name{"gpus", Column::gpus},
    Name{"numgpus", Column::gpus},
    Name{"nodes", Column::hosts},
    Name{"hosts", Column::hosts},
    Name{"model", Column::model},
    Name{"precision", Column::precision},
    Name{"batchpergpu", Column::batch},
    Name{"batch", Column::batch},
    Name{"microbatchsize", Column::batch},
    Name{"globalbatchsize", Column::global_batch},
    Name{"globalbatch", Column::global_batch},
    Name{"gbs", Column::global_batch},
    Name{"tokens", Column::tokens},
    Name{"seqlen(t", Column::tokens},
    Name{"sequencelength", Column::tokens},
    Name{"kvlength", Column::kv_length},
    Name{"hidden", Column::hidden},
    Name{"path", Column::path},
    Name{"exchange", Column::exchange},
    Name{"bucketcapmib", Column::bucket_mib},
    Name{"stepus", Column::step, 1e-6},
    Name{"stepms", Column::step, 1e-3},
    Name{"step(ms", Column::step, 1e-3},
    Name{"steptimems", Column::step, 1e-3},
    Name{"steps", Column::step},
    Name{"steptimes", Column::step},
    Name{"layerus", Column::layer, 1e-6},
    Name{"throughput(s/s", Column::samples_rate},
    Name{"throughput(t/s", Column::tokens_rate},
    Name{"throughput(t/s/gpu", Column::tokens_rate_of_one},
    Name{"tps/gpu", Column::tokens_rate_of_one},
    Name{"tokens/s/gpu", Column::tokens_rate_of_one},
    Name{"tokens/s", Column::tokens_rate, 1, false},
    Name{"tokenspers", Column::tokens_rate, 1, false},
    Name{"images/s", Column::samples_rate, 1, false},
    Name{"imagespers", Column::samples_rate, 1, false},
    Name{"img/s", Column::samples_rate, 1, false},
    Name{"samples/s", Column::samples_rate, 1, false},
    Name{"samplespers", Column::samples_rate, 1, false},
    Name{"medianthroughputsamples/s", Column::samples_rate, 1, false},
    Name{"traintimes", Column::train_time},
};

constexpr std::array<std::string_view, 9> k_families{"resnet", "vgg",  "inception", "alexnet", "densenet",
                                                     "bert",   "gnmt", "gpt",       "llama"};

ColumnRole role_of(const std::string& cell) {
  const auto name = plain(cell);
  const auto found = std::find_if(k_names.begin(), k_names.end(), [&](const Name& one) {
    return one.is_whole ? name == one.begins : name.starts_with(one.begins);
  });
  if (found != k_names.end()) return {found->column, found->unit, cell};
  const bool is_model = std::any_of(k_families.begin(), k_families.end(), [&](auto family) {
    return name.starts_with(family) || name.starts_with("model" + std::string(family));
  });
  return {is_model ? Column::model_rate : Column::other, 1, cell};
}

std::vector<std::string> split_at(std::string_view line, char mark) {
  std::vector<std::string> cells;
  while (true) {
    const auto end = line.find(mark);
    cells.emplace_back(trim(line.substr(0, end)));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.insert(word);
    word.clear();
  };
  for (const char c : lower(text)) {
    if (!is_letter(c) && !is_digit(c)) {
      end_word();
      continue;
    }
    // "resnet50" is two words, "8b" one.
    if (is_digit(c) && !word.empty() && is_letter(word.back())) {
      if (word.size() > 1 && word.back() == 'v') word.pop_back();  // "inceptionv3"
      end_word();
    }
    word += c;
  }
  end_word();
  words.erase("v");
  return words;
}

}  // namespace

std::vector<std::string> cells_of(std::string_view line) {
  line = trim(line);
  if (line.find('\t') != std::string_view::npos) return split_at(line, '\t');
  if (line.find('|') != std::string_view::npos) {
    if (line.front() == '|') line.remove_prefix(1);
    if (!line.empty() && line.back() == '|') line.remove_suffix(1);
    return split_at(line, '|');
  }
  std::vector<std::string> cells;
  for (const auto& word : split_words(line)) cells.emplace_back(word.text);
  return cells;
}

std::vector<ColumnRole> roles_of_head(std::string_view line) {
  line = trim(line);
  while (!line.empty() && line.front() == '#') line = trim(line.substr(1));
  if (line.empty() || is_digit(line.front())) return {};
  std::vector<ColumnRole> roles;
  for (const auto& cell : cells_of(line)) roles.push_back(role_of(cell));
  const auto has = [&](auto... columns) {
    return std::any_of(roles.begin(), roles.end(),
                       [&](const ColumnRole& role) { return ((role.column == columns) || ...); });
  };
  using C = Column;
  const bool has_result = has(C::step, C::layer, C::samples_rate, C::tokens_rate, C::tokens_rate_of_one, C::train_time);
  if (has_result) {
    // A column named after a model beside a rate is a label.
    for (auto& role : roles) {
      if (role.column == C::model_rate) role.column = C::other;
    }
    return has(C::gpus, C::hosts, C::global_batch, C::tokens_rate_of_one) ? roles : std::vector<ColumnRole>{};
  }
  const bool is_wide = has(C::model_rate) && (has(C::gpus) || lower(roles.front().name) == "setup");
  return is_wide ? roles : std::vector<ColumnRole>{};
}

std::optional<double> number_in(std::string_view cell) {
  std::string digits(trim(cell));
  if (digits.ends_with(',')) digits.pop_back();
  // Commas part thousands; one that stands elsewhere ("1,53") is no number of an English table.
  const auto point = std::min(digits.find('.'), digits.size());
  for (auto comma = digits.find(','); comma != std::string::npos; comma = digits.find(',', comma + 1)) {
    const auto end = std::min(digits.find_first_not_of("0123456789", comma + 1), digits.size());
    if (comma > point || comma == 0 || end - comma != 4) return std::nullopt;
  }
  std::erase(digits, ',');
  if (digits.ends_with('%')) digits.pop_back();
  const auto printed = parse_printed(digits);
  return printed ? std::optional(printed->value) : std::nullopt;
}

std::optional<Precision> precision_in(std::string_view text) {
  const auto words = plain(text);
  if (contains(words, "fp8") || contains(words, "float8")) return Precision::fp8;
  if (contains(words, "bf16")) return Precision::bf16;
  if (contains(words, "tf32")) return Precision::tf32;
  if (contains(words, "fp16")) return Precision::fp16;
  return contains(words, "fp32") ? std::optional(Precision::fp32) : std::nullopt;
}

std::optional<int> gpus_in(std::string_view text) {
  const auto low = lower(text);
  for (auto at = low.find("gpu"); at != std::string::npos; at = low.find("gpu", at + 1)) {
    // Back over "x H100 " to the number.
    auto end = at;
    while (end > 0 && (low[end - 1] == ' ' || low[end - 1] == '-' || low[end - 1] == 'x')) --end;
    if (std::string_view(low).substr(0, end).ends_with("single")) return 1;
    auto begin = end;
    while (begin > 0 && is_digit(low[begin - 1])) --begin;
    const bool is_number = begin < end && (begin == 0 || !is_letter(low[begin - 1]));
    if (is_number) return leading_count(std::string_view(low).substr(begin));
    const auto times = low.rfind('x', at);
    if (times == std::string::npos || times == 0 || !is_digit(low[times - 1])) continue;
    begin = times;
    while (begin > 0 && is_digit(low[begin - 1])) --begin;
    return leading_count(std::string_view(low).substr(begin));
  }
  return std::nullopt;
}

std::optional<int> gpus_of_system(std::string_view name) {
  const auto low = lower(name);
  // "7x8xh100", "2xMODELx8h100", "MODELx8h100": GPUs of a host stand before their name, hosts at the front.
  constexpr std::array<std::string_view, 6> k_gpus{"h100", "h200", "a100", "b200", "v100", "l40"};
  const auto first = low.find('x');
  const bool is_counted =
      !low.empty() && is_digit(low.front()) && first != std::string::npos && is_digit(low[first - 1]);
  const int hosts_before = is_counted ? leading_count(low).value_or(1) : 1;
  for (const auto gpu : k_gpus) {
    auto at = low.find(gpu);
    if (at == std::string::npos || at < 2) continue;
    if (low[at - 1] == 'x') --at;
    if (!is_digit(low[at - 1])) continue;
    const bool is_alone = first + 1 >= at;  // "8xh100": no hosts
    return (is_alone ? 1 : hosts_before) * (low[at - 1] - '0');
  }
  if (const auto shape = low.find("xbm.gpu"); shape != std::string::npos)
    return hosts_before % k_gpus_per_host == 0 ? hosts_before : hosts_before * k_gpus_per_host;
  for (auto at = low.find("_n"); at != std::string::npos; at = low.find("_n", at + 1)) {
    if (const auto hosts =
            at + 2 < low.size() && is_digit(low[at + 2]) ? leading_count(low.substr(at + 2)) : std::optional<int>{})
      return *hosts * k_gpus_per_host;
  }
  return k_gpus_per_host;
}

bool is_same_model(std::string_view one, std::string_view other) {
  const auto a = words_of(one);
  const auto b = words_of(other);
  const auto& fewer = a.size() <= b.size() ? a : b;
  const auto& more = a.size() <= b.size() ? b : a;
  return !fewer.empty() && std::includes(more.begin(), more.end(), fewer.begin(), fewer.end());
}

}  // namespace fabricast::readers
