// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/text.hpp"
#include "cli/command.hpp"

namespace fabricast::cli {

namespace {

/// The temporary file at work, for the signal handler; its name is complete before the flag is raised.
char g_temporary[PATH_MAX];
std::atomic<bool> g_has_temporary{false};
/// errno of the first write to standard output that failed.
int g_standard_output_fault = 0;

/// Suffixes of each format; the first is the one that messages name.
struct Suffixes {
  const char* format;
  std::vector<std::string> names;
};

const std::vector<Suffixes>& known_suffixes() {
  static const std::vector<Suffixes> all = {{"text", {"txt", "log", "text", "out"}},
                                            {"json", {"json"}},
                                            {"csv", {"csv"}},
                                            {"jsonl", {"jsonl"}},
                                            {"html", {"html", "htm"}},
                                            {"svg", {"svg"}},
                                            {"dot", {"dot"}},
                                            {"yaml", {"yaml", "yml"}},
                                            {"trace", {"json", "trace", "perfetto-trace"}}};
  return all;
}

bool write_all(int file, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto written = ::write(file, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    at += static_cast<std::size_t>(written);
  }
  return true;
}

bool reached_disk(int file) {
  // Some file systems know no such call; their writes have succeeded all the same.
  return ::fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

/// The file that a chain of links ends at, so that a link stays one.
std::filesystem::path linked_file(std::filesystem::path path) {
  constexpr int k_most_links = 40;  // as the kernel follows
  std::error_code none;
  for (int i = 0; i < k_most_links && std::filesystem::is_symlink(path, none); ++i) {
    const auto target = std::filesystem::read_symlink(path, none);
    if (none) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

mode_t new_file_mode() {
  const auto mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

/// errno, or 0 when all is written.
int write_directly(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int fault = write_all(file, text) ? 0 : errno;
  return ::close(file) != 0 && fault == 0 ? errno : fault;
}

/// Fills and closes the temporary file; errno, or 0.
int fill(int file, const std::string& text, const struct stat* old) {
  int fault = 0;
  if (::fchmod(file, old != nullptr ? old->st_mode & 07777 : new_file_mode()) != 0) fault = errno;
  // Only root may give a file away; for others the file is theirs already.
  if (old != nullptr && (old->st_uid != ::geteuid() || old->st_gid != ::getegid()) &&
      ::fchown(file, old->st_uid, old->st_gid) != 0 && ::geteuid() == 0)
    fault = errno;
  if (fault == 0 && (!write_all(file, text) || !reached_disk(file))) fault = errno;
  if (::close(file) != 0 && fault == 0) fault = errno;
  return fault;
}

/// errno, or 0 when `path` has the new text. The old one is untouched otherwise.
int replace_file(const std::filesystem::path& path, const std::string& text, const struct stat* old) {
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const auto name = (folder / ".fabricast-XXXXXX").string();
  if (name.size() >= sizeof g_temporary) return ENAMETOOLONG;
  std::memcpy(g_temporary, name.c_str(), name.size() + 1);
  g_has_temporary = true;
  const int file = ::mkostemp(g_temporary, O_CLOEXEC);
  if (file < 0) {
    g_has_temporary = false;
    return errno;
  }
  int fault = fill(file, text, old);
  if (fault == 0 && ::rename(g_temporary, path.c_str()) != 0) fault = errno;
  if (fault != 0) ::unlink(g_temporary);
  g_has_temporary = false;
  if (fault != 0) return fault;
  // The new name outlives a power failure; when the folder cannot be synchronised the file is there nevertheless.
  const int parent = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent >= 0) {
    ::fsync(parent);
    ::close(parent);
  }
  return 0;
}

int write_file(const std::string& path, const std::string& text) {
  struct stat known {};
  const bool exists = ::stat(path.c_str(), &known) == 0;
  if (exists && S_ISDIR(known.st_mode)) return EISDIR;
  if (exists && !S_ISREG(known.st_mode)) return write_directly(path, text);
  if (exists && ::access(path.c_str(), W_OK) != 0) return errno;  // a write-protected file stays
  return replace_file(linked_file(path), text, exists ? &known : nullptr);
}

void report_fault(const std::string& what, int fault, int& exit_code) {
  say(fmt::format("fabricast: cannot write {}: {}\n", what, std::strerror(fault)));
  exit_code = exit_input;
}

/// Regular files that are the same one have the same device and number.
bool is_same_file(const std::string& a, const std::string& b) {
  struct stat one {
  }, other{};
  if (::stat(a.c_str(), &one) != 0 || ::stat(b.c_str(), &other) != 0) return false;
  return S_ISREG(one.st_mode) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool is_special(const std::string& path) {
  struct stat known {};
  return ::stat(path.c_str(), &known) == 0 && !S_ISREG(known.st_mode) && !S_ISDIR(known.st_mode);
}

bool is_same_name(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::weakly_canonical(a, none) == std::filesystem::weakly_canonical(b, none);
}

}  // namespace

std::string suffix_of(const std::string& path) {
  auto suffix = std::filesystem::path(path).extension().string();
  if (!suffix.empty()) suffix.erase(0, 1);
  return lower(suffix);
}

std::string format_by_suffix(const OutputFile& file, const std::vector<std::string>& formats) {
  if (file.path == "-" || is_special(file.path)) return formats.front();
  const auto suffix = suffix_of(file.path);
  if (suffix.empty()) return formats.front();
  std::vector<std::string> shown;
  for (const auto& known : known_suffixes()) {
    if (std::find(formats.begin(), formats.end(), known.format) == formats.end()) continue;
    if (std::find(known.names.begin(), known.names.end(), suffix) != known.names.end()) return known.format;
    shown.push_back("." + known.names.front());
  }
  const auto choice = formats.size() == 1 ? std::string() : fmt::format(", or --format {}", fmt::join(formats, "|"));
  throw CLI::ValidationError(file.option, fmt::format("this command cannot write '.{}' ('{}'): name a file with {}{}",
                                                      suffix, file.path, fmt::join(shown, ", "), choice));
}

void refuse_overwriting(std::span<const OutputFile> outputs, std::span<const std::string> inputs) {
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto& [option, path] = outputs[o];
    if (path == "-") continue;
    for (const auto& input : inputs) {
      if (is_same_file(path, input))
        throw CLI::ValidationError(
            option, fmt::format("'{}' is an input of this command ('{}'): name another file", path, input));
    }
    if (is_special(path)) continue;
    for (std::size_t k = 0; k < o; ++k) {
      if (outputs[k].path != "-" && (is_same_file(path, outputs[k].path) || is_same_name(path, outputs[k].path)))
        throw CLI::ValidationError(
            option, fmt::format("'{}' is written by {} already: name another file", path, outputs[k].option));
    }
  }
}

bool write_output(const std::string& path, const std::string& given, int& exit_code) {
  const auto text = printable(given, Keep::lines);
  if (path == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) g_standard_output_fault = errno;
    return flush_standard_output(exit_code);
  }
  const int fault = write_file(path, text);
  if (fault == 0) return true;
  report_fault(fmt::format("'{}'", path), fault, exit_code);
  return false;
}

bool flush_standard_output(int& exit_code) {
  static bool has_failed = false;
  if (has_failed) return false;
  if (std::fflush(stdout) != 0 && g_standard_output_fault == 0) g_standard_output_fault = errno;
  if (std::ferror(stdout) == 0) return true;
  has_failed = true;
  report_fault("to standard output", g_standard_output_fault != 0 ? g_standard_output_fault : EIO, exit_code);
  return false;
}

void remove_temporary_file() {
  if (g_has_temporary) ::unlink(g_temporary);
}

}  // namespace fabricast::cli
