// A driver from before context-independent loading: it starts, but lacks cuLibraryLoadData.
extern "C" {
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
}
