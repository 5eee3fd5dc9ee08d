// SPDX-License-Identifier: Apache-2.0
// Checks attention's arguments; each requirement has a sentence.
#include <cmath>
#include <string>

#include "attention_tile.hpp"
#include "regroup/algorithms/attention_fold.hpp"

namespace regroup::attention_fold {

namespace {

template <class T>
view<const T> as_rank_4(const view<const T>& x) {
  shape extents;
  shape strides;
  for (int a = x.rank(); a < 4; ++a) {
    extents.push_back(1);
    strides.push_back(0);
  }
  for (int a = 0; a < x.rank(); ++a) {
    extents.push_back(x.extent(a));
    strides.push_back(x.stride(a));
  }
  return {x.data(), extents, strides};
}

/// Takes a function that makes the sentence, since making it takes longer than a short call of attention.
template <class Sentence>
void require(bool holds, const Sentence& sentence) {
  if (!holds) throw_shape(sentence());
}

template <class T>
void check_keys(const attention_source<T>& keys, const view<const T>& q) {
  const int rank = keys.is_paged ? 4 : q.rank();
  const char* const kind = keys.is_paged ? "a page pool (pages, key heads, page size, d)"
                                         : "keys and values of the queries' rank, (..., key heads, keys, d)";
  for (const view<const T>* x : {&keys.k, &keys.v}) {
    require(x->rank() == rank, [&] {
      return std::string("attention needs ") + kind + ", rank " + std::to_string(rank) + "; got shape " +
             to_string(x->extents());
    });
  }
  for (int a = 0; a + 1 < rank; ++a) {
    require(keys.k.extent(a) == keys.v.extent(a), [&] {
      return "keys and values differ in their last extent at most; got keys " + to_string(keys.k.extents()) +
             " and values " + to_string(keys.v.extents());
    });
  }
}

}  // namespace

template <class T>
problem<T>::problem(const view<const T>& queries, const attention_source<T>& source, const attention_mask& m,
                    const attention_options& options)
    : keys(source),
      takes_pairs(options.narrow_weights && tiles::takes_pairs<T>()),
      takes_matrices(options.narrow_weights && tiles::takes_matrices<T>()),
      takes_integers(options.fixed_point && !takes_pairs && !takes_matrices && tiles::integers<T>() != nullptr) {
  const auto shapes = [&] {
    return "; got queries " + to_string(queries.extents()) + " and keys " + to_string(source.k.extents());
  };
  require(queries.rank() >= 2 && queries.rank() <= 4, [&] {
    return "attention's queries have rank 2 to 4, (..., heads, queries, d); got shape " + to_string(queries.extents());
  });
  check_keys(source, queries);
  q = as_rank_4(queries);
  k = as_rank_4(source.k);
  v = as_rank_4(source.v);
  d = q.extent(3);
  dv = v.extent(3);
  key_heads = k.extent(1);
  extents = {queries.rank(), q.extent(0), q.extent(1), q.extent(2), k.extent(2), {}};
  for (int a = 0; a + 1 < queries.rank(); ++a) outer.push_back(queries.extent(a));
  require(k.extent(3) == d, [&] { return "queries and keys need the same last extent, d" + shapes(); });
  require(key_heads == 0 ? extents.heads == 0 : extents.heads % key_heads == 0,
          [&] { return "the number of query heads must be a multiple of the number of key heads" + shapes(); });
  group = key_heads == 0 ? 0 : extents.heads / key_heads;
  if (source.is_paged) {
    page_size = k.extent(2);
    require(!__builtin_mul_overflow(source.pages, page_size, &extents.keys), [&] {
      return "a page table's pages have more keys than 64 bits count, " + std::to_string(source.pages) + " times " +
             std::to_string(page_size);
    });
    require(source.batches == extents.batches, [&] {
      return "a page table has one row a batch, here " + std::to_string(extents.batches) + "; got " +
             std::to_string(source.batches);
    });
  } else {
    require(k.extent(0) == extents.batches,
            [&] { return "queries and keys need the same number of batches" + shapes(); });
  }

  extents.lengths.assign(static_cast<std::size_t>(extents.batches), extents.keys);
  if (source.lengths) {
    require(source.lengths->size() == extents.lengths.size(), [&] {
      return "key lengths have one entry a batch, here " + std::to_string(extents.batches) + "; got " +
             std::to_string(source.lengths->size());
    });
    extents.lengths = *source.lengths;
  }
  for (index b = 0; b < extents.batches; ++b) {
    const index length = extents.lengths[static_cast<std::size_t>(b)];
    if (length < 0 || length > extents.keys) {
      throw_argument("a key length must be from 0 to the number of keys, " + std::to_string(extents.keys) + "; batch " +
                     std::to_string(b) + " has " + std::to_string(length));
    }
    for (index page = 0; source.is_paged && page * page_size < length; ++page) {
      const index at = source.table[static_cast<std::size_t>(b * source.entries + page)];
      if (at < 0 || at >= k.extent(0)) {
        throw_argument("a page table's entries must be from 0 to below the pool's " + std::to_string(k.extent(0)) +
                       " pages; page " + std::to_string(page) + " of batch " + std::to_string(b) + " is " +
                       std::to_string(at));
      }
    }
  }

  const double wanted = options.scale.value_or(d == 0 ? 1.0 : 1 / std::sqrt(static_cast<double>(d)));
  require_finite_as<Real>(wanted, "attention's scale");
  scale = static_cast<Real>(wanted);
  mask = m.bind(extents);
}

template struct problem<float>;
template struct problem<double>;
template struct problem<float16>;
template struct problem<bfloat16>;

}  // namespace regroup::attention_fold
