// SPDX-License-Identifier: Apache-2.0
#include "option_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "help.hpp"
#include "monoid_names.hpp"

namespace regroup::tool {
namespace {

constexpr std::array<std::string_view, 8> options_with_numbers = {"--scale", "--window", "--softcap", "--axis",
                                                                  "--split", "--threads", "--cases",  "--seed"};

constexpr char mark = '\0';  // occurs in no word

/// Whether a word is a negative number (-1, -.5, -inf) and not an option.
bool is_negative_number(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return digit(word[1]) || (word[1] == '.' && word.size() > 2 && digit(word[2])) || word == "-inf" || word == "-nan" ||
         word == "-infinity";
}

}  // namespace

std::vector<std::string> joined_words(int argc, const char* const* argv) {
  std::vector<std::string> result;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool takes_number =
        std::find(options_with_numbers.begin(), options_with_numbers.end(), word) != options_with_numbers.end();
    if (takes_number && i + 1 < argc && is_negative_number(argv[i + 1])) {
      result.push_back(std::string(word) + "=" + argv[++i]);
    } else {
      result.emplace_back(word);
      if (word.starts_with('[') && word.ends_with(']')) result.back() += mark;
    }
  }
  return result;
}

std::string unmarked(std::string word) {
  if (word.ends_with(mark)) word.pop_back();
  return word;
}

