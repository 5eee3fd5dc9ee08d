// SPDX-License-Identifier: Apache-2.0
// CLI11 takes the words apart; values arrive here as text and are read by the functions below, so that every sentence is
// ours. Nothing is marked as required for CLI11: a misspelt option is then reported before what it leaves missing.
#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace regroup::tool {
namespace {

const char* const everywhere_help =
    "Options of every command:\n"
    "  --threads N                 number of threads (default: all); no bit of a result depends on it\n"
    "  --device cpu|cuda           where to compute (default: cpu)\n"
    "  --json                      one JSON object on standard output instead of text\n"
    "  --quiet                     no progress on standard error\n"
    "\n";
const char* const arrays_help =
    "Arrays are .npy files (float16, bfloat16, float32, float64, int32, int64, bool), C or Fortran order, either byte\n"
    "order; '-' for X reads standard input. JSON has no NaN and no infinity: they are written NaN, Infinity and\n"
    "-Infinity, as Python's json module does. Exit status: 0 done, 2 wrong command line, 1 any other error.";

template <class Number>
bool read_number(std::string_view text, Number& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size();
}

/// The texts of one command's options, and the sentences about them.
struct words {
  std::string command;

  [[noreturn]] void wrong(const std::string& sentence) const { throw usage_error(sentence, command); }
  [[noreturn]] void wrong_value(const std::string& option, const std::string& wanted, const std::string& text) const {
    wrong(option + " needs " + wanted + "; got '" + text + "'");
  }

