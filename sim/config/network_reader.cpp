// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "config/embedded.hpp"
#include "config/network.hpp"
#include "config/readers.hpp"
#include "config/schema_parts.hpp"

namespace fabricast::config {

namespace {

using namespace parts;

constexpr std::string_view k_folder = "networks/";
constexpr std::string_view k_suffix = ".yaml";

SchemaPtr transformer_schema() {
  const auto count = integer(1, 100'000'000);
  return mapping(
      "a transformer",
      {{"form", choice({"gpt", "llama", "bert"}),
        "gpt: norm before, biases, one qkv matrix; llama: RMS norm, gated, no biases; bert: norm after", true},
       {"layers", integer(1, 10'000), "number of equal blocks", true},
       {"hidden", count, "width", true},
       {"heads", count, "of queries", true},
       {"kv_heads", count, "of keys and values; default: heads"},
       {"head_size", count, "default: hidden / heads"},
       {"kv_lora_rank", count, "latent attention: width of the latent that keys and values are projected from"},
       {"q_lora_rank", count, "latent attention: width of the queries' latent; default: none, from `hidden`"},
       {"qk_nope_head_size", count, "latent attention: of a head's queries and keys, what has no positions"},
       {"qk_rope_head_size", count, "latent attention: what has positions; its key is shared by all heads"},
       {"v_head_size", count, "latent attention: of a head's values"},
       {"ffn", count, "width of the feed-forward part, of one expert with experts", true},
       {"vocabulary", count, "tokens the embedding knows; 1 = no head", true},
       {"sequence", count, "tokens of a sample", true},
       {"positions", count, "learned positions; default none"},
       {"segments", count, "learned segments; default none"},
       {"experts", integer(0, 100'000), "default 0: dense"},
       {"experts_per_token", integer(1, 100'000), "default 1"},
       {"shared_ffn", count, "width of what every token meets beside its experts; default none"},
       {"expert_every", integer(1, 10'000), "the last of so many blocks has experts; default 1"},
       {"dense_blocks", integer(0, 10'000), "the first blocks without experts; default 0"},
       {"dense_ffn", count, "width of the feed-forward part of blocks without experts; default ffn"},
       {"mtp_modules", integer(0, 100), "modules of one block that predict further tokens; default 0"},
       {"tied", flag(), "the head is the embedding; default on for bert, else off"},
       {"biases", flag(), "default on, off for llama"},
       {"shared_kv", flag(), "values are read as keys: a cache holds one of them; default off"},
       {"qk_norm", flag(), "norms of queries and keys; default off"}});
}

bool is_file(const std::string& name) { return name.size() > k_suffix.size() && name.ends_with(k_suffix); }

/// `own`: what reading the file has found; all that is found goes into `faults`.
std::optional<Network> network_of(Node document, Diagnostics own, Diagnostics& faults,
                                  std::optional<std::int64_t> tokens) {
  if (!has_errors(own)) check_node(document, schema_of("network"), own);
  auto* transformer = document.find("transformer");
  if (!has_errors(own) && tokens && transformer != nullptr)
    transformer->find("sequence")->scalar = std::to_string(*tokens);
  Network network;
  if (!has_errors(own)) network = read_network(document, own);
  faults.insert(faults.end(), own.begin(), own.end());
  if (has_errors(own)) return std::nullopt;
  return network;
}

}  // namespace

SchemaPtr network_schema() {
  return mapping("a network",
                 {{"schema", choice({"fabricast/network/1"}), "file kind and version", true},
                  {"name", text(), "name of the network", true},
                  {"description", text(), "one line"},
                  {"source", text(), "paper or code the layers come from", true},
                  {"image", list(integer(1, 1'000'000)), "channels, height and width of a sample"},
                  {"layers", list(make({.type = Schema::Type::any})),
                   "layers of an image network in order: words, or repeat, residual, branches, dense"},
                  {"transformer", transformer_schema(), "a transformer by its dimensions"}},
                 {{"layers", "transformer"}});
}

Network read_network(const Node& document, Diagnostics& faults) {
  Network network;
  network.name = document.find("name")->scalar;
  if (const auto* description = document.find("description")) network.description = description->scalar;
  network.source = document.find("source")->scalar;
  if (const auto* transformer = document.find("transformer")) {
    if (const auto* image = document.find("image"))
      faults.push_back(image->error("'image' beside 'transformer'", "a transformer has `sequence`"));
    add_transformer(*transformer, network, faults);
    return network;
  }
  const auto* image = document.find("image");
  if (image == nullptr) {
    faults.push_back(document.error("layers without the size of an image", "add `image: [3, 224, 224]`"));
    return network;
  }
  add_image_layers(*document.find("layers"), *image, network, faults);
  return network;
}

std::vector<std::string> shipped_networks() {
  std::vector<std::string> names;
  for (const auto& file : embedded_files()) {
    if (!file.path.starts_with(k_folder)) continue;
    names.emplace_back(file.path.substr(k_folder.size(), file.path.size() - k_folder.size() - k_suffix.size()));
  }
  return names;
}

std::optional<Network> find_network(const std::string& name, const std::string& folder, const Node& where,
                                    Diagnostics& faults, std::optional<std::int64_t> tokens) {
  if (is_file(name)) {
    const auto path = resolved(folder, name);
    const auto text = read_text_file(path);
    if (text) {
      Diagnostics own;
      auto document = parse_yaml(path, *text, own);
      return network_of(std::move(document), std::move(own), faults, tokens);
    }
    for (const auto& fault : text.error()) faults.push_back(where.error(fault.message, "write a path from this file"));
    return std::nullopt;
  }
  for (const auto& file : embedded_files()) {
    if (file.path == fmt::format("{}{}{}", k_folder, name, k_suffix))
      return network_of(tree_of(file), {}, faults, tokens);
  }
  const auto near = nearest_name(name, shipped_networks());
  faults.push_back(where.error(
      fmt::format("no network '{}'", name),
      near.empty() ? std::string("shipped are vgg-16, resnet-50, bert-large, gpt3-175b, llama3-70b and others of "
                                 "models/networks; the name of your own file ends in .yaml")
                   : fmt::format("did you mean '{}'?", near)));
  return std::nullopt;
}

}  // namespace fabricast::config

namespace fabricast {

Result<std::vector<Network>> load_shipped_networks() {
  Diagnostics faults;
  std::vector<Network> networks;
  for (const auto& name : config::shipped_networks()) {
    if (auto network = config::find_network(name, "", {}, faults, std::nullopt))
      networks.push_back(std::move(*network));
  }
  if (has_errors(faults)) return tl::unexpected(faults);
  return networks;
}

}  // namespace fabricast
