// SPDX-License-Identifier: Apache-2.0
#include "fit/mpi_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>

#include "fit/stated_settings.hpp"
#include "readers/readers.hpp"

namespace fabricast::fit {

namespace {

using Words = std::set<std::string>;

bool has_any(const Words& words, std::initializer_list<const char*> of) {
  return std::ranges::any_of(of, [&](const char* word) { return words.contains(word); });
}

/// Bytes of "8k", "64KB", "1048576", "inf"; nothing of lists by memory ("host:1m,cuda:512k") and of "auto".
std::optional<std::int64_t> bytes_of(std::string text) {
  text = lower(text);
  if (text == "inf") return std::int64_t{1} << 40;
  if (text.ends_with('b')) text.pop_back();
  int shift = 0;
  if (!text.empty()) shift = text.back() == 'k' ? 10 : text.back() == 'm' ? 20 : text.back() == 'g' ? 30 : 0;
  if (shift > 0) text.pop_back();
  const auto count = readers::parse_count(text);
  if (!count || *count <= 0) return std::nullopt;
  return std::int64_t{*count} << shift;
}

bool is_off(const std::string& value) {
  return value == "0" || value == "n" || value == "no" || value == "false" || value == "off";
}
bool is_on(const std::string& value) { return value == "1" || value == "y" || value == "yes" || value == "true"; }

/// A list of transports or components; `is_without`: all but these.
struct List {
  bool is_without = false;
  Words words;

  explicit List(std::string text) {
    is_without = text.starts_with('^');
    text = lower(is_without ? text.substr(1) : text) + ",";
    std::string word;
    for (const char c : text) {
      if (c != ',')
        word += c;
      else if (!word.empty())
        words.insert(std::exchange(word, {}));
    }
  }
};

// coll_tuned's numbers, from 1; empty: no key stands for it. [ompi/mca/coll/tuned, coll_tuned_*_decision.c of 4.x]
const std::map<std::string, std::vector<const char*>>& tuned_algorithms() {
  static const std::map<std::string, std::vector<const char*>> by_collective{
      {"allreduce", {"", "reduce_broadcast", "recursive_doubling", "ring", "", "rabenseifner"}},
      {"bcast",
       {"linear", "chain", "", "split_binary", "binary", "binomial", "knomial", "scatter_doubling",
        "scatter_allgather"}},
      {"reduce", {"linear", "chain", "", "binary", "binomial", "", "rabenseifner"}},
      {"alltoall", {"linear", "pairwise", "bruck"}},
      {"allgather", {"linear", "bruck", "recursive_doubling", "ring", "neighbor_exchange"}},
      {"reduce_scatter", {"", "recursive_halving", "ring", "butterfly"}},
      {"gather", {"linear", "binomial", "linear_sync"}},
      {"scatter", {"linear", "binomial", "linear_nb"}}};
  return by_collective;
}

/// Takes keys from variables and notes those whose values are understood.
class MpiEnvironment {
 public:
  MpiEnvironment(const MeasuredLog& log, SuggestedLog& out) : log_(log), out_(out) {}

  void take_library() {
    const auto pml = lower(setting(log_, "OMPI_MCA_pml"));
    const List btl(setting(log_, "OMPI_MCA_btl"));
    if (pml == "ucx") say("OMPI_MCA_pml", "mpi", "open-mpi-ucx");
    if (pml == "cm") say("OMPI_MCA_pml", "mpi", "open-mpi-ofi");
    if (pml == "ob1" || pml == "^ucx") say("OMPI_MCA_pml", "mpi", "open-mpi-openib");
    if (pml == "ucx" || pml == "cm" || btl.words.empty()) {
      out_.read.insert("OMPI_MCA_btl");  // not used then
    } else if (!btl.is_without) {
      say("OMPI_MCA_btl", "mpi", "open-mpi-openib");
      if (btl.words.contains("tcp") && !btl.words.contains("openib")) say("OMPI_MCA_btl", "transport", "tcp");
    }
  }