  template <class Number>
  Number integer(const std::string& option, const std::string& text, Number least, const std::string& wanted) const {
    Number value = 0;
    if (!read_number(text, value) || value < least) wrong_value(option, wanted, text);
    return value;
  }
  double finite(const std::string& option, const std::string& text) const {
    double value = 0.0;
    if (!read_number(text, value) || !std::isfinite(value)) wrong_value(option, "a finite number", text);
    return value;
  }
  std::vector<std::string> fields(const std::string& text) const {
    std::vector<std::string> result(1);
    for (const char c : text) {
      if (c == ',') {
        result.emplace_back();
      } else {
        result.back() += c;
      }
    }
    return result;
  }
  std::vector<int> axes(const std::string& text) const {
    std::vector<int> result;
    for (const std::string& field : fields(text)) {
      int axis = 0;
      if (!read_number(field, axis)) wrong_value("--axis", "integers separated by commas", text);
      if (std::find(result.begin(), result.end(), axis) != result.end()) {
        wrong("--axis names axis " + field + " twice");
      }
      result.push_back(axis);
    }
    return result;
  }
  std::optional<int> axis(const std::string& text) const {
    if (text.empty()) return {};
    int value = 0;
    if (!read_number(text, value)) wrong_value("--axis", "one integer", text);
    return value;
  }
  /// A file name; one that looks like an option is a value that was forgotten.
  void required(const std::string& what, const std::string& name) const {
    if (name.empty()) wrong(what + " is missing: " + usage());
  }
  void file(const std::string& what, const std::string& name) const {
    required(what, name);
    if (name.size() > 1 && name[0] == '-') {
      wrong(what + " needs a file name; got '" + name + "' (a file of that name is ./" + name + ")");
    }
  }
  void output(const std::string& what, const std::string& name) const {
    file(what, name);
    if (name == "-") wrong(what + " needs a file name; '-' is only for reading");
  }
  void distinct(const std::string& a, const std::string& b) const {
    if (!b.empty() && a == b) wrong("two outputs have the same name '" + a + "'; give each its own");
  }
  std::string usage() const {
    if (command == "softmax") return "regroup softmax X.npy -o P.npy";
    if (command == "reduce") return "regroup reduce X.npy --with NAME[,NAME...]";
    if (command == "scan") return "regroup scan X.npy --with NAME -o Y.npy";
    return "regroup attention Q.npy K.npy V.npy -o O.npy";
  }
};

constexpr std::string_view reduce_names[] = {"sum",          "product", "min",  "max",     "argmin",
                                             "argmax",       "count",   "mean", "moments", "log_sum_exp",
                                             "softmax_mean", "any",     "all",  "top_k",   "histogram"};
constexpr std::string_view scan_names[] = {"sum", "product", "min",   "max",   "log_sum_exp",
                                           "any", "all",     "count", "affine"};

constexpr index most_bins = index{1} << 30;

template <std::size_t N>
std::string listed(const std::string_view (&names)[N]) {
  std::string result;
  for (const std::string_view name : names) {
    if (!result.empty()) result += ", ";
    result += name;
  }
  return result;
}
template <std::size_t N>
bool among(const std::string_view (&names)[N], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Options as CLI11 leaves them: text, present or not.
struct option_text {
  std::string x, q, k, v, output, lse, axis, scale, with, causal, mask, kv_lengths, page_table, split, cases, seed;
  std::vector<std::string> monoids;
  bool log = false, keepdims = false, exclusive = false, reverse = false, measure = false;
  std::string threads, device;
  bool json = false, quiet = false;
};

void declare(CLI::App& app, option_text& t) {
  app.fallthrough();
  app.allow_extras();
  app.require_subcommand(0, 1);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", "regroup " REGROUP_VERSION);
  app.add_option("--threads", t.threads, "number of threads (default: all); no bit of a result depends on it")
      ->type_name("N");
  app.add_option("--device", t.device, "where to compute (default: cpu)")->type_name("cpu|cuda");
  app.add_flag("--json", t.json, "one JSON object on standard output instead of text");
  app.add_flag("--quiet", t.quiet, "no progress on standard error");
  app.footer(std::string(everywhere_help) + arrays_help);  // what the commands inherit

  CLI::App& softmax = *app.add_subcommand("softmax", "Softmax along one axis: exp(x - max) / sum of exp(x - max)");
  softmax.add_option("X", t.x, "the array, or '-' (float16, bfloat16, float32 or float64, rank 1 or more)");
  softmax.add_option("-o,--output", t.output, "file for the result: X's shape and type (required)")->type_name("P.npy");
  softmax.add_option("--axis", t.axis, "the axis; negative ones count from the end (default: -1)")->type_name("A");
  softmax.add_flag("--log", t.log, "write the logarithm of softmax");
  softmax.add_option("--scale", t.scale, "multiply X by this first (default: 1)")->type_name("S");
  softmax.add_option("--lse", t.lse, "also write the logsumexp, without that axis (float32; float64 for float64)")
      ->type_name("L.npy");

  CLI::App& reduce = *app.add_subcommand("reduce", "Reduce an array, or some of its axes, by one or several monoids");
  reduce.add_option("X", t.x, "the array, or '-'");
  reduce
      .add_option("--with", t.with,
                  "monoids, separated by commas (required):\n"
                  "sum, product, min, max, argmin, argmax, count, mean, moments, log_sum_exp,\n"
                  "softmax_mean, any, all, top_k:K, histogram:LO,HI,BINS")
      ->type_name("NAME,...");
  reduce.add_option("--axis", t.axis, "axes to reduce, separated by commas (default: the whole array)")
      ->type_name("A[,B...]");
  reduce.add_flag("--keepdims", t.keepdims, "keep reduced axes with length 1");
  reduce
      .add_option("-o,--output", t.output,
                  "file for the result; R.NAME.npy each for several monoids (default: print NAME VALUE)")
      ->type_name("R.npy");

  CLI::App& scan = *app.add_subcommand("scan", "Prefixes along one axis: element i combines elements 0 to i");
  scan.add_option("X", t.x, "the array, or '-'");
  scan.add_option("--with", t.with, "the monoid (required): " + listed(scan_names))->type_name("NAME");
  scan.add_option("-o,--output", t.output, "file for the result (required)")->type_name("Y.npy");
  scan.add_option("--axis", t.axis, "the axis (default: -1; affine: -2)")->type_name("A");
  scan.add_flag("--exclusive", t.exclusive, "element i combines elements 0 to i - 1");
  scan.add_flag("--reverse", t.reverse, "from the end of the axis to its beginning");

  CLI::App& attention = *app.add_subcommand("attention", "softmax(scale Q K^T + mask) V without the matrix");
  attention.add_option("Q", t.q, "queries (..., H, Nq, d), rank 2 to 4");
  attention.add_option("K", t.k, "keys (..., Hkv, Nk, d); with --page-table (P, Hkv, page size, d)");
  attention.add_option("V", t.v, "values (..., Hkv, Nk, dv); with --page-table (P, Hkv, page size, dv)");
  attention.add_option("-o,--output", t.output, "file for the result (..., H, Nq, dv) (required)")->type_name("O.npy");
  attention.add_option("--lse", t.lse, "also write the logsumexp (..., H, Nq)")->type_name("L.npy");
  attention.add_option("--scale", t.scale, "factor of every score (default: 1/sqrt(d))")->type_name("S");
  attention.add_flag("--causal", t.causal,
                     "hide later keys: --causal or --causal=bottom-right (the last query sees\n"
                     "every key), --causal=top-left (query i sees keys 0 to i)");
  attention.add_option("--mask", t.mask, "bool (true: attend) or floating (added), broadcast to (..., H, Nq, Nk)")
      ->type_name("M.npy");
  attention.add_option("--kv-lengths", t.kv_lengths, "number of keys of each batch entry, integers (B,)")
      ->type_name("N.npy");
  attention.add_option("--page-table", t.page_table, "pages of each batch entry, int32 (B, pages)")->type_name("T.npy");
  attention.add_option("--split", t.split, "compute N ranges of keys apart and combine their states")->type_name("N");

  CLI::App& laws = *app.add_subcommand("laws", "Check the laws of the monoids; exit status 1 if one falls");
  laws.add_option("MONOID", t.monoids, "names of monoids (default: all)");
  laws.add_option("--cases", t.cases, "random cases a law (default: 200)")->type_name("N");
  laws.add_option("--seed", t.seed, "seed of the random cases (default: 1)")->type_name("S");

  CLI::App& info = *app.add_subcommand("info", "Version, instruction sets, threads and devices");
  info.add_flag("--measure", t.measure, "also measure memory bandwidth and arithmetic");

  app.footer(arrays_help);
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
      option->type_name(" ");
    }
  }
}

