// SPDX-License-Identifier: MIT
// libkarst-old-glibc.so: nothing but the libraries that it needs (interpose/CMakeLists.txt).
typedef int karst_old_glibc_is_empty;
