// SPDX-License-Identifier: Apache-2.0
// Headers of any types and shapes, sound or absurd, as the files of `regroup attention` and `regroup merge`. They give an
// exception whose sentence is one line, and no file; or outputs of the right type and shape, which can be read back.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "choices.hpp"
#include "commands.hpp"
#include "header.hpp"
#include "input.hpp"
#include "regroup/error.hpp"

namespace {

using namespace regroup::tool;
using fuzz::index;
using fuzz::require;
namespace fs = std::filesystem;

constexpr element floats[] = {element::float32, element::float64, element::float16, element::bfloat16};
constexpr element types[] = {element::float32, element::float64, element::float16, element::bfloat16,
                             element::int32,   element::int64,   element::boolean};

/// A folder for one run, with nothing in it before or after.
class folder {
 public:
  folder() {
    static const std::string path = [] {
      std::string name = (fs::temp_directory_path() / "regroup-fuzz-XXXXXX").string();
      require(::mkdtemp(name.data()) != nullptr, "a folder is made");
      static const std::string made = name;
      std::atexit([] { fs::remove_all(made); });
      return name;
    }();
    path_ = path;
  }
  ~folder() {
    for (const auto& entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] bool empty() const { return fs::is_empty(path_); }

 private:
  fs::path path_;
};

class arrays {
 public:
  explicit arrays(fuzz::choices& c) : c_(c) {}

  /// The path of an array whose type and extents are mostly these.
  std::string make(element type, extents shape, index longest = std::numeric_limits<index>::max()) {
    if (c_.one_in(12)) type = c_.among(types);
    const auto at = static_cast<int>(shape.size() == 0 ? 0 : c_.below(shape.size()));
    switch (c_.below(24)) {
      case 20:
        shape.push_back(1);
        break;
      case 21:
        shape = {};
        break;
      case 22:
        if (shape.size() > 0) shape[at] += 1;
        break;
      case 23:
        if (shape.size() > 0) shape[at] = std::clamp<index>(c_.awkward(), 0, longest);
        break;
      default:
        break;
    }
    std::string text = write_header(type, shape);
    index count = 1;
    for (const index e : shape) count = std::min<index>(4096, count * std::min<index>(e, 4096));
    for (index i = 0; i < count; ++i) {
      char value[8] = {};
      if (is_float(type)) {
        value[size_of(type) - 1] = 0x3c;  // about 1 in every type
      } else {
        const index number = c_.one_in(8) ? c_.awkward() : c_.below(4);
        std::memcpy(value, &number, sizeof value);
      }
      text.append(value, size_of(type));
    }
    files_.push_back(std::make_unique<fuzz::memory_file>(text));
    return files_.back()->path();
  }

