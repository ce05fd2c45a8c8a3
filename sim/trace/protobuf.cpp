// SPDX-License-Identifier: Apache-2.0
// Chakra's binary form: messages, each behind its length as a varint; first GlobalMetadata, then Nodes
// [mlcommons/chakra, schema/protobuf/et_def.proto, src/third_party/utils/protolib.py; protobuf's wire format]. Fields
// that a replay does not need are skipped by their wire type.
#include <fmt/format.h>

#include <cstring>

#include "trace/reading.hpp"

namespace fabricast::trace {

namespace {

/// Bytes that are taken from the front; not good once something did not fit.
class Wire {
 public:
  explicit Wire(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool is_good() const { return is_good_; }
  [[nodiscard]] bool is_at_end() const { return bytes_.empty() || !is_good_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }

  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (int shift = 0; shift < 70 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      if (shift < 64) out |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return out;
    }
    is_good_ = false;
    return 0;
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size()) {
      is_good_ = false;
      return {};
    }
    const auto out = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return out;
  }
  std::string_view message() { return take(varint()); }
  template <typename Number>
  Number fixed() {
    const auto bytes = take(sizeof(Number));
    Number out{};
    if (bytes.size() == sizeof(Number)) std::memcpy(&out, bytes.data(), sizeof(Number));
    return out;
  }
  /// The value of a field nobody reads.
  void skip(unsigned type) {
    if (type == 0) {
      varint();
    } else if (type == 1) {
      take(8);
    } else if (type == 2) {
      message();
    } else if (type == 5) {
      take(4);
    } else {
      is_good_ = false;
    }
  }

 private:
  std::string_view bytes_;
  bool is_good_ = true;
};

std::int64_t unzigzag(std::uint64_t value) { return static_cast<std::int64_t>((value >> 1U) ^ (~(value & 1U) + 1)); }

/// AttributeProto's scalar values by field number; lists are left out.
std::optional<std::string> scalar(Wire& wire, unsigned field, unsigned type) {
  switch (field) {
    case 3:
      return fmt::format("{}", wire.fixed<double>());
    case 5:
      return fmt::format("{}", wire.fixed<float>());
    case 7:
    case 9:
      return fmt::format("{}", static_cast<std::int64_t>(wire.varint()));
    case 11:
    case 13:
    case 27:
      return fmt::format("{}", wire.varint());
    case 15:
    case 17:
      return fmt::format("{}", unzigzag(wire.varint()));
    case 19:
      return fmt::format("{}", wire.fixed<std::uint32_t>());
    case 21:
      return fmt::format("{}", wire.fixed<std::uint64_t>());
    case 23:
      return fmt::format("{}", wire.fixed<std::int32_t>());
    case 25:
      return fmt::format("{}", wire.fixed<std::int64_t>());
    case 29:
    case 31:
      return std::string(wire.message());
    default:
      wire.skip(type);
      return std::nullopt;
  }
}

/// The wire type that a scalar's field has; a field with another one is of a later format, or damage.
unsigned wire_type_of(unsigned field) {
  if (field == 3 || field == 21 || field == 25) return 1;
  if (field == 5 || field == 19 || field == 23) return 5;
  return field == 7 || field == 9 || field == 11 || field == 13 || field == 15 || field == 17 || field == 27 ? 0 : 2;
}

bool read_attribute(std::string_view bytes, ChakraNode& node) {
  Wire wire(bytes);
  std::string name, value;
  while (!wire.is_at_end()) {
    const auto key = wire.varint();
    const auto field = static_cast<unsigned>(key >> 3U), type = static_cast<unsigned>(key & 7U);
    if (field == 1 && type == 2) {
      name = std::string(wire.message());
    } else if (type == wire_type_of(field)) {
      if (auto one = scalar(wire, field, type)) value = std::move(*one);
    } else {
      wire.skip(type);
    }
  }
  if (wire.is_good() && !name.empty()) node.attributes[name] = value;
  return wire.is_good();
}

/// Dependencies: packed, or one after the other.
void read_deps(Wire& wire, unsigned type, ChakraNode& node) {
  if (type != 2) {
    node.after.push_back(wire.varint());
    return;
  }
  const auto bytes = wire.message();
  Wire packed(bytes);
  while (!packed.is_at_end()) node.after.push_back(packed.varint());
  if (!packed.is_good()) wire.skip(7);
}

bool read_node(std::string_view bytes, ChakraNode& node) {
  Wire wire(bytes);
  while (!wire.is_at_end()) {
    const auto key = wire.varint();
    const auto field = static_cast<unsigned>(key >> 3U), type = static_cast<unsigned>(key & 7U);
    if (field == 1 && type == 0) {
      node.id = wire.varint();
    } else if (field == 2 && type == 2) {
      node.name = std::string(wire.message());
    } else if (field == 3 && type == 0) {
      node.type = static_cast<int>(wire.varint() & 0xffffU);
    } else if ((field == 4 || field == 5) && (type == 0 || type == 2)) {
      read_deps(wire, type, node);
    } else if (field == 7 && type == 0) {
      node.microseconds = static_cast<std::int64_t>(wire.varint());
    } else if (field == 10 && type == 2) {
      if (!read_attribute(wire.message(), node)) return false;
    } else {
      wire.skip(type);
    }
  }
  return wire.is_good();
}

}  // namespace

bool is_chakra_binary(std::string_view text) {
  // Neither JSON nor GOAL holds bytes below a tab; lengths and keys of a short message do.
  return text.substr(0, 64).find_first_of(std::string_view("\0\1\2\3\4\5\6\7\10", 9)) != std::string_view::npos;
}

Result<std::vector<ChakraNode>> read_chakra_binary(const TraceFile& file) {
  std::vector<ChakraNode> out;
  Wire wire(file.text);
  wire.message();  // the metadata say nothing that a replay needs
  while (!wire.is_at_end()) {
    const auto at = file.text.size() - wire.left();
    const auto bytes = wire.message();
    ChakraNode node;
    node.place = {file.name, 0, 0};
    if (!wire.is_good() || !read_node(bytes, node))
      return fault({file.name, 0, 0},
                   fmt::format("node {} at byte {} is cut off or no node of Chakra's et_def.proto", out.size(), at),
                   "write the file anew; a compressed one is to be unpacked first (gunzip)");
    out.push_back(std::move(node));
    if (out.size() > k_most_ops)
      return fault({file.name, 0, 0}, fmt::format("more than {} nodes", k_most_ops), "replay a part of the trace");
  }
  if (!wire.is_good() || out.empty())
    return fault({file.name, 0, 0}, "no nodes behind the metadata: this is no Chakra execution trace, or cut off",
                 "a file begins with GlobalMetadata behind its length");
  return out;
}

}  // namespace fabricast::trace
