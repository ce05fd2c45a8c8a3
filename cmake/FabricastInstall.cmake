# SPDX-License-Identifier: Apache-2.0
# `cmake --install` puts the program, the library with its CMake package, schemas and examples.
include(CMakePackageConfigHelpers)

add_library(fabricast INTERFACE)
add_library(fabricast::fabricast ALIAS fabricast)
set(fabricast_parts config sweep check fit engine models packet lossless topology virtualization scenario validate readers report base)
list(TRANSFORM fabricast_parts PREPEND fabricast_ OUTPUT_VARIABLE fabricast_libraries)
target_link_libraries(fabricast INTERFACE ${fabricast_libraries})

install(TARGETS fabricast ${fabricast_libraries} EXPORT fabricastTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS fabricast_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT fabricastTargets NAMESPACE fabricast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fabricast)
configure_package_config_file(cmake/fabricastConfig.cmake.in ${CMAKE_BINARY_DIR}/fabricastConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fabricast)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/fabricastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/fabricastConfig.cmake ${CMAKE_BINARY_DIR}/fabricastConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fabricast)
install(DIRECTORY sim/include/fabricast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY topologies scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/fabricast)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
