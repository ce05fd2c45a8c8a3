// SPDX-License-Identifier: Apache-2.0
// Whether a pattern of the table of keys declares a name: at run time for names in files, when the program is compiled
// for names in it.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace fabricast::parameter_table {

/// What stands for a part of a name in braces.
struct Part {
  std::string_view name;
  std::string_view words;  ///< for readers: the words themselves, or what they name
  bool is_open = false;    ///< users add words: any does
  bool may_hold_dots = false;
};

inline constexpr std::array k_parts{
    Part{"algorithm", "ring, tree, nvls, nvls_tree, collnet_direct, pat, msccl, chain, direct"},
    Part{"protocol", "ll, ll128, simple"},
    Part{"transport", "nvlink, pcie, shm, network, network_staged, socket, loopback"},
    Part{"collective", "all_reduce, all_gather"},
    Part{"kernel", "ll, all_reduce, all_gather, reduce_scatter"},
    Part{"windowed", "all_reduce, all_gather, reduce_scatter"},
    Part{"lines", "first, own, peer, multicast"},
    Part{"library",
         "open-mpi-ucx, open-mpi-ucx-tcp, open-mpi-openib, open-mpi-ofi, mvapich2-gdr, cray-mpich, cray-mpich-cxi, "
         "mpich, intel-mpi, verbs, tcp"},
    Part{"precision", "fp32, tf32, fp16, bf16, fp8"},
    Part{"mode", "passthrough, sr-iov, pvrdma, vmxnet3, virtio, vgpu, mig"},
    Part{"stack", "rdma, tcp"},
    Part{"architecture", "a GPU architecture, see `architecture.*`", true},
    Part{"processor", "a processor of the catalogue", true},
    Part{"device", "a GPU or adapter family", true},
    Part{"gpu", "a GPU family and its memory", true},
    Part{"profile", "a vGPU or MIG profile", true},
    Part{"slices", "memory slices of a GPU", true},
    Part{"feature", "what a release allows", true},
    Part{"class", "a class of benchmarks", true},
    Part{"release", "a release", true, true},
    Part{"kind", "BENCHMARK.DEVICES.ADAPTERS.TRANSPORT.HOSTS of logs", true, true},
    Part{"value", "another parameter", true, true},
};

constexpr const Part* part_of(std::string_view name) {
  const auto* const found = std::ranges::find(k_parts, name, &Part::name);
  return found == k_parts.end() ? nullptr : found;
}

/// What is left of a pattern: the inside of an optional part first, then the rest.
struct PatternRest {
  std::string_view inside, after;

  [[nodiscard]] constexpr bool is_empty() const { return inside.empty() && after.empty(); }
  [[nodiscard]] constexpr std::string_view front() const { return inside.empty() ? after : inside; }
  [[nodiscard]] constexpr PatternRest without(std::size_t length) const {
    return inside.empty() ? PatternRest{{}, after.substr(length)} : PatternRest{inside.substr(length), after};
  }
};

constexpr bool matches(PatternRest pattern, std::string_view name);

constexpr bool is_word_character(char c, bool may_be_dot) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-' || c == '_' ||
         (may_be_dot && c == '.');
}

constexpr bool matches_part(const Part& part, PatternRest rest, std::string_view name) {
  if (name.starts_with("{}")) return matches(rest, name.substr(2));
  if (part.is_open) {
    for (std::size_t length = 1; length <= name.size() && is_word_character(name[length - 1], part.may_hold_dots);
         ++length)
      if (matches(rest, name.substr(length))) return true;
    return false;
  }
  for (auto words = part.words; !words.empty();) {
    const auto end = std::min(words.find(", "), words.size());
    const auto word = words.substr(0, end);
    if (name.starts_with(word) && matches(rest, name.substr(word.size()))) return true;
    words.remove_prefix(std::min(words.size(), end + 2));
  }
  return false;
}

constexpr bool matches(PatternRest pattern, std::string_view name) {
  while (!pattern.is_empty()) {
    const auto front = pattern.front();
    const auto plain = std::min(front.find_first_of("{["), front.size());
    if (!name.starts_with(front.substr(0, plain))) return false;
    name.remove_prefix(plain);
    pattern = pattern.without(plain);
    if (plain == front.size()) continue;
    const bool is_optional = front[plain] == '[';
    const auto length = front.find(is_optional ? ']' : '}') + 1 - plain;
    const auto part = front.substr(plain + 1, length - 2);
    const auto rest = pattern.without(length);
    if (is_optional) return matches(rest, name) || matches(PatternRest{part, rest.after}, name);
    const auto* const found = part_of(part);
    return found != nullptr && matches_part(*found, rest, name);
  }
  return name.empty();
}

/// True when `pattern` (see ParameterKey) declares `name`; "{}" in the name stands for any word of a part.
constexpr bool matches(std::string_view pattern, std::string_view name) {
  return matches(PatternRest{{}, pattern}, name);
}

}  // namespace fabricast::parameter_table
