/* SPDX-License-Identifier: MIT */
/* Notes: what the program says of itself, among its calls in every trace. Each costs a look at a byte while nothing is
 * recorded, and about what a traced call does otherwise; the first use of a name waits for karst run (some 150 us). All
 * of them may be used in signal handlers. Texts are UTF-8 and end at a NUL; what is longer than 2000 bytes is cut.
 * Names are string literals, or live as long as the program. A color is red, green and blue; 0 is none.
 *
 *   KARST_ZONE("read header");            from here to the end of the block is shown as a call of this name
 *   KARST_ZONE_COLOR("parse", 0x2080ff);  the same in a color of its own
 *   KARST_ZONE_DYNAMIC(file);             the same with a name that is copied: up to 250 bytes, 4096 such names
 *   karst_text(url);                      text that belongs to the innermost call or zone
 *   karst_color(0xff8000);                the innermost call or zone is shown in this color
 *   KARST_MESSAGE("cache is full");       a message whose text never changes: cheap
 *   karst_message(line);                  a message whose text is copied
 *   karst_message_color(line, 0xff0000);  the same in a color, of at most 1024 in a process
 *   KARST_VALUE("queue length", n);       what a quantity is now: an integer or a floating-point number
 *   KARST_FRAME("main");                  a frame of this name ends here, and the next one begins
 *   karst_frame_begin(name);              a frame of this name begins here: what was since the last one is in none
 *   karst_picture(name, pixels, w, h, 0, 0);                  a picture of the current frame of this name, or of an
 *                                         earlier one
 *   karst_plot(name, "ms", KARST_PLOT_LINE, 0xff8000);        how the values of this name are drawn
 *   karst_app_info("version 1.2");        what the program says of itself as a whole
 *   karst_memory_taken(pool, address, size);                  memory of an allocator of the program's own
 *   karst_memory_freed(pool, address);
 *   karst_text_sized(text, size);         karst_text of so many bytes, or up to a NUL; and karst_message_sized
 *   karst_integer(name, n);               KARST_VALUE and KARST_FRAME with a name that is chosen as the program runs:
 *   karst_number(name, x);                each address is a name, and what is there lives as long as the program. Of
 *   karst_frame(name);                    more than 1024 such names the later ones are not recorded
 *   karst_request_begin(4711);            a request begins; any thread may work on it, and any may end it
 *   karst_request(4711);                  the calling thread works on it from here on; 0: on none
 *   karst_request_end(4711);
 *   karst_request_context("00-4bf9...");  whose part the request is that the thread works on: W3C's traceparent
 *   karst_flow(17);                       the call that the thread is in is a step of flow 17: where the flow was said
 *   karst_flow_end(17);                   before leads to it, in whatever thread that was; and its last step, after
 *                                         which the number may be used again
 *   karst_fiber_enter(number, name);      the calling thread works on that fiber from here on
 *   karst_fiber_leave();                  and on its own stack again
 */
#ifndef KARST_NOTE_H
#define KARST_NOTE_H
#ifndef KARST_FIND_
#error "include <karst/karst.h>, which has this header in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct karst_name {
  const char* name;
  const char* file;
  uint32_t line;
  uint32_t id; /* libkarst's */
};

/* Whether libkarst has said that nothing is recorded. */
KARST_STUB_ int karst_is_off_(void) {
  const uint8_t* on;
  KARST_FIND_(on, on);
  return on && !__atomic_load_n(on, __ATOMIC_RELAXED);
}
#define KARST_NOTE_(type, name, arguments, given)             \
  {                                                           \
    type(*karst_found_) arguments;                            \
    KARST_FIND_(karst_found_, name);                          \
    if (karst_found_ && !karst_is_off_()) karst_found_ given; \
  }
