__attribute__((noinline)) int plugin_work(int i) { return i * 2; }
