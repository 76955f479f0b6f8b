/* The same from C. */
#include <stdio.h>

#include "tracy/TracyC.h"

__attribute__((noinline)) static int inner(int i) {
  TracyCZone(zone, 1);
  TracyCZoneText(zone, "below and more", 5);
  TracyCZoneTextF(zone, "%d of %s", i, "some");
  TracyCZoneNameF(zone, "named");
  TracyCZoneValue(zone, i);
  TracyCZoneEnd(zone);
  return i + 1;
}

int main(void) {
  int result;
  TracyCZoneN(whole, "whole", 1);
  TracyCZoneNC(never, "never", 0xff, 0);
  TracyCZoneText(never, "unheard", 7);
  TracyCZoneTextF(never, "unheard too");
  result = inner(1);
  TracyCPlot("load", 0.25);
  TracyCPlotI("queue", 3);
  TracyCMessageL("a literal");
  TracyCMessageLC("a red one", 0xff0000);
  TracyCZoneColor(whole, 0x00ff00);
  TracyCAllocN(&result, sizeof result, "pool");
  TracyCFreeN(&result, "pool");
  TracyCSecureAlloc(&result, 3);
  TracyCSharedLockAnnounce(lock);
  TracyCSharedLockMark(lock);
  TracyCFrameMark;
  TracyCZoneEnd(never);
  TracyCZoneEnd(whole);
  printf("%d\n", result);
  return 0;
}
