// A program of two objects, of which each calls the other.
#pragma once

namespace mixed {
int ping(int n);       // of the object that is built for tracing
int pong(int n);       // of the other one
void pass(int n);      // of the other one: an exception comes through it
int catch_one(int n);  // of the other one: it catches what the first one throws
void throw_from(int n);
int count_up(int n);  // of the other one: a loop
}  // namespace mixed
