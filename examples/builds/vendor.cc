// Stands for code that nobody wants to see in a trace.
int vendor_scale(int value);

static int twice(int value) { return value * 2; }

int vendor_scale(int value) { return twice(value) + 1; }
