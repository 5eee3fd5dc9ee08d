// SPDX-License-Identifier: Apache-2.0
// CLI11 takes the words apart. Values arrive here as text and are read into commands, so that every error message is ours.
#include "command_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "files.hpp"
#include "monoid_names.hpp"
#include "option_text.hpp"
#include "words.hpp"

namespace regroup::tool {
namespace {

settings read_settings(const option_text& t, const words& w) {
  settings s;
  if (!t.threads.empty()) s.threads = w.integer("--threads", t.threads, 1);
  if (!t.device.empty() && t.device != "cpu" && t.device != "cuda") w.wrong_value("--device", "cpu or cuda", t.device);
  s.cuda = t.device == "cuda";
  s.json = t.json;
  s.quiet = t.quiet;
  return s;
}

softmax_command read_softmax(const option_text& t, const words& w) {
  w.file("the input X", t.x);
  w.required("the output -o", t.output);
  w.distinct(t.output, t.lse);
  return {t.x, t.output, t.lse, w.axis(t.axis), t.log, t.scale.empty() ? 1.0 : w.finite("--scale", t.scale)};
}

reduce_command read_reduce(const option_text& t, const words& w) {
  w.file("the input X", t.x);
  if (t.with.empty()) w.wrong("--with is missing; it takes " + listed(reduce_names));
  reduce_command c{t.x, t.output, parse_monoids(t.with), {}, t.keepdims};
  if (t.axis.empty()) return c;
  c.axes = w.axes(t.axis);
  const bool may_be_last_but_one = c.axes->size() == 1 && (c.axes->front() >= 0 || c.axes->front() == -2);
  for (const monoid_name& m : c.with) {
    if (m.name == "softmax_mean" && !may_be_last_but_one) {
      w.wrong("softmax_mean reduces the last axis but one, -2; --axis names " + t.axis);
    }
  }
  return c;
}

scan_command read_scan(const option_text& t, const words& w) {
  w.file("the input X", t.x);
  if (!among(scan_names, t.with)) {
    w.wrong((t.with.empty() ? "--with is missing" : "scan does not know the monoid '" + t.with + "'") +
            "; it takes one of " + listed(scan_names));
  }
  w.required("the output -o", t.output);
  const std::optional<int> axis = w.axis(t.axis);
  if (t.with == "affine" && axis == -1) {
    w.wrong("affine cannot scan the last axis, which holds the pairs; name another, as --axis -2");
  }
  return {t.x, t.output, t.with, axis, t.exclusive, t.reverse};
}

attention_command read_attention(const option_text& t, const words& w) {
  attention_command c;
  w.file("the queries Q", c.q = t.q);
  w.file("the keys K", c.k = t.k);
  w.file("the values V", c.v = t.v);
  c.output = t.output;
  c.lse = t.lse;
  c.state_out = t.state_out;
  if (c.state_out.empty()) w.required("the output -o", c.output);
  w.distinct(t.output, t.lse);
  for (const char* const name : attention_command::state_files) {
    if (c.state_out.empty()) continue;
    w.distinct(t.output, c.state_out + "/" + name);
    w.distinct(t.lse, c.state_out + "/" + name);
  }
  for (const auto& [option, text, file] :
       {std::tuple("--mask", &t.mask, &c.mask), std::tuple("--alibi", &t.alibi, &c.alibi),
        std::tuple("--sinks", &t.sinks, &c.sinks), std::tuple("--kv-lengths", &t.kv_lengths, &c.kv_lengths),
        std::tuple("--page-table", &t.page_table, &c.page_table)}) {
    if (!text->empty()) w.file(option, *file = *text);
  }
  if (!c.state_out.empty() && !c.sinks.empty()) {
    w.wrong("--sinks cannot stand beside --state-out, for each state would count the sink; leave it out of the states");
  }
  const std::string inputs[] = {c.q, c.k, c.v, c.mask, c.alibi, c.sinks, c.kv_lengths, c.page_table};
  if (std::count(std::begin(inputs), std::end(inputs), "-") > 1) w.wrong("only one input can be '-', standard input");
  if (!t.scale.empty()) c.scale = w.finite("--scale", t.scale);
  if (t.causal == "true" || t.causal == "bottom-right") {
    c.causal = causality::bottom_right;
  } else if (t.causal == "top-left") {
    c.causal = causality::top_left;
  } else if (!t.causal.empty()) {
    w.wrong_value("--causal", "bottom-right or top-left", t.causal);
  }
  if (!t.window.empty()) c.window = w.window(t.window);
  if (!t.softcap.empty()) c.softcap = w.positive("--softcap", t.softcap);
  if (!t.split.empty()) c.split = w.integer<index>("--split", t.split, 1);
  return c;
}

merge_command read_merge(const option_text& t, const words& w) {
  if (t.states.empty()) w.required("the first STATE_DIR", "");
  for (const std::string& directory : t.states) w.file("STATE_DIR", directory);
  w.required("the output -o", t.output);
  w.distinct(t.output, t.lse);
  return {t.states, t.output, t.lse};
}

laws_command read_laws(const option_text& t, const words& w) {
  laws_command c;
  c.monoids = t.monoids;
  if (!t.cases.empty()) c.cases = w.integer("--cases", t.cases, 1);
  if (!t.seed.empty()) c.seed = w.integer<std::uint64_t>("--seed", t.seed, 0);
  for (auto name = c.monoids.begin(); name != c.monoids.end(); ++name) {
    if (std::find(c.monoids.begin(), name, *name) != name) w.wrong("laws names " + *name + " twice; name each once");
  }
  return c;
}

/// The first word that names a command, if any.
std::string command_among(const CLI::App& app, const std::vector<std::string>& in_order) {
  for (const std::string& word : in_order) {
    for (const CLI::App* command : app.get_subcommands({})) {
      if (command->get_name() == word) return word;
    }
  }
  return "";
}

/// Refuses a value of a flag, which CLI11 would read as a count.
void refuse_values_of_flags(const std::vector<std::string>& in_order, const words& w) {
  for (const std::string& word : in_order) {
    if (word == "--causal=") w.wrong_value("--causal", "bottom-right or top-left behind the =", "");
    for (const char* const flag : {"--log", "--keepdims", "--exclusive", "--reverse", "--measure", "--json", "--quiet",
                                   "--help", "--version"}) {
      const std::string with_value = std::string(flag) + "=";
      if (word.starts_with(with_value)) {
        w.wrong(std::string(flag) + " takes no value; got '" + word.substr(with_value.size()) + "'");
      }
    }
  }
}

/// Refuses what a GPU does not compute, as far as the words tell. Attention of float64 shows only in the files.
void require_cpu(const command& c, const words& w) {
  const auto refuse = [&w](const std::string& what) { w.wrong("--device cuda: " + what + "; use --device cpu"); };
  if (std::holds_alternative<laws_command>(c)) refuse("laws are checked on the CPU");
  if (std::holds_alternative<merge_command>(c)) refuse("states merge on the CPU");
  if (const auto* const a = std::get_if<attention_command>(&c)) {
    if (!a->state_out.empty()) refuse("there are no states of attention on a GPU, for --state-out");
    if (a->split != 1) refuse("attention on a GPU takes no --split; its keys are shared out with the same bits");
  }
  if (const auto* const r = std::get_if<reduce_command>(&c)) {
    for (const monoid_name& m : r->with) {
      if (among(cpu_names, m.name)) refuse(m.name + " is not computed on a GPU (" + listed(cpu_names) + " are not)");
    }
  }
}

/// CLI11's own error messages, of which few are left ("--scale: 1 required S missing"), as one sentence.
std::string sentence_of(const CLI::ParseError& e) {
  std::string text = e.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) == nullptr) return text;
  const std::string option = text.substr(0, text.find(':'));
  return option + (text.ends_with("missing") ? " needs a value" : " is given more than once; give it once");
}

}  // namespace

