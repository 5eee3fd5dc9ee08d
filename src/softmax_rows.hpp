// SPDX-License-Identifier: Apache-2.0
// Softmax's loop over a row, for one instruction set. It computes the row's weights and their sums in plus's order, writes the
// outputs of the row before, finds the largest element of the row after, and prefetches the row after that. All of this is
// interleaved two packs at a time, so that computing, reading and writing overlap. Local to each instruction set's file.
// Level: lane.
#pragma once

#include <algorithm>

#include "pack_folds.hpp"
#include "pack_pairs.hpp"
#include "regroup/algorithms/softmax_kernels.hpp"
#include "regroup/memory.hpp"

namespace regroup::softmax_parts {
namespace {

using tiles::packs;

/// How far ahead of reading to prefetch, measured with rows of 1024: 2 KiB (tried 512 B to 16 KiB on an Intel: 0.98 of a copy,
/// with 4 KiB 0.95), on AMD 8 KiB (tried 0 to 8 KiB on a Zen 4: 1.15 times as fast as with 2 KiB).
inline index bytes_ahead() { return is_amd() ? 8192 : 2048; }
inline std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
template <class X>
const X* moved(const X* x, index bytes) {
  return reinterpret_cast<const X*>(address(x) + static_cast<std::uintptr_t>(bytes));
}

template <class X, class Y, class Pack, bool OfWeights, bool Scales>
struct row_loops {
  using Real = widened<X>;
  static constexpr index width = Pack::width;
  static constexpr index pair = 2 * width;  // elements at a time
  using form = row_form<Real>;
  using two = packs<Pack, 2>;

  /// Loads two packs, or N, times scale; unless Whole, only `count` elements, followed by those of `rest`.
  template <bool Whole, int N = 2>
  [[gnu::always_inline]] static void load(packs<Pack, N>& v, const X* from, const Pack& scale, index count,
                                          const Pack& rest) {
    unrolled<N>([&](int k) {
      if constexpr (Whole) {
        v[k] = Pack::load(from + k * width);
        if constexpr (Scales) v[k] = Pack::product(v[k], scale);
      } else {
        const index some = std::clamp<index>(count - k * width, 0, width);
        v[k] = Pack::load_some(from + k * width, some);
        if constexpr (Scales) v[k] = Pack::product(v[k], scale);
        v[k] = Pack::first(some, v[k], rest);
      }
    });
  }
  /// Prefetches two packs.
  [[gnu::always_inline]] static void fetch(const X* later) { fetch_lines(later, pair * sizeof(X)); }
  template <bool Whole, class T>
  [[gnu::always_inline]] static void store(const two& v, T* to, index count) {
    Whole ? tiles::store<Pack>(v, to) : tiles::store_some<Pack>(v, to, count);
  }
  template <bool Whole>
  [[gnu::always_inline]] static void store(const packs<Pack, 1>& v, Real* to, index count) {
    Whole ? v[0].store(to) : v[0].store_some(to, count);
  }

