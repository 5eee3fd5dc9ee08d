// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime whose device memory is the host's and whose kernels do nothing: what src/tool/cuda/*.cu does on the host
// then runs without a GPU (views, sizes, workspaces, choices of kernels), and the launches are counted into the file that
// REGROUP_LAUNCHES names. Results mean nothing.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct counter {
  int launches = 0;
  ~counter() {
    const char* const path = std::getenv("REGROUP_LAUNCHES");
    std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (file == nullptr) return;
    std::fprintf(file, "%d\n", launches);
    std::fclose(file);
  }
} counted;

}  // namespace

extern "C" {
int cudaGetDeviceCount(int* count) { return *count = 1, 0; }
int cudaGetDevice(int* device) { return *device = 0, 0; }
int cudaGetDeviceProperties(char* named, int) { return std::strcpy(named, "no kernels"), 0; }
int cudaDeviceGetAttribute(int* processors, int, int) { return *processors = 16, 0; }
int cudaMallocAsync(void** memory, std::size_t bytes, void*) {
  return *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256), 0;
}
int cudaFreeAsync(void* memory, void*) { return std::free(memory), 0; }
int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void*) {
  return std::memcpy(to, from, bytes), 0;
}
int cudaStreamSynchronize(void*) { return 0; }
int cudaGetLastError() { return 0; }
const char* cudaGetErrorString(int) { return ""; }
int cudaFuncGetAttributes(char* attributes, const void*) {  // three sizes, two counts, the PTX version: sm_90's clusters
  return attributes[3 * sizeof(std::size_t) + 2 * sizeof(int)] = 90, 0;
}
int cudaLaunchKernelExC(const void*, const void*, void**) { return ++counted.launches, 0; }

void** __cudaRegisterFatBinary(void*) {  // NOLINT: the names that nvcc calls
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction() {}
int __cudaGetKernel() { return 0; }
int __cudaLaunchKernel() { return ++counted.launches, 0; }
int __cudaPopCallConfiguration() { return 0; }
}
