// SPDX-License-Identifier: Apache-2.0
// An attention made from choices: shapes, strides, dense, paged and ragged keys, lengths, every rule, sinks, pieces and
// splits, and at most one thing that does not fit. What it should give is in attention_definition.hpp.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "../attention/reference.hpp"
#include "arrays.hpp"

namespace fuzz {

/// What does not fit, if anything. All but `nothing` must be refused.
enum class fault {
  nothing,
  q,
  k,
  v,
  out,
  lse,
  lse_type,
  mask,
  window,
  softcap,
  slopes,
  sinks,
  scale,
  split,
  lengths,
  table,
  piece,
  overlap,
  count
};

struct row_of {
  index batch, head, query;
};

template <class T>
struct small_attention {
  using Real = regroup::attention_real<T>;
  using view = regroup::view<const T>;
  enum class place { dense, paged, ragged };

  choices& c;
  fault wrong;
  numbers next{c.byte()};
  place where = c.among({place::dense, place::dense, place::paged, place::ragged});
  bool ragged = where == place::ragged, paged = where == place::paged;
  int rank = paged || ragged ? 4 : 2 + static_cast<int>(c.below(3));
  index batches = rank < 4 ? 1 : c.below(4);
  index key_heads = rank < 3 ? 1 : c.below(3);
  index heads = rank < 3 ? 1 : key_heads * (1 + c.below(5));
  index queries = c.among<index>({1, 2, 3, 0, 5, 17, 33, 70});
  index d = c.among<index>({4, 1, 8, 3, 0, 16, 17, 33, 64});
  index dv = c.among<index>({3, 1, 8, 0, 5, 16, 31, 64});
  index page_size = c.among<index>({4, 1, 16, 5, 0, 64});
  index pages = c.below(6), pool = 1 + c.below(8);
  index keys = c.among<index>({5, 1, 0, 40, 64, 65, 129, 200, 1030});
  index split = c.among<index>({1, 1, 2, 3, 7, index{1} << 40, std::numeric_limits<index>::max()});
  bool has_lengths = !ragged && c.one_in(3);

  std::vector<index> lengths, table, q_offsets{0}, k_offsets{0};
  regroup::attention_options options;
  index first_key = 0, whole_keys = 0;  // in the whole that this is a piece of
  std::vector<index> whole_lengths;
  std::vector<regroup::attention_mask> rules;
  /// What each rule does to an exact score of key j of the whole; false where it hides it.
  std::vector<std::function<bool(cases::seen_key&, const row_of&, index)>> steps;
  std::vector<float> slopes, sinks;
  std::optional<array<T>> q, k, v, bias;
  std::optional<array<std::uint8_t>> truth;