  /// Writes a row's outputs in order. Where they are made of weights, these are the stored ones or, if Anew, computed again
  /// from the elements.
  template <bool Anew = false>
  class outputs {
   public:
    outputs(const form& f, const row_outputs<X, Y>& row)
        : row_(row),
          scale_(Pack::all(f.scale)),
          m_(Pack::all(row.m)),
          a_(Pack::all(row.map.a)),
          b_(Pack::all(row.map.b)),
          shares_(row.map.kind == row_map_kind::shares_of_weights),
          last_(row.y == nullptr ? 0 : f.length) {
      if (!f.past_caches || last_ == 0) return;
      const auto ragged = static_cast<index>(bytes_to_line(row.y) / sizeof(Y));
      if (ragged >= last_) return;
      for (; next_ + pair <= ragged; next_ += pair) put<true, false>(next_, pair);
      if (next_ < ragged) put<false, false>(next_, ragged - next_);
      next_ = ragged;
      past_caches_ = bytes_to_line(row.y + ragged) == 0;
      if (bytes_to_line(row.y + last_) != 0) __builtin_prefetch(row.y + last_ - 1, 1);
    }
    /// Whether n more outputs are left; if so, `step` can write them two packs at a time.
    [[nodiscard]] bool has(index n) const { return next_ + n <= last_; }
    [[gnu::always_inline]] void step(index at) {
      past_caches_ ? put<true, true>(next_ + at, pair) : put<true, false>(next_ + at, pair);
    }
    void advance(index n) { next_ += n; }
    /// Writes the next two packs. A line that this row only begins is written through the caches, where the next row completes
    /// it.
    void next() {
      if ((address(row_.y + next_) | (cache_line - 1)) >= address(row_.y + last_)) past_caches_ = false;
      step(0);
      advance(pair);
    }
    void finish() {
      if (is_backward_) {
        constexpr index lines = std::max(pair, index{cache_line / sizeof(Y)});
        const index whole = (last_ - next_) / lines * lines;
        for (index left = whole; left > 0; left -= pair) step(left - pair);
        advance(whole);
      }
      while (has(pair)) next();
      if (next_ < last_) put<false, false>(next_, last_ - next_);
      next_ = last_;
    }

   private:
    template <bool Whole, bool PastCaches>
    [[gnu::always_inline]] void put(index at, index count) const {
      two v;
      if constexpr (OfWeights && !Anew) {
        unrolled<2>([&](int k) {
          v[k] = Whole ? Pack::load(row_.weights + at + k * width)
                       : Pack::load_some(row_.weights + at + k * width, std::clamp<index>(count - k * width, 0, width));
        });
      } else {
        if constexpr (Anew) {
          fetch(later_ + at);
          find_pages_ahead(moved(row_.x + at, to_pages_), pair * sizeof(X));
        }
        load<Whole>(v, row_.x + at, scale_, count, m_);
        unrolled<2>([&](int k) { v[k].x = v[k].x - m_.x; });
        if constexpr (OfWeights) {
          tiles::decay<Pack, 2>(v);
        } else {
          unrolled<2>([&](int k) { v[k].x = v[k].x - b_.x; });
        }
      }
      if constexpr (OfWeights) {
        unrolled<2>([&](int k) { v[k].x = v[k].x * a_.x; });
        if (shares_) share(v, at);
      }
      if constexpr (PastCaches) {
        tiles::store_past_caches<Pack>(v, row_.y + at);
      } else {
        store<Whole>(v, row_.y + at, count);
      }
    }

    [[gnu::always_inline]] void share(two& v, index at) const {
      unrolled<2>([&](int k) { v[k].x = v[k].x * b_.x; });
      const index single = row_.map.single - at;
      if (single < 0 || single >= pair) return;
      unrolled<2>([&](int k) { v[k] = Pack::with(v[k], single - k * width, row_.map.value); });
    }

    row_outputs<X, Y> row_;
    /// A load waits for a recent store to the same offset in another page of 4 KiB. Where elements are read again and outputs
    /// would make loads wait so, the row is written from its end to its beginning.
    bool is_backward_ = Anew && (address(row_.y) - address(row_.x) - 1) % 4096 < 448;
    const X* later_ = moved(row_.x, is_backward_ ? -bytes_ahead() : bytes_ahead());
    index to_pages_ = is_backward_ ? -2 * index{pages_ahead} : 0;  // in bytes: running backward, pages ahead lie before
    Pack scale_, m_, a_, b_;
    bool shares_, past_caches_ = false;
    index next_ = 0, last_;
  };

