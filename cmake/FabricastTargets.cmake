# SPDX-License-Identifier: Apache-2.0
# One static library per row of the dependency table in docs/ARCHITECTURE.md. fabricast_library(NAME SOURCES ... PUBLIC ...
# PRIVATE ...) makes fabricast_NAME with the project's warnings.
add_library(fabricast_warnings INTERFACE)
target_compile_options(fabricast_warnings INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor
                       -Wno-missing-field-initializers
                       # g++ 12 reports these inside its own headers at -O3 (GCC bugs 105329, 105651 and 105562)
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-maybe-uninitialized>
                       $<$<BOOL:${FABRICAST_WERROR}>:-Werror>)
# "undefined" leaves out conversions of a double to a whole number that does not hold it, with both compilers.
set(fabricast_undefined undefined,float-cast-overflow)
if(FABRICAST_SANITIZE OR FABRICAST_FUZZ)
  add_compile_options(-fsanitize=address,${fabricast_undefined} -fno-sanitize-recover=${fabricast_undefined}
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,${fabricast_undefined})
endif()
if(FABRICAST_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "FABRICAST_FUZZ needs clang: apt-get install clang-14 libclang-rt-14-dev, -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Sanitizers watch what these do, too, but no fuzz target runs them and little time passes in them: without optimisation and coverage they take half as
# long to compile.
function(fabricast_compiled_quickly target)
  if(FABRICAST_SANITIZE)
    target_compile_options(${target} PRIVATE -O0 $<$<BOOL:${FABRICAST_FUZZ}>:-fno-sanitize=fuzzer-no-link>)
  endif()
endfunction()

function(fabricast_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(fabricast_${name} STATIC ${ARG_SOURCES})
  target_include_directories(fabricast_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/sim/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_include_directories(fabricast_${name} PRIVATE ${PROJECT_SOURCE_DIR}/sim ${PROJECT_SOURCE_DIR})
  target_link_libraries(fabricast_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:fabricast_warnings>)
  set_target_properties(fabricast_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
