/* A few lines around a library. */
int work_loop(int n);

int main(void) { return work_loop(3) == 0; }
