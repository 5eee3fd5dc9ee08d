// SPDX-License-Identifier: Apache-2.0
// regroup merge: combines attention states from left to right, holding one beside the running one, and then normalises.
#include <iostream>

#include "commands.hpp"
#include "progress.hpp"
#include "saved_state.hpp"

namespace regroup::tool {

state_files::state_files(const std::string& directory, const directory_in_use& /*while they are opened*/)
    : m(open_array(directory + "/m.npy")), l(open_array(directory + "/l.npy")), o(open_array(directory + "/o.npy")) {
  for (const input* x : {&m, &l, &o}) {
    if (x->type() != element::float32 && x->type() != element::float64) {
      throw_argument(x->name() + ": attention states are float32 or float64; got " + name_of(x->type()));
    }
    if (x->type() != m.type()) {
      throw_argument(x->name() + " is " + name_of(x->type()) + " but " + m.name() + " is " + name_of(m.type()) +
                     "; the files of a state have one type");
    }
  }
  const int rank = m.shape().size();
  if (rank < 1 || rank > 3) {
    throw_shape(m.name() + ": a state's m has the shape (..., heads, queries), rank 1 to 3; got " + to_string(m.shape()));
  }
  if (!(l.shape() == m.shape())) {
    throw_shape(l.name() + ": a state's l has the shape of its m, " + to_string(m.shape()) + "; got " +
                to_string(l.shape()));
  }
  if (o.shape().size() != rank + 1 || !(without(o.shape(), rank) == m.shape())) {
    throw_shape(o.name() + ": a state's o has the shape of its m, " + to_string(m.shape()) +
                ", and one more axis; got " + to_string(o.shape()));
  }
}

namespace {

template <class Real>
void merge_all(const merge_command& c, const state_files& first, const result& o, const result* lse) {
  attention_state<Real> all = first.state<Real>();
  for (std::size_t i = 1; i < c.states.size(); ++i) {
    const state_files next(c.states[i]);
    if (next.o.type() != first.o.type()) {
      throw_argument(next.o.name() + " is " + name_of(next.o.type()) + " but " + first.o.name() + " is " +
                     name_of(first.o.type()) + "; states that merge have one type");
    }
    if (!(next.o.shape() == first.o.shape())) {
      throw_shape(next.o.name() + " with shape " + to_string(next.o.shape()) + " and " + first.o.name() +
                  " with shape " + to_string(first.o.shape()) + " are not states of the same queries");
    }
    all.merge(next.state<Real>());
  }
  all.normalise(view_of<Real>(o), lse != nullptr ? logsumexp_output(view_of<Real>(*lse)) : logsumexp_output());
}

}  // namespace

int run(const merge_command& c, const settings& s) {
  const state_files first(c.states.front());
  results outputs;
  const result& o = outputs.add(c.output, first.o.type(), first.o.shape());
  const result* const lse = c.lse.empty() ? nullptr : &outputs.add(c.lse, first.m.type(), first.m.shape());
  const progress shown(s, "regroup merge");
  if (first.o.type() == element::float64) {
    merge_all<double>(c, first, o, lse);
  } else {
    merge_all<float>(c, first, o, lse);
  }
  outputs.commit();
  if (s.json) {
    json_object files;
    files.add("output", json_file(o));
    if (lse != nullptr) files.add("lse", json_file(*lse));
    std::cout << files.text() << '\n';
  }
  return 0;
}

}  // namespace regroup::tool
