/* Karst's marks for functions, in C and C++:
 *
 *   KARST_NOTRACE static int next(struct lexer *l) { ... }    never traced
 *   KARST_ALWAYS void serve(struct request *r) { ... }        traced also where lists and counts would leave it out
 *
 * Written where a function is first declared, or where it is defined. With an ordinary compiler they mean nothing and cost
 * nothing; karst-gcc, karst-clang and their like find this header by themselves.
 *
 * KARST_ALWAYS outweighs --no-trace, --only, --min-instructions and --functions, not --not-functions. It is known to
 * sleds alone, not to -finstrument-functions.
 */
#ifndef KARST_KARST_H
#define KARST_KARST_H

#if defined(__clang__)
#define KARST_NOTRACE __attribute__((no_instrument_function, xray_never_instrument))
#define KARST_ALWAYS __attribute__((xray_always_instrument))
#elif defined(__GNUC__) && defined(__x86_64__)
#define KARST_NOTRACE __attribute__((no_instrument_function))
/* The record of this function's entry goes to a section of its own; karst-as turns it into a mark in the sled table. */
#define KARST_ALWAYS __attribute__((fentry_section("karst_always_loc")))
#elif defined(__GNUC__)
#define KARST_NOTRACE __attribute__((no_instrument_function))
#define KARST_ALWAYS
#else
#define KARST_NOTRACE
#define KARST_ALWAYS
#endif

#endif
