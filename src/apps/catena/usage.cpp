// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/usage.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <utility>

namespace catena::cli {
namespace {

std::vector<CLI::App const*> commands_of(CLI::App const& app) {
  return app.get_subcommands([](CLI::App const* command) { return !command->get_group().empty(); });
}

std::vector<std::string> names_of(std::vector<CLI::App const*> const& commands) {
  std::vector<std::string> names;
  for (CLI::App const* command : commands) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> options_of(CLI::App const& app) {
  std::vector<std::string> names;
  for (CLI::Option const* option : app.get_options([](CLI::Option const* each) { return !each->get_positional(); })) {
    for (std::string const& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
    for (std::string const& name : option->get_snames()) {
      names.push_back("-" + name);
    }
  }
  return names;
}

CLI::App const* find(CLI::App const& app, std::string const& name) {
  const std::vector<CLI::App const*> commands = commands_of(app);
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&name](CLI::App const* command) { return command->get_name() == name; });
  return found == commands.end() ? nullptr : *found;
}

struct Example {
  std::string_view command;  ///< as typed
  std::string_view lines;
};

constexpr std::array kExamples{
    Example{"catena", "  catena check chain.yaml\n  catena run chain.yaml --rx pcap:in.pcap --tx pcap:out.pcap\n"},
    Example{
        "catena run",
        "  catena run chain.yaml\n  catena run chain.yaml --rx pcap:in.pcap --tx pcap:out.pcap --record out.jsonl\n"},
    Example{"catena check", "  catena check chain.yaml\n  catena check -v --rx pcap:in.pcap chain.yaml\n"},
    Example{"catena stack", "  catena stack run -- nginx -g 'daemon off;'\n"},
    Example{"catena stack run",
            "  catena stack run -- nginx -g 'daemon off;'\n  catena stack run --copy full --engine cpu-stream --ports "
            "80 -- "
            "./server\n"},
    Example{"catena check-kernel",
            "  catena check-kernel my_nf/my_nf.kernel.cpp my_nf/my_nf.layout.hpp --define LANES=8\n"},
    Example{"catena plan", "  catena plan chain.yaml --device cuda\n"},
    Example{"catena profile",
            "  catena profile\n  catena profile --nf chain.yaml --packet-bytes 64,512,1518\n  catena profile --copies "
            "--engine cuda\n"},
    Example{"catena doctor", "  catena doctor\n"},
    Example{"catena show", "  catena show nfs\n  catena show graph chain.yaml\n"},
    Example{"catena show nfs", "  catena show nfs\n"},
    Example{"catena show devices", "  catena show devices\n"},
    Example{"catena show fields", "  catena show fields\n"},
    Example{"catena show schema", "  catena show schema > chain.schema.json\n"},
    Example{"catena show config", "  catena show config chain.yaml --workers 2\n  catena show config office\n"},
    Example{"catena show graph", "  catena show graph chain.yaml --format svg > chain.svg\n"},
    Example{"catena show program", "  catena show program chain.yaml ids --device cuda\n"},
    Example{"catena serve",
            "  catena serve --metrics 127.0.0.1:9464\n  catena serve --audit /var/log/catena/audit.jsonl\n  catena "
            "serve --quotas /etc/catena/quotas.yaml --roles /etc/catena/roles.yaml\n"},
    Example{"catena apply",
            "  catena apply chain.yaml --dry-run\n  catena apply chain.yaml\n  catena apply chain.yaml --confirm 60\n"},
    Example{"catena get", "  catena get\n  catena get office --json\n"},
    Example{"catena start", "  catena start office\n"},
    Example{"catena restart", "  catena restart office\n"},
    Example{"catena reload", "  catena reload office\n"},
    Example{"catena cancel", "  catena cancel office\n"},
    Example{"catena history", "  catena history office\n"},
    Example{"catena rollback", "  catena rollback office\n  catena rollback office 3f2b8c9d1e04\n"},
    Example{"catena confirm", "  catena confirm office\n"},
    Example{"catena logs", "  catena logs office -f\n  catena logs --reopen\n"},
    Example{"catena stop", "  catena stop office\n"},
    Example{"catena delete", "  catena delete office\n"},
    Example{"catena nf", "  catena nf reset office\n"},
    Example{"catena nf reset", "  catena nf reset office\n"},
    Example{"catena top", "  catena top\n  catena top --once --json\n"},
    Example{"catena help", "  catena help show program\n"},
    Example{"catena completion", "  source <(catena completion bash)\n"},
    Example{"catena manual", "  catena manual | man -l -\n"},
};

struct OtherWord {
  std::string_view word;
  std::string_view instead;
};

/// Commands of similar programs, and the command here.
constexpr std::string_view kApply = "`catena apply FILE` starts or replaces a chain of the service";
constexpr std::string_view kGet = "`catena get` lists the chains of the service, `catena get NAME` shows one";
constexpr std::string_view kDelete = "`catena delete NAME` stops a chain of the service and forgets it";
constexpr std::string_view kCheck = "`catena check FILE` finds errors in a chain file";
constexpr std::string_view kLogs = "`catena logs NAME` prints the lines of a chain in the log of the service";
constexpr std::string_view kRollback = "`catena rollback NAME` applies the spec before the present one";
constexpr std::string_view kStart =
    "`catena apply FILE` starts a chain in the service, `catena run FILE` in this terminal";
constexpr std::array<OtherWord, 24> kOtherWords{{
    {"up", kStart},      {"add", kApply},
    {"create", kApply},  {"load", kApply},
    {"replace", kApply}, {"update", kApply},
    {"status", kGet},    {"state", kGet},
    {"list", kGet},      {"ls", kGet},
    {"ps", kGet},        {"stats", kGet},
    {"remove", kDelete}, {"rm", kDelete},
    {"kill", kDelete},   {"down", kDelete},
    {"test", kCheck},    {"validate", kCheck},
    {"lint", kCheck},    {"log", kLogs},
    {"journal", kLogs},  {"version", "`catena --version` prints it"},
    {"undo", kRollback}, {"revert", kRollback},
}};

std::string_view instead_of(std::string_view word) {
  const auto found = std::ranges::find(kOtherWords, word, &OtherWord::word);
  return found == kOtherWords.end() ? std::string_view() : found->instead;
}

/// What follows the name of a word that nobody knows. Every option of one letter is near every other one.
std::string what_there_is(std::string const& word, std::vector<std::string> const& known, std::string const& command) {
  const std::string near = word.size() > 2 ? nf::nearest(word, known) : std::string();
  return concat(near.empty() ? ";" : concat("; did you mean '", near, "'?"), " `", command, " --help` lists them");
}

/// "catena", "catena run": as it is typed.
std::string typed(CLI::App const& app) {
  return app.get_parent() == nullptr ? app.get_name() : concat(typed(*app.get_parent()), " ", app.get_name());
}

/// Every command below `app`, with what its words are after; `app` first.
void for_each_command(CLI::App const& app, auto const& work) {
  work(app);
  for (CLI::App const* command : commands_of(app)) {
    for_each_command(*command, work);
  }
}

std::string joined(std::vector<std::string> const& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// Shared by bash and zsh: in `$path` the commands typed so far, one case for each.
std::string cases(CLI::App const& app, std::string const& reply) {
  std::string text;
  for_each_command(app, [&](CLI::App const& command) {
    std::vector<std::string> words = names_of(commands_of(command));
    for (std::string const& option : options_of(command)) {
      words.push_back(option);
    }
    text += fmt::format("    '{}') {} ;;\n", typed(command), fmt::format(fmt::runtime(reply), joined(words)));
  });
  return text;
}

/// The paths of all commands, as an alternative of shell patterns.
std::string paths(CLI::App const& app) {
  std::string text;
  for_each_command(app,
                   [&](CLI::App const& command) { text += concat(text.empty() ? "" : "|", "'", typed(command), "'"); });
  return text;
}

std::string quoted_for_fish(std::string const& text) {
  std::string result = "'";
  for (const char c : text) {
    result += c == '\'' || c == '\\' ? concat("\\", c) : std::string(1, c);
  }
  return result + "'";
}

std::string fish(CLI::App const& app) {
  std::string text = "# fish completion of catena: catena completion fish > ~/.config/fish/completions/catena.fish\n";
  for_each_command(app, [&](CLI::App const& command) {
    const bool is_root = command.get_parent() == nullptr;
    std::string when = is_root ? "__fish_use_subcommand" : "";
    for (CLI::App const* part = &command; part->get_parent() != nullptr; part = part->get_parent()) {
      when = concat("__fish_seen_subcommand_from ", part->get_name(), when.empty() ? "" : "; and ", when);
    }
    for (CLI::App const* next : commands_of(command)) {
      text += concat("complete -c catena -f -n '", when, "' -a ", next->get_name(), " -d ",
                     quoted_for_fish(next->get_description()), "\n");
    }
    for (CLI::Option const* option :
         command.get_options([](CLI::Option const* each) { return !each->get_positional(); })) {
      text += concat("complete -c catena -n '", when, "'");
      for (std::string const& name : option->get_lnames()) {
        text += concat(" -l ", name);
      }
      for (std::string const& name : option->get_snames()) {
        text += concat(" -s ", name);
      }
      text += concat(option->get_items_expected_max() > 0 ? " -r" : "", " -d ",
                     quoted_for_fish(option->get_description()), "\n");
    }
  });
  return text;
}

std::string bash(CLI::App const& app) {
  return concat(
      "# bash completion of catena: source <(catena completion bash)\n_catena() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} path=catena word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path $word\" in ",
      paths(app), ") path=\"$path $word\" ;; esac\n  done\n  case \"$path\" in\n",
      cases(app, "COMPREPLY=($(compgen -W '{}' -- \"$current\"))"),
      "  esac\n}\ncomplete -o default -F _catena catena\n");
}

std::string zsh(CLI::App const& app) {
  return concat(
      "#compdef catena\n# zsh completion of catena: catena completion zsh > a folder of $fpath/_catena\n"
      "_catena() {\n  local path_=catena word\n  for word in ${words[2,CURRENT-1]}; do\n"
      "    case \"$path_ $word\" in ",
      paths(app), ") path_=\"$path_ $word\" ;; esac\n  done\n  case \"$path_\" in\n", cases(app, "compadd -- {}"),
      "  esac\n  _files\n}\ncompdef _catena catena\n");
}

/// As roff wants it: no line begins with a dot or an apostrophe, and dashes and backslashes are those that are typed.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += "\\&";
    }
    result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return result;
}

}  // namespace

