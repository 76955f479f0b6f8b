// A library without sleds, which goes back to its caller by callbacks.
#pragma once
extern "C" {
typedef int (*WorkCompare)(const void* a, const void* b);
int work_tiny(int x);
int work_loop(int n);
int work_each(int n, void (*visit)(int));
void work_sort(int* values, int count, WorkCompare compare);
int work_fails(int n);
int work_nested(int n, int (*again)(int));
}