  void take_transports() {
    const auto text = setting(log_, "UCX_TLS");
    if (text.empty()) return;
    out_.read.insert("UCX_TLS");
    const List list(text);
    const auto& words = list.words;
    if (list.is_without) {
      if (has_any(words, {"ib", "rc"}) && has_any(words, {"ib", "ud"}) && has_any(words, {"ib", "dc"}))
        set_key(out_.software, "transport", "tcp");
      if (words.contains("gdr_copy")) set_key(out_.software, "gdrcopy", "off");
      if (words.contains("cma")) set_key(out_.software, "cross_memory_attach", "off");
      return;
    }
    if (words.contains("all")) return;
    const auto is_verbs = [](const std::string& word) {
      return word.starts_with("rc") || word.starts_with("ud") || word.starts_with("dc") || word == "ib";
    };
    if (words.contains("tcp") && std::ranges::none_of(words, is_verbs)) set_key(out_.software, "transport", "tcp");
    const bool has_memory = has_any(words, {"sm", "shm", "mm", "posix", "sysv", "xpmem", "knem", "cma"});
    if (!has_memory)
      out_.comments.push_back(
          "UCX_TLS has no shared memory: ranks of a host meet in the adapter, no key stands for it");
    if (has_memory && !has_any(words, {"sm", "shm", "xpmem", "knem", "cma"}))
      set_key(out_.software, "cross_memory_attach", "off");
    const bool has_gpus = log_.header.send_buffer == BufferPlace::device;
    if (has_gpus && words.contains("cuda_copy") && !has_any(words, {"cuda", "gdr_copy"}))
      set_key(out_.software, "gdrcopy", "off");
  }

  /// Messages of `variable` bytes and more are announced, or those above.
  void take_size(const char* variable, const char* key, std::int64_t less = 0) {
    auto text = setting(log_, variable);
    if (lower(text) == "auto") out_.read.insert(variable);
    if (lower(text).starts_with("host:")) text = text.substr(5, text.find(',') - 5);
    if (const auto bytes = bytes_of(text); bytes && *bytes > less)
      say(variable, key, fmt::format("{} B", *bytes - less));
  }
  void take_off(const char* variable, const char* key) {
    const auto value = lower(setting(log_, variable));
    if (is_off(value)) say(variable, key, "off");
    if (is_on(value) || value == "try") out_.read.insert(variable);
  }
  void take_collectives(const char* variable, const char* library) {
    const auto value = lower(setting(log_, variable));
    if (is_on(value)) say(variable, "mpi_collectives", library);
    if (is_off(value)) out_.read.insert(variable);
  }

  void take_algorithm() {
    for (const auto& [collective, names] : tuned_algorithms()) {
      const auto variable = fmt::format("OMPI_MCA_coll_tuned_{}_algorithm", collective);
      const auto number = readers::parse_count(setting(log_, variable.c_str()));
      if (!number) continue;
      const bool is_read = is_on(lower(setting(log_, "OMPI_MCA_coll_tuned_use_dynamic_rules")));
      const bool is_this = std::string(to_string(*log_.benchmark)) == "osu_" + collective;
      if (*number == 0 || !is_this || !is_read) out_.read.insert(variable);
      if (is_this && !is_read)
        out_.comments.push_back(variable + ": not read by Open MPI without coll_tuned_use_dynamic_rules");
      if (*number == 0 || !is_this || !is_read || std::cmp_greater(*number, names.size())) continue;
      const std::string name = names[static_cast<std::size_t>(*number) - 1];
      if (name.empty()) continue;
      out_.read.insert(variable);
      set_key(out_.workload, "algorithm", name);
    }
    out_.read.insert("OMPI_MCA_coll_tuned_use_dynamic_rules");
  }

 private:
  void say(const char* variable, const char* key, const std::string& value) {
    out_.read.insert(variable);
    set_key(out_.software, key, value);
  }

