// SPDX-License-Identifier: Apache-2.0
#include "regroup/error.hpp"

namespace regroup {

void throw_shape(const std::string& sentence) { throw shape_error(sentence); }
void throw_argument(const std::string& sentence) { throw argument_error(sentence); }
void throw_offsets(const std::string& sentence) { throw offsets_error(sentence); }
void throw_overlap(const std::string& sentence) { throw overlap_error(sentence); }
void throw_format(const std::string& sentence) { throw format_error(sentence); }

}  // namespace regroup
