// SPDX-License-Identifier: Apache-2.0
// A pool of forked processes, each for one task: what one leaves behind, in memory or by dying, touches no other. Each
// has a pipe for the number of its task and one for the text. Processes end with this one, however it ends.
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "fabricast/sweep.hpp"

namespace fabricast {

namespace {

bool write_all(int file, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const auto written = ::write(file, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int file, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const auto count = ::read(file, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

struct Worker {
  pid_t process = -1;
  int tasks = -1;    ///< we write
  int results = -1;  ///< we read
  std::size_t task = 0;
  bool is_busy = false;
};

class Pool {
 public:
  Pool(const std::vector<std::size_t>& todo, const std::function<std::string(std::size_t)>& work,
       const std::function<void(std::size_t, const std::string&)>& done,
       const std::function<std::string(std::size_t, const std::string&)>& lost, const TaskOptions& options)
      : todo_(todo), work_(work), done_(done), lost_(lost), options_(options) {}
  ~Pool() {
    for (auto& worker : workers_) end(worker, true);
    std::signal(SIGPIPE, pipe_handler_);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run() {
    pipe_handler_ = std::signal(SIGPIPE, SIG_IGN);  // a worker that died is found by its other pipe
    const auto count = std::min(todo_.size(), static_cast<std::size_t>(std::max(1, options_.jobs)));
    workers_.resize(count);
    for (auto& worker : workers_) {
      start(worker);
      give(worker);
    }
    while (!is_stopped() && wait()) {}
  }

 private:
  [[nodiscard]] bool is_stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  void start(Worker& worker) {
    int down[2];
    int up[2];
    if (::pipe(down) != 0) throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
    if (::pipe(up) != 0) throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
    const auto parent = ::getpid();
    std::fflush(nullptr);
    worker.process = ::fork();
    if (worker.process < 0) throw std::runtime_error(fmt::format("no further process: {}", std::strerror(errno)));
    if (worker.process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      std::signal(SIGINT, SIG_IGN);  // the parent decides
      for (const auto& other : workers_) {
        if (other.tasks >= 0) ::close(other.tasks);
        if (other.results >= 0) ::close(other.results);
      }
      ::close(down[1]);
      ::close(up[0]);
      serve(down[0], up[1]);
    }
    ::close(down[0]);
    ::close(up[1]);
    worker.tasks = down[1];
    worker.results = up[0];
    worker.is_busy = false;
  }

  [[noreturn]] void serve(int tasks, int results) const {
    std::uint64_t index = 0;
    if (read_all(tasks, &index, sizeof index)) {
      const auto text = work_(index);
      const std::uint64_t head[2] = {index, text.size()};
      if (write_all(results, head, sizeof head)) write_all(results, text.data(), text.size());
    }
    ::_exit(0);
  }

  void give(Worker& worker) {
    if (next_ == todo_.size()) return;
    const std::uint64_t index = todo_[next_];
    ++next_;
    worker.task = index;
    worker.is_busy = true;
    write_all(worker.tasks, &index, sizeof index);  // a failure shows at the other pipe
  }

  /// One round of answers; false when nobody is at work.
  bool wait() {
    std::vector<pollfd> polled;
    std::vector<Worker*> who;
    for (auto& worker : workers_) {
      if (!worker.is_busy) continue;
      polled.push_back({worker.results, POLLIN, 0});
      who.push_back(&worker);
    }
    if (polled.empty()) return false;
    constexpr int k_look_up_ms = 200;  // for the stop flag
    if (::poll(polled.data(), polled.size(), k_look_up_ms) <= 0) return true;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) receive(*who[i]);
    }
    return true;
  }

  void receive(Worker& worker) {
    std::uint64_t head[2];
    std::string text;
    bool is_whole = read_all(worker.results, head, sizeof head);
    if (is_whole) {
      text.resize(head[1]);
      is_whole = read_all(worker.results, text.data(), text.size());
    }
    worker.is_busy = false;
    const auto task = worker.task;
    const auto why = end(worker, false);
    done_(task, is_whole ? text : lost_(task, why));
    if (next_ == todo_.size()) return;
    start(worker);
    give(worker);
  }

  /// How it ended, in words.
  std::string end(Worker& worker, bool is_forced) {
    if (worker.process < 0) return "";
    ::close(worker.tasks);
    if (is_forced && worker.is_busy) ::kill(worker.process, SIGKILL);
    ::close(worker.results);
    int status = 0;
    while (::waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {}
    worker = {};
    if (WIFSIGNALED(status))
      return fmt::format("the process that simulated it was ended by signal {} ({})", WTERMSIG(status),
                         WTERMSIG(status) == SIGKILL ? "killed: too little memory?" : ::strsignal(WTERMSIG(status)));
    return fmt::format("the process that simulated it ended with code {}", WEXITSTATUS(status));
  }

  const std::vector<std::size_t>& todo_;
  const std::function<std::string(std::size_t)>& work_;
  const std::function<void(std::size_t, const std::string&)>& done_;
  const std::function<std::string(std::size_t, const std::string&)>& lost_;
  const TaskOptions& options_;
  std::vector<Worker> workers_;
  std::size_t next_ = 0;
  void (*pipe_handler_)(int) = SIG_DFL;
};

}  // namespace

void run_tasks(const std::vector<std::size_t>& todo, const std::function<std::string(std::size_t)>& work,
               const std::function<void(std::size_t, const std::string&)>& done,
               const std::function<std::string(std::size_t, const std::string& why)>& lost,
               const TaskOptions& options) {
  if (todo.empty()) return;
  Pool(todo, work, done, lost, options).run();
}

}  // namespace fabricast