void declare(CLI::App& app, option_text& t) {
  app.fallthrough();
  app.allow_extras();
  app.require_subcommand(0, 1);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", "regroup " REGROUP_VERSION);
  app.add_option("--threads", t.threads, "number of threads (default: all, 1024 at most); no bit of a\nresult depends on it")
      ->type_name("N");
  app.add_option("--device", t.device, "where to compute (default: cpu), with the same bits")->type_name("cpu|cuda");
  app.add_flag("--json", t.json, "one JSON object on standard output instead of text");
  app.add_flag("--quiet", t.quiet, "no progress on standard error");

  CLI::App& softmax = *app.add_subcommand("softmax", "Softmax along one axis: exp(x - max) / sum of exp(x - max)");
  softmax.add_option("X", t.x, "the array, or '-'; rank 1 or more");
  softmax.add_option("-o,--output", t.output, "file for the result: X's shape and type (required)")->type_name("P.npy");
  softmax.add_option("--axis", t.axis, "the axis; negative ones count from the end (default: -1)")->type_name("A");
  softmax.add_flag("--log", t.log, "write the logarithm of softmax");
  softmax.add_option("--scale", t.scale, "multiply X by this first (default: 1)")->type_name("S");
  softmax.add_option("--lse", t.lse, "also write the logsumexp, without that axis: float32, or\nfloat64 for float64")
      ->type_name("L.npy");

  CLI::App& reduce = *app.add_subcommand("reduce", "Reduce an array, or some of its axes, by one or several monoids");
  reduce.add_option("X", t.x, "the array, or '-'");
  reduce
      .add_option("--with", t.with,
                  "monoids, separated by commas (required):\n"
                  "sum, product, min, max, argmin, argmax, count, mean, moments,\n"
                  "log_sum_exp, softmax_mean, any, all, top_k:K,\n"
                  "histogram:LO,HI,BINS")
      ->type_name("NAME,...");
  reduce.add_option("--axis", t.axis, "axes to reduce, separated by commas (default: all)")->type_name("A[,B...]");
  reduce.add_flag("--keepdims", t.keepdims, "keep reduced axes with length 1");
  reduce
      .add_option("-o,--output", t.output,
                  "file for the result; R.NAME.npy each for several monoids\n(default: print NAME VALUE)")
      ->type_name("R.npy");

  CLI::App& scan = *app.add_subcommand("scan", "Prefixes along one axis: element i combines elements 0 to i");
  scan.add_option("X", t.x, "the array, or '-'");
  scan.add_option("--with", t.with,
                  "the monoid (required): sum, product, min, max, log_sum_exp,\n"
                  "any, all, count, affine")
      ->type_name("NAME");
  scan.add_option("-o,--output", t.output, "file for the result (required)")->type_name("Y.npy");
  scan.add_option("--axis", t.axis, "the axis (default: -1; affine: -2)")->type_name("A");
  scan.add_flag("--exclusive", t.exclusive, "element i combines elements 0 to i - 1");
  scan.add_flag("--reverse", t.reverse, "from the end of the axis to its beginning");

  CLI::App& attention = *app.add_subcommand("attention", "softmax(scale Q K^T + mask) V without the matrix");
  attention.add_option("Q", t.q, "queries (..., H, Nq, d), rank 2 to 4, or '-'");
  attention.add_option("K", t.k, "keys (..., Hkv, Nk, d), or '-'; with --page-table\n(P, Hkv, page size, d)");
  attention.add_option("V", t.v, "values (..., Hkv, Nk, dv), or '-'; with --page-table\n(P, Hkv, page size, dv)");
  attention.add_option("-o,--output", t.output, "file for the result (..., H, Nq, dv); required without\n--state-out")
      ->type_name("O.npy");
  attention.add_option("--lse", t.lse, "also write the logsumexp (..., H, Nq)")->type_name("L.npy");
  attention.add_option("--scale", t.scale, "factor of every score (default: 1/sqrt(d))")->type_name("S");
  attention
      .add_flag("--causal", t.causal,
                "hide later keys: --causal or --causal=bottom-right (the last\n"
                "query sees every key), --causal=top-left (query i sees keys\n"
                "0 to i)")
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  attention
      .add_option("--window", t.window,
                  "query i sees key j where -LEFT <= j - (i + Nk - Nq) <= RIGHT;\n-1 for no limit")
      ->type_name("LEFT,RIGHT");
  attention
      .add_option("--mask", t.mask,
                  "bool (true: attend) or any floating type (added; -inf hides),\n"
                  "broadcast to (..., H, Nq, Nk)")
      ->type_name("M.npy");
  attention.add_option("--softcap", t.softcap, "scores become C tanh(score / C), after the scale")->type_name("C");
  attention.add_option("--alibi", t.alibi, "slopes (H,), any floating type: adds slope (j - (i + Nk - Nq))")
      ->type_name("SLOPES.npy");
  attention.add_option("--sinks", t.sinks, "(H,), any floating type: one extra logit a head, in the\ndenominator only")
      ->type_name("S.npy");
  attention.add_option("--kv-lengths", t.kv_lengths, "number of keys of each batch entry, int32 or int64 (B,)")
      ->type_name("N.npy");
  attention.add_option("--page-table", t.page_table, "pages of each batch entry, int32 or int64 (B, pages)")
      ->type_name("T.npy");
  attention.add_option("--split", t.split, "compute N ranges of keys apart and combine their states")->type_name("N");
  attention
      .add_option("--state-out", t.state_out,
                  "save the state: DIR/m.npy, l.npy (..., H, Nq) and the\n"
                  "unnormalised o.npy (..., H, Nq, dv), for regroup merge; K and\n"
                  "V may be a piece of the keys")
      ->type_name("DIR");

  CLI::App& merge = *app.add_subcommand("merge", "Combine attention states over disjoint keys, left to right");
  merge.add_option("STATE_DIR", t.states, "directories that regroup attention --state-out wrote");
  merge.add_option("-o,--output", t.output, "file for the result (..., H, Nq, dv) (required)")->type_name("O.npy");
  merge.add_option("--lse", t.lse, "also write the logsumexp (..., H, Nq)")->type_name("L.npy");

  CLI::App& laws = *app.add_subcommand("laws", "Check the laws of the monoids; exit status 1 if one falls");
  laws.add_option("MONOID", t.monoids, "names of monoids (default: all)");
  laws.add_option("--cases", t.cases, "random cases a law (default: 200)")->type_name("N");
  laws.add_option("--seed", t.seed, "seed of the random cases (default: 1)")->type_name("S");

  CLI::App& info = *app.add_subcommand("info", "Version, instruction sets, threads and devices");
  info.add_flag("--measure", t.measure, "also measure memory bandwidth and arithmetic");

  const auto take_as_given = [](CLI::App& part) {
    for (CLI::Option* option : part.get_options([](const CLI::Option* o) { return o->get_expected_min() > 0; })) {
      option->transform(unmarked);
    }
  };
  take_as_given(app);
  app.footer(footer_of(""));
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    take_as_given(*command);
    command->footer(footer_of(command->get_name()));
    for (CLI::Option* option : command->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
      option->type_name(" ");
    }
  }
}

}  // namespace regroup::tool
