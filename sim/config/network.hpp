// SPDX-License-Identifier: Apache-2.0
// Network files: a list of image layers in a small grammar, or the dimensions of a transformer, written out to the
// layers that models know.
//
//   image: [channels, height, width]
//   layers: conv 64 k7 s2 p3 | unit 64 k1 (conv, bn, relu) | bn | relu | maxpool k3 s2 | linear 1000 | softmax ...
//           {repeat: n, layers}  {residual: layers, shortcut: layers}  {branches: [layers, ...]}  {dense: n, layers}
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "fabricast/training.hpp"

namespace fabricast::config {

SchemaPtr network_schema();

/// An accepted network document to its layers; faults of the grammar carry the place of the layer.
Network read_network(const Node& document, Diagnostics& faults);

/// A shipped network by name, or a file when the name ends in `.yaml`; nullopt with a fault at `where`.
/// `tokens` replaces the length of a transformer's sequences.
std::optional<Network> find_network(const std::string& name, const std::string& folder, const Node& where,
                                    Diagnostics& faults, std::optional<std::int64_t> tokens = std::nullopt);
std::vector<std::string> shipped_networks();

/// `layers` of an image network.
void add_image_layers(const Node& layers, const Node& image, Network& network, Diagnostics& faults);
/// `transformer` of a network.
void add_transformer(const Node& dimensions, Network& network, Diagnostics& faults);

}  // namespace fabricast::config
