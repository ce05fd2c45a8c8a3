// SPDX-License-Identifier: Apache-2.0
// fabricast: the command line. Parses, calls the library, maps outcomes to exit codes; nothing else.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>

#include "base/assert.hpp"
#include "cli/command.hpp"

namespace fabricast::cli {

namespace {

constexpr const char* k_footer =
    "Examples:\n"
    "  fabricast run scenarios/allreduce-hgx-h100-64.yaml\n"
    "  fabricast compare scenarios/what-if-p2p-on.yaml scenarios/what-if-p2p-off.yaml\n"
    "\nExit codes: 0 ok, 1 ran but a limit was missed, 2 wrong command line, 3 a file that cannot be used or "
    "written, 4 our fault, 130 interrupted.";

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// A message when the first word is no option and names no subcommand.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].rfind('-', 0) == 0) return "";
  const auto known = names_of(app);
  if (std::find(known.begin(), known.end(), arguments[0]) != known.end()) return "";
  const auto near = nearest_name(arguments[0], known);
  return fmt::format("unknown command '{}'{}", arguments[0],
                     near.empty() ? fmt::format(" (commands: {})", fmt::join(known, ", "))
                                  : fmt::format(": did you mean '{}'?", near));
}

/// The nearest subcommand or option to a word CLI11 did not know.
std::string suggestion(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (const auto& argument : arguments) {
    if (argument == "--") break;
    if (argument.rfind("--", 0) == 0) {
      const auto word = argument.substr(0, argument.find('='));
      const auto known = option_names_of(*command);
      if (std::find(known.begin(), known.end(), word) != known.end()) continue;
      if (const auto near = nearest_name(word, known); !near.empty())
        return fmt::format("unknown option '{}': did you mean '{}'?", word, near);
      return fmt::format("unknown option '{}'", word);
    }
    if (command == &app) {
      if (argument.starts_with('-')) return fmt::format("unknown option '{}'", argument);
      if (auto unknown = unknown_command(app, {argument}); !unknown.empty()) return unknown;
      command = app.get_subcommand(argument);
    }
  }
  return "";
}

int refuse(const std::string& message, const std::string& command) {
  say(fmt::format("fabricast: {}\n(fabricast {}--help prints the usage)\n", message, command));
  return exit_usage;
}

int parse_and_run(std::vector<std::string> arguments) {
  int exit_code = exit_ok;
  CLI::App app{"Forecasts what a GPU/RDMA cluster will do, from YAML descriptions."};
  app.name("fabricast");
  app.footer(k_footer);
  app.set_version_flag("--version", fmt::format("fabricast {}", k_version), "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);
  add_run(app, exit_code);
  add_compare(app, exit_code);
  add_validate(app, exit_code);
  add_calibrate(app, exit_code);
  add_sweep(app, exit_code);
  add_check(app, exit_code);
  add_show(app, exit_code);
  add_list(app, exit_code);
  add_schema(app, exit_code);
  add_import(app, exit_code);
  add_export(app, exit_code);
  add_doctor(app, exit_code);
  add_expect(app, exit_code);
  add_mpi(app, exit_code);
  add_replay(app, exit_code);
  add_manual(app, exit_code);
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (arguments.empty()) arguments.emplace_back("--help");
  if (arguments[0] == "mpi") arguments = like_mpirun(std::move(arguments));
  // CLI11 lets --help win over everything: words that are no command come first.
  if (const auto unknown = unknown_command(app, arguments); !unknown.empty()) return refuse(unknown, "");
  try {
    auto reversed = arguments;
    std::reverse(reversed.begin(), reversed.end());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;
      app.exit(error, text, text);
      write_output("-", text.str(), exit_code);
      return exit_code;
    }
    auto message = suggestion(app, arguments);
    if (message.empty()) message = error.what();
    const auto names = names_of(app);
    const bool is_known = std::find(names.begin(), names.end(), arguments[0]) != names.end();
    return refuse(message, is_known ? arguments[0] + " " : "");
  }
  return exit_code;
}

}  // namespace

}  // namespace fabricast::cli

int main(int argc, char** argv) {
  using namespace fabricast::cli;
  catch_signals();
  try {
    int exit_code = parse_and_run({argv + 1, argv + argc});
    flush_standard_output(exit_code);
    return exit_code;
  } catch (const fabricast::InternalError& error) {
    say(fmt::format("fabricast: internal error: {}\n", error.what()));
  } catch (const std::bad_alloc&) {
    // Nothing that needs memory.
    std::fputs("fabricast: out of memory; ask for fewer devices, sizes or samples, or allow more memory\n", stderr);
    return exit_input;
  } catch (const std::exception& error) {
    say(fmt::format("fabricast: internal error: {}; please report this with the command that caused it\n",
                    error.what()));
  }
  return exit_internal;
}
