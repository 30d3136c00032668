# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` installs besides the program, and the packages that CPack makes of it:
# scripts/package.
include(GNUInstallDirs)
set(doc_directory ${CMAKE_INSTALL_DATADIR}/doc/pyrometer)
# Both distributions look in /usr/lib, whatever their libraries' directory is.
install(FILES packaging/pyrometer.service DESTINATION lib/systemd/system)
# Absolute: it is the path that the program reads, whatever the prefix.
install(FILES packaging/pyrometer.yaml DESTINATION /etc/pyrometer
        PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
install(FILES packaging/README.md NOTICE DESTINATION ${doc_directory})
install(FILES packaging/debian/copyright DESTINATION ${doc_directory})

set(CPACK_PACKAGE_NAME pyrometer)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "The Pyrometer authors")
set(CPACK_PACKAGE_CONTACT "The Pyrometer authors <pyrometer@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "continuous profiler of whole machines")
set(CPACK_PACKAGE_DESCRIPTION
    "Samples every process of a Linux machine with eBPF, without a change to the
programs, names the hot functions, and delivers profiles to Pyroscope, Parca,
OTLP receivers or files.")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
# A directory that the umask of whoever builds has made is nobody's choice.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libdebuginfod1")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA conffiles postinst prerm postrm)
list(TRANSFORM CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA PREPEND ${PROJECT_SOURCE_DIR}/packaging/debian/)

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)")
set(CPACK_RPM_PACKAGE_DESCRIPTION ${CPACK_PACKAGE_DESCRIPTION})
# The same input gives the same bytes. A link by build id would be in the way of other versions.
string(JOIN "\n" CPACK_RPM_SPEC_MORE_DEFINE
  "%define use_source_date_epoch_as_buildtime 1" "%define clamp_mtime_to_source_date_epoch 1"
  "%define _buildhost localhost" "%define _build_id_links none")
set(CPACK_RPM_PACKAGE_REQUIRES_PRE "shadow-utils")
set(CPACK_RPM_PACKAGE_REQUIRES "shadow-utils, ca-certificates")
set(CPACK_RPM_USER_FILELIST "%config(noreplace) %attr(640,root,pyrometer) /etc/pyrometer/pyrometer.yaml")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /etc /usr/lib/systemd /usr/lib/systemd/system)
# The file's group has to be there before the file.
set(CPACK_RPM_PRE_INSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/packaging/rpm/preinstall.sh)
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/packaging/rpm/postinstall.sh)
set(CPACK_RPM_PRE_UNINSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/packaging/rpm/preuninstall.sh)
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/packaging/rpm/postuninstall.sh)
include(CPack)
