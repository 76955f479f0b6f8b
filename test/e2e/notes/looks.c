/* What a program says once, and how it wants things shown: colours, groups, plots, frames with gaps, pictures, memory.
 */
#include <karst/karst.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kWidth = 640, kHeight = 360, kFrames = 5 };

static void rest(long us) {
  const struct timespec time = {0, us * 1000};
  nanosleep(&time, 0);
}

__attribute__((noinline)) static int parse(int i) {
  KARST_ZONE_COLOR("parse zone", 0x2080ff);
  if (i % 2 != 0) karst_color(0xff8000);
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 2000000);
  return i + 1;
}

/* What a picture shows: red from left to right, green from top to bottom, and blue by the frame. */
static void paint(unsigned char* pixels, int frame, int bottom_up) {
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      unsigned char* pixel = pixels + 4 * (y * kWidth + x);
      pixel[0] = (unsigned char)(x * 255 / kWidth);
      pixel[1] = (unsigned char)((bottom_up ? kHeight - 1 - y : y) * 255 / kHeight);
      pixel[2] = (unsigned char)(frame * 50);
      pixel[3] = 0;
    }
}

static void* work(void* argument) {
  const int number = (int)(intptr_t)argument;
  int done = karst_thread_set_group("before");
  done += karst_thread_set_group(number < 2 ? "workers" : "writers");
  for (int i = 0; i < 4; ++i) done += parse(i);
  return (void*)(intptr_t)done;
}

int main(void) {
  karst_app_info("version 1.2");
  karst_app_info_sized("settings: fast and more", 14);
  karst_app_info("version 1.2");
  karst_app_info("");
  karst_app_info(0);
  karst_plot("queue length", 0, KARST_PLOT_STEP, 0);
  karst_plot("temperature",
             "\xc2\xb0"
             "C",
             KARST_PLOT_LINE, 0xff8000);
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], 0, work, (void*)(intptr_t)i);
  unsigned char* pixels = malloc(4 * kWidth * kHeight);
  for (int i = 0; i < kFrames; ++i) {
    karst_frame_begin("main");
    const uint64_t begin = karst_time();
    paint(pixels, i, i == 1);
    rest(500);
    karst_picture("main", pixels, kWidth, kHeight, 0, i == 1);
    KARST_VALUE("temperature", 20.5 + i);
    KARST_VALUE("queue length", i);
    const uint64_t end = karst_time();
    KARST_FRAME("main");
    printf("%.0f\n", karst_time() ? (double)(end - begin) * 1e9 / (double)karst_ticks_per_second() : 0);
    rest(3000); /* in no frame */
  }
  paint(pixels, kFrames, 0);
  karst_picture("main", pixels, kWidth, kHeight, 1, 0); /* of the last but one */
  karst_picture("main", pixels, 3, 2, 0, 0);            /* of none: no frame ends behind it */
  karst_picture("main", pixels, 0, 2, 0, 0);
  karst_picture("main", pixels, 20000, 2, 0, 0);
  karst_picture("main", 0, 20, 2, 0, 0);
  for (int i = 0; i < 6; ++i) {
    char name[20];
    snprintf(name, sizeof name, "item %d", i / 2);
    KARST_ZONE_DYNAMIC(name);
    name[0] = 0; /* it was copied */
    karst_text("in it");
  }
  {
    KARST_ZONE_DYNAMIC("");
    karst_text("in none");
  }
  karst_message_color("it burns", 0xff0000);
  karst_message_color_sized("cold and more", 4, 0x0000ff);
  karst_message_color("as all", 0);
  for (int i = 0; i < 10; ++i) {
    karst_memory_taken("arena", pixels + i, 100 + (size_t)i);
    if (i % 2 == 0) karst_memory_freed("arena", pixels + i);
  }
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    void* done;
    pthread_join(threads[i], &done);
    sum += (int)(intptr_t)done;
  }
  free(pixels);
  printf("%d\n", sum);
  return 0;
}
