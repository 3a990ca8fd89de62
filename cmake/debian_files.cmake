# Run by cpack on the installed files of a Debian package: applies those rules of Debian's policy that `cmake --install`
# does not.
if(CPACK_GENERATOR STREQUAL "DEB")
  # They would have those of the umask.
  execute_process(COMMAND find ${CPACK_TEMPORARY_DIRECTORY} -type d -exec chmod 755 {} + COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB pages ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/man1/*.1)
  if(pages)
    execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  # The licence is in the file copyright of every package.
  file(GLOB licences ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/LICENSE)
  if(licences)
    file(REMOVE ${licences})
  endif()
  # Sections with the compiler's version.
  file(GLOB programs ${CPACK_TEMPORARY_DIRECTORY}/*/usr/bin/* ${CPACK_TEMPORARY_DIRECTORY}/*/usr/lib/*/*.so.*.*.*)
  file(GLOB archives ${CPACK_TEMPORARY_DIRECTORY}/*/usr/lib/*/*.a)
  if(CPACK_HMMJIT_STRIP)
    foreach(file IN LISTS programs archives)
      if(NOT IS_SYMLINK ${file})
        execute_process(COMMAND ${CPACK_HMMJIT_STRIP} --strip-unneeded --remove-section=.comment --remove-section=.note
                                ${file} COMMAND_ERROR_IS_FATAL ANY)
      endif()
    endforeach()
  endif()
endif()