 private:
  fuzz::choices& c_;
  std::vector<std::unique_ptr<fuzz::memory_file>> files_;
};

attention_command any_attention(fuzz::choices& c, arrays& files, const folder& to) {
  attention_command a;
  const element type = c.among(floats);
  const bool is_paged = c.one_in(4);
  const auto rank = static_cast<int>(2 + c.below(3));
  const index batches = rank < 4 ? 1 : c.below(3), key_heads = rank < 3 ? 1 : 1 + c.below(2);
  const index heads = rank < 3 ? 1 : key_heads * (1 + c.below(2));
  const index queries = c.below(4), keys = c.below(5), d = c.below(4), dv = c.below(4), pages = c.below(4);
  const auto cut = [&](const extents& four, int r) { return extents(std::span(four.begin() + 4 - r, four.end())); };
  a.q = files.make(type, cut({batches, heads, queries, d}, rank));
  const int key_rank = is_paged ? 4 : rank;
  const index planes = is_paged ? 3 : batches;
  a.k = files.make(type, cut({planes, key_heads, keys, d}, key_rank), 4096);  // keys without extent take time only
  a.v = files.make(type, cut({planes, key_heads, keys, dv}, key_rank));
  const index all_keys = is_paged ? pages * keys : keys;
  if (is_paged) a.page_table = files.make(element::int32, {batches, pages});
  if (c.one_in(4)) a.kv_lengths = files.make(c.one_in(2) ? element::int32 : element::int64, {batches});
  if (c.one_in(4)) {
    const auto mask_rank = static_cast<int>(1 + c.below(rank));
    a.mask = files.make(c.one_in(2) ? element::boolean : c.among(floats),
                        cut({batches, c.one_in(2) ? 1 : heads, queries, all_keys}, mask_rank));
  }
  if (c.one_in(4)) a.alibi = files.make(c.among(floats), {heads});
  if (c.one_in(4)) {
    a.sinks = files.make(c.among(floats), {heads});
  } else if (c.one_in(3)) {
    a.state_out = to / "state";
  }
  if (a.state_out.empty() || c.one_in(2)) a.output = to / "o.npy";
  if (c.one_in(3)) a.lse = to / "l.npy";
  if (c.one_in(3)) a.causal = c.one_in(2) ? causality::top_left : causality::bottom_right;
  if (c.one_in(3)) a.window = attention_window{std::max<index>(c.awkward(), -1), std::max<index>(c.awkward(), -1)};
  if (c.one_in(3)) a.softcap = c.among({30.0, 1e-300, 1e300});
  if (c.one_in(4)) a.scale = c.among({0.5, -1.0, 0.0, 1e300});
  if (c.one_in(3)) a.split = std::max<index>(c.awkward(), 1);
  return a;
}

merge_command any_merge(fuzz::choices& c, arrays& files, const folder& to) {
  merge_command m{{}, to / "o.npy", c.one_in(2) ? to / "l.npy" : ""};
  const element type = c.among({element::float32, element::float64});
  const auto rank = static_cast<int>(1 + c.below(3));
  extents outer;
  for (int a = 0; a < rank; ++a) outer.push_back(c.below(4));
  extents full = outer;
  full.push_back(c.below(4));
  for (index i = 0; i <= c.below(3); ++i) {
    const std::string name = to / "state" + std::to_string(i);
    fs::create_directory(name);
    for (const char* const file : attention_command::state_files) {
      fs::create_symlink(files.make(type, file[0] == 'o' ? full : outer), name + "/" + file);
    }
    m.states.push_back(name);
  }
  return m;
}

/// Runs a command; on success, its outputs read back.
template <class Command>
void trial(const Command& command, const std::vector<std::string>& outputs) {
  try {
    require(run(command, settings{.threads = 1, .quiet = true}) == 0, "a command that ends is done");
    for (const std::string& path : outputs) {
      if (!path.empty()) (void)open_array(fs::is_directory(path) ? path + "/o.npy" : path);
    }
  } catch (const regroup::error& e) {
    const std::string sentence = e.what();
    require(sentence.size() > 30 && sentence.find('\n') == std::string::npos, "a refusal is a sentence: " + sentence);
    for (const std::string& path : outputs) require(path.empty() || !fs::exists(path), "no file is left: " + path);
  } catch (const std::bad_alloc&) {
    for (const std::string& path : outputs) require(path.empty() || !fs::exists(path), "no file is left: " + path);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool limited = (fuzz::limit_files(std::size_t{1} << 22), true);
  (void)limited;
  fuzz::choices c(data, size);
  const folder to;
  arrays files(c);
  if (c.one_in(4)) {
    const merge_command m = any_merge(c, files, to);
    trial(m, {m.output, m.lse});
  } else {
    const attention_command a = any_attention(c, files, to);
    trial(a, {a.output, a.lse, a.state_out});
    if (a.state_out.empty() || !fs::exists(a.state_out)) return 0;
    const merge_command m{{a.state_out, a.state_out}, to / "merged.npy", ""};
    trial(m, {m.output, m.lse});
  }
  return 0;
}
