// SPDX-License-Identifier: MIT
// Addresses of sockets as text (format/socket_address.h). They come from memory of the program's that may not be there.
#pragma once
#include <stddef.h>
#include <sys/socket.h>

#include "format/socket_address.h"
#include "interpose/zone.h"

namespace karst::interpose {

class Address {
 public:
  Address(const void* address, socklen_t size) {
    sockaddr_storage copied{};
    const uint32_t wanted = size < sizeof copied ? size : sizeof copied;
    known_ = address != nullptr && wanted >= sizeof(sa_family_t) && copy_in(address, &copied, wanted, false) == wanted;
    if (known_) text_.write(copied, wanted);
  }
  /// One that a call has put there, and how long it is.
  Address(const void* address, const socklen_t* size) : Address(address, size_at(size)) {}

  void add_to(Values& values) const {
    if (known_)
      values.add(Text{text_.text(), text_.size()});
    else
      values.add_null();
  }

 private:
  static socklen_t size_at(const socklen_t* size) {
    socklen_t copied = 0;
    if (size == nullptr || copy_in(size, &copied, sizeof copied, false) != sizeof copied) return 0;
    return copied;
  }

  format::SocketAddressText text_;
  bool known_ = false;
};

}  // namespace karst::interpose
