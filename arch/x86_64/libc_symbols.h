// SPDX-License-Identifier: MIT
// Which versions of libc's functions the runtime and its companions are linked with: the first that there was on this
// processor. glibc 2.34 gave these a new version as they moved into libc.so.6, and meant the same. Compilers read this
// before everything else (runtime/CMakeLists.txt), so that no source has to.
//
// Before 2.34 they are in libdl.so.2 and libpthread.so.0, which libkarst-old-glibc.so brings (interpose/).
#pragma once

asm(".symver dladdr, dladdr@GLIBC_2.2.5\n"
    ".symver dladdr1, dladdr1@GLIBC_2.3.3\n"
    ".symver dlsym, dlsym@GLIBC_2.2.5\n"
    ".symver dlvsym, dlvsym@GLIBC_2.2.5\n"
    ".symver pthread_attr_getstacksize, pthread_attr_getstacksize@GLIBC_2.2.5\n"
    ".symver pthread_getattr_default_np, pthread_getattr_default_np@GLIBC_2.18\n"
    ".symver pthread_key_create, pthread_key_create@GLIBC_2.2.5\n"
    ".symver pthread_key_delete, pthread_key_delete@GLIBC_2.2.5\n"
    ".symver pthread_setspecific, pthread_setspecific@GLIBC_2.2.5\n"
    ".symver pthread_testcancel, pthread_testcancel@GLIBC_2.2.5\n"
    ".symver sem_trywait, sem_trywait@GLIBC_2.2.5\n");
#ifndef KARST_DEFINES_DLOPEN  // a name of one's own has no version of libc's
asm(".symver dlclose, dlclose@GLIBC_2.2.5\n"
    ".symver dlopen, dlopen@GLIBC_2.2.5\n");
#endif
