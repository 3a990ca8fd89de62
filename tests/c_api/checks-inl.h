/* Checks of the tests in C. */
#pragma once

#include <hmmjit/hmmjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                               \
    }                                                                           \
  } while (0)

static void check_status(int line, const char* call, int32_t status, int32_t wanted,
                         hmmjit_error** error) {
  if (status != wanted) {
    fprintf(stderr, "%s:%d: status %s, not %s: %s\n  %s\n", __FILE__, line,
            hmmjit_status_name(status), hmmjit_status_name(wanted), hmmjit_error_text(*error),
            call);
    ++failures;
  } else if (wanted != HMMJIT_OK &&
             (hmmjit_error_status(*error) != wanted || strlen(hmmjit_error_message(*error)) == 0)) {
    fprintf(stderr, "%s:%d: no error object of that status\n", __FILE__, line);
    ++failures;
  }
  hmmjit_error_free(*error);
  *error = NULL;
}
#define GIVES(wanted, call) check_status(__LINE__, #call, call, wanted, &error)
#define OK(call) GIVES(HMMJIT_OK, call)

static char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  char* bytes = NULL;
  size_t got = 0;
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  bytes = malloc(*size + 1);
  if (bytes != NULL) got = fread(bytes, 1, *size, file);
  CHECK(got == *size);
  fclose(file);
  return bytes;
}