KARST_STUB_ void karst_message(const char* text) KARST_NOTE_(void, message, (const char*), (text)) KARST_STUB_
    void karst_text(const char* text) KARST_NOTE_(void, text, (const char*), (text)) KARST_STUB_
    void karst_message_sized(const char* text, size_t size)
        KARST_NOTE_(void, sized_message, (const char*, size_t), (text, size)) KARST_STUB_
    void karst_text_sized(const char* text, size_t size)
        KARST_NOTE_(void, sized_text, (const char*, size_t), (text, size)) KARST_STUB_
    void karst_integer(const char* name, int64_t value)
        KARST_NOTE_(void, integer_of, (const char*, int64_t), (name, value)) KARST_STUB_
    void karst_frame(const char* name) KARST_NOTE_(void, frame_of, (const char*), (name)) KARST_STUB_
    void karst_frame_begin(const char* name) KARST_NOTE_(void, frame_begin, (const char*), (name)) KARST_STUB_
    void karst_color(uint32_t color) KARST_NOTE_(void, color, (uint32_t), (color)) KARST_STUB_
    void karst_message_color_sized(const char* text, size_t size, uint32_t color)
        KARST_NOTE_(void, colored_message, (const char*, size_t, uint32_t), (text, size, color)) KARST_STUB_
    void karst_request_begin(uint64_t id) KARST_NOTE_(void, request_begin, (uint64_t), (id)) KARST_STUB_
    void karst_request_end(uint64_t id) KARST_NOTE_(void, request_end, (uint64_t), (id)) KARST_STUB_
    void karst_request(uint64_t id) KARST_NOTE_(void, request, (uint64_t), (id)) KARST_STUB_
    void karst_named_message_(struct karst_name* name)
        KARST_NOTE_(void, named_message, (struct karst_name*), (name)) KARST_STUB_
    void karst_frame_(struct karst_name* name) KARST_NOTE_(void, frame, (struct karst_name*), (name)) KARST_STUB_
    void karst_integer_(struct karst_name* name, int64_t value)
        KARST_NOTE_(void, integer, (struct karst_name*, int64_t), (name, value)) KARST_STUB_
    void karst_number_(struct karst_name* name, double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  KARST_NOTE_(void, number, (struct karst_name*, uint64_t), (name, bits))
}
/* clang-format off */
KARST_STUB_ void karst_flow(uint64_t id) KARST_NOTE_(void, flow, (uint64_t), (id))
KARST_STUB_ void karst_flow_end(uint64_t id) KARST_NOTE_(void, flow_end, (uint64_t), (id))
KARST_STUB_ void karst_number(const char* name, double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  KARST_NOTE_(void, number_of, (const char*, uint64_t), (name, bits))
}
/* clang-format on */
/* The request that the thread works on is part of a greater one: `traceparent` is the value of the HTTP header of that
 * name, by W3C's Trace Context. `karst export --to otlp` puts its span below that one. A text, which others can say by
 * karst_text, too: "traceparent: 00-...". */
KARST_STUB_ void karst_request_context(const char* traceparent) {
  char text[128] = "traceparent: ";
  size_t size;
  if (!traceparent) return;
  size = __builtin_strlen(traceparent);
  if (size > sizeof text - 13) size = sizeof text - 13;
  __builtin_memcpy(&text[13], traceparent, size);
  karst_text_sized(text, 13 + size);
}
KARST_STUB_ void karst_message_color(const char* text, uint32_t color) {
  karst_message_color_sized(text, __SIZE_MAX__, color);
}
/* A picture of a frame, for the page: `width` times `height` pixels of red, green, blue and what is not used, a byte
 * each, the top line first, or the lowest one if `bottom_up`. `ago`: how many frames of this name have ended since the
 * one that it shows. Copied: made smaller to at most 16,384 pixels by whole steps, and compressed to half a byte a
 * pixel (BC1). A width or height of 0 or above 16384 is none. */
KARST_STUB_ void karst_picture(const char* name, const void* pixels, uint32_t width, uint32_t height, uint32_t ago,
                               int bottom_up)
    KARST_NOTE_(void, picture, (const char*, const void*, uint32_t, uint32_t, uint32_t, int),
                (name, pixels, width, height, ago, bottom_up))
    /* How a plot is drawn: from value to value, or level until the next one. What is said last counts. Said once a run,
     * as each call enters a name; `unit` may be null. */
    enum {
      KARST_PLOT_STEP = 0,
      KARST_PLOT_LINE = 1
    };
KARST_STUB_ void karst_plot(const char* name, const char* unit, int how, uint32_t color) {
  void (*karst_found_)(const char*, const char*, int, uint32_t);
  KARST_FIND_(karst_found_, plot);
  if (karst_found_) karst_found_(name, unit, how, color);
}
/* A line about the program as a whole: its version, its settings. `karst info` and the page show all of them. */
KARST_STUB_ void karst_app_info_sized(const char* text, size_t size) {
  void (*karst_found_)(const char*, size_t);
  KARST_FIND_(karst_found_, app_info);
  if (karst_found_) karst_found_(text, size);
}
KARST_STUB_ void karst_app_info(const char* text) { karst_app_info_sized(text, __SIZE_MAX__); }
/* What an allocator of the program's own gives and takes, for `karst memory` and the page, as karst run --system memory
 * has it of malloc. `pool` names the allocator. To be called after memory is taken, and before it is given back. */
