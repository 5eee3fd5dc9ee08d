// expect: cuda/*.cuh is device code: compile this file by nvcc, as .cu
#include "regroup/cuda/device.cuh"

int main() {}
