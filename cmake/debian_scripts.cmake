# Run by cpack on the packages it has made. CPack writes scripts that call ldconfig into every package with a shared
# library; Debian's policy wants the trigger instead, which the package has (CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA).
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
