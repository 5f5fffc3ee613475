# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=x.c -DPAGE=folder [-DCHARTS=chart.min.js -DLICENCE=copyright] -P embed.cmake:
# the report's page with its style and scripts in it, and the charts' library, with its licence in a
# comment before it, as C arrays.
set(scripts figures.js answer.js table.js canvas.js charts.js)

function(read_hex file out)
  file(READ ${file} hex HEX)
  set(${out} "${hex}" PARENT_SCOPE)
endfunction()

function(to_array hex out)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  set(${out} "${hex}" PARENT_SCOPE)
endfunction()

# Puts content in the place of a mark. As hexadecimal digits, no character of it means anything to CMake.
function(put mark content)
  string(HEX "${mark}" mark_hex)
  string(FIND "${page}" "${mark_hex}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "page.html lacks ${mark}")
  endif()
  string(REPLACE "${mark_hex}" "${content}" filled "${page}")
  set(page "${filled}" PARENT_SCOPE)
endfunction()

read_hex(${PAGE}/page.html page)
read_hex(${PAGE}/style.css style)
set(script "")
foreach(name IN LISTS scripts)
  read_hex(${PAGE}/${name} part)
  string(APPEND script "${part}")
endforeach()
put("/*@STYLE@*/" "${style}")
put("/*@SCRIPT@*/" "${script}")
to_array("${page}" template)
set(charts "")
if(CHARTS)
  # "/*" and "*/" around the licence: neither occurs in it, or it would not be embedded as it is.
  file(READ ${LICENCE} licence)
  string(FIND "${licence}" "*/" ends)
  if(NOT ends EQUAL -1)
    message(FATAL_ERROR "${LICENCE} cannot stand in a comment")
  endif()
  file(WRITE ${OUTPUT}.licence "/*\n${licence}*/\n")
  read_hex(${OUTPUT}.licence licence_hex)
  read_hex(${CHARTS} library_hex)
  to_array("${licence_hex}" licence)
  to_array("${library_hex}" library)
  set(charts "${licence}${library}")
endif()
file(WRITE ${OUTPUT}.new "/* Made by profile/report/embed.cmake. */
#include \"profile_internal.h\"

const unsigned char presto__report_template[] = {
${template}0x00,
};
/* Empty if this build has no charts. */
const unsigned char presto__report_charts[] = {
${charts}0x00,
};
")
file(RENAME ${OUTPUT}.new ${OUTPUT})
