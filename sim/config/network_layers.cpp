// SPDX-License-Identifier: Apache-2.0
// Layers of image networks. Per sample, H x W the size after the layer:
//
//   convolution  2 H W Cout Cin kh kw FLOP forward, twice that backward (once in the first layer: images get no
//   gradient) batch norm   3 passes forward, 5 backward; ReLU 2 and 3; addition 3 and none
//
// Source of passes: reads and writes of the cuDNN kernels of training, counted from what each needs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <tuple>

#include "config/network.hpp"

namespace fabricast::config {

namespace {

constexpr std::size_t k_most_layers = 100'000;
constexpr std::int64_t k_most_features = 1'000'000'000;

struct Shape {
  std::int64_t channels = 0, height = 1, width = 1;

  [[nodiscard]] double elements() const {
    return static_cast<double>(channels) * static_cast<double>(height) * static_cast<double>(width);
  }
};

/// Kernel, stride and padding: `k3`, `k1x7`, `s2`, `p0x3`.
struct Window {
  std::int64_t height = 1, width = 1, stride = 1, pad_height = 0, pad_width = 0;
  bool has_bias = false;
};

std::optional<std::int64_t> count_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || at != text.data() + text.size() || value < 0 || value > k_most_features)
    return std::nullopt;
  return value;
}

class LayerWriter {
 public:
  LayerWriter(Network& network, Shape shape, Diagnostics& faults) : network_(network), shape_(shape), faults_(faults) {}

  void add_all(const Node& list) {
    if (list.kind != Node::Kind::sequence)
      return fault(list, fmt::format("layers must be a list, found {}", describe(list.kind)), "write [conv 64 k3, bn]");
    for (const auto& item : list.items) add(item);
  }

 private:
  void fault(const Node& node, std::string message, std::string hint) {
    if (is_broken_) return;
    is_broken_ = true;
    faults_.push_back(node.error(std::move(message), std::move(hint)));
  }

  void add(const Node& item) {
    if (is_broken_) return;
    if (network_.layers.size() > k_most_layers)
      return fault(item, fmt::format("more than {} layers", k_most_layers), "repeat less often");
    if (item.kind == Node::Kind::scalar) return add_layer(item);
    if (item.kind != Node::Kind::mapping || item.entries.empty())
      return fault(item, "a layer is a word with its numbers, or a mapping", k_hint);
    const auto& key = item.entries.front().key.scalar;
    if (key == "repeat" || key == "dense") return add_repeated(item, key == "dense");
    if (key == "residual") return add_residual(item);
    if (key == "branches") return add_branches(item);
    fault(item.entries.front().key, fmt::format("unknown layer '{}'", key), k_hint);
  }

  bool has_only(const Node& item, std::initializer_list<std::string_view> keys) {
    for (const auto& entry : item.entries) {
      if (std::ranges::find(keys, entry.key.scalar) != keys.end()) continue;
      fault(entry.key, fmt::format("unknown key '{}' beside '{}'", entry.key.scalar, item.entries.front().key.scalar),
            k_hint);
      return false;
    }
    return true;
  }

