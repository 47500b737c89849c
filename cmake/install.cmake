# What `make install` puts where. All paths are relative to the prefix, so that DESTDIR and a prefix
# given at install time work, and the installed tree may be moved.
include(CMakePackageConfigHelpers)

set(STINT_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/stint)

install(TARGETS stint RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The library. Its errors are the program's own: base/error.h is installed in the place of the
# forwarding header of the source tree.
install(TARGETS stint_lib EXPORT stintTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/stint DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN error.h EXCLUDE)
install(FILES src/base/error.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stint)

install(EXPORT stintTargets NAMESPACE stint:: DESTINATION ${STINT_CMAKE_DIR})
configure_package_config_file(cmake/stintConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/stintConfig.cmake
  INSTALL_DESTINATION ${STINT_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/stintConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/stintConfig.cmake ${PROJECT_BINARY_DIR}/cmake/stintConfigVersion.cmake
  DESTINATION ${STINT_CMAKE_DIR})

# pkg-config: the prefix is found from where the file stands.
file(RELATIVE_PATH STINT_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(packaging/stint.pc.in ${PROJECT_BINARY_DIR}/packaging/stint.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/packaging/stint.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The unit names the program where it is installed; whoever wants the service copies it.
configure_file(packaging/systemd/stint.service.in ${PROJECT_BINARY_DIR}/packaging/stint.service @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/packaging/stint.service packaging/systemd/serve.toml
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/packaging/systemd)
install(DIRECTORY packaging/monitoring DESTINATION ${CMAKE_INSTALL_DOCDIR}/packaging)

# Manual pages and completions are what the program itself prints.
if(NOT CMAKE_CROSSCOMPILING)
  set(PAGES ${PROJECT_BINARY_DIR}/pages)
  add_custom_command(OUTPUT ${PAGES}/made
    COMMAND ${PROJECT_SOURCE_DIR}/packaging/make_pages.sh $<TARGET_FILE:stint> ${PAGES}
    DEPENDS stint packaging/make_pages.sh
    COMMENT "Making manual pages and completions" VERBATIM)
  add_custom_target(pages ALL DEPENDS ${PAGES}/made)
  install(DIRECTORY ${PAGES}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${PAGES}/stint.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME stint)
  install(FILES ${PAGES}/_stint DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${PAGES}/stint.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
