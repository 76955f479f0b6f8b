/* A library that comes later. */
int late_function(int x);
int late_function(int x) { return x * 2; }