  /// `dense`: what a repeat makes is put beside what it was made of.
  void add_repeated(const Node& item, bool is_dense) {
    if (!has_only(item, {"repeat", "dense", "layers"})) return;
    const auto* layers = item.find("layers");
    const auto count = count_of(item.entries.front().value.scalar);
    if (layers == nullptr || !count || *count > 10'000)
      return fault(item, "a repeat needs a count and `layers`", "write {repeat: 3, layers: [conv 64 k3, relu]}");
    for (std::int64_t i = 0; i < *count && !is_broken_; ++i) {
      const auto before = shape_;
      add_all(*layers);
      if (is_dense) {
        shape_.channels += before.channels;
        pass("concatenation", 2, 2);
      }
    }
  }

  void add_residual(const Node& item) {
    if (!has_only(item, {"residual", "shortcut"})) return;
    const auto before = shape_;
    add_all(*item.find("residual"));
    const auto after = shape_;
    if (const auto* shortcut = item.find("shortcut")) {
      shape_ = before;
      add_all(*shortcut);
    } else {
      shape_ = before;
    }
    if (shape_.channels != after.channels || shape_.height != after.height || shape_.width != after.width)
      return fault(item,
                   fmt::format("a residual of {} x {} x {} is added to {} x {} x {}", after.channels, after.height,
                               after.width, shape_.channels, shape_.height, shape_.width),
                   "give a `shortcut` that makes the same shape");
    pass("addition", 3, 0);
    pass("relu", 2, 3);
  }

  void add_branches(const Node& item) {
    if (!has_only(item, {"branches"})) return;
    const auto before = shape_;
    auto joined = before;
    joined.channels = 0;
    for (const auto& branch : item.find("branches")->items) {
      shape_ = before;
      add_all(branch);
      joined.channels += shape_.channels;
      joined.height = shape_.height;
      joined.width = shape_.width;
    }
    shape_ = joined;
    pass("concatenation", 2, 2);
  }

  void add_layer(const Node& item) {
    std::istringstream in(item.scalar);
    std::string word;
    in >> word;
    if (word == "conv" || word == "unit" || word == "linear") return add_weights(item, word, in);
    if (word == "maxpool" || word == "avgpool") return add_pool(item, in);
    if (word == "bn") return add_norm();
    if (word == "relu") return pass("relu", 2, 3);
    if (word == "dropout") return pass("dropout", 2, 2);
    if (word == "softmax") return pass("softmax", 5, 2);
    if (word == "globalpool") {
      const auto moved = shape_.elements();
      shape_.height = shape_.width = 1;
      return push({.name = "globalpool", .output = shape_.elements(), .forward_moved = moved, .backward_moved = moved});
    }
    fault(item, fmt::format("unknown layer '{}'", word), k_hint);
  }

  /// The words after a layer's name; nullopt with a fault.
  std::optional<Window> window(const Node& item, std::istringstream& in) {
    Window out;
    for (std::string word; in >> word;) {
      if (word == "bias") {
        out.has_bias = true;
        continue;
      }
      const auto cross = word.find('x');
      const auto first = count_of(std::string_view(word).substr(1, cross == std::string::npos ? cross : cross - 1));
      const auto second = cross == std::string::npos ? first : count_of(std::string_view(word).substr(cross + 1));
      const bool is_known = word[0] == 'k' || word[0] == 's' || word[0] == 'p';
      if (!is_known || !first || !second || (word[0] != 'p' && (*first < 1 || *second < 1))) {
        fault(item, fmt::format("'{}' is no part of a layer", word), "write e.g. conv 64 k3 s2 p1 bias, or k1x7 p0x3");
        return std::nullopt;
      }
      if (word[0] == 'k') std::tie(out.height, out.width) = std::tuple(*first, *second);
      if (word[0] == 's') out.stride = *first;
      if (word[0] == 'p') std::tie(out.pad_height, out.pad_width) = std::tuple(*first, *second);
    }
    return out;
  }

  bool slide(const Node& item, const Window& window) {
    const auto after = [&](std::int64_t size, std::int64_t kernel, std::int64_t pad) {
      return (size + 2 * pad - kernel) / window.stride + 1;
    };
    const auto height = after(shape_.height, window.height, window.pad_height);
    const auto width = after(shape_.width, window.width, window.pad_width);
    if (shape_.height + 2 * window.pad_height < window.height || shape_.width + 2 * window.pad_width < window.width) {
      fault(item, fmt::format("the kernel is larger than the image of {} x {}", shape_.height, shape_.width),
            "check strides and padding of the layers before it");
      return false;
    }
    shape_.height = height;
    shape_.width = width;
    return true;
  }

  void add_weights(const Node& item, const std::string& word, std::istringstream& in) {
    std::string text;
    in >> text;
    const auto features = count_of(text);
    if (!features || *features < 1)
      return fault(item, fmt::format("'{}' needs a number of features", word), "write e.g. conv 64 k3");
    const auto shape = window(item, in);
    if (!shape) return;
    const auto before = shape_;
    const bool is_linear = word == "linear";
    const auto inner =
        is_linear ? static_cast<std::int64_t>(before.elements()) : before.channels * shape->height * shape->width;
    if (is_linear) shape_ = {};
    if (!is_linear && !slide(item, *shape)) return;
    shape_.channels = *features;
    const double rows = static_cast<double>(shape_.height * shape_.width);
    NetworkLayer layer;
    layer.name = word;
    layer.kind = is_linear ? LayerKind::gemm : LayerKind::convolution;
    layer.tensors = {inner * *features};
    layer.is_winograd = !is_linear && shape->height == 3 && shape->width == 3 && shape->stride == 1;
    if (is_linear || shape->has_bias) layer.tensors.push_back(*features);
    layer.forward_flop = 2 * rows * static_cast<double>(inner) * static_cast<double>(*features);
    layer.backward_flop = network_.layers.empty() ? layer.forward_flop : 2 * layer.forward_flop;
    layer.output = shape_.elements();
    layer.forward_moved = before.elements() + shape_.elements();
    layer.backward_moved = 2 * layer.forward_moved;
    std::tie(layer.rows, layer.inner, layer.columns) = std::tuple(rows, static_cast<double>(inner), *features);
    push(std::move(layer));
    if (word != "unit") return;
    add_norm();
    pass("relu", 2, 3);
  }

  void add_pool(const Node& item, std::istringstream& in) {
    const auto shape = window(item, in);
    const double before = shape_.elements();
    if (!shape || !slide(item, *shape)) return;
    push({.name = "pool",
          .output = shape_.elements(),
          .forward_moved = before + shape_.elements(),
          .backward_moved = before + shape_.elements()});
  }

  void add_norm() {
    pass("bn", 3, 5);
    network_.layers.back().tensors = {shape_.channels, shape_.channels};
    network_.layers.back().buffers = 3;  // running mean and variance, number of batches
  }

  void pass(const char* name, double forward, double backward) {
    const double elements = shape_.elements();
    push(
        {.name = name, .output = elements, .forward_moved = forward * elements, .backward_moved = backward * elements});
  }

  void push(NetworkLayer layer) { network_.layers.push_back(std::move(layer)); }

  static constexpr const char* k_hint =
      "known: conv, unit, linear, bn, relu, maxpool, avgpool, globalpool, dropout, softmax, and mappings with repeat, "
      "residual, branches or dense";
  Network& network_;
  Shape shape_;
  Diagnostics& faults_;
  bool is_broken_ = false;
};

}  // namespace

void add_image_layers(const Node& layers, const Node& image, Network& network, Diagnostics& faults) {
  if (image.items.size() != 3) {
    faults.push_back(image.error(fmt::format("'image' has {} numbers", image.items.size()),
                                 "write channels, height and width, e.g. [3, 224, 224]"));
    return;
  }
  const Shape shape{as_integer(image.items[0]), as_integer(image.items[1]), as_integer(image.items[2])};
  LayerWriter(network, shape, faults).add_all(layers);
}

}  // namespace fabricast::config
