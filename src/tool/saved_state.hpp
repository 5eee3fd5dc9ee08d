// SPDX-License-Identifier: Apache-2.0
// An attention state in a directory: m.npy and l.npy (..., H, Nq), and the unnormalised o.npy (..., H, Nq, dv).
#pragma once

#include <string>

#include "files.hpp"
#include "input.hpp"
#include "output.hpp"
#include "regroup/algorithms/attention_state.hpp"
#include "text.hpp"
#include "typed.hpp"

namespace regroup::tool {

/// The three files of a state, to be written.
class saved_state {
 public:
  saved_state(results& outputs, const std::string& directory, element type, const extents& outer, index dv)
      : m_(outputs.add(directory + "/m.npy", type, outer)),
        l_(outputs.add(directory + "/l.npy", type, outer)),
        o_(outputs.add(directory + "/o.npy", type, with_last_extent(outer, dv))) {}

  template <class Real>
  void put(const attention_state<Real>& state) const {
    copy(state.m(), m_);
    copy(state.l(), l_);
    copy(state.o(), o_);
  }
  [[nodiscard]] std::string json() const {
    return json_object().add("m", json_file(m_)).add("l", json_file(l_)).add("o", json_file(o_)).text();
  }

 private:
  static extents with_last_extent(extents shape, index extent) {
    shape.push_back(extent);
    return shape;
  }
  template <class Real>
  static void copy(const view<const Real>& from, const result& to) {
    for (index i = 0; i < to.size(); ++i) to.as<Real>()[i] = from.data()[i] + 0;  // the state of no keys has o = -0
  }

  const result& m_;
  const result& l_;
  const result& o_;
};

/// Reads the three files of a state, which one command wrote, and checks that they fit together. Throws shape_error and
/// argument_error.
struct state_files {
  explicit state_files(const std::string& directory)
      : state_files(directory, directory_in_use(directory, directory_in_use::reading)) {}
  input m, l, o;

  template <class Real>
  [[nodiscard]] attention_state<Real> state() const {
    return attention_state<Real>(view_of<Real>(m), view_of<Real>(l), view_of<Real>(o));
  }

 private:
  state_files(const std::string& directory, const directory_in_use& opening);
};

}  // namespace regroup::tool