settings read_settings(const option_text& t, const words& w) {
  settings s;
  if (!t.threads.empty()) s.threads = w.integer("--threads", t.threads, 1, "a whole number of at least 1");
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
  if (!t.axis.empty()) c.axes = w.axes(t.axis);
  return c;
}

scan_command read_scan(const option_text& t, const words& w) {
  w.file("the input X", t.x);
  if (!among(scan_names, t.with)) {
    w.wrong((t.with.empty() ? "--with is missing" : "scan does not know the monoid '" + t.with + "'") +
            "; it takes one of " + listed(scan_names));
  }
  w.required("the output -o", t.output);
  return {t.x, t.output, t.with, w.axis(t.axis), t.exclusive, t.reverse};
}

attention_command read_attention(const option_text& t, const words& w) {
  attention_command c;
  w.file("the queries Q", c.q = t.q);
  w.file("the keys K", c.k = t.k);
  w.file("the values V", c.v = t.v);
  w.required("the output -o", c.output = t.output);
  c.lse = t.lse;
  w.distinct(t.output, t.lse);
  if (!t.mask.empty()) w.file("--mask", c.mask = t.mask);
  if (!t.kv_lengths.empty()) w.file("--kv-lengths", c.kv_lengths = t.kv_lengths);
  if (!t.page_table.empty()) w.file("--page-table", c.page_table = t.page_table);
  const std::string inputs[] = {c.q, c.k, c.v, c.mask, c.kv_lengths, c.page_table};
  if (std::count(std::begin(inputs), std::end(inputs), "-") > 1) w.wrong("only one input can be '-', standard input");
  if (!t.scale.empty()) c.scale = w.finite("--scale", t.scale);
  if (t.causal == "true" || t.causal == "bottom-right") {
    c.causal = causality::bottom_right;
  } else if (t.causal == "top-left") {
    c.causal = causality::top_left;
  } else if (!t.causal.empty()) {
    w.wrong_value("--causal", "bottom-right or top-left", t.causal);
  }
  if (!t.split.empty()) c.split = w.integer<index>("--split", t.split, 1, "a whole number of at least 1");
  return c;
}

