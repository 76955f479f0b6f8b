// SPDX-License-Identifier: MIT
// Addresses of sockets as text: "127.0.0.1:8080", "[::1]:53", "unix:/run/x", "unix:@abstract", "unix:" without a name,
// "netlink". So notes of calls have them, and notes of what is open; a reader knows by that who is meant by both.
#ifndef KARST_FORMAT_SOCKET_ADDRESS_H
#define KARST_FORMAT_SOCKET_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>

namespace karst::format {

/// Without a NUL at its end. Calls no function of libc's.
class SocketAddressText {
 public:
  const char* text() const { return text_; }
  std::uint32_t size() const { return used_; }

  /// Of the first `size` bytes.
  void write(const sockaddr_storage& of, std::uint32_t size) {
    if (of.ss_family == AF_INET && size >= sizeof(sockaddr_in)) {
      const auto& ip = reinterpret_cast<const sockaddr_in&>(of);
      for (int i = 0; i < 4; ++i) {
        if (i != 0) add('.');
        add_number(reinterpret_cast<const unsigned char*>(&ip.sin_addr)[i]);
      }
      add_port(ip.sin_port);
    } else if (of.ss_family == AF_INET6 && size >= offsetof(sockaddr_in6, sin6_scope_id)) {
      write_ip6(reinterpret_cast<const sockaddr_in6&>(of));
    } else if (of.ss_family == AF_UNIX) {
      write_path(reinterpret_cast<const sockaddr_un&>(of), size);
    } else if (of.ss_family == AF_NETLINK) {
      add("netlink");
    } else {
      add("family ");
      add_number(of.ss_family);
    }
  }
  void add(const char* text) {
    for (; *text != '\0'; ++text) add(*text);
  }

 private:
  void add(char c) {
    if (used_ < sizeof text_) text_[used_++] = c;
  }
  void add_number(std::uint32_t number, std::uint32_t base = 10) {
    char digits[10];
    std::uint32_t count = 0;
    do digits[count++] = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    while (count != 0) add(digits[--count]);
  }
  void add_port(in_port_t port) {
    add(':');
    add_number(__builtin_bswap16(port));
  }

  /// The longest stretch of zeros is left out, as RFC 5952 asks.
  void write_ip6(const sockaddr_in6& ip) {
    const auto part = [&](int i) {
      return std::uint32_t{ip.sin6_addr.s6_addr[2 * i]} << 8 | ip.sin6_addr.s6_addr[2 * i + 1];
    };
    int from = -1, most = 1;
    for (int i = 0; i < 8; ++i) {
      int end = i;
      while (end < 8 && part(end) == 0) ++end;
      if (end - i <= most) continue;
      from = i;
      most = end - i;
    }
    add('[');
    for (int i = 0; i < 8; ++i) {
      if (i == from) {
        add("::");
        i += most - 1;
        continue;
      }
      if (i != 0 && i != from + most) add(':');
      add_number(part(i), 16);
    }
    add(']');
    add_port(ip.sin6_port);
  }

  void write_path(const sockaddr_un& name, std::uint32_t size) {
    add("unix:");
    const std::uint32_t length = size - static_cast<std::uint32_t>(offsetof(sockaddr_un, sun_path));
    const bool is_abstract = length > 1 && name.sun_path[0] == '\0';
    if (is_abstract) add('@');
    for (std::uint32_t i = is_abstract ? 1 : 0; i < length && i < sizeof name.sun_path; ++i) {
      if (!is_abstract && name.sun_path[i] == '\0') break;
      add(name.sun_path[i]);
    }
  }

  char text_[128];
  std::uint32_t used_ = 0;
};

}  // namespace karst::format

#endif
