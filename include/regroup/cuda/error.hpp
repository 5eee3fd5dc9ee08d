// SPDX-License-Identifier: Apache-2.0
// The exceptions for a device's failures, and the sentence of each. Codes are CUDA's own, by number, so that a plain C++
// compiler can read this file.
#pragma once

#include <string>

#include "regroup/error.hpp"

namespace regroup::cuda {

/// What CUDA reports, with its code. The base of the three below.
struct device_error : error {
  int code;  ///< a cudaError_t
  device_error(const std::string& sentence, int status) : error(sentence), code(status) {}
};
/// There is no GPU, or no driver for it.
struct no_device_error : device_error {
  using device_error::device_error;
};
/// The device has too little memory left.
struct memory_error : device_error {
  using device_error::device_error;
};
/// The program holds no code for this GPU.
struct architecture_error : device_error {
  using device_error::device_error;
};

/// Throws the exception for `code`; `said` is CUDA's own description, `doing` what was being done ("a launch").
[[noreturn]] inline void throw_device(int code, const std::string& said, const std::string& doing) {
  const std::string told = " (" + doing + ": " + said + ")";
  switch (code) {
    case 2:  // cudaErrorMemoryAllocation
      throw memory_error("the device has too little memory left; free some, or take the rows in parts" + told, code);
    case 3:    // cudaErrorInitializationError
    case 35:   // cudaErrorInsufficientDriver
    case 222:  // cudaErrorUnsupportedPtxVersion
    case 100:  // cudaErrorNoDevice
    case 101:  // cudaErrorInvalidDevice
      throw no_device_error("cuda::device needs an NVIDIA GPU and a driver as new as this program's CUDA; found none" + told,
                            code);
    case 46:  // cudaErrorDevicesUnavailable
      throw no_device_error("the GPU is taken by another program that has it for itself; wait for that to end" + told, code);
    case 98:   // cudaErrorInvalidDeviceFunction
    case 209:  // cudaErrorNoKernelImageForDevice
      throw architecture_error("this program was not compiled for this GPU; add its architecture to nvcc's -arch" + told,
                               code);
    default:
      throw device_error("the device reports an error" + told, code);
  }
}

}  // namespace regroup::cuda