  /// The lanes of a tile, kept in memory; used where registers do not hold them.
  struct sums {
    alignas(64) Real lane[static_cast<std::size_t>(lanes)];
    sums() { std::fill(lane, lane + lanes, plus_identity); }
    [[gnu::always_inline]] void add(index at, const two& w) {
      unrolled<2>([&](int k) {
        Real* const to = lane + at + k * width;
        Pack{Pack::load(to).x + w[k].x}.store(to);
      });
    }
    /// lane[j] += lane[j + h] for h = L/2, ..., 1; or only as long as h is no less than a pack. L may be less than `lanes`,
    /// where those behind have nothing to add.
    Real halved() { return tiles::halved(halved_to_pack(), sum); }
    template <index L = lanes>
    Pack halved_to_pack() {
      if constexpr (L / width <= 16) {
        packs<Pack, L / width> x;
        unrolled<L / width>([&](int k) { x[k] = Pack::load(lane + k * width); });
        return tiles::halved_to_pack<Pack, L / width>(x, sum);
      } else {
        for (index h = L / 2; h >= width; h /= 2) {
          for (index j = 0; j < h; j += width) Pack{Pack::load(lane + j).x + Pack::load(lane + j + h).x}.store(lane + j);
        }
        return Pack::load(lane);
      }
    }
    static Pack sum(const Pack& a, const Pack& b) { return {a.x + b.x}; }
  };
  static constexpr Real plus_identity = -Real{};

  /// The largest element, two packs at a time; ignores NaN.
  struct maximum_of_numbers {
    two top;
    maximum_of_numbers() {
      unrolled<2>([&](int k) { top[k] = least(); });
    }
    template <bool Whole>
    [[gnu::always_inline]] void add(const X* from, const Pack& scale, index count) {
      maximum_of_numbers other;
      load<Whole>(other.top, from, scale, count, least());
      add(other);
    }
    void add(const maximum_of_numbers& other) {
      unrolled<2>([&](int k) { top[k] = Pack::larger(other.top[k], top[k]); });
    }
    [[nodiscard]] Real value() const { return tiles::halved(Pack::larger(top[0], top[1]), Pack::larger); }
    static Pack least() { return Pack::all(-math::detail::infinity<Real>); }
  };
  /// The same for 16-bit floats, by comparing their bits without widening; the result may be a NaN. The largest as signed
  /// integers is the largest number, unless all are negative; then the smallest as unsigned integers is.
  struct maximum_of_bits {
    using word = std::conditional_t<sizeof(X) == 2, std::int16_t, int>;
    typedef word words __attribute__((vector_size(sizeof(Pack))));                              // NOLINT
    typedef std::make_unsigned_t<word> unsigned_words __attribute__((vector_size(sizeof(Pack))));  // NOLINT
    static constexpr word least = static_cast<word>(X(-math::detail::infinity<Real>).bits);
    words most = least - words{};
    unsigned_words nearest = reinterpret_cast<unsigned_words>(most);

    template <bool Whole>
    [[gnu::always_inline]] void add(const X* from, const Pack& /*scale: 1*/, index count) {
      maximum_of_bits other;
      std::memcpy(&other.most, from, static_cast<std::size_t>(Whole ? pair : count) * sizeof(X));
      other.nearest = reinterpret_cast<unsigned_words>(other.most);
      add(other);
    }
    void add(const maximum_of_bits& other) {
      most = other.most > most ? other.most : most;
      nearest = other.nearest < nearest ? other.nearest : nearest;
    }
    [[nodiscard]] Real value() const {
      const words top = most < 0 ? reinterpret_cast<words>(nearest) : most;
      alignas(64) X each[static_cast<std::size_t>(pair)];
      std::memcpy(each, &top, sizeof top);
      return tiles::halved(Pack::larger(Pack::load(each), Pack::load(each + width)), Pack::larger);
    }
  };
  using maximum = std::conditional_t<sizeof(X) == 2 && !Scales && (width >= 8), maximum_of_bits, maximum_of_numbers>;