laws_command read_laws(const option_text& t, const words& w) {
  laws_command c;
  c.monoids = t.monoids;
  if (!t.cases.empty()) c.cases = w.integer("--cases", t.cases, 1, "a whole number of at least 1");
  if (!t.seed.empty()) {
    c.seed = w.integer<std::uint64_t>("--seed", t.seed, 0, "a whole number from 0 to 18446744073709551615");
  }
  return c;
}

/// CLI11's own refusals, which are few here ("--scale: 1 required S missing"), as one sentence.
std::string sentence_of(const CLI::ParseError& e) {
  std::string text = e.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) == nullptr) return text;
  const std::string option = text.substr(0, text.find(':'));
  return option + (text.ends_with("missing") ? " needs a value" : " is given more than once; give it once");
}

}  // namespace

std::vector<monoid_name> parse_monoids(const std::string& text) {
  const words w{"reduce"};
  std::vector<monoid_name> result;
  const std::vector<std::string> fields = w.fields(text);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t colon = fields[i].find(':');
    monoid_name m;
    m.name = fields[i].substr(0, colon);
    const bool has_value = colon != std::string::npos;
    const std::string value = has_value ? fields[i].substr(colon + 1) : "";
    if (!among(reduce_names, m.name)) {
      w.wrong("reduce does not know the monoid '" + m.name + "'; it takes " + listed(reduce_names));
    }
    if (m.name == "top_k") {
      m.k = w.integer<index>("top_k", value, 1, "a length as in top_k:5, of at least 1");
    } else if (m.name == "histogram") {
      const std::string wanted = "a range and a number of bins as in histogram:0,1,10";
      if (!has_value || i + 2 >= fields.size()) w.wrong_value("histogram", wanted, text);
      m.low = w.finite("histogram's lower end", value);
      m.high = w.finite("histogram's upper end", fields[i + 1]);
      m.bins = w.integer<index>("histogram's number of bins", fields[i + 2], 1, "a whole number of at least 1");
      if (!(m.low <= m.high))
        w.wrong_value("histogram", "a lower end not above its upper end", value + "," + fields[i + 1]);
      if (!std::isfinite(m.high - m.low)) {
        w.wrong_value("histogram", "ends whose distance is finite", value + "," + fields[i + 1]);
      }
      if (m.bins > most_bins)
        w.wrong("histogram has at most " + std::to_string(most_bins) + " bins; got " + fields[i + 2]);
      i += 2;
    } else if (has_value) {
      w.wrong(m.name + " takes no parameter; got '" + value + "'");
    }
    for (const monoid_name& other : result) {
      if (other.name == m.name) w.wrong("--with names " + m.name + " twice; their results would have the same name");
    }
    result.push_back(std::move(m));
  }
  return result;
}

command_line parse_command_line(int argc, const char* const* argv) {
  option_text t;
  CLI::App app{"regroup: parallel reductions of arrays, with the same bits however they are grouped", "regroup"};
  declare(app, t);
  words w;
  try {
    app.parse(argc, argv);
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
  for (const auto& [what, name] : {std::pair("the output -o", t.output), std::pair("--lse", t.lse)}) {
    if (!name.empty()) w.output(what, name);  // before the words that a forgotten value leaves over
  }
  for (const std::string& word : app.remaining(true)) {
    if (word.size() > 1 && word[0] == '-') {
      w.wrong("unknown option '" + word + "'" + (chosen.empty() ? "" : " of regroup " + w.command));
    }
    if (!chosen.empty()) w.wrong("unexpected word '" + word + "' after regroup " + w.command);
    w.wrong("unknown command '" + word + "'; the commands are softmax, reduce, scan, attention, laws and info");
  }
  command_line result;
  result.everywhere = read_settings(t, w);
  if (chosen.empty()) w.wrong("a command is missing: softmax, reduce, scan, attention, laws or info");
  if (w.command == "softmax") result.command = read_softmax(t, w);
  if (w.command == "reduce") result.command = read_reduce(t, w);
  if (w.command == "scan") result.command = read_scan(t, w);
  if (w.command == "attention") result.command = read_attention(t, w);
  if (w.command == "laws") result.command = read_laws(t, w);
  if (w.command == "info") result.command = info_command{t.measure};
  return result;
}

}  // namespace regroup::tool
