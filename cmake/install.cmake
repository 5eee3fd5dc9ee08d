# SPDX-License-Identifier: Apache-2.0
# find_package(regroup [COMPONENTS laws mpi cuda]) from an installed prefix.
include(CMakePackageConfigHelpers)
set(regroup_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/regroup)

install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS regroup regroup_cuda EXPORT regroup-targets)
install(TARGETS regroup_laws EXPORT regroup-laws-targets)
install(TARGETS regroup_mpi EXPORT regroup-mpi-targets)
install(EXPORT regroup-targets NAMESPACE regroup:: DESTINATION ${regroup_package_dir})
install(EXPORT regroup-laws-targets NAMESPACE regroup:: DESTINATION ${regroup_package_dir})
install(EXPORT regroup-mpi-targets NAMESPACE regroup:: DESTINATION ${regroup_package_dir})
configure_package_config_file(cmake/regroup-config.cmake.in regroup-config.cmake INSTALL_DESTINATION ${regroup_package_dir})
write_basic_package_version_file(regroup-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/regroup-config.cmake ${PROJECT_BINARY_DIR}/regroup-config-version.cmake
  DESTINATION ${regroup_package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
