// SPDX-License-Identifier: MIT
/* What we use of libtracefs. Its own header is not C++ (it converts an int to an enum); libtracefs.c includes both, so
 * that the C compiler compares them. */
#pragma once
#ifndef __cplusplus
#include <stdbool.h>
#endif
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tracefs_cpu;
struct tracefs_instance;

int tracefs_set_tracing_dir(char* tracing_dir);
struct tracefs_instance* tracefs_instance_create(const char* name);
int tracefs_instance_destroy(struct tracefs_instance* instance);
void tracefs_instance_free(struct tracefs_instance* instance);
int tracefs_instance_file_write(struct tracefs_instance* instance, const char* file, const char* text);
int tracefs_instance_file_append(struct tracefs_instance* instance, const char* file, const char* text);
int tracefs_instance_set_buffer_size(struct tracefs_instance* instance, size_t kilobytes, int cpu);
int tracefs_trace_on(struct tracefs_instance* instance);
int tracefs_trace_off(struct tracefs_instance* instance);
struct tracefs_cpu* tracefs_cpu_open(struct tracefs_instance* instance, int cpu, bool nonblock);
void tracefs_cpu_close(struct tracefs_cpu* reader);
int tracefs_cpu_read_size(struct tracefs_cpu* reader);
int tracefs_cpu_read(struct tracefs_cpu* reader, void* buffer, bool nonblock);

#ifdef __cplusplus
}
#endif
