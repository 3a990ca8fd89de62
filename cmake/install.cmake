# Installation and packages. Installed files contain no absolute paths: a prefix may be moved and may contain blanks. The
# libraries contain the kernel templates.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# If the target `kernels` has been built.
function(install_kernels folder component)
  install(DIRECTORY ${kernel_folder}/ DESTINATION ${folder} COMPONENT ${component} OPTIONAL
          FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
          DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
          PATTERN lock EXCLUDE PATTERN statistics EXCLUDE PATTERN CACHEDIR.TAG EXCLUDE)
endfunction()

# A wheel (pyproject.toml) contains the package, the library and the program, without links, which wheels do not allow, and
# the licences of all libraries that are linked in or may be bundled, from Debian's packages.
if(SKBUILD)
  set_target_properties(hmmjit_shared PROPERTIES VERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  install(TARGETS hmmjit RUNTIME DESTINATION hmmjit/bin COMPONENT wheel)
  install(TARGETS hmmjit_shared LIBRARY DESTINATION hmmjit NAMELINK_SKIP COMPONENT wheel)
  install_kernels(hmmjit/share/hmmjit/kernels wheel)
  set(HMMJIT_LICENCE_FOLDER /usr/share/doc CACHE PATH "Folder with a folder and a file 'copyright' for each package")
  foreach(package nlohmann-json3-dev libboost-dev libxxhash-dev libfmt-dev libhwy-dev libzstd-dev
                  zlib1g-dev)
    set(copyright ${HMMJIT_LICENCE_FOLDER}/${package}/copyright)
    if(EXISTS ${copyright})
      install(FILES ${copyright} DESTINATION hmmjit/licences RENAME ${package}.txt COMPONENT wheel)
    else()
      message(WARNING "${copyright} is not here: a wheel to be published must have it (HMMJIT_LICENCE_FOLDER)")
    endif()
  endforeach()
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/hmmjit)
install(TARGETS hmmjit RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(TARGETS hmmjit_shared EXPORT hmmjit_shared
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS hmmjit_static EXPORT hmmjit_static
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY engine/api/include/hmmjit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
foreach(kind shared static)
  install(EXPORT hmmjit_${kind} FILE hmmjit-${kind}.cmake NAMESPACE hmmjit::
          DESTINATION ${package_folder} COMPONENT development)
endforeach()

configure_package_config_file(cmake/hmmjit-config.cmake.in ${PROJECT_BINARY_DIR}/package/hmmjit-config.cmake
  INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/hmmjit-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/hmmjit-config.cmake
              ${PROJECT_BINARY_DIR}/package/hmmjit-config-version.cmake
        DESTINATION ${package_folder} COMPONENT development)

set(pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE HMMJIT_PC_TO_PREFIX)
foreach(kind LIB INCLUDE)
  set(HMMJIT_PC_${kind}DIR "\${prefix}")
  cmake_path(APPEND HMMJIT_PC_${kind}DIR "${CMAKE_INSTALL_${kind}DIR}")  # an absolute path replaces the prefix
endforeach()
set(HMMJIT_PC_URL "")
if(HMMJIT_HOMEPAGE_URL)
  set(HMMJIT_PC_URL "URL: ${HMMJIT_HOMEPAGE_URL}\n")
endif()
foreach(name hmmjit hmmjit-static)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/package/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/${name}.pc DESTINATION ${pc_folder} COMPONENT development)
endforeach()

install_kernels(${CMAKE_INSTALL_DATADIR}/hmmjit/kernels kernels)

install(DIRECTORY engine/api/python/hmmjit DESTINATION lib/python3/dist-packages COMPONENT python
        PATTERN __pycache__ EXCLUDE)
# For pip and importlib.metadata.
file(WRITE ${PROJECT_BINARY_DIR}/package/METADATA
     "Metadata-Version: 2.1\nName: hmmjit\nVersion: ${PROJECT_VERSION}\nSummary: ${PROJECT_DESCRIPTION}\n"
     "License: BSD-3-Clause\nRequires-Python: >=3.8\n")
file(WRITE ${PROJECT_BINARY_DIR}/package/INSTALLER "cmake\n")
install(FILES ${PROJECT_BINARY_DIR}/package/METADATA ${PROJECT_BINARY_DIR}/package/INSTALLER
        DESTINATION lib/python3/dist-packages/hmmjit-${PROJECT_VERSION}.dist-info COMPONENT python)

# Documents keep their relative places, so that their links work.
install(FILES README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md CITATION.cff LICENSE SECURITY.md UPGRADING.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents PATTERN docs/sphinx EXCLUDE)
install(DIRECTORY tools/packaging DESTINATION ${CMAKE_INSTALL_DOCDIR}/tools COMPONENT documents)
install(FILES kernel_templates/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/kernel_templates COMPONENT documents)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents
        PATTERN __pycache__ EXCLUDE
        PATTERN examples/CMakeLists.txt EXCLUDE  # for hmmjit's own build
        PATTERN tests EXCLUDE
        PATTERN *.sh PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# ---- packages: cpack -G DEB in the build folder, configured with -DCMAKE_INSTALL_PREFIX=/usr --------
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME hmmjit)
set(CPACK_PACKAGE_CONTACT ${HMMJIT_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
if(HMMJIT_HOMEPAGE_URL)
  set(CPACK_PACKAGE_HOMEPAGE_URL ${HMMJIT_HOMEPAGE_URL})
endif()
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL tools runtime development python documents)
set(packages tools:hmmjit development:libhmmjit-dev python:python3-hmmjit documents:hmmjit-doc)
if(EXISTS ${kernel_folder})
  list(APPEND CPACK_COMPONENTS_ALL kernels)
  list(APPEND packages kernels:hmmjit-kernels)
endif()
set(CPACK_DEBIAN_KERNELS_PACKAGE_NAME hmmjit-kernels)
set(CPACK_DEBIAN_KERNELS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_KERNELS_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(library_package libhmmjit${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME hmmjit)
# Debian has NVRTC in non-free since version 13; NVIDIA's packages for Debian have the version in their name.
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS
    "hmmjit-doc, hmmjit-kernels, libcuda1, libnvrtc12 | cuda-nvrtc-12-9 | cuda-nvrtc-13-0")
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_NAME hmmjit-doc)
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOCUMENTS_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "hmmjit-kernels, libcuda1, libnvrtc12 | cuda-nvrtc-12-9 | cuda-nvrtc-13-0")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)  # dependencies of packages that link with the library
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/package/triggers)
file(WRITE ${PROJECT_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libhmmjit-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS
    "libfmt-dev, libzstd-dev, zlib1g-dev, pkg-config, hmmjit-doc")  # static linking
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-hmmjit)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3, ${library_package}")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-numpy, python3-pandas")
# The first paragraph of all packages. Line lengths follow Debian's policy.
set(about "hmmjit searches profile hidden Markov models of protein families, such as
Pfam's, against protein sequences and prints what hmmsearch of HMMER prints,
byte for byte. It reads the sequences once for all models, keeps every core
busy, and filters on an NVIDIA GPU where there is one.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "${about}

This package has the program hmmjit with the commands search, phmmer,
jackhmmer, scan, build and others, its manual pages and the completions of
shells.")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "${about}

This package has the shared library, for programs that search without
starting another process.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "${about}

This package has the headers of the interfaces for C and C++, the static
library, and the files by which CMake and pkg-config find them.")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "${about}

This package has the interface for Python.")
set(CPACK_COMPONENT_DOCUMENTS_DESCRIPTION "${about}

This package has the user guide, the reference, the descriptions of file
formats, and example projects.")
set(CPACK_COMPONENT_KERNELS_DESCRIPTION "${about}

This package has compiled GPU kernels for common lengths of models, so that
a first search on a GPU compiles none.")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_scripts.cmake)
set(CPACK_HMMJIT_STRIP ${CMAKE_STRIP})

# Debian's policy requires licence and changelog in every package.
file(READ LICENSE licence)
string(STRIP "${licence}" licence)
string(REGEX REPLACE "\n\n" "\n.\n" licence "${licence}")
string(REPLACE "\n" "\n " licence "${licence}")
set(package_files ${PROJECT_BINARY_DIR}/package)
file(WRITE ${package_files}/copyright
     "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: hmmjit\n\n"
     "Files: *\nCopyright: 2026 the hmmjit authors\nLicense: BSD-3-clause\n ${licence}\n")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH where that is set
file(WRITE ${package_files}/changelog
     "hmmjit (${PROJECT_VERSION}) unstable; urgency=medium\n\n"
     "  * Version ${PROJECT_VERSION}; CHANGELOG.md in the package hmmjit-doc lists the changes.\n\n"
     " -- ${HMMJIT_MAINTAINER}  ${now}\n")
find_program(HMMJIT_GZIP gzip)
if(HMMJIT_GZIP)
  execute_process(COMMAND ${HMMJIT_GZIP} -9nkf ${package_files}/changelog COMMAND_ERROR_IS_FATAL ANY)
  foreach(pair ${packages} runtime:${library_package})
    string(REGEX REPLACE ":.*" "" component ${pair})
    string(REGEX REPLACE ".*:" "" package ${pair})
    install(FILES ${package_files}/copyright ${package_files}/changelog.gz
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
  endforeach()
endif()
include(CPack)
