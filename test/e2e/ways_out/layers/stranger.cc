// A library that was built without Karst: exceptions go through it, end in it, and begin again.
extern "C" void stranger_passes(void (*next)()) {
  try {
    next();
  } catch (long) {
  }
}

extern "C" void stranger_catches(void (*next)()) {
  try {
    next();
  } catch (...) {
  }
}
