// SPDX-License-Identifier: Apache-2.0
// How attention scores and what it returns: plain values, read by `attention` and `attention_state`.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "regroup/algorithms/attention_masks.hpp"
#include "regroup/view.hpp"

namespace regroup {

/// Where logsumexp goes, (..., H, Nq): a view, span or container of float (of double for double inputs), or nowhere.
class logsumexp_output {
 public:
  logsumexp_output() = default;
  template <class Out>
  requires(!std::same_as<std::remove_cvref_t<Out>, logsumexp_output>) && requires(Out&& out) { view(std::forward<Out>(out)); }
  logsumexp_output(Out&& out) : out_(view(std::forward<Out>(out))) {}  // NOLINT: implicit on purpose

  [[nodiscard]] bool wanted() const noexcept { return out_.index() != 0; }
  /// The view; throws argument_error unless it is of Real, shape_error unless it has shape `outer`.
  template <class Real>
  [[nodiscard]] const view<Real>& as(const shape& outer) const {
    const auto* const v = std::get_if<view<Real>>(&out_);
    if (v == nullptr) throw_argument("logsumexp is float, or double where the inputs are double");
    if (!(v->extents() == outer)) {
      throw_shape("logsumexp has shape (..., heads, queries), here " + to_string(outer) + "; got " +
                  to_string(v->extents()));
    }
    return *v;
  }
  /// The same with its two axes exchanged; throws shape_error unless it has the shape `tokens` = (tokens, heads).
  [[nodiscard]] logsumexp_output transposed(const shape& tokens) const {
    logsumexp_output result;
    const auto exchange = [&]<class V>(const V& v) {
      if constexpr (!std::same_as<V, std::monostate>) {
        if (!(v.extents() == tokens)) {
          throw_shape("ragged logsumexp has shape (tokens, heads), here " + to_string(tokens) + "; got " +
                      to_string(v.extents()));
        }
        result.out_ = v.permuted({1, 0});
      }
    };
    std::visit(exchange, out_);
    return result;
  }

 private:
  std::variant<std::monostate, view<float>, view<double>> out_;
};

/// K and V are only the keys [first, first + Nk) of `of` keys: masks and distances then count positions in the whole.
/// `lengths` says for masks how many keys of the whole each batch has (by default all); it hides no key itself. Which keys of
/// the piece exist is said by the lengths of `dense` or `paged`. Throws argument_error where the piece does not lie in the
/// whole or a length is not from 0 to `of`, shape_error unless there is one length a batch.
struct key_piece {
  index first = 0;
  index of = 0;
  std::vector<index> lengths = {};
};

/// How attention scores and what it returns: `{.scale = 0.125, .mask = causal{}, .logsumexp = lse, .split = 4}`.
struct attention_options {
  std::optional<double> scale = {};  ///< multiplies the scores; 1 / sqrt(d) by default
  attention_mask mask = {};  ///< causal, window, softcap, alibi, additive, boolean, a function object, or several: a & b
  logsumexp_output logsumexp = {};  ///< natural logarithm
  index split = 1;         ///< fold this many ranges of keys apart and merge them (regroups: within the bound)
  head_numbers sinks = {}; ///< one extra logit a head, in the denominator only (StreamingLLM: Xiao et al. 2023)
  std::optional<key_piece> piece = {};  ///< if K and V are only a piece of the keys that masks count
  /// Allows weights to be rounded to the inputs' 16 bits, as FlashAttention does, where that is faster: for bfloat16 on AMD
  /// processors with vdpbf16ps, and on Intel processors with AMX (from Sapphire Rapids). There every weight has an additional
  /// relative error of up to 2^-8, in O and in logsumexp (with AMX another 2^-13.7), denormals count as 0, and the bits are
  /// those of such processors only.
  bool narrow_weights = false;
  /// Allows attention over 16 bits to be computed in fixed point on processors with AVX-512 and vpdpwssd (unless
  /// `narrow_weights` is set too and the processor has its instructions): faster for many queries, slower for a few. Every
  /// row of Q, K and V is then 16-bit integers times a scale, and so are a query's weights in a tile; their sums are exact.
  /// The error of a score is up to sqrt(d) 2^-15 |q| |k| scale, of a value 2^-15 of the largest of its row, of a weight 2^-16
  /// of its tile's largest or 2^-18 of their sum: about what rounding the output to float16 costs. The bits are those of such
  /// processors only.
  bool fixed_point = false;
};

}  // namespace regroup
