# SPDX-License-Identifier: Apache-2.0
#
# PYROMETER_PAGE_SOURCE: a C++ file that holds the page of EncodeHtml. The libraries come from npm
# into the build directory, exactly those whose hashes package-lock.json names; after that no
# network is needed. Node runs at build time only.
find_program(NODE NAMES node nodejs REQUIRED)
find_program(NPM NAMES npm REQUIRED)

set(page_source_dir ${CMAKE_CURRENT_LIST_DIR})
set(page_build_dir ${CMAKE_CURRENT_BINARY_DIR}/html)
set(page_lock ${page_source_dir}/package.json ${page_source_dir}/package-lock.json
              ${page_source_dir}/.npmrc)
set(page_parts page.html page.css profile.js call_tree.js flame_view.js table_view.js main.js)
list(TRANSFORM page_parts PREPEND ${page_source_dir}/)
set(PYROMETER_PAGE_SOURCE ${page_build_dir}/html_page.cc)

add_custom_command(
  OUTPUT ${page_build_dir}/installed
  COMMAND ${CMAKE_COMMAND} -DNPM=${NPM} -DFROM=${page_source_dir} -DTO=${page_build_dir}
          -P ${page_source_dir}/install.cmake
  DEPENDS ${page_lock} ${page_source_dir}/install.cmake
  COMMENT "npm ci for the flame graph page" VERBATIM)
add_custom_command(
  OUTPUT ${PYROMETER_PAGE_SOURCE}
  COMMAND ${NODE} ${page_source_dir}/bundle.mjs ${page_build_dir}/node_modules
          ${PYROMETER_PAGE_SOURCE}
  DEPENDS ${page_build_dir}/installed ${page_source_dir}/bundle.mjs ${page_parts}
  COMMENT "flame graph page" VERBATIM)
