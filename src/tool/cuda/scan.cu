// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../scan_monoids.hpp"
#include "gpu.cuh"

namespace regroup::tool {
namespace {

/// Exclusive: what nothing gives, then the inclusive results but the last.
template <class E>
void shift(const plain_rows& x, const E& nothing) {
  for (index row = 0; row < x.count && x.length > 0; ++row) {
    E* const first = static_cast<E*>(x.data) + row * x.length;
    std::copy_backward(first, first + x.length - 1, first + x.length);
    *first = nothing;
  }
}

}  // namespace

void cuda_gpu::scan(const plain_rows& x, const std::string& monoid, element result, bool exclusive) const {
  with_scanned(monoid, x.type, [&]<class E>(std::type_identity<E>) {
    const device_array<E> rows(on_, x.data, x.count * x.length);
    const auto all = rows.view({x.count, x.length});
    with_scan_monoid<E>(monoid, result, [&](const auto& m) {
      inclusive_scan_rows(on_, all, all, m);
      rows.copy_to(x.data);
      if (exclusive) shift(x, static_cast<E>(regroup::lower(m, m.identity())));
    });
  });
}

}  // namespace regroup::tool