command_line parse_command_line(int argc, const char* const* argv) {
  option_text t;
  CLI::App app{"regroup: parallel reductions of arrays, with the same bits however they are grouped", "regroup"};
  declare(app, t);
  words w;
  try {
    std::vector<std::string> in_order = joined_words(argc, argv);
    refuse_values_of_flags(in_order, {command_among(app, in_order)});
    std::reverse(in_order.begin(), in_order.end());  // as CLI11 takes them
    app.parse(std::move(in_order));
  } catch (const CLI::CallForHelp&) {
    return {{}, show_command{app.help()}};
  } catch (const CLI::CallForVersion& e) {
    return {{}, show_command{std::string(e.what()) + "\n"}};
  } catch (const CLI::ParseError& e) {
    const auto chosen = app.get_subcommands();
    throw usage_error(sentence_of(e), chosen.empty() ? "" : chosen.front()->get_name());
  }
  const auto chosen = app.get_subcommands();
  if (!chosen.empty()) w.command = chosen.front()->get_name();
  std::vector<const CLI::App*> parts{&app};
  parts.insert(parts.end(), chosen.begin(), chosen.end());
  for (const CLI::App* part : parts) {
    for (const CLI::Option* option : part->get_options([](const CLI::Option* o) { return o->count() > 0; })) {
      if (option->get_expected_min() > 0 && option->results().front().empty()) {
        w.wrong(option->get_name() + " needs a value; got ''");
      }
    }
  }
  for (const auto& [what, name] : {std::pair("the output -o", t.output), std::pair("--lse", t.lse),
                                   std::pair("--state-out", t.state_out)}) {
    if (name.empty()) continue;
    w.output(what, name);  // before words that are left over because a value was forgotten
    if (t.json && descriptor_named(name) == STDOUT_FILENO) {
      w.wrong(std::string(what) + " is standard output, where --json prints; give a file name, or leave --json out");
    }
  }
  for (const std::string& marked : app.remaining(true)) {
    const std::string word = unmarked(marked);
    if (word.size() > 1 && word[0] == '-') {
      w.wrong("unknown option '" + word + "'" + (chosen.empty() ? "" : " of regroup " + w.command));
    }
    if (!chosen.empty()) w.wrong("unexpected word '" + word + "' after regroup " + w.command);
    w.wrong("unknown command '" + word + "'; the commands are softmax, reduce, scan, attention, merge, laws and info");
  }
  command_line result;
  result.everywhere = read_settings(t, w);
  if (chosen.empty()) w.wrong("a command is missing: softmax, reduce, scan, attention, merge, laws or info");
  if (w.command == "softmax") result.command = read_softmax(t, w);
  if (w.command == "reduce") result.command = read_reduce(t, w);
  if (w.command == "scan") result.command = read_scan(t, w);
  if (w.command == "attention") result.command = read_attention(t, w);
  if (w.command == "merge") result.command = read_merge(t, w);
  if (w.command == "laws") result.command = read_laws(t, w);
  if (w.command == "info") result.command = info_command{t.measure};
  if (result.everywhere.cuda) require_cpu(result.command, w);
  return result;
}

}  // namespace regroup::tool
