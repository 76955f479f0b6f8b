/* Code that nobody traces, built without sleds. Each call burns so many rounds of work in one function of its own. */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
void library_first(unsigned long rounds);
void library_second(unsigned long rounds);
/* Takes a variable part of the stack, and much of it, in between. */
void library_deep(unsigned long rounds, unsigned size);
/* Raises SIGUSR1, whose handler burns the rounds. */
void library_signal(unsigned long rounds);
/* Calls back, `callback` being traced, which calls library_first(). */
void library_back(void (*callback)(unsigned long), unsigned long rounds);
/* Sleep, or wait in poll() for what does not come. */
void library_sleeps(unsigned ms);
void library_polls(unsigned ms);
#ifdef __cplusplus
}
#endif
