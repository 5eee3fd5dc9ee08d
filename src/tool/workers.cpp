// SPDX-License-Identifier: Apache-2.0
#include "workers.hpp"

#include <algorithm>

#include "regroup/host/par.hpp"

namespace regroup::tool {

workers::workers(const settings& s)
    : threads_(std::make_shared<parallel>(s.threads > 0 ? par.with_threads(std::min(s.threads, most_threads)) : par)) {}

int workers::concurrency() const { return threads_->concurrency(); }

void workers::bulk(index n, const host::task& f) const { threads_->bulk(n, f); }

}  // namespace regroup::tool
