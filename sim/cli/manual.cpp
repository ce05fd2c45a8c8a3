// SPDX-License-Identifier: Apache-2.0
// fabricast manual and fabricast completion: man pages and shell completion, made from the options themselves.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"

namespace fabricast::cli {

namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  auto all = app.get_subcommands([](const CLI::App*) { return true; });
  return {all.begin(), all.end()};
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  auto all = app.get_options([](const CLI::Option*) { return true; });
  return {all.begin(), all.end()};
}

/// Text for troff [groff_man(7)].
std::string roff(const std::string& text) {
  std::string out;
  bool is_start = true;
  for (const char c : text) {
    if (is_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    is_start = c == '\n';
  }
  return out;
}

std::string options_section(const CLI::App& app) {
  std::string out;
  for (const auto* option : options_of(app)) {
    const auto type = option->get_type_size() == 0 ? std::string() : " " + option->get_type_name();
    out += fmt::format(".TP\n.B {}{}\n{}\n", roff(option->get_name(true, true)), roff(type),
                       roff(option->get_description()));
  }
  return out.empty() ? out : ".SH OPTIONS\n" + out;
}

std::string man_page(const CLI::App& root, const CLI::App* command) {
  const auto& app = command == nullptr ? root : *command;
  const auto name = command == nullptr ? std::string("fabricast") : "fabricast-" + command->get_name();
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string out = fmt::format(".TH {} 1 \"\" \"fabricast {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", roff(upper),
                                k_version, roff(name), roff(app.get_description()));
  out += command == nullptr ? std::string(".SH SYNOPSIS\n.B fabricast\nCOMMAND [OPTIONS]\n")
                            : fmt::format(".SH SYNOPSIS\n.B fabricast {}\n[OPTIONS] ...\n", roff(command->get_name()));
  if (command == nullptr) {
    out += ".SH COMMANDS\n";
    for (const auto* one : commands_of(root))
      out += fmt::format(".TP\n.BR fabricast\\-{} (1)\n{}\n", roff(one->get_name()), roff(one->get_description()));
  }
  out += options_section(app);
  if (const auto footer = app.get_footer(); !footer.empty()) out += ".SH EXAMPLES\n.nf\n" + roff(footer) + "\n.fi\n";
  out +=
      ".SH EXIT STATUS\n0 ok, 1 ran but a limit was missed, 2 wrong command line, 3 a file that cannot be used or "
      "written, 4 a fault of fabricast, 130 interrupted.\n.SH SEE ALSO\n";
  out += command == nullptr ? "docs/FORMATS.md for every file format.\n" : ".BR fabricast (1)\n";
  return out;
}

/// Long names of a command's options.
std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> out;
  for (const auto* option : options_of(app)) {
    for (const auto& name : option->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

std::vector<std::string> command_names(const CLI::App& root) {
  std::vector<std::string> out;
  for (const auto* one : commands_of(root)) out.push_back(one->get_name());
  return out;
}

std::string bash_completion(const CLI::App& root) {
  std::string cases;
  for (const auto* one : commands_of(root))
    cases += fmt::format("    {}) options=\"{}\" ;;\n", one->get_name(), fmt::join(long_options(*one), " "));
  return fmt::format(
      "# bash completion of fabricast {}\n_fabricast() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}} options=\"\"\n"
      "  if [[ $COMP_CWORD -eq 1 ]]; then\n    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\"))\n    "
      "return\n"
      "  fi\n  case ${{COMP_WORDS[1]}} in\n{}  esac\n  if [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n  else\n    COMPREPLY=($(compgen -f -- \"$word\"))\n  "
      "fi\n}}\n"
      "complete -o filenames -F _fabricast fabricast\n",
      k_version, fmt::join(command_names(root), " "), cases);
}

std::string zsh_completion(const CLI::App& root) {
  std::string cases;
  for (const auto* one : commands_of(root))
    cases += fmt::format("      {}) compadd -- {} ;;\n", one->get_name(), fmt::join(long_options(*one), " "));
  return fmt::format(
      "#compdef fabricast\n# zsh completion of fabricast {}\n_fabricast() {{\n  if (( CURRENT == 2 )); then\n    "
      "compadd -- "
      "{}\n  elif [[ $PREFIX == -* ]]; then\n    case $words[2] in\n{}    esac\n  else\n    _files\n  "
      "fi\n}}\n_fabricast "
      "\"$@\"\n",
      k_version, fmt::join(command_names(root), " "), cases);
}

/// A word in single quotes of fish.
std::string fish_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return "'" + out + "'";
}

std::string fish_completion(const CLI::App& root) {
  std::string out = fmt::format("# fish completion of fabricast {}\n", k_version);
  for (const auto* one : commands_of(root))
    out += fmt::format("complete -c fabricast -n __fish_use_subcommand -a {} -d {}\n", one->get_name(),
                       fish_quoted(one->get_description()));
  for (const auto* one : commands_of(root)) {
    for (const auto* option : options_of(*one)) {
      for (const auto& name : option->get_lnames())
        out += fmt::format("complete -c fabricast -n '__fish_seen_subcommand_from {}' -l {} -d {}\n", one->get_name(),
                           name, fish_quoted(option->get_description()));
    }
  }
  return out;
}

}  // namespace

void add_manual(CLI::App& app, int& exit_code) {
  auto name = std::make_shared<std::string>();
  auto* manual = app.add_subcommand("manual", "print the man page of a command, or of fabricast");
  manual->footer("Examples:\n  fabricast manual sweep | man -l -\n  fabricast manual > fabricast.1");
  manual->add_option("COMMAND", *name, "a command; default: the overview");
  manual->callback([&app, name, &exit_code] {
    const CLI::App* command = nullptr;
    if (!name->empty()) {
      const auto known = command_names(app);
      if (std::ranges::find(known, *name) == known.end())
        throw CLI::ValidationError("COMMAND", fmt::format("'{}' is none of {}", *name, fmt::join(known, ", ")));
      command = app.get_subcommand(*name);
    }
    write_output("-", man_page(app, command), exit_code);
  });
  auto shell = std::make_shared<std::string>();
  auto* completion = app.add_subcommand("completion", "print the completion script of a shell");
  completion->footer(
      "Examples:\n  fabricast completion bash > ~/.local/share/bash-completion/completions/fabricast\n  fabricast "
      "completion fish > "
      "~/.config/fish/completions/fabricast.fish");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  completion->callback([&app, shell, &exit_code] {
    write_output("-",
                 *shell == "bash"  ? bash_completion(app)
                 : *shell == "zsh" ? zsh_completion(app)
                                   : fish_completion(app),
                 exit_code);
  });
}

}  // namespace fabricast::cli
