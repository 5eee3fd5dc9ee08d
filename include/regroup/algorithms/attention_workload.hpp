// SPDX-License-Identifier: Apache-2.0
// What one call of attention computes: a problem (attention_fold.hpp), or one for each request of a ragged batch, with the
// places of their results. A request has the bits that it has alone. Level: rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "regroup/algorithms/attention_fold.hpp"
#include "regroup/algorithms/attention_options.hpp"
#include "regroup/host/seq.hpp"

namespace regroup::attention_fold {

/// Range `part` of `parts` ranges of keys.
inline key_range part_of(index keys, index part, index parts) {
  return {keys * part / parts, keys * (part + 1) / parts};
}
inline void check_split(index split) {
  if (split < 1) throw_argument("attention's split must be 1 or more; got " + std::to_string(split));
}

/// The extents of the whole that a piece of the keys belongs to. Throws argument_error and shape_error (key_piece).
inline attention_extents whole_of(attention_extents e, const key_piece& piece) {
  if (piece.first < 0 || piece.of < 0 || piece.first > piece.of - e.keys) {
    throw_argument("a piece of keys lies in the whole: from " + std::to_string(piece.first) + ", " +
                   std::to_string(e.keys) + " keys of " + std::to_string(piece.of));
  }
  e.keys = piece.of;
  e.lengths.assign(static_cast<std::size_t>(e.batches), piece.of);
  if (!piece.lengths.empty()) e.lengths = piece.lengths;
  if (static_cast<index>(e.lengths.size()) != e.batches) {
    throw_shape("the lengths of a whole have one entry a batch, here " + std::to_string(e.batches) + "; got " +
                std::to_string(e.lengths.size()));
  }
  for (const index length : e.lengths) {
    if (length < 0 || length > e.keys) {
      throw_argument("a length of a whole is from 0 to its number of keys, " + std::to_string(e.keys) + "; got " +
                     std::to_string(length));
    }
  }
  return e;
}

/// A rule seen from elsewhere: batch 0 and key 0 here are `batch` and `key` of what it was bound to.
class bound_elsewhere final : public bound_mask {
 public:
  bound_elsewhere(mask_rules::bound_pointer whole, index batch, index key)
      : whole_(std::move(whole)), batch_(batch), key_(key) {}
  [[nodiscard]] key_range range(index batch, index head, index query) const override {
    const key_range seen = whole_->range(batch + batch_, head, query);
    return {std::max<index>(seen.first - key_, 0), std::max<index>(seen.last - key_, 0)};
  }
  [[nodiscard]] bool has_function() const noexcept override { return whole_->has_function(); }
  void apply(const score_tile<float>& tile) const override { apply_to(tile); }
  void apply(const score_tile<double>& tile) const override { apply_to(tile); }

 private:
  template <class Real>
  void apply_to(score_tile<Real> t) const {
    t.batch += batch_;
    t.first_key += key_;
    whole_->apply(t);
  }
  mask_rules::bound_pointer whole_;
  index batch_, key_;
};

/// A mask that counts positions in the whole.
struct mask_of_whole {
  attention_mask mask;
  key_piece piece;
  [[nodiscard]] mask_rules::bound_pointer bind(const attention_extents& e) const {
    return std::make_shared<const bound_elsewhere>(mask.bind(whole_of(e, piece)), 0, piece.first);
  }
};

/// Request b of any source of keys, alone.
template <class T>
attention_source<T> request(const attention_source<T>& keys, std::size_t b) {
  attention_source<T> one{.k = keys.k, .v = keys.v, .is_paged = keys.is_paged, .pages = keys.pages, .entries = keys.entries};
  if (keys.lengths) one.lengths = std::vector<index>{(*keys.lengths)[b]};
  if (keys.is_paged) {
    const auto first = keys.table.begin() + static_cast<std::ptrdiff_t>(b) * keys.entries;
    one.table.assign(first, first + keys.entries);
    one.batches = 1;
    return one;
  }
  for (view<const T>* x : {&one.k, &one.v}) {
    shape extents = x->extents();
    extents[0] = 1;
    *x = view<const T>(x->data() + static_cast<index>(b) * x->stride(0), extents, x->strides());
  }
  return one;
}
template <class T>
attention_source<T> request(const ragged_source<T>& keys, std::size_t b) {
  return {.k = attention_keys::request(keys.k, keys.offsets, b), .v = attention_keys::request(keys.v, keys.offsets, b)};
}

template <class T>
index dense_requests_of(const attention_source<T>& keys) {
  if (keys.k.rank() != 4 || keys.v.rank() != 4 || keys.k.extent(0) != keys.v.extent(0)) {
    throw_shape("keys and values of ragged queries are ragged, paged, or (requests, heads, keys, d); got " +
                to_string(keys.k.extents()) + " and " + to_string(keys.v.extents()));
  }
  return keys.k.extent(0);
}
template <class T>
index requests_of(const attention_source<T>& keys) {
  const index requests = keys.is_paged ? keys.batches : dense_requests_of(keys);
  if (keys.lengths && static_cast<index>(keys.lengths->size()) != requests) {
    throw_shape("there is one length of keys a request, here " + std::to_string(requests) + "; got " +
                std::to_string(keys.lengths->size()));
  }
  return requests;
}
template <class T>
index requests_of(const ragged_source<T>& keys) {
  return static_cast<index>(keys.offsets.size()) - 1;
}
/// The problems of one call, checked. They refer to the call's arguments.
template <class T>
class workload {
 public:
  using Real = attention_real<T>;

