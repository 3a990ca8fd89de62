# Run by cpack on its packages: removes the scripts with which CPack calls ldconfig for shared libraries. Debian's policy
# requires a trigger instead (CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA).
if(CPACK_GENERATOR STREQUAL "DEB")
  find_program(dpkg_deb dpkg-deb REQUIRED)
  foreach(package IN LISTS CPACK_PACKAGE_FILES)
    set(folder ${package}.unpacked)
    execute_process(COMMAND ${dpkg_deb} --raw-extract ${package} ${folder} COMMAND_ERROR_IS_FATAL ANY)
    if(EXISTS ${folder}/DEBIAN/postinst)
      file(REMOVE ${folder}/DEBIAN/postinst ${folder}/DEBIAN/postrm)
      execute_process(COMMAND ${dpkg_deb} --root-owner-group --build ${folder} ${package} OUTPUT_QUIET
                      COMMAND_ERROR_IS_FATAL ANY)
    endif()
    file(REMOVE_RECURSE ${folder})
  endforeach()
endif()