KARST_STUB_ void karst_memory_taken(const char* pool, const void* address, size_t size)
    KARST_NOTE_(void, memory_taken, (const char*, const void*, size_t), (pool, address, size)) KARST_STUB_
    void karst_memory_freed(const char* pool, const void* address)
        KARST_NOTE_(void, memory_freed, (const char*, const void*), (pool, address))
    /* A name for a lock, which `karst locks` shows for its address (karst run --system locks). Copied; to be called
     * once a lock, as each call enters a name. The latest one counts. */
    KARST_STUB_ void karst_name_lock(const void* lock, const char* name) {
  void (*karst_found_)(const void*, const char*);
  KARST_FIND_(karst_found_, name_lock);
  if (karst_found_) karst_found_(lock, name);
}
/* Fibers: stacks that the program switches itself. Each gets a lane of its own in every trace, whichever threads work
 * on it; its calls go on when it is entered again. `fiber` is any number but 0 that no other fiber has at that time, as
 * its address; `name` is copied, and may be null. To be called right before the switch or right behind it, with no
 * traced call in between: calls belong to the fiber that the thread works on. Also said while nothing is recorded, as a
 * later trace needs to know: that costs a store. */
KARST_STUB_ void karst_fiber_enter(uint64_t fiber, const char* name) {
  void (*karst_found_)(uint64_t, const char*);
  KARST_FIND_(karst_found_, fiber);
  if (karst_found_) karst_found_(fiber, name);
  __asm__ __volatile__(""); /* no tail call: it would come behind the function's exit */
}
KARST_STUB_ void karst_fiber_leave(void) { karst_fiber_enter(0, KARST_NULL_); }
KARST_STUB_ struct karst_name* karst_zone_enter_(struct karst_name* name) {
  KARST_NOTE_(void, zone_enter, (struct karst_name*), (name))
  return name;
}
KARST_STUB_ struct karst_name* karst_zone_enter_color_(struct karst_name* name, uint32_t color) {
  if (__atomic_load_n(&name->id, __ATOMIC_RELAXED) == 0)
    KARST_NOTE_(void, name_color, (struct karst_name*, uint32_t), (name, color))
  return karst_zone_enter_(name);
}
KARST_STUB_ struct karst_name* karst_zone_enter_dynamic_(const char* text) {
  struct karst_name* name = KARST_NULL_;
  struct karst_name* (*karst_found_)(const char*);
  KARST_FIND_(karst_found_, zone_of);
  if (karst_found_ && !karst_is_off_()) name = karst_found_(text);
  return name ? karst_zone_enter_(name) : name;
}
KARST_STUB_ void karst_zone_leave_(struct karst_name** name) {
  if (*name) KARST_NOTE_(void, zone_leave, (struct karst_name*), (*name))
  __asm__ __volatile__(""); /* as a tail call it would come behind the function's exit */
}
#ifdef __cplusplus
}
#endif

#define KARST_JOIN_(a, b) KARST_JOIN_AGAIN_(a, b)
#define KARST_JOIN_AGAIN_(a, b) a##b
#define KARST_NAMED_(variable, text) static struct karst_name variable = {text, __FILE__, __LINE__, 0}
#define KARST_WITH_NAME_(text, say)   \
  do {                                \
    KARST_NAMED_(karst_named_, text); \
    say;                              \
  } while (0)

#define KARST_ZONE(text) KARST_ZONE_IF(1, text)
/* The same where `condition` holds. */
#define KARST_ZONE_IF(condition, text) \
  KARST_ZONE_WITH_(text, (condition) ? karst_zone_enter_(&KARST_ZONE_NAME_) : KARST_NULL_)
#define KARST_ZONE_COLOR(text, color) KARST_ZONE_WITH_(text, karst_zone_enter_color_(&KARST_ZONE_NAME_, (color)))
#define KARST_ZONE_DYNAMIC(text) KARST_ZONE_ENTERED_(karst_zone_enter_dynamic_(text))
#define KARST_ZONE_NAME_ KARST_JOIN_(karst_zone_name_, __LINE__)
#define KARST_ZONE_WITH_(text, entered) \
  KARST_NAMED_(KARST_ZONE_NAME_, text); \
  KARST_ZONE_ENTERED_(entered)
#define KARST_ZONE_ENTERED_(entered) \
  __attribute__((cleanup(karst_zone_leave_), unused)) struct karst_name* KARST_JOIN_(karst_zone_, __LINE__) = entered
#define KARST_MESSAGE(text) KARST_WITH_NAME_(text, karst_named_message_(&karst_named_))
#define KARST_FRAME(text) KARST_WITH_NAME_(text, karst_frame_(&karst_named_))
/* (__typeof__(x))0.5 is 0 for integers. */
#define KARST_VALUE(text, value)                                                                          \
  KARST_WITH_NAME_(text, (__typeof__((value) + 0))0.5 > 0 ? karst_number_(&karst_named_, (double)(value)) \
                                                          : karst_integer_(&karst_named_, (int64_t)(value)))

#endif
