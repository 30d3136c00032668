// SPDX-License-Identifier: Apache-2.0
// Call frame information of every kind, for the fuzzer to begin with. Never executed.
        .text
        .globl ordinary, realigned, signal_return, vfork_like, jumps, outermost, everything

        .macro function name
\name:
        .cfi_startproc
        .endm
        .macro end
        nop
        .cfi_endproc
        .endm

        function ordinary
        push %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov %rsp, %rbp
        .cfi_def_cfa_register %rbp
        .cfi_remember_state
        pop %rbp
        .cfi_def_cfa %rsp, 8
        .cfi_restore %rbp
        ret
        .cfi_restore_state
        end

        function realigned
        .cfi_escape 0x0f, 3, 0x76, 0x78, 0x06          // CFA = *(rbp - 8)
        nop
        .cfi_escape 0x10, 6, 2, 0x76, 0                 // rbp at *(rbp)
        nop
        .cfi_escape 0x0f, 5, 0x77, 0x10, 0x06, 0x23, 8  // CFA = *(rsp + 16) + 8
        end

        function signal_return
        .cfi_signal_frame
        .cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06
        .cfi_escape 0x10, 16, 3, 0x77, 0xa8, 0x01
        end

        function vfork_like
        pop %rdi
        .cfi_register %rip, %rdi
        .cfi_adjust_cfa_offset -8
        nop
        .cfi_register %rbp, %r11
        end

        function jumps  // a PLT
        .cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
        end

        function outermost
        .cfi_undefined %rip
        end

        function everything
        .cfi_val_offset %r12, -16
        .cfi_same_value %rbx
        .cfi_undefined %rbp
        .skip 300
        .cfi_def_cfa %r10, 0
        .skip 70000
        .cfi_escape 0x2e, 8
        .cfi_escape 0x16, 14, 2, 0x77, 8
        .cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8
        end

        .section .note.GNU-stack, "", @progbits
