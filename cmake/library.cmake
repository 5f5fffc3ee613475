# SPDX-License-Identifier: Apache-2.0
# libpresto, static and shared, from the folders' object libraries.
set(presto_parts presto_base presto_storage presto_records presto_steps presto_loader presto_profile)
foreach(kind STATIC SHARED)
  string(TOLOWER presto_${kind} target)
  add_library(${target} ${kind})
  foreach(part ${presto_parts})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${part}>)
    target_link_libraries(${target} PRIVATE $<TARGET_PROPERTY:${part},LINK_LIBRARIES>)
  endforeach()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME presto)
endforeach()
# C++ templates of the standard library are never hidden by the compiler.
target_link_options(presto_shared PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/presto.map)
set_target_properties(presto_shared PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/presto.map)
# Until 1.0, another second number may be another interface (docs/compatibility.md).
set(presto_interface ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(presto_interface 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(presto_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${presto_interface})

# presto.pc tells where it is by its own place, so that an installation may be moved; folders that were configured as absolute
# ones stay where they are.
foreach(name LIBDIR INCLUDEDIR)
  set(presto_pc_${name} "${CMAKE_INSTALL_${name}}")
  if(NOT IS_ABSOLUTE "${presto_pc_${name}}")
    string(PREPEND presto_pc_${name} "\${prefix}/")
  endif()
endforeach()
file(RELATIVE_PATH presto_pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" presto_pc_prefix "${presto_pc_prefix}")
configure_file(cmake/presto.pc.in presto.pc @ONLY)
install(TARGETS presto_static presto_shared
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/presto DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/presto.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
