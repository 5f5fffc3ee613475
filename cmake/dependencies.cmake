# SPDX-License-Identifier: Apache-2.0
# The libraries that Presto stands on. Required: what the records need. Optional: a codec or step whose
# library is absent is listed by the programs as such and fails with that reason.
find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
set(missing "")  # Debian's packages; scripts/setup has the same
if(NOT PkgConfig_FOUND)
  set(missing pkg-config)
endif()

# Its name here, pkg-config's, and the package: sets the target PkgConfig::NAME.
macro(presto_required name module package)
  if(PkgConfig_FOUND)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  endif()
  if(NOT ${name}_FOUND)
    list(APPEND missing ${package})
  endif()
endmacro()
presto_required(ISAL libisal libisal-dev)
presto_required(ZLIB zlib zlib1g-dev)
presto_required(LIBDEFLATE libdeflate libdeflate-dev)
presto_required(YAML yaml-0.1 libyaml-dev)
presto_required(JANSSON jansson libjansson-dev)
if(PRESTO_PYTHON AND NOT PRESTO_PYTHON STREQUAL "AUTO")
  find_package(Python3 3.11 QUIET COMPONENTS Interpreter Development.Module)
  if(NOT Python3_Development.Module_FOUND)
    list(APPEND missing python3-dev)
  endif()
endif()
if(missing)
  list(JOIN missing " " missing)
  # Two blanks at its start: CMake prints the line as it stands.
  message(FATAL_ERROR "Presto cannot be built yet, because packages are missing. Type:\n"
                      "  sudo apt-get install ${missing}\n"
                      "Or, for all that Presto can use: scripts/setup. What the packages are called elsewhere is up to the system; "
                      "Python must be 3.11 or later.")
endif()

set(PRESTO_PC_REQUIRES "libisal zlib libdeflate yaml-0.1 jansson")
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
presto_optional(SOXR soxr)
presto_optional(MPG123 libmpg123)

# libhdf5 is not linked: it is loaded, by the name that a link would record, when an HDF5 file is opened.
pkg_check_modules(HDF5 IMPORTED_TARGET hdf5)
set(PRESTO_HAVE_HDF5 0)
if(HDF5_FOUND)
  find_library(HDF5_LIBRARY hdf5 HINTS ${HDF5_LIBRARY_DIRS})
  execute_process(COMMAND ${CMAKE_READELF} -d ${HDF5_LIBRARY} OUTPUT_VARIABLE hdf5_dynamic ERROR_QUIET)
  if(hdf5_dynamic MATCHES "soname: \\[([^]]+)\\]")
    set(PRESTO_HAVE_HDF5 1)
    set(PRESTO_HDF5_SONAME ${CMAKE_MATCH_1})
  endif()
endif()
if(NOT PRESTO_HAVE_HDF5)
  message(STATUS "hdf5 not found as a shared library: what needs it is left out")
endif()

# Debian's libsndfile names libraries that its package does not depend on: for static linking they would be missing.
pkg_check_modules(SNDFILE IMPORTED_TARGET sndfile)
set(PRESTO_HAVE_SNDFILE 0)
if(SNDFILE_FOUND)
  set(PRESTO_HAVE_SNDFILE 1)
  string(APPEND PRESTO_PC_LIBS " -lsndfile")
else()
  message(STATUS "sndfile not found: what needs it is left out")
endif()

# libsndfile decodes FLAC with this one, too, but not of all depths.
presto_optional(FLAC flac)

# libsndfile decodes Vorbis with these. They tell which headers it cannot read, because it loses memory on those.
presto_optional(OGG ogg)
presto_optional(VORBIS vorbis)

# Eigen is C++ headers: they hold the FFT of mel-spectrogram and are no part of presto.pc.
pkg_check_modules(EIGEN IMPORTED_TARGET eigen3)
set(PRESTO_HAVE_EIGEN 0)
if(EIGEN_FOUND)
  set(PRESTO_HAVE_EIGEN 1)
else()
  message(STATUS "eigen3 not found: what needs it is left out")
endif()
presto_optional(UCHARDET uchardet)
presto_optional(UTF8PROC libutf8proc)

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

# MyHTML is a part of Modest, which has no pkg-config file.
find_path(MYHTML_INCLUDE_DIR myhtml/myhtml.h)
find_library(MYHTML_LIBRARY modest)
if(MYHTML_INCLUDE_DIR AND MYHTML_LIBRARY)
  set(PRESTO_HAVE_MYHTML 1)
  add_library(presto_myhtml INTERFACE)
  target_include_directories(presto_myhtml SYSTEM INTERFACE ${MYHTML_INCLUDE_DIR})
  target_link_libraries(presto_myhtml INTERFACE ${MYHTML_LIBRARY})
  string(APPEND PRESTO_PC_LIBS " -lmodest")
else()
  set(PRESTO_HAVE_MYHTML 0)
  message(STATUS "MyHTML (libmodest) not found: what needs it is left out")
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
