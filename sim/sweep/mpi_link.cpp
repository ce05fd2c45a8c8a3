// SPDX-License-Identifier: Apache-2.0
// Tasks over MPI ranks: rank 0 hands the next task to whoever asks, and takes the texts. A message to a worker is a
// task's number, or nothing when there is no more; a worker's first message is empty, later ones are number and text.
#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "fabricast/sweep.hpp"
#include "sweep/mpi_calls.hpp"

namespace fabricast {

namespace {

using Calls = const FabricastMpiCalls*;

constexpr auto k_pause = std::chrono::microseconds(200);  ///< of rank 0 between looks, so that it leaves its core free
/// SimGrid has MPI functions of its own (SMPI): the plugin must find its library's before them.
constexpr int k_binding = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
constexpr std::size_t k_head = sizeof(std::uint64_t);

/// Number of ranks the launcher says it started; 0 without a launcher (Open MPI, MPICH and Slurm's PMI).
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"}) {
    if (const auto* text = std::getenv(name)) return std::atoi(text);
  }
  return 0;
}

std::string message_of(std::uint64_t index, const std::string& text) {
  std::string out(k_head, '\0');
  std::memcpy(out.data(), &index, k_head);
  return out + text;
}

/// The next message; waits for it.
std::string next_message(Calls calls, int& from) {
  std::size_t size = 0;
  while (calls->probe(&from, &size) == 0) std::this_thread::sleep_for(k_pause);
  std::string text(size, '\0');
  if (calls->receive(from, text.data(), size) != 0) throw std::runtime_error("MPI: a message was lost");
  return text;
}

void send(Calls calls, int to, const std::string& text) {
  if (calls->send(to, text.data(), text.size()) != 0) throw std::runtime_error("MPI: a message could not be sent");
}

void hand_out(Calls calls, int size, const std::vector<std::size_t>& todo,
              const std::function<void(std::size_t, const std::string&)>& done, const std::atomic<bool>* stop) {
  std::size_t next = 0;
  for (int working = size - 1; working > 0;) {
    int from = 0;
    const auto message = next_message(calls, from);
    if (message.size() >= k_head) {
      std::uint64_t index = 0;
      std::memcpy(&index, message.data(), k_head);
      done(index, message.substr(k_head));
    }
    const bool is_over = next == todo.size() || (stop != nullptr && stop->load());
    send(calls, from, is_over ? std::string() : message_of(todo[next], ""));
    if (is_over)
      --working;
    else
      ++next;
  }
}

void work_for(Calls calls, const std::function<std::string(std::size_t)>& work) {
  send(calls, 0, "");
  while (true) {
    int from = 0;
    const auto message = next_message(calls, from);
    if (message.empty()) return;
    std::uint64_t index = 0;
    std::memcpy(&index, message.data(), k_head);
    // In a process of its own, as without MPI: the same bytes. When it dies this rank does, and with it the job.
    run_tasks(
        {index}, work, [&](std::size_t, const std::string& text) { send(calls, 0, message_of(index, text)); },
        [](std::size_t, const std::string&) -> std::string { std::abort(); }, {});
  }
}

}  // namespace

std::optional<MpiLink> MpiLink::connect(const std::string& folder, std::string& fault) {
  if (launched_ranks() < 2) return std::nullopt;
  void* plugin = nullptr;
  for (const auto& path : {folder + "/../lib/libfabricast_mpi.so", folder + "/../lib/fabricast/libfabricast_mpi.so"}) {
    if (plugin == nullptr) plugin = ::dlopen(path.c_str(), k_binding);
  }
  if (plugin == nullptr) {
    fault =
        "started by an MPI launcher, but this build has no MPI: install libopenmpi-dev and build again, or start one "
        "process with --jobs N, or shards with --shard i/n";
    return std::nullopt;
  }
  const auto entry = reinterpret_cast<FabricastMpiEntry>(::dlsym(plugin, k_mpi_entry));
  const auto* calls = entry == nullptr ? nullptr : entry();
  if (calls == nullptr || calls->version != k_mpi_calls) {
    fault = "libfabricast_mpi.so belongs to another version of fabricast: install both from one build";
    return std::nullopt;
  }
  MpiLink link;
  if (calls->start(&link.rank_, &link.size_) != 0) {
    fault = "MPI did not start";
    return std::nullopt;
  }
  link.calls_ = const_cast<FabricastMpiCalls*>(calls);
  return link;
}

void MpiLink::run(const std::vector<std::size_t>& todo, const std::function<std::string(std::size_t)>& work,
                  const std::function<void(std::size_t, const std::string&)>& done,
                  const std::atomic<bool>* stop) const {
  const auto* calls = static_cast<Calls>(calls_);
  if (rank_ == 0)
    hand_out(calls, size_, todo, done, stop);
  else
    work_for(calls, work);
}

void MpiLink::close() const { static_cast<Calls>(calls_)->finish(); }

}  // namespace fabricast
