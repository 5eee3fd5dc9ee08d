// SPDX-License-Identifier: Apache-2.0
// Small attentions of every kind (small_attention.hpp). The law: an argument that does not fit gives a typed exception
// before anything is written. Everything else gives attention by definition within the bound, with the same bits from any
// threads, also in ranges of keys that are folded separately, and as merged states of pieces of the keys.
#include "attention_definition.hpp"

namespace {

using fuzz::fault;
using fuzz::index;
using fuzz::require;
using regroup::attention_options;
using regroup::view;

template <class T>
class trial {
 public:
  using Real = regroup::attention_real<T>;

  explicit trial(fuzz::choices& c) : p_(c), out_(c, p_.out_shape(), false), lse_(c, p_.lse_shape(), false) {}

  void run() {
    p_.options.logsumexp = lse_.view;
    if (p_.wrong == fault::lse_type) p_.options.logsumexp = wrong_lse_;
    const auto before = p_.input_bytes();
    bool is_refused = false;
    std::string sentence = "no exception";
    clear();
    try {
      p_.attend(regroup::seq, p_.wrong == fault::overlap ? p_.on_an_input() : out_.view, p_.options);
    } catch (const regroup::error& e) {
      is_refused = true;
      sentence = e.what();
      require(sentence.size() > 30, "a refusal is a sentence: " + sentence);
      require(is_clear(), "what is refused writes nothing");
    }
    require(before == p_.input_bytes(), "inputs are read only");
    require(is_refused == (p_.wrong != fault::nothing), "what is wrong is refused, and nothing else; fault " +
                                                            std::to_string(static_cast<int>(p_.wrong)) + ", " +
                                                            sentence);
    if (is_refused) return;
    check("whole", 0);
    const auto bits = std::pair(bits_of(out_), bits_of(lse_));
    clear();
    p_.attend(regroup::par.with_threads(3), out_.view, p_.options);
    require(bits == std::pair(bits_of(out_), bits_of(lse_)), "any threads give the same bits");
    if (p_.split > 1) {
      attention_options options = p_.options;
      options.split = p_.split;
      clear();
      p_.attend(regroup::par.with_threads(2), out_.view, options);
      check("split", static_cast<double>(std::min(p_.split, p_.keys)));
    }
    if (!p_.can_be_cut()) return;
    for (const index at : {index{0}, p_.keys / 2, p_.keys}) {
      auto state = p_.state_of(regroup::seq, 0, at);
      state.merge(p_.state_of(regroup::seq, at, p_.keys));
      state = regroup::attention_state<Real>::load(state.save());
      clear();
      state.normalise(out_.view, lse_.view, p_.options.sinks);
      check("merged", 1);
    }
  }

 private:
  void clear() {
    std::ranges::fill(out_.all(), static_cast<T>(Real{77}));
    std::ranges::fill(lse_.all(), Real{77});
  }
  bool is_clear() {
    const auto is_77 = [](auto x) { return static_cast<double>(regroup::widen(x)) == 77; };
    return std::ranges::all_of(out_.all(), is_77) && std::ranges::all_of(lse_.all(), is_77);
  }
  template <class E>
  static std::vector<std::uint64_t> bits_of(fuzz::array<E>& a) {
    std::vector<std::uint64_t> all;
    for (const E x : a.all()) all.push_back(cases::bits(x));
    return all;
  }

  /// Up to 16 rows against the definition.
  void check(const std::string& what, double depth) {
    const std::vector<fuzz::row_of> rows = definition_.rows();
    const std::size_t step = rows.size() / 16 + 1;
    for (std::size_t r = 0; r < rows.size(); r += step) {
      const fuzz::row_of& row = rows[r];
      const cases::expected e = definition_(row, depth);
      const auto [out, lse] = definition_.places(row, out_.view, lse_.view);
      const auto about = [&](const char* name, long double got, long double wanted, long double bound) {
        return what + " " + name + " of batch " + std::to_string(row.batch) + ", head " + std::to_string(row.head) +
               ", query " + std::to_string(row.query) + ": " + std::to_string(got) + ", not " + std::to_string(wanted) +
               " within " + std::to_string(bound);
      };
      const auto meets = [&](const char* name, long double got, long double wanted, long double bound) {
        const bool agrees = std::isfinite(wanted) ? std::abs(got - wanted) <= bound
                            : wanted != wanted    ? got != got
                                                  : got == wanted;
        if (!agrees) require(false, about(name, got, wanted, bound));
      };
      meets("logsumexp", *lse, e.lse, e.lse_bound);
      for (index i = 0; i < p_.dv; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const long double got = regroup::widen(out(i));
        if (std::isfinite(e.lse) && !std::isfinite(e.out[at])) {  // a visible value is not a number
          require(!std::isfinite(got), about("output", got, e.out[at], 0));
        } else {
          meets("output", got, e.out[at], e.out_bound[at]);
        }
      }
    }
  }

  fuzz::small_attention<T> p_;
  fuzz::attention_definition<T> definition_{p_};
  fuzz::array<T> out_;
  fuzz::array<Real> lse_;
  std::vector<std::conditional_t<std::same_as<T, double>, float, double>> wrong_lse_ = {1, 2, 3};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::choices c(data, size);
  switch (c.below(4)) {
    case 0:
      trial<float>(c).run();
      break;
    case 1:
      trial<double>(c).run();
      break;
    case 2:
      trial<regroup::float16>(c).run();
      break;
    default:
      trial<regroup::bfloat16>(c).run();
      break;
  }
  return 0;
}
