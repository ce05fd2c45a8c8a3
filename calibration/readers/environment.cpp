// SPDX-License-Identifier: Apache-2.0
// Settings of the communication libraries that a log names: command lines (`mpirun -x NCCL_ALGO=Ring ...`), exports,
// NCCL's own lines ("NCCL_ALGO set by environment to Ring") and what the collector of the file wrote. Names of these
// libraries only: the rest of an environment is nobody's business.
#include <algorithm>
#include <array>
#include <cctype>

#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

constexpr std::array<std::string_view, 4> k_families{"NCCL_", "UCX_", "MV2_", "OMPI_MCA_"};

bool is_name_char(char c) {
  return (std::isupper(static_cast<unsigned char>(c)) != 0) || (std::isdigit(static_cast<unsigned char>(c)) != 0) ||
         c == '_';
}

bool is_value_char(char c) {
  constexpr std::string_view k_ends = " \t\"'`;)(|&<>";
  return k_ends.find(c) == std::string_view::npos;
}

/// Where the next name of a known library begins, as a whole word; npos when there is none.
std::size_t next_name(std::string_view text, std::size_t from) {
  std::size_t first = std::string_view::npos;
  for (const auto family : k_families) {
    for (auto at = text.find(family, from); at != std::string_view::npos; at = text.find(family, at + 1)) {
      const bool is_word = at == 0 || (!is_name_char(text[at - 1]) && text[at - 1] != '$');
      if (!is_word) continue;
      first = std::min(first, at);
      break;
    }
  }
  return first;
}

std::string_view leading_value(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_value_char(text[end])) ++end;
  auto value = text.substr(0, end);
  // `srun --export=ALL,NCCL_ALGO=Ring,NCCL_PROTO=Simple`: the next variable ends it, the next adapter of a list does
  // not.
  for (auto comma = value.find(','); comma != std::string_view::npos; comma = value.find(',', comma + 1)) {
    auto name_end = comma + 1;
    while (name_end < value.size() && is_name_char(value[name_end])) ++name_end;
    if (name_end > comma + 1 && name_end < value.size() && value[name_end] == '=') value = value.substr(0, comma);
  }
  while (!value.empty() && (value.back() == '.' || value.back() == ',')) value.remove_suffix(1);
  return value;
}

/// `#export NCCL_ALGO=Ring`: written, not run.
bool is_commented_out(std::string_view text) {
  const auto line = trim(text);
  const auto code = line.find_first_not_of("# ");
  return line.starts_with('#') && code != std::string_view::npos &&
         (line.substr(code).starts_with("export ") || line.substr(code).starts_with("setenv "));
}

/// Whether the word before `at` gives a variable by two words: `setenv NCCL_ALGO Ring`, `mpiexec -genv NCCL_ALGO Ring`.
bool is_given_by_words(std::string_view text, std::size_t at) {
  const auto before = split_words(text.substr(0, at));
  if (before.empty()) return false;
  const auto word = before.back().text;
  return word == "setenv" || word == "-env" || word == "-genv";
}

/// `--mca NAME VALUE` of a command line is OMPI_MCA_NAME.
void add_components(std::string_view text, std::map<std::string, std::string>& settings) {
  constexpr std::string_view k_option = "mca ";
  for (auto at = text.find(k_option); at != std::string_view::npos; at = text.find(k_option, at + 1)) {
    if (at == 0 || text[at - 1] != '-') continue;
    auto rest = trim(text.substr(at + k_option.size()));
    const auto name = rest.substr(0, rest.find(' '));
    const auto value = leading_value(trim(rest.substr(name.size())));
    const bool is_name =
        std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
    if (is_name && !name.empty() && !value.empty()) settings["OMPI_MCA_" + std::string(name)] = std::string(value);
  }
}

}  // namespace

void add_settings(std::string_view text, std::map<std::string, std::string>& settings) {
  constexpr std::string_view k_by_environment = " set by environment to ";
  constexpr std::size_t k_longest = 100;
  if (is_commented_out(text)) return;
  add_components(text, settings);
  for (auto at = next_name(text, 0); at != std::string_view::npos; at = next_name(text, at + 1)) {
    auto end = at;
    while (end < text.size() && is_name_char(text[end])) ++end;
    auto rest = text.substr(end);
    if (rest.starts_with('=')) {
      rest.remove_prefix(1);
      if (rest.starts_with('"') || rest.starts_with('\'')) rest.remove_prefix(1);
    } else if (rest.starts_with(k_by_environment)) {
      rest.remove_prefix(k_by_environment.size());
    } else if (rest.starts_with(' ') && is_given_by_words(text, at)) {
      rest = trim(rest);
    } else {
      continue;
    }
    const auto value = leading_value(rest);
    if (value.empty() || value.size() > k_longest || end - at > k_longest) continue;
    settings[std::string(text.substr(at, end - at))] = std::string(value);
  }
}

void note_nccl_line(std::string_view text, NcclSeen& seen) {
  if (!contains(text, "NCCL INFO")) return;
  if (contains(text, "NVLS multicast support is not available"))
    seen.nvls = seen.nvls.value_or(false);
  else if (contains(text, "NVLS multicast support is available"))
    seen.nvls = true;
  seen.has_p2p = seen.has_p2p || contains(text, " via P2P/");
  seen.has_shm = seen.has_shm || contains(text, " via SHM");
  seen.has_ib = seen.has_ib || contains(text, " via NET/IB");
  seen.has_gdr = seen.has_gdr || (contains(text, " via NET/") && contains(text, "/GDRDMA"));
  seen.has_socket = seen.has_socket || contains(text, " via NET/Socket");
}

void add_environments(const LogText& log, std::vector<MeasuredLog>& tables) {
  std::map<std::string, std::string> lasting;
  for (const auto& [key, value] : log.provenance) {
    // Notes speak of other runs too.
    if (key != "notes" && key != "source") add_settings(value, lasting);
  }
  std::size_t next = 0;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto& table = tables[t];
    // Lines up to the end of the table belong to it; its preamble may follow NCCL's lines.
    int last = table.rows.empty() ? table.line : table.rows.back().line;
    if (t + 1 == tables.size()) last = log.lines.empty() ? 0 : log.lines.back().number;
    auto own = lasting;
    for (; next < log.lines.size() && log.lines[next].number <= last; ++next) {
      const auto& text = log.lines[next].text;
      add_settings(text, own);
      note_nccl_line(text, table.header.nccl_seen);
      if (trim(text).starts_with("export ") || trim(text).starts_with("setenv ")) add_settings(text, lasting);
    }
    table.header.environment = std::move(own);
  }
}

}  // namespace fabricast::readers