  [[gnu::flatten]] static Real largest(const form& f, const X* x) {
    const Pack scale = Pack::all(f.scale);
    maximum all, others;
    index i = 0;
    for (; i + 2 * pair <= f.length; i += 2 * pair) {
      all.template add<true>(x + i, scale, pair);
      others.template add<true>(x + i + pair, scale, pair);
    }
    for (; i < f.length; i += pair) all.template add<false>(x + i, scale, std::min(f.length - i, pair));
    all.add(others);
    return all.value();
  }

  [[gnu::flatten]] static Real sweep(const form& f, const row_sweep<X, Y>& row, Real* leaves) {
    const Pack scale = Pack::all(f.scale), m = Pack::all(row.m);
    outputs<> before(f, row.before);
    maximum next;
    const X *const x = row.x, *const next_x = row.next, *const later = moved(next_x, bytes_ahead());
    Real* const weights = row.weights;
    const auto step = [&]<bool Whole>(std::bool_constant<Whole>, index i, index count, const auto& to) {
      fetch(later + i);
      two v;
      load<Whole>(v, x + i, scale, count, m);
      next.template add<Whole>(next_x + i, scale, count);
      unrolled<2>([&](int k) { v[k].x = v[k].x - m.x; });
      tiles::decay<Pack, 2>(v);
      if (OfWeights && weights != nullptr) store<Whole>(v, weights + i, count);
      if constexpr (!Whole) {
        unrolled<2>([&](int k) {
          v[k] = Pack::first(std::clamp<index>(count - k * width, 0, width), v[k], Pack::all(plus_identity));
        });
      }
      to(v);
    };
    for (index i = 0; i < f.length;) {
      const index end = std::min(i + tile_elements, f.length);
      const auto n = static_cast<std::size_t>(end - i);
      find_pages_ahead(next_x + i, n * sizeof(X));
      if (f.past_caches && row.before.y != nullptr) find_written_pages_ahead(row.before.y + i, n * sizeof(Y));
      sums lane;
      const auto block = [&](const auto& add_to) {
        const bool writes = i >= row.before.behind && before.has(lanes);
        add_to([&](auto j, auto&& to) {
          step(std::true_type{}, i + j, pair, to);
          if (writes) before.step(j);
        });
        if (writes) before.advance(lanes);
      };
      if constexpr (lanes / width <= 8) {  // registers hold them
        packs<Pack, lanes / width> in;
        unrolled<lanes / width>([&](int k) { in[k] = Pack::all(plus_identity); });
        for (; i + lanes <= end; i += lanes) {
          block([&](const auto& each) {
            unrolled<lanes / pair>([&](auto g) {
              each(index{g * pair}, [&](const two& w) { unrolled<2>([&](int k) { in[2 * g + k].x += w[k].x; }); });
            });
          });
        }
        if (i == end) {
          *leaves++ = tiles::halved<Pack, lanes / width>(in, sums::sum);
          continue;
        }
        unrolled<lanes / width>([&](int k) { in[k].store(lane.lane + k * width); });
      } else {
        for (; i + lanes <= end; i += lanes) {
          block([&](const auto& each) {
            for (index j = 0; j < lanes; j += pair) each(j, [&](const two& w) { lane.add(j, w); });
          });
        }
      }
      for (; i + pair <= end; i += pair) {
        step(std::true_type{}, i, pair, [&](const two& w) { lane.add(i % lanes, w); });
        if (i >= row.before.behind && before.has(pair)) before.next();
      }
      if (i < end) {
        step(std::false_type{}, i, end - i, [&](const two& w) { lane.add(i % lanes, w); });
      }
      i = end;
      *leaves++ = lane.halved();
    }
    before.finish();
    return next.value();
  }

  [[gnu::flatten]] static void write(const form& f, const row_outputs<X, Y>& row) {
    if constexpr (OfWeights) {
      if (row.weights == nullptr) return outputs<true>(f, row).finish();
    }
    outputs<>(f, row).finish();
  }
};

}  // namespace
}  // namespace regroup::softmax_parts
