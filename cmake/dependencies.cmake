# SPDX-License-Identifier: Apache-2.0
# The libraries that Presto stands on. Required: what the records need. Optional: a codec or step whose
# library is absent is listed by the programs as such and fails with that reason.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(LIBDEFLATE REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
find_program(PROTOC_C protoc-c REQUIRED)

set(PRESTO_PC_REQUIRES "libisal libprotobuf-c zlib libdeflate yaml-0.1 jansson")
set(PRESTO_PC_LIBS "")

# presto_optional(NAME pkg-config-module): sets PRESTO_HAVE_NAME and the target PkgConfig::NAME.
macro(presto_optional name module)
  pkg_check_modules(${name} IMPORTED_TARGET ${module})
  if(${name}_FOUND)
    set(PRESTO_HAVE_${name} 1)
    string(APPEND PRESTO_PC_REQUIRES " ${module}")
  else()
    set(PRESTO_HAVE_${name} 0)
    message(STATUS "${module} not found: what needs it is left out")
  endif()
endmacro()
presto_optional(ZSTD libzstd)
presto_optional(LZ4 liblz4)
presto_optional(BLOSC blosc)
presto_optional(JPEG libjpeg)
presto_optional(SPNG spng)
presto_optional(HDF5 hdf5)
presto_optional(SOXR soxr)

# Debian's libsndfile names libraries that its package does not depend on: for static linking they would be missing.
pkg_check_modules(SNDFILE IMPORTED_TARGET sndfile)
set(PRESTO_HAVE_SNDFILE 0)
if(SNDFILE_FOUND)
  set(PRESTO_HAVE_SNDFILE 1)
  string(APPEND PRESTO_PC_LIBS " -lsndfile")
else()
  message(STATUS "sndfile not found: what needs it is left out")
endif()

# Eigen is C++ headers: they hold the FFT of mel-spectrogram and are no part of presto.pc.
pkg_check_modules(EIGEN IMPORTED_TARGET eigen3)
set(PRESTO_HAVE_EIGEN 0)
if(EIGEN_FOUND)
  set(PRESTO_HAVE_EIGEN 1)
else()
  message(STATUS "eigen3 not found: what needs it is left out")
endif()

# libsentencepiece has a C++ interface only; steps/text/sentencepiece.cc is C functions around it.
presto_optional(SENTENCEPIECE sentencepiece)
if(PRESTO_HAVE_SENTENCEPIECE OR PRESTO_HAVE_EIGEN)
  # The C++ compiler of the same family: sanitizers and fuzzers do not mix.
  if(NOT DEFINED CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX} AND CMAKE_C_COMPILER MATCHES "clang(-[0-9]+)?$")
    string(REGEX REPLACE "clang(-[0-9]+)?$" "clang++\\1" CMAKE_CXX_COMPILER ${CMAKE_C_COMPILER})
  endif()
  set(CMAKE_CXX_STANDARD 17)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
  enable_language(CXX)
  string(APPEND PRESTO_PC_LIBS " -lstdc++")
endif()

# Debian's libsnappy has no pkg-config file; it is C++ behind a C header.
find_path(SNAPPY_INCLUDE_DIR snappy-c.h)
find_library(SNAPPY_LIBRARY snappy)
if(SNAPPY_INCLUDE_DIR AND SNAPPY_LIBRARY)
  set(PRESTO_HAVE_SNAPPY 1)
  add_library(presto_snappy INTERFACE)
  target_include_directories(presto_snappy SYSTEM INTERFACE ${SNAPPY_INCLUDE_DIR})
  target_link_libraries(presto_snappy INTERFACE ${SNAPPY_LIBRARY})
  string(APPEND PRESTO_PC_LIBS " -lsnappy")
else()
  set(PRESTO_HAVE_SNAPPY 0)
  message(STATUS "libsnappy not found: what needs it is left out")
endif()