std::string usage_error(CLI::App const& app, std::vector<std::string> const& words) {
  CLI::App const* command = &app;
  bool is_value = false;  // of the option before
  for (std::string const& word : words) {
    if (std::exchange(is_value, false)) {
      continue;
    }
    if (word == "--") {
      break;  // the rest is another program's
    }
    if (word.starts_with('-') && word.size() > 1) {
      const std::string name = word.substr(0, word.find('='));
      CLI::Option const* option = command->get_option_no_throw(name);
      if (option == nullptr) {
        return concat("'", typed(*command), "' has no option '", name, "'",
                      what_there_is(name, options_of(*command), typed(*command)));
      }
      is_value = option->get_items_expected_max() > 0 && word.find('=') == std::string::npos;
      continue;
    }
    const std::vector<CLI::App const*> next = commands_of(*command);
    if (next.empty()) {
      continue;
    }
    CLI::App const* found = find(*command, word);
    if (found == nullptr) {
      if (const std::string_view instead = instead_of(word); command == &app && !instead.empty()) {
        return concat("'", typed(app), "' has no command '", word, "'; ", instead);
      }
      return concat("'", typed(*command), "' has no command '", word, "'",
                    what_there_is(word, names_of(next), typed(*command)));
    }
    command = found;
  }
  if (const std::vector<CLI::App const*> next = commands_of(*command); !is_value && !next.empty()) {
    return concat("'", typed(*command), "' needs a command: ", fmt::format("{}", fmt::join(names_of(next), ", ")),
                  "; `", typed(*command), " --help` describes them");
  }
  return {};
}

