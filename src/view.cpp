// SPDX-License-Identifier: Apache-2.0
#include "regroup/view.hpp"

namespace regroup {

std::string to_string(const shape& s) {
  std::string text = "(";
  for (int a = 0; a < s.size(); ++a) text += (a == 0 ? "" : ", ") + std::to_string(s[a]);
  return text + (s.size() == 1 ? ",)" : ")");
}

}  // namespace regroup
