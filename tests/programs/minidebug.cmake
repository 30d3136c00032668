# SPDX-License-Identifier: Apache-2.0
# OUT becomes IN without symbols but with .gnu_debugdata, an xz-compressed ELF file that has only
# the symbol table, as Fedora ships its programs.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${OBJCOPY} --only-keep-debug --remove-section=.gdb_index --remove-section=.comment
    ${IN} ${OUT}.debug)
run(xz --force --keep ${OUT}.debug)
run(${STRIP} -o ${OUT} ${IN})
run(${OBJCOPY} --add-section .gnu_debugdata=${OUT}.debug.xz ${OUT})
file(REMOVE ${OUT}.debug ${OUT}.debug.xz)