  const MeasuredLog& log_;
  SuggestedLog& out_;
};

struct Hint {
  std::string_view beginning;  ///< of variables
  std::string_view text;       ///< empty: they change no time
};

constexpr auto k_adapters = "describe hosts with these adapters alone";
constexpr std::array k_hints{Hint{"UCX_NET_DEVICES", k_adapters},
                             Hint{"MV2_IBA_HCA", k_adapters},
                             Hint{"OMPI_MCA_btl_openib_if_", k_adapters},
                             Hint{"OMPI_MCA_btl_tcp_if_", k_adapters},
                             Hint{"UCX_MAX_RNDV_", "the parameter mpi.open-mpi-ucx.max_rails stands for it"},
                             Hint{"UCX_RC_SEG_SIZE", "the parameter mpi.open-mpi-ucx.eager_segment stands for it"},
                             Hint{"UCX_IB_SEG_SIZE", "the parameter mpi.open-mpi-ucx.eager_segment stands for it"},
                             Hint{"UCX_LOG_", ""},
                             Hint{"UCX_WARN_", ""},
                             Hint{"UCX_ERROR_", ""},
                             Hint{"UCX_HANDLE_ERRORS", ""},
                             Hint{"UCX_VFS_", ""},
                             Hint{"UCX_STATS_", ""},
                             Hint{"UCX_MODULE_", ""},
                             Hint{"UCX_IB_GID_INDEX", ""},
                             Hint{"OMPI_MCA_btl_base_", ""},
                             Hint{"OMPI_MCA_btl_openib_warn_", ""},
                             Hint{"OMPI_MCA_btl_openib_allow_ib", ""},
                             Hint{"OMPI_MCA_opal_warn_", ""},
                             Hint{"OMPI_MCA_opal_cuda_support", ""},
                             Hint{"OMPI_MCA_mpi_show_", ""},
                             Hint{"OMPI_MCA_orte_", ""},
                             Hint{"OMPI_MCA_plm_", ""},
                             Hint{"OMPI_MCA_oob_", ""},
                             Hint{"OMPI_MCA_osc", ""},
                             Hint{"MV2_USE_CUDA", ""},
                             Hint{"MV2_SHOW_", ""}};

}  // namespace

void add_mpi_environment(const MeasuredLog& log, SuggestedLog& out) {
  MpiEnvironment environment(log, out);
  environment.take_library();
  environment.take_transports();
  environment.take_size("UCX_RNDV_THRESH", "eager_limit", 1);
  environment.take_size("UCX_RNDV_FRAG_SIZE", "staging_chunk");
  environment.take_size("MV2_IBA_EAGER_THRESHOLD", "eager_limit");
  environment.take_size("MV2_GPUDIRECT_LIMIT", "gpudirect_limit");
  environment.take_size("MV2_CUDA_BLOCK_SIZE", "staging_chunk");
  environment.take_size("OMPI_MCA_btl_openib_cuda_rdma_limit", "gpudirect_limit");
  environment.take_off("UCX_IB_GPU_DIRECT_RDMA", "gpudirect_rdma");
  environment.take_off("OMPI_MCA_btl_openib_want_cuda_gdr", "gpudirect_rdma");
  environment.take_off("MV2_USE_GPUDIRECT", "gpudirect_rdma");
  environment.take_off("MV2_USE_GPUDIRECT_RDMA", "gpudirect_rdma");
  environment.take_off("MV2_USE_GPUDIRECT_GDRCOPY", "gdrcopy");
  environment.take_off("MV2_USE_GDRCOPY", "gdrcopy");
  environment.take_off("MV2_SMP_USE_CMA", "cross_memory_attach");
  environment.take_collectives("OMPI_MCA_coll_hcoll_enable", "hcoll");
  environment.take_collectives("OMPI_MCA_coll_ucc_enable", "ucc");
  environment.take_algorithm();
}

std::optional<std::string> mpi_variable_hint(std::string_view variable) {
  const auto* found =
      std::ranges::find_if(k_hints, [&](const Hint& hint) { return variable.starts_with(hint.beginning); });
  if (found == k_hints.end()) return std::nullopt;
  return std::string(found->text);
}

}  // namespace fabricast::fit
