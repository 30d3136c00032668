# SPDX-License-Identifier: Apache-2.0
# What `make install` installs besides the program, and the packages that CPack makes of it:
# scripts/package.
include(GNUInstallDirs)
install(FILES packaging/pyrometer.service DESTINATION lib/systemd/system)
install(FILES packaging/pyrometer.yaml DESTINATION /etc/pyrometer
        PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/pyrometer)

set(CPACK_PACKAGE_NAME pyrometer)
set(CPACK_PACKAGE_VENDOR "The Pyrometer authors")
set(CPACK_PACKAGE_CONTACT "The Pyrometer authors <pyrometer@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Continuous profiler of whole machines, by eBPF")
set(CPACK_PACKAGE_DESCRIPTION
    "Samples every process of a Linux machine with eBPF, without touching the programs, names the
hot functions, and delivers profiles to Pyroscope, Parca, OTLP receivers or files.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/debian/conffiles ${PROJECT_SOURCE_DIR}/packaging/debian/postinst
    ${PROJECT_SOURCE_DIR}/packaging/debian/prerm ${PROJECT_SOURCE_DIR}/packaging/debian/postrm)

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)")
set(CPACK_RPM_PACKAGE_REQUIRES "shadow-utils, ca-certificates")
set(CPACK_RPM_USER_FILELIST "%config(noreplace) %attr(640,root,root) /etc/pyrometer/pyrometer.yaml")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /etc /lib /usr/lib/systemd /usr/lib/systemd/system /lib/systemd /lib/systemd/system)
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/packaging/rpm/postinstall.sh)
set(CPACK_RPM_PRE_UNINSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/packaging/rpm/preuninstall.sh)
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/packaging/rpm/postuninstall.sh)
include(CPack)