  explicit small_attention(choices& from)
      : c(from), wrong(c.one_in(3) ? static_cast<fault>(c.below(static_cast<index>(fault::count))) : fault::nothing) {
    if (paged) keys = pages * page_size;
    while (batches * heads * queries * keys * (d + dv + 1) > 40'000) (queries > keys ? queries : keys) /= 2;
    if (paged && page_size > 0) pages = keys / page_size;
    if (paged) keys = pages * page_size;
    place_keys();
    make_inputs();
    make_piece();
    make_rules();
    make_options();
  }

  [[nodiscard]] index length(index b) const {
    const auto at = static_cast<std::size_t>(b);
    return ragged ? k_offsets[at + 1] - k_offsets[at] : lengths[at];
  }
  [[nodiscard]] index query_count(index b) const {
    const auto at = static_cast<std::size_t>(b);
    return ragged ? q_offsets[at + 1] - q_offsets[at] : queries;
  }
  [[nodiscard]] index shift(index b) const { return whole_lengths[static_cast<std::size_t>(b)] - query_count(b); }
  /// The last `rank` of four extents.
  [[nodiscard]] regroup::shape cut(const regroup::shape& four) const {
    return regroup::shape(std::span(four.begin() + 4 - rank, four.end()));
  }
  [[nodiscard]] regroup::shape out_shape() {
    regroup::shape s = ragged ? regroup::shape{q_offsets.back(), heads, dv} : cut({batches, heads, queries, dv});
    if (wrong == fault::out) s[static_cast<int>(c.below(s.size()))] += 1;
    return s;
  }
  [[nodiscard]] regroup::shape lse_shape() {
    regroup::shape s = ragged ? regroup::shape{q_offsets.back(), heads} : cut({batches, heads, queries, 0});
    if (!ragged) s = regroup::shape(std::span(s.begin(), s.end() - 1));
    if (wrong == fault::lse) s[static_cast<int>(c.below(s.size()))] += 1;
    return s;
  }

  void place_keys() {
    if (ragged) {
      // without requests nothing is wrong with any, and there is no table
      if (batches == 0 || wrong == fault::table) wrong = fault::nothing;
      queries = keys = 0;
      for (index b = 0; b < batches; ++b) {
        q_offsets.push_back(q_offsets.back() + c.below(6));
        k_offsets.push_back(k_offsets.back() + c.among<index>({3, 0, 1, 9, 70}));
        queries = std::max(queries, query_count(b));
        keys = std::max(keys, length(b));
      }
      if (wrong == fault::lengths) (c.one_in(2) ? q_offsets : k_offsets).back() += 1;
      return;
    }
    for (index b = 0; b < batches; ++b) {
      lengths.push_back(has_lengths ? static_cast<index>(c.word() % static_cast<std::uint64_t>(keys + 1)) : keys);
    }
    std::vector<std::size_t> read;
    for (index b = 0; b < batches && paged; ++b) {
      for (index p = 0; p < pages; ++p) {
        const bool is_read = p * page_size < lengths[static_cast<std::size_t>(b)];
        if (is_read) read.push_back(table.size());
        table.push_back(is_read ? c.below(pool) : c.awkward());
      }
    }
    if (wrong == fault::table) {
      const index page = c.awkward();
      if (read.empty() || (page >= 0 && page < pool)) {
        wrong = fault::nothing;
      } else {
        table[read[static_cast<std::size_t>(c.below(static_cast<index>(read.size())))]] = page;
      }
    }
    if (wrong == fault::lengths) {
      has_lengths = true;
      const index n = c.awkward();
      if (batches == 0 || (n >= 0 && n <= keys)) {
        lengths.push_back(keys);
      } else {
        lengths[static_cast<std::size_t>(c.below(batches))] = n;
      }
    }
  }

  void make_inputs() {
    regroup::shape qs = ragged ? regroup::shape{q_offsets.back(), heads, d} : cut({batches, heads, queries, d});
    regroup::shape ks = ragged  ? regroup::shape{k_offsets.back(), key_heads, d}
                        : paged ? regroup::shape{pool, key_heads, page_size, d}
                                : cut({batches, key_heads, keys, d});
    regroup::shape vs = ks;
    vs[vs.size() - 1] = dv;
    if (wrong == fault::lengths && ragged) qs[0] = ks[0] = vs[0] = 0;  // offsets beyond the tokens
    if (wrong == fault::q) qs[qs.size() - 1] += 1;
    if (wrong == fault::k) ks[ks.size() - (c.one_in(2) ? 2 : 1)] += 1;
    if (wrong == fault::v) vs[vs.size() - 2] += 1;
    q.emplace(c, qs, true).fill(next);
    k.emplace(c, ks, true).fill(next);
    v.emplace(c, vs, true).fill(next);
    plant(*q, NAN);
    plant(*k, NAN);
    plant(*v, c.among<Real>({NAN, INFINITY, -INFINITY}));
    if (wrong == fault::overlap && on_an_input().data() == nullptr) wrong = fault::nothing;
  }
  /// Sometimes, `x` somewhere.
  void plant(array<T>& in, Real x) {
    if (c.one_in(6) && !in.all().empty())
      in.all()[static_cast<std::size_t>(c.word() % in.all().size())] = static_cast<T>(x);
  }
  /// An output that begins where an input does; data() is null where none has elements, or the output has none.
  [[nodiscard]] regroup::view<T> on_an_input() {
    const fault now = std::exchange(wrong, fault::nothing);
    const regroup::shape s = out_shape();
    wrong = now;
    if (regroup::view<T>(nullptr, s).size() == 0) return {nullptr, s};
    for (array<T>* const x : {&*q, &*k, &*v}) {
      if (x->view.size() > 0) return {x->view.data(), s};
    }
    return {nullptr, s};
  }
  [[nodiscard]] std::vector<std::uint64_t> input_bytes() {
    std::vector<std::uint64_t> all;
    for (array<T>* const x : {&*q, &*k, &*v}) {
      for (const T e : x->all()) all.push_back(cases::bits(e));
    }
    return all;
  }

  void make_piece() {
    whole_keys = keys;
    for (index b = 0; b < batches; ++b) whole_lengths.push_back(length(b));
    if (wrong != fault::piece && !c.one_in(4)) return;
    first_key = c.among<index>({0, 1, 64, 1000});
    whole_keys = first_key + keys + c.among<index>({0, 1, 70});
    whole_lengths.assign(static_cast<std::size_t>(batches), whole_keys);
    options.piece = regroup::key_piece{first_key, whole_keys};
    if (c.one_in(2)) {
      for (index& n : whole_lengths) n = c.below(256) % (whole_keys + 1);
      options.piece->lengths = whole_lengths;
    }
    if (wrong != fault::piece) return;
    regroup::key_piece& piece = *options.piece;
    switch (c.below(4)) {
      case 0:
        piece.first = piece.of - keys + 1;
        break;
      case 1:
        piece.first = -1 - c.below(9);
        break;
      case 2:
        piece.lengths = whole_lengths;
        piece.lengths.push_back(c.awkward());
        break;
      default: {
        const index n = c.awkward();
        piece.lengths = whole_lengths;
        if (batches == 0 || (n >= 0 && n <= piece.of)) {
          piece.of = keys - 1;
        } else {
          piece.lengths.front() = n;
        }
      }
    }
  }

  /// Extents that broadcast to (..., heads, queries, keys of the whole).
  [[nodiscard]] regroup::shape mask_shape() {
    const regroup::shape full = {batches, heads, queries, whole_keys};
    regroup::shape s;
    for (int a = 4 - static_cast<int>(1 + c.below(rank)); a < 4; ++a) s.push_back(c.one_in(3) ? 1 : full[a]);
    if (std::exchange(wrong_mask_, false)) s[s.size() - 1] = whole_keys + 2;
    return s;
  }
  template <class A>
  [[nodiscard]] static auto broadcast(const A& a, const row_of& r, index j) {
    const auto& m = a.view;
    const index at[] = {r.batch, r.head, r.query, j};
    index offset = 0;
    for (int i = 0; i < m.rank(); ++i) {
      if (m.extent(i) != 1) offset += at[4 - m.rank() + i] * m.stride(i);
    }
    return m.data()[offset];
  }

  void make_rules() {
    const auto chosen = c.byte();
    const auto rounded = [](cases::seen_key& key, long double score) {
      key.magnitude += 2 * std::abs(score);
      key.score = score;
      return true;
    };
    if ((chosen & 1) != 0 || wrong == fault::softcap) {
      double cap = c.among({3.0, 30.0, 0.5, 1e-3});
      rules.emplace_back(
          regroup::softcap{wrong == fault::softcap ? c.among({0.0, -1.0, HUGE_VAL, std::nan("")}) : cap});
      if (!std::same_as<Real, double>) cap = static_cast<float>(cap);
      steps.emplace_back(
          [=](cases::seen_key& key, const row_of&, index) { return rounded(key, cap * std::tanh(key.score / cap)); });
    }
    if ((chosen & 2) != 0 || wrong == fault::slopes) {
      for (index h = 0; h < heads + (wrong == fault::slopes); ++h) slopes.push_back(next());
      rules.emplace_back(regroup::alibi(slopes));
      steps.emplace_back([=, this](cases::seen_key& key, const row_of& r, index j) {
        const auto distance = static_cast<long double>(j - r.query - shift(r.batch));
        return rounded(key, key.score + slopes[static_cast<std::size_t>(r.head)] * distance);
      });
    }
    wrong_mask_ = wrong == fault::mask;
    if ((chosen & 4) != 0 || wrong == fault::mask) {
      bias.emplace(c, mask_shape(), true).fill([&] {
        const float x = next();
        return x > 1.6F ? float{regroup::hidden} : x;
      });
      rules.emplace_back(regroup::additive(bias->in()));
      steps.emplace_back([=, this](cases::seen_key& key, const row_of& r, index j) {
        const Real b = regroup::widen(broadcast(*bias, r, j));
        return rounded(key, key.score + b) && b != Real{regroup::hidden};
      });
    }
    if ((chosen & 8) != 0) {
      rules.emplace_back(
          [](auto score, index, index, index, index key) { return score + (key % 3 == 0 ? decltype(score){1} : 0); });
      steps.emplace_back(
          [=](cases::seen_key& key, const row_of&, index j) { return rounded(key, key.score + (j % 3 == 0)); });
    }
    if ((chosen & 16) != 0) {
      truth.emplace(c, mask_shape(), true).fill([&] { return next() > -1 ? 2 : 0; });
      rules.emplace_back(regroup::boolean(truth->in()));
      steps.emplace_back([this](cases::seen_key&, const row_of& r, index j) { return broadcast(*truth, r, j) != 0; });
    }
    if ((chosen & 32) != 0) {
      const auto corner = c.among({regroup::bottom_right, regroup::top_left});
      rules.emplace_back(regroup::causal{corner});
      steps.emplace_back([=, this](cases::seen_key&, const row_of& r, index j) {
        return j <= r.query + (corner == regroup::top_left ? 0 : shift(r.batch));
      });
    }
    if ((chosen & 64) != 0 || wrong == fault::window) {
      index left = c.awkward(), right = c.awkward();
      if (wrong != fault::window) left = std::max<index>(left, -1), right = std::max<index>(right, -1);
      if (wrong == fault::window && left >= -1 && right >= -1) right = -2;
      rules.emplace_back(regroup::window{left, right});
      steps.emplace_back([=, this](cases::seen_key&, const row_of& r, index j) {
        const index at = j - r.query - shift(r.batch);
        return (left < 0 || at >= -left) && (right < 0 || at <= right);
      });
    }
  }

  void make_options() {
    if (c.one_in(3)) options.scale = c.among({0.3, 1.0, -0.5, 0.0, 1e-30});
    if (wrong == fault::scale) options.scale = c.among({HUGE_VAL, -HUGE_VAL, std::nan("")});
    if (wrong == fault::split) options.split = c.among<index>({0, -1, std::numeric_limits<index>::min()});
    if (c.one_in(4) || wrong == fault::sinks) {
      for (index h = 0; h < heads + (wrong == fault::sinks); ++h) {
        sinks.push_back(c.one_in(5) ? float{regroup::hidden} : 2 * next());
      }
      options.sinks = sinks;
    }
    options.mask = regroup::attention_mask::all(rules);
  }

  /// f(queries, keys) as attention takes them.
  template <class F>
  void with_keys(const F& f) {
    const regroup::view<const index> pages_of(table.data(), {batches, pages});
    if (ragged) {
      return f(regroup::ragged(q->in(), q_offsets), regroup::ragged(k->in(), v->in(), k_offsets));
    }
    if (!paged) return f(q->in(), has_lengths ? dense(k->in(), v->in(), lengths) : dense(k->in(), v->in()));
    return f(q->in(), has_lengths ? regroup::paged(k->in(), v->in(), pages_of, lengths)
                                  : regroup::paged(k->in(), v->in(), pages_of));
  }
  template <class Executor>
  void attend(const Executor& ex, const regroup::view<T>& out, const regroup::attention_options& o) {
    with_keys([&](const auto& queries_of, const auto& source) { regroup::attention(ex, queries_of, source, out, o); });
  }

  [[nodiscard]] bool can_be_cut() const { return where == place::dense && !options.piece; }
  /// The state of keys [first, last) of a dense problem.
  template <class Executor>
  regroup::attention_state<Real> state_of(const Executor& ex, index first, index last) {
    std::vector<index> part;
    for (const index n : lengths) part.push_back(std::clamp<index>(n - first, 0, last - first));
    regroup::attention_options o{.scale = options.scale, .mask = options.mask};
    o.piece = regroup::key_piece{first, keys, lengths};
    const auto cut_to = [&](const view& x) { return cases::slice(x, rank - 2, first, last); };
    return {ex, q->in(), regroup::dense(cut_to(k->in()), cut_to(v->in()), part), o};
  }

 private:
  bool wrong_mask_ = false;
};

}  // namespace fuzz
