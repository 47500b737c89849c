# The web page as a module of the program. page/built is made from page/ by page/build.sh and kept with the
# sources, so that nothing here calls npm; the test page_built compares the two.
file(GLOB_RECURSE PAGE_FILES CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/page/built ${PROJECT_SOURCE_DIR}/page/built/*)
set(PAGE_TYPE_html "text/html; charset=utf-8")
set(PAGE_TYPE_js "text/javascript; charset=utf-8")
set(PAGE_TYPE_css "text/css; charset=utf-8")
set(PAGE_TYPE_svg "image/svg+xml")
set(PAGE_BYTES "")
set(PAGE_TABLE "")
set(PAGE_PACKED "")
set(page_number 0)
foreach(name ${PAGE_FILES})
  set(plain ${PROJECT_SOURCE_DIR}/page/built/${name})
  set(packed ${PROJECT_BINARY_DIR}/page/${page_number}.gz)
  # -n: no name and no time in it, so that the same page is the same module.
  add_custom_command(OUTPUT ${packed}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/page
    COMMAND sh -c "gzip -9nc '${plain}' > '${packed}'" DEPENDS ${plain} VERBATIM)
  list(APPEND PAGE_PACKED ${packed} ${plain})
  file(SHA256 ${plain} digest)
  string(SUBSTRING ${digest} 0 32 digest)
  # The tag is of this file as it stands now: when it changes, so does the tag.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${plain})
  get_filename_component(extension ${name} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  set(path /${name})
  if(name STREQUAL "index.html")
    set(path /)
  endif()
  string(APPEND PAGE_BYTES "PAGE_FILE(${page_number}, \"${plain}\", \"${packed}\")\n")
  string(APPEND PAGE_TABLE "      {\"${path}\", \"${PAGE_TYPE_${extension}}\", \"\\\"${digest}\\\"\", "
    "view(plain_${page_number}, plain_end_${page_number}), view(packed_${page_number}, packed_end_${page_number})},\n")
  math(EXPR page_number "${page_number} + 1")
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/src/server/page_module.cc.in ${PROJECT_BINARY_DIR}/page/module.cc @ONLY)
set_source_files_properties(${PROJECT_BINARY_DIR}/page/module.cc PROPERTIES OBJECT_DEPENDS "${PAGE_PACKED}"
  SKIP_UNITY_BUILD_INCLUSION ON)
stint_store_module(page ${PROJECT_BINARY_DIR}/page/module.cc base)