void add_examples(CLI::App& app) {
  const auto found = std::ranges::find(kExamples, typed(app), &Example::command);
  if (found != kExamples.end()) {
    app.footer(concat("Examples:\n", found->lines));
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App const*) { return true; })) {
    add_examples(*command);
  }
}

bool print_help(CLI::App const& app, std::vector<std::string> const& command) {
  CLI::App const* asked = &app;
  for (std::string const& word : command) {
    asked = find(*asked, word);
    if (asked == nullptr) {
      return false;
    }
  }
  // App::help() would give that of the command that was parsed, which is `help`
  std::cout << asked->get_formatter()->make_help(asked, typed(*asked), CLI::AppFormatMode::Normal);
  return true;
}

std::string completion_script(CLI::App const& app, std::string const& shell) {
  return shell == "bash" ? bash(app) : shell == "zsh" ? zsh(app) : fish(app);
}

std::string manual_page(CLI::App const& app, std::string const& version) {
  std::string text = concat(".TH CATENA 1 \"\" \"catena ", version, "\" \"User Commands\"\n.SH NAME\ncatena \\- ",
                            "runs service chains of network functions across CPUs and GPUs\n.SH SYNOPSIS\n",
                            ".B catena\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...\n.SH COMMANDS\n");
  for_each_command(app, [&text, &app](CLI::App const& command) {
    if (&command == &app) {
      return;
    }
    std::string line = typed(command);
    for (CLI::Option const* option :
         command.get_options([](CLI::Option const* each) { return each->get_positional(); })) {
      line += concat(" ", option->get_required() ? "" : "[", option->get_name(), option->get_required() ? "" : "]");
    }
    text += concat(".SS ", roff(line), "\n", roff(command.get_description()), ".\n");
    text += concat(".PP\n.nf\n", roff(command.get_footer()), ".fi\n");
    for (CLI::Option const* option :
         command.get_options([](CLI::Option const* each) { return !each->get_positional(); })) {
      text += concat(".TP\n\\fB", roff(option->get_name(false, true)), "\\fR\n", roff(option->get_description()), "\n");
    }
  });
  text += ".SH OPTIONS\n";
  for (CLI::Option const* option : app.get_options()) {
    text += concat(".TP\n\\fB", roff(option->get_name(false, true)), "\\fR\n", roff(option->get_description()), "\n");
  }
  return text +
         ".SH EXIT STATUS\n.TP\n0\nIt is done.\n.TP\n1\nThe run failed, or something is wrong with a file or the "
         "machine.\n.TP\n2\nThe command line is wrong.\n"
         ".SH ENVIRONMENT\n.TP\nCATENA_NF_PATH\nAs \\-\\-nf\\-path.\n"
         ".TP\nCATENA_CACHE_DIR, XDG_CACHE_HOME, HOME\nWhere compiled kernels are kept.\n"
         ".TP\nCATENA_DATA_DIR, XDG_DATA_HOME, HOME\nWhere cost profiles are kept.\n"
         ".TP\nXDG_RUNTIME_DIR, XDG_STATE_HOME, HOME\nWhere the service of a user has its socket and its state.\n"
         ".TP\nNO_COLOR\nIf it is set, nothing has colours.\n";
}

}  // namespace catena::cli