  /// Padded or paged keys of queries (..., H, Nq, d).
  workload(const view<const T>& q, const attention_source<T>& keys, const attention_options& options)
      : q_(q), k_(keys.k), v_(keys.v) {
    const attention_mask mask = options.piece ? attention_mask(mask_of_whole{options.mask, *options.piece}) : options.mask;
    problems_.push_back({problem<T>(q, keys, mask, options), 0});
    outer_ = problems_[0].p.outer;
  }
  /// Requests of ragged queries (tokens, H, d), each over its own keys.
  template <class Keys>
  workload(const ragged_queries<T>& q, const Keys& keys, const attention_options& options)
      : q_(q.q.permuted({1, 0, 2})), k_(keys.k), v_(keys.v), outer_{q.q.extent(1), q.q.extent(0)} {
    const auto requests = static_cast<index>(q.offsets.size()) - 1;
    if (requests_of(keys) != requests) {
      throw_shape("ragged queries of " + std::to_string(requests) + " requests need the keys of as many; got " +
                  std::to_string(requests_of(keys)));
    }
    attention_extents e{4, requests, q.q.extent(1), 0, 0, {}, {}};
    for (std::size_t b = 0; b < static_cast<std::size_t>(requests); ++b) {
      sources_.push_back(request(keys, b));
      problems_.push_back({problem<T>(attention_keys::request(q.q, q.offsets, b), sources_.back(), no_mask{},
                                      options),
                           q.offsets[b]});
      const attention_extents& one = problems_.back().p.extents;
      e.queries = std::max(e.queries, one.queries);
      e.keys = std::max(e.keys, one.keys);
      e.query_lengths.push_back(one.queries);
      e.lengths.push_back(one.lengths[0]);
    }
    if (options.piece) e = whole_of(std::move(e), *options.piece);
    const index first_key = options.piece ? options.piece->first : 0;
    const mask_rules::bound_pointer whole = options.mask.bind(e);
    for (index b = 0; b < requests; ++b) {
      problem<T>& p = problems_[static_cast<std::size_t>(b)].p;
      p.mask = std::make_shared<const bound_elsewhere>(whole, b, first_key);
    }
  }
  workload(workload&&) = delete;

  /// The extents (..., H, Nq) of the results; (H, tokens) of ragged queries.
  [[nodiscard]] const shape& outer() const noexcept { return outer_; }
  [[nodiscard]] index dv() const noexcept { return v_.extent(v_.rank() - 1); }
  [[nodiscard]] const view<const T>& q() const noexcept { return q_; }
  [[nodiscard]] const view<const T>& k() const noexcept { return k_; }
  [[nodiscard]] const view<const T>& v() const noexcept { return v_; }

  /// The number of ranges of keys: `split`, but no more than the longest request has keys, since empty states change nothing.
  [[nodiscard]] index parts(index split) const {
    index most = 1;
    for (const request_problem& r : problems_) most = std::max(most, r.p.extents.keys);
    return std::min(split, most);
  }
  /// Calls sink(batch, head, query, m, l, o) once for each query, over range `part` of `parts` of its keys. Each long request
  /// gets all of the executor's threads in turn; the short ones run at once, a thread each.
  template <executor Executor, class Sink>
  void run(const Executor& ex, index part, index parts, const Sink& sink) const {
    const auto fold = [&](const auto& executor_of_one, const request_problem& r) {
      attention_fold::run(executor_of_one, r.p, part_of(r.p.extents.keys, part, parts),
                          [&](index batch, index head, index query, Real m, Real l, const Real* o) {
                            sink(batch, head, r.first_query + query, m, l, o);
                          });
    };
    double total = 0;
    for (const request_problem& r : problems_) total += r.nanoseconds();
    std::vector<const request_problem*> shorter;
    for (const request_problem& r : problems_) {
      if (std::max(16, concurrency_of(ex)) * r.nanoseconds() >= total) {
        fold(ex, r);
      } else {
        shorter.push_back(&r);
      }
    }
    const auto n = static_cast<index>(shorter.size());
    ex.for_each(n, total / static_cast<double>(std::max<index>(n, 1)),
                [&](index i) { fold(worker_of(seq), *shorter[static_cast<std::size_t>(i)]); });
  }

 private:
  struct request_problem {
    problem<T> p;
    index first_query;
    [[nodiscard]] double nanoseconds() const {
      return 1000.0 + static_cast<double>(p.extents.batches * p.extents.heads * p.extents.queries) *
                          static_cast<double>(p.longest() * p.row_length()) / 30;
    }
  };

  view<const T> q_, k_, v_;
  shape outer_;
  std::deque<attention_source<T>> sources_;  // of the requests
  std::deque<request_problem> problems_;
};

template <class Q, class T>
workload<T> workload_of(const Q& q, const attention_source<T>& keys, const attention_options& options) {
  return {attention_keys::queries<T>(q), keys, options};
}
template <class T>
workload<T> workload_of(const ragged_queries<T>& q, const attention_source<T>& keys, const attention_options& options) {
  return {q, keys, options};
}
template <class T>
workload<T> workload_of(const ragged_queries<T>& q, const ragged_source<T>& keys, const attention_options& options) {
  return {q, keys, options};
}

}  // namespace regroup::attention_fold
