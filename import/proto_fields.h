// SPDX-License-Identifier: MIT
// The fields of a protobuf message, whatever types they claim to have.
//
// protozero asserts that a field is read as the type it has. Of a hostile file it is not: here each is a number or
// bytes, and the other one is 0 or empty.
#pragma once
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string_view>

namespace karst::importing {

struct ProtoField {
  std::uint32_t tag = 0;
  std::uint64_t number = 0;  ///< of a fixed field, its bits
  std::string_view bytes;

  explicit ProtoField(protozero::pbf_reader& message) : tag(message.tag()) {
    switch (message.wire_type()) {
      case protozero::pbf_wire_type::varint:
        number = message.get_uint64();
        break;
      case protozero::pbf_wire_type::fixed64:
        number = message.get_fixed64();
        break;
      case protozero::pbf_wire_type::fixed32:
        number = message.get_fixed32();
        break;
      case protozero::pbf_wire_type::length_delimited: {
        const auto view = message.get_view();
        bytes = {view.data(), view.size()};
        break;
      }
      default:
        message.skip();
    }
  }
};

/// Throws protozero::exception where the message is damaged.
template <typename Visit>
void each_proto_field(std::string_view message, Visit visit) {
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) visit(ProtoField(reader));
}

}  // namespace karst::importing
